"""Output for the user."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """Writes lines to standard output and flushes."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def say_error(text: str) -> None:
    """Writes lines to standard error and flushes."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
