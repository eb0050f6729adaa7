"""Ids as facts: how they are built and read back. Pure; chance comes in as bytes (sources.py).

Job and schedule ids are UUIDv7 (RFC 9562): they sort by creation. A run id is a UUIDv8 computed from what the run is,
so every duplicate of a message, sweep or repair meets the same id.
"""

from __future__ import annotations

import hashlib
import re
import uuid

UUID_TEXT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)


def uuid7(epoch_ms: int, chance: bytes) -> str:
    """A UUIDv7: 48 bits of Unix milliseconds, then 74 bits of the ten bytes `chance`."""
    noise = int.from_bytes(chance[:10], "big")
    value = (
        (epoch_ms & (1 << 48) - 1) << 80 | 0x7 << 76 | (noise >> 62 & 0xFFF) << 64 | 0b10 << 62 | noise & (1 << 62) - 1
    )
    return str(uuid.UUID(int=value))


def run_uuid(tenant: str, owner: str, instant_ms: int, kind: str, key: str = "") -> str:
    """The run's UUIDv8: 48 bits of the planned instant (Unix ms), 74 bits of SHA-256 over what makes the run itself.

    owner: the schedule's id, or the job's for a run without a schedule. key: tells manual runs of one instant apart.
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


def instant_ms_of(run: str) -> int:
    """The planned instant (Unix ms) that a run's UUID carries."""
    return uuid.UUID(run).int >> 80


def order_of(uuid_text: str) -> int:
    """A number of 122 bits that sorts as the texts of UUIDs of one version do: all but version and variant."""
    value = uuid.UUID(uuid_text).int
    return value >> 80 << 74 | (value >> 64 & 0xFFF) << 62 | value & (1 << 62) - 1


def first_order_at(instant_ms: int) -> int:
    """Not greater than the order of any run of this instant (Unix ms)."""
    return instant_ms << 74


def instant_ms_of_order(order: int) -> int:
    return order >> 74


SHARDS = 16
"""Partitions of the next-run index.

The number is fixed, because each stored row names its shard: a sweep of fewer shards would never see the rest
(decision 0080).
"""


def shard_of(schedule_id: str, shards: int) -> int:
    """The shard of the next-run index, 0 <= shard < shards.

    SHA-256, because Python's hash() differs between processes.
    """
    return int.from_bytes(hashlib.sha256(schedule_id.encode()).digest()[:8], "big") % shards


def is_uuid(text: str) -> bool:
    return UUID_TEXT.fullmatch(text) is not None
