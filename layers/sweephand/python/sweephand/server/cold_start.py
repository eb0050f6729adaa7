"""Disables garbage collection while a function starts. Every function imports it first.

A start creates some 90,000 lasting objects, and the collector would traverse them again and again, for a seventh of a
cold start's CPU time. Source: decision 0015.
"""

from __future__ import annotations

import gc

gc.disable()


def over() -> None:
    """Enables garbage collection, but not of the objects that exist now."""
    gc.freeze()
    gc.enable()
