"""The keys of the service's table, as the template declares them. A test compares the two."""

from __future__ import annotations

from typing import Any

NEXT_RUN, CATALOGUE, ATTENTION = "next-run", "catalogue", "attention"
_INDEXES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    NEXT_RUN: ("shard", "next_run_at", ("sweep", "generation", "planned_total")),
    CATALOGUE: ("shard", "schedule_id", ()),
    ATTENTION: ("attention_day", "attention_at", ()),
}
"""Index -> its two keys, and the attributes that it carries in addition to keys."""


def indexes() -> list[dict[str, Any]]:
    """Returns the indexes in the form of DynamoDB's CreateTable."""
    return [_index(name, *declared) for name, declared in _INDEXES.items()]


def _index(name: str, hash_name: str, range_name: str, carried: tuple[str, ...]) -> dict[str, Any]:
    keys = (hash_name, "HASH"), (range_name, "RANGE")
    shown = {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(carried)} if carried else None
    return {
        "IndexName": name,
        "KeySchema": [{"AttributeName": attribute, "KeyType": kind} for attribute, kind in keys],
        "Projection": shown or {"ProjectionType": "KEYS_ONLY"},
    }
