"""What the user reads."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """One or more lines on standard output, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def say_error(text: str) -> None:
    """One or more lines on standard error, at once."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
