"""Keeps a function's threads on one of its processors.

Lambda shows two processors to a function that pays for a share of one. Ten runs in flight are ten threads that take
turns with the interpreter. If a thread wakes on the second processor while one runs on the first, both spend the share
on waking, asking for the lock, and sleeping again. Ten runs in flight took 2.0 to 2.2 ms of CPU each on two idle
processors, and 1.2 to 1.5 ms on one; 3.0 and 2.1 ms over TLS. Source: decision 0049.
"""

from __future__ import annotations

import os
from contextlib import suppress


def stay() -> None:
    """Binds this thread, and every thread started after it, to one processor. Call it in a process's first thread.

    The process id selects the processor, so that several processes on one machine use different ones. Does nothing if
    the system does not support it (macOS) or refuses.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    with suppress(OSError):
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {allowed[os.getpid() % len(allowed)]})
