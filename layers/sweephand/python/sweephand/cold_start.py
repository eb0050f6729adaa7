"""Imported first by every function: no garbage is collected while it starts.

A start makes some 90,000 objects that stay, and the collector would walk through them again and again: a seventh of
a cold start's CPU time. Source: decision 0015.
"""

from __future__ import annotations

import gc

gc.disable()


def over() -> None:
    """From here on garbage is collected as usual, among what comes after: what is there now stays to the end."""
    gc.freeze()
    gc.enable()
