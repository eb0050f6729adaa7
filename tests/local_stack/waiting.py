"""Waiting for events that take a while. How long that takes is the machine's affair; the limit is for what never comes.

A state is not all of a run: its effects, and what others hear of it, follow a moment later. Whoever looks at those
waits for them too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sweephand.base.sources import SystemClock

T = TypeVar("T")
CLOCK = SystemClock()
WITHIN_S = 180.0
"""Many times what it takes on a quiet machine."""
LOOKS_EACH_S = 0.1


def until(look: Callable[[], T], wanted: Callable[[T], object] = bool) -> T:
    """Returns what `look` gives once it is wanted; without `wanted`, once it gives something."""
    end = CLOCK.monotonic() + WITHIN_S
    while not wanted(there := look()):
        assert CLOCK.monotonic() < end, f"not within {WITHIN_S:.0f} s; it is {there!r}"
        CLOCK.sleep(LOOKS_EACH_S)
    return there
