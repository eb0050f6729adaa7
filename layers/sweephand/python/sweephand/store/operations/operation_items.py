"""The models of operations; part of table.py, with the same conventions."""

from __future__ import annotations

from sweephand.store.dynamo.flat_models import Integer, UnicodeAttribute
from sweephand.store.dynamo.table import Item


class OperationItem(Item):
    """An operation. params, cursor, result: JSON. generation: its step. shard, next_run_at, sweep: while it runs."""

    kind = UnicodeAttribute()
    state = UnicodeAttribute()
    params = UnicodeAttribute()
    cursor = UnicodeAttribute()
    generation = Integer()
    done = Integer(default=0)
    failed = Integer(default=0)
    total = Integer(null=True)
    due_at = Integer(null=True)
    started_at = Integer()
    ended_at = Integer(null=True)
    cause = UnicodeAttribute(null=True)
    result = UnicodeAttribute(null=True)
    actor = UnicodeAttribute(null=True)
    by = UnicodeAttribute(null=True)
    shard = Integer(null=True)
    next_run_at = Integer(null=True)
    sweep = UnicodeAttribute(null=True)


class OperationPlaceItem(Item):
    """A place for an operation of a kind. operation: the last to take it; the place is free once that one has ended."""

    operation = UnicodeAttribute()
