"""The last audit's findings and unfinished parts: one item, for the next audit and the health check."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple
from datetime import datetime

from sweephand.records import dataclass
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Table, if_any
from sweephand.store.dynamo.expressions import changes
from sweephand.store.dynamo.flat_models import JSON, SECONDS, Codec, Column, to_json
from sweephand.store.dynamo.table import AuditItem


@dataclass(frozen=True)
class Rest:
    """A part of the catalogue that an audit did not finish: everything after this schedule of this shard."""

    part: int
    shard: int
    after: str


@dataclass(frozen=True)
class LastAudit:
    """The last audit. findings: counts by name. everything: whether it covered all schedules. rests: what it left."""

    at: datetime
    findings: Mapping[str, int]
    everything: bool
    rests: tuple[Rest, ...] = ()


_KEY = keys.STACK_AUDIT, keys.LAST
_LAST = Codec(
    LastAudit,
    AuditItem,
    {
        "at": SECONDS,
        "findings": JSON,
        "rests": Column(
            lambda text: tuple(Rest(*each) for each in json.loads(text)),
            lambda rests: to_json([astuple(rest) for rest in rests]),
        ),
    },
)


def read(table: Table) -> LastAudit | None:
    return if_any(_LAST.read, table.get(AuditItem, *_KEY))


def write(table: Table, last: LastAudit) -> None:
    """Writes the last audit. The later of two concurrent audits wins; parts left by the other follow a day later."""
    table.update(*_KEY, changes(_LAST.item(_KEY, last), "at findings everything rests"))
