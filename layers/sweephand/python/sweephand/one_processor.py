"""Keeps a function's threads on one of its processors.

Lambda shows two processors to a function that pays for a share of one. Ten runs in flight are ten threads that take
turns with the interpreter; if a thread wakes on the other processor while one runs on the first, both spend the share
on waking, asking for the lock, and sleeping again. Ten in flight took 2.0 to 2.2 ms of CPU a run on two processors
that had nothing else to do, and 1.2 to 1.5 on one of them; 3.0 and 2.1 over TLS. Source: decision 0049.
"""

from __future__ import annotations

import os
from contextlib import suppress


def stay() -> None:
    """From here on this thread, and each that begins after it, stays where it was put. For a process's first thread.

    Which of those that are allowed goes by the process's number, so that several on one machine spread over it.
    Where the system has no such wish (macOS), or refuses it, all stays as it was.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    with suppress(OSError):
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {allowed[os.getpid() % len(allowed)]})
