"""Work counted in calls, which are the same on every machine, and not in time, which is not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

CALLS = 250_000
"""Function calls, of Python and of C: some 30 ms."""


OURS = ("/sweephand/python/", "/difflib.py")
"""The files of the package, and of the library that compares names."""


class TooMuchWork(AssertionError):
    """It was given up."""


@contextmanager
def few_calls(most: int = CALLS, within: tuple[str, ...] = ("",)) -> Iterator[None]:
    """Fails on more than `most` calls. within: counts only those from or to files whose path contains one of these."""
    calls = 0

    def count(frame: FrameType, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call") and any(each in frame.f_code.co_filename for each in within)
        if calls > most:
            sys.setprofile(None)
            raise TooMuchWork(f"more than {most:,} calls")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)
