"""The hourly audit: compares the schedules with the ledger and repairs what differs.

Each audit restarts every schedule that lost its next time, and compares one 24th of all schedules with the ledger
(reconcile.py). The next audit begins with whatever the last one had no time for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, field

from sweephand import ids
from sweephand.domain.instants import FAR
from sweephand.domain.schedule import LIVE, OVER, Schedule
from sweephand.errors import Unavailable
from sweephand.flow.audit import reconcile
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.records import dataclass
from sweephand.store.dynamo import keys
from sweephand.store.index import next_run_index
from sweephand.store.jobs import jobs
from sweephand.store.tenants import audits
from sweephand.store.tenants.audits import LastAudit, Rest

with lazy():
    from sweephand.domain import event
    from sweephand.flow import events

PARTS = 24
DEADLINE_S = 600.0
"""Time for comparing schedules with the ledger; the rest of the function's 15 minutes is for finding stopped series."""


@dataclass
class Findings:
    """The findings of one audit.

    schedules: compared with their ledger. stopped: series that had no next time, now repaired. lost: runs whose pointer
    was sent again. expired: occurrences too old to run, now ranges of the ledger. corrected: counts that were wrong.
    unreadable: schedules whose stored text cannot be read; the sweep takes them out of service. waiting: schedules left
    for the next audit because the table did not answer. rest: where to continue if time ran out.
    """

    schedules: int = 0
    stopped: int = 0
    lost: int = 0
    expired: int = 0
    corrected: int = 0
    unreadable: int = 0
    waiting: int = 0
    rest: str | None = None

    def counts(self) -> dict[str, int]:
        return {name: value for name, value in asdict(self).items() if name != "rest"}

    @property
    def found(self) -> int:
        return self.stopped + self.lost + self.expired + self.corrected


@dataclass
class _Round:
    """The state of one audit.

    turns: the parts of the catalogue to compare with the ledger, and where each begins. cut: where time ran out.
    """

    world: World
    at_once: bool
    turns: Sequence[Rest]
    deadline: float
    findings: Findings = field(default_factory=Findings)
    cut: tuple[int, str] | None = None

    def in_turn(self, shard: int, sk: str, part: int) -> bool:
        return any(turn.part in (part, EVERY) and (shard, sk) > (turn.shard, turn.after) for turn in self.turns)

    def left(self) -> tuple[Rest, ...]:
        """Returns the part of each turn that comes after the cut."""
        if self.cut is None:
            return ()
        return tuple(Rest(turn.part, *max(self.cut, (turn.shard, turn.after))) for turn in self.turns)


EVERY = -1
"""The part number of a turn that covers all schedules."""


def audit(world: World, *, everything: bool = False, rest: str | None = None) -> Findings:
    """Audits the catalogue once.

    everything: compares all schedules, not only this hour's part, and settles at once. rest: where such an audit
    stopped. Raises ValueError for a `rest` that no audit returned.
    """
    last = audits.read(world.table)
    now = world.clock.now()
    if everything:
        turns = [_rest_of(rest) if rest is not None else Rest(EVERY, -1, "")]
    else:
        part = int(now.timestamp()) // 3_600 % PARTS
        older = [each for each in (last.rests if last else ()) if each.part != part]
        turns = [*older, Rest(part, -1, "")]
    this = _Round(world, everything, turns, world.clock.monotonic() + DEADLINE_S)
    for shard in range(world.settings.shards):
        _audit_shard(this, shard)
    findings = this.findings
    if everything:
        findings.rest = next((f"{left.shard} {left.after}" for left in this.left()), None)
    rests = (last.rests if last else ()) if everything else this.left()
    audits.write(world.table, LastAudit(now, findings.counts(), everything, rests))
    world.journal.info("audit", rows=findings.schedules, repaired=findings.stopped, findings=findings.found)
    if this.cut is not None:
        world.journal.warning("the audit ran out of time; the next one continues", shard=this.cut[0])
    if findings.found:
        world.journal.count("AuditFindings", findings.found)
    return findings


def _rest_of(text: str) -> Rest:
    shard, _, after = text.partition(" ")
    return Rest(EVERY, int(shard), after)


def _audit_shard(this: _Round, shard: int) -> None:
    table = this.world.table
    waits = {(row.pk, row.sk) for page in next_run_index.due(table, shard, None, FAR) for row in page}
    after = ""
    for pk, sk in next_run_index.catalogue(table, shard):
        schedule_id = keys.parts(sk)[1]
        in_turn = this.in_turn(shard, sk, ids.shard_of(schedule_id, PARTS))
        if in_turn and this.cut is None and this.world.clock.monotonic() > this.deadline:
            this.cut = shard, after
        after = sk
        in_turn = in_turn and this.cut is None
        if in_turn or (pk, sk) not in waits:
            _guarded(this, pk, schedule_id, in_depth=in_turn)


def _guarded(this: _Round, pk: str, schedule_id: str, *, in_depth: bool) -> None:
    """Audits one schedule. If it cannot be read now, counts and logs it, so that the audit continues."""
    _, tenant, _, job_id = keys.parts(pk)
    try:
        schedule = jobs.read_schedule(this.world.table, tenant, job_id, schedule_id)
        if schedule is not None:
            _audit_schedule(this, schedule, in_depth=in_depth)
    except ValueError:
        this.findings.unreadable += 1
        this.world.journal.error("a schedule cannot be read", tenant=tenant, job=job_id, schedule=schedule_id)
    except Unavailable as unavailable:
        this.findings.waiting += 1
        where = {"tenant": tenant, "job": job_id, "schedule": schedule_id}
        this.world.journal.warning("a schedule waits for its next audit", reason=unavailable.reason, **where)


def _audit_schedule(this: _Round, schedule: Schedule, *, in_depth: bool) -> None:
    if schedule.next_run_at is None and schedule.state in LIVE:
        if reconcile.restart(this.world, schedule):
            this.findings.stopped += 1
            _publish(this.world, "SERIES_STOPPED", schedule, 0)
        return
    if not in_depth or schedule.state in OVER:
        return
    this.findings.schedules += 1
    found = reconcile.repair(this.world, schedule, at_once=this.at_once)
    this.findings.lost += found.lost
    this.findings.expired += found.expired
    this.findings.corrected += found.corrected
    if found.lost:
        _publish(this.world, "RUNS_LOST", schedule, found.lost)


def _publish(world: World, finding: str, schedule: Schedule, count: int) -> None:
    events.found(world, event.Finding(finding), schedule, count)
