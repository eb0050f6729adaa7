"""The mark of a pointer in an application's queue: only the service can make it, so a worker can forge no message."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.message import Pointer, encode

LONGEST_KEPT = timedelta(days=14, hours=1)
"""Longer than a queue keeps a message, and shorter than the ledger keeps a run (flow.retention)."""


def marked(pointer: Pointer, key: bytes, now: datetime) -> Pointer:
    """Returns the pointer with the mark of a message that is sent now."""
    return replace(pointer, mark=_mark(pointer, key, epoch_s(now)))


def is_ours(pointer: Pointer, key: bytes, now: datetime) -> bool:
    """Returns whether the service sent this pointer, no longer ago than a queue keeps it."""
    second = (pointer.mark or "").partition(".")[0]
    if not (second.isascii() and second.isdigit() and len(second) <= 12):
        return False
    if now - from_s(int(second)) > LONGEST_KEPT:
        return False
    return hmac.compare_digest(_mark(pointer, key, int(second)).encode(), str(pointer.mark).encode(errors="replace"))


def _mark(pointer: Pointer, key: bytes, second: int) -> str:
    text = f"{second}.{encode(replace(pointer, mark=None))}"
    return f"{second}.{hmac.new(key, text.encode(errors='replace'), hashlib.sha256).hexdigest()[:32]}"
