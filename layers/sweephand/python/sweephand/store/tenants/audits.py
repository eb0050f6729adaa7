"""The last audit's findings and unfinished parts: one item, for the next audit and the health check."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sweephand.domain.instants import epoch_s, from_s
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Table
from sweephand.store.dynamo.expressions import assign
from sweephand.store.dynamo.table import AuditItem


@dataclass(frozen=True)
class Rest:
    """A part of the catalogue that an audit did not finish: all after this schedule of this shard."""

    part: int
    shard: int
    behind: str


@dataclass(frozen=True)
class LastAudit:
    """The last audit. findings: counts by name. everything: it covered all schedules. rests: left for the next."""

    at: datetime
    findings: Mapping[str, int]
    everything: bool
    rests: tuple[Rest, ...] = ()


def read(table: Table) -> LastAudit | None:
    item = table.get(AuditItem, keys.STACK_AUDIT, keys.LAST)
    if item is None:
        return None
    rests = tuple(Rest(*each) for each in json.loads(item.rests)) if item.rests else ()
    return LastAudit(from_s(item.at), json.loads(item.findings), item.everything, rests)


def write(table: Table, last: LastAudit) -> None:
    """Writes the last audit. Of two concurrent audits the later one wins; the other's rest follows a day later."""
    table.update(
        keys.STACK_AUDIT,
        keys.LAST,
        [
            assign(AuditItem.at, epoch_s(last.at)),
            assign(AuditItem.findings, json.dumps(dict(last.findings), separators=(",", ":"))),
            assign(AuditItem.everything, last.everything),
            assign(AuditItem.rests, _packed(last.rests)),
        ],
    )


def _packed(rests: Sequence[Rest]) -> str | None:
    return json.dumps([[rest.part, rest.shard, rest.behind] for rest in rests]) if rests else None
