"""The last findings of the audit and its progress in each shard, for the next audit and the health check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from sweephand.base.records import dataclass
from sweephand.domain.instants import EPOCH
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.dynamo.flat_models import JSON, SECONDS, Codec, of_key
from sweephand.server.store.dynamo.table import AuditItem, AuditRoundItem


@dataclass(frozen=True)
class LastAudit:
    """The last audit. findings: counts by name. everything: whether it covered all schedules.

    finished: whether it left nothing for the next audit.
    """

    at: datetime
    findings: Mapping[str, int]
    everything: bool
    finished: bool = True


@dataclass(frozen=True)
class Round:
    """The progress of the audit in one shard, which it compares schedule by schedule, once a day.

    began_at: when its last round began. after: the last schedule that was compared in it. complete: whether none is
    left. compared: how many were compared in it. since: when its last complete round began, so that all its schedules
    were compared after that; EPOCH before the first. schedules: how many that round compared. searched_at: when its
    schedules were last searched for those without a next time.
    """

    shard: int
    began_at: datetime = EPOCH
    after: str = ""
    complete: bool = True
    compared: int = 0
    since: datetime = EPOCH
    schedules: int = 0
    searched_at: datetime = EPOCH


OVERDUE = timedelta(days=3)
"""A schedule that no audit has compared for this long is reported. One round takes a day."""


def overdue(rounds: Iterable[Round], now: datetime) -> int:
    """Returns about how many schedules no audit has compared for three days. Counts only those that it knew of."""
    late = [each for each in rounds if now - max(each.since, _first_began(each)) > OVERDUE]
    return sum(each.schedules if each.complete else max(1, each.schedules - each.compared) for each in late)


def _first_began(each: Round) -> datetime:
    return each.began_at if each.since == EPOCH else EPOCH


_LAST = Codec(LastAudit, AuditItem, {"at": SECONDS, "findings": JSON})
_ROUNDS = Codec(Round, AuditRoundItem, {"shard": of_key("sk", 1, int)})
AT_ONCE = timedelta(hours=2)
"""Workers whose last audits lie this close together have shared one audit."""


def read(table: Table) -> LastAudit | None:
    """Returns the last audit, the shares of all its workers together."""
    rows = table.query_all(keys.STACK_AUDIT, AuditItem.sk.startswith(keys.LAST), consistent=True)
    stored = [_LAST.read(AuditItem.from_raw_data(row)) for row in rows]
    if not stored:
        return None
    newest = max(each.at for each in stored)
    shares = [each for each in stored if newest - each.at < AT_ONCE]
    counts: Counter[str] = Counter()
    for each in shares:
        counts.update(each.findings)
    return LastAudit(
        newest, counts, everything=all(each.everything for each in shares), finished=all(e.finished for e in shares)
    )


def write(table: Table, worker: int, last: LastAudit) -> None:
    table.put(_LAST.item((keys.STACK_AUDIT, keys.last_audit(worker)), last))


def rounds(table: Table) -> dict[int, Round]:
    """Returns the progress in each shard that an audit has begun."""
    rows = table.query_all(keys.STACK_AUDIT, AuditRoundItem.sk.startswith(keys.audit_round("")), consistent=True)
    stored = [_ROUNDS.read(AuditRoundItem.from_raw_data(row)) for row in rows]
    return {each.shard: each for each in stored}


def write_round(table: Table, progress: Round) -> None:
    """Writes the progress in a shard. The later of two concurrent audits wins; some schedules are compared twice."""
    table.put(_ROUNDS.item((keys.STACK_AUDIT, keys.audit_round(progress.shard)), progress))
