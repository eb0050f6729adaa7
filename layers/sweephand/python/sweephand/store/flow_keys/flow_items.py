"""The models of flow keys; part of table.py, with the same conventions."""

from __future__ import annotations

from sweephand.store.dynamo.flat_models import Integer, UnicodeAttribute
from sweephand.store.dynamo.table import Item


class FlowKeyItem(Item):
    """A flow key as its owner set it. settings: JSON, see flow_keys.py. users: jobs and collections that name it."""

    name = UnicodeAttribute()
    description = UnicodeAttribute(null=True)
    settings = UnicodeAttribute()
    paused_at = Integer(null=True)
    note = UnicodeAttribute(null=True)
    revision = Integer(default=1)
    users = Integer(default=0)
    created_at = Integer()
    created_by = UnicodeAttribute(null=True)
    modified_at = Integer()
    modified_by = UnicodeAttribute(null=True)


class TurnstileItem(Item):
    """The turnstile that every call under a flow key passes. terms: its rules, JSON. turn: replaced by every move.

    places: packed, which run holds one until when. next_at, called_to, mark_at: epoch microseconds. shard, sweep and
    next_run_at: only while somebody may wait in the line; look_at: epoch ms.
    """

    terms = UnicodeAttribute()
    turn = UnicodeAttribute()
    next_at = Integer(null=True)
    places = UnicodeAttribute(null=True)
    called = UnicodeAttribute(null=True)
    called_to = Integer(null=True)
    mark = UnicodeAttribute(null=True)
    mark_at = Integer(null=True)
    late = UnicodeAttribute(null=True)
    look_at = Integer(null=True)
    shard = Integer(null=True)
    sweep = UnicodeAttribute(null=True)
    next_run_at = Integer(null=True)


class LineItem(Item):
    """A run that waits under a flow key; the sort key gives its order. owner: of its ledger partition.

    until: when it stops waiting; tries_until: when it stops waiting for an open circuit (epoch ms; None: never).
    """

    owner = UnicodeAttribute()
    uuid = UnicodeAttribute()
    target = UnicodeAttribute()
    lane = UnicodeAttribute()
    until = Integer(null=True)
    tries_until = Integer(null=True)


class CircuitItem(Item):
    """A target under a flow key that has failed. failures: in a row. opened_at, probe_at: only while open."""

    target = UnicodeAttribute()
    failures = Integer(default=0)
    opened_at = Integer(null=True)
    probe_at = Integer(null=True)
    failed_at = Integer(null=True)
    reason = UnicodeAttribute(null=True)
