"""Ids: how they are built and read. Pure; random bytes are an argument (sources.py).

Job and schedule ids are UUIDv7 (RFC 9562), which sort by creation. A run id is a UUIDv8 computed from the run's facts,
so that every duplicate of a message, sweep or repair gives the same id.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from typing import SupportsInt

UUID_TEXT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)


def uuid7(epoch_ms: int, chance: bytes) -> str:
    """Returns a UUIDv7: 48 bits of Unix milliseconds, then 74 bits of the ten bytes `chance`."""
    noise = int.from_bytes(chance[:10], "big")
    value = (
        (epoch_ms & (1 << 48) - 1) << 80 | 0x7 << 76 | (noise >> 62 & 0xFFF) << 64 | 0b10 << 62 | noise & (1 << 62) - 1
    )
    return str(uuid.UUID(int=value))


def run_uuid(tenant: str, owner: str, instant_ms: int, kind: str, key: str = "") -> str:
    """Returns a run's UUIDv8: 48 bits of the planned instant (Unix ms), 74 bits of SHA-256 over the run's facts.

    owner: the schedule's id, or the job's for a run without a schedule. key: distinguishes manual runs of one instant.
    """
    facts = "\x00".join((tenant, owner, str(instant_ms), kind, key)).encode()
    digest = int.from_bytes(hashlib.sha256(facts).digest()[:10], "big") >> 6
    value = (
        (instant_ms & (1 << 48) - 1) << 80
        | 0x8 << 76
        | (digest >> 62 & 0xFFF) << 64
        | 0b10 << 62
        | digest & (1 << 62) - 1
    )
    return str(uuid.UUID(int=value))


def range_uuid(tenant: str, schedule_id: str, instant_ms: int) -> str:
    """Returns the id of the ledger range that begins at an instant: a run's id that no single run has."""
    return run_uuid(tenant, schedule_id, instant_ms, "scheduled", "range")


def instant_ms_of(run: str) -> int:
    """Returns the planned instant (Unix ms) in a run's UUID."""
    return uuid.UUID(run).int >> 80


def order_of(uuid_text: str) -> int:
    """Returns a UUID's 122 bits without version and variant. They sort like the strings of UUIDs of one version."""
    value = uuid.UUID(uuid_text).int
    return value >> 80 << 74 | (value >> 64 & 0xFFF) << 62 | value & (1 << 62) - 1


def first_order_at(instant_ms: int) -> int:
    """Returns the smallest order that a run of this instant (Unix ms) can have."""
    return instant_ms << 74


def first_uuid_at(instant_ms: int) -> str:
    """Returns the smallest UUID that a run of this instant (Unix ms) can have."""
    return str(uuid.UUID(int=instant_ms << 80 | 0x8 << 76 | 0b10 << 62))


def instant_ms_of_order(order: int) -> int:
    return order >> 74


SHARDS = 64
"""Partitions of the next-run index in a new stack. Each bears 500 advances a second for ever (decision 0190)."""


def shard_of(text: str, shards: SupportsInt) -> int:
    """Returns the shard of an id, 0 <= shard < shards. Uses SHA-256, because Python's hash() differs between processes.

    shards: their number, or an object that reads it when it is needed.
    """
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % int(shards)


def is_uuid(text: str) -> bool:
    return UUID_TEXT.fullmatch(text) is not None
