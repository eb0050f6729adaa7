"""The hourly audit: compares the schedules with the ledger and repairs what differs.

Each worker audits its own shards. First it searches them for schedules that lost their next time. Then it compares the
schedules with the ledger (reconcile.py), shard by shard, each shard once a day. The shard that was compared longest ago
comes first, and what an audit has no time for, the next one continues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial

from sweephand.base.errors import Unavailable
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.instants import FAR, epoch_s, from_s, text_ms
from sweephand.domain.schedule import LIVE, OVER, Schedule
from sweephand.server.flow.audit import reconcile
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.table import ScheduleItem, StatsItem
from sweephand.server.store.index import next_run_index
from sweephand.server.store.jobs import jobs
from sweephand.server.store.tenants import audits
from sweephand.server.store.tenants.audits import LastAudit, Round
from sweephand.server.telemetry import where
from sweephand.server.threads import at_once

with lazy():
    from sweephand.domain import event
    from sweephand.server.flow import events
    from sweephand.server.flow.audit import lost_messages

SEARCHES_S = 60.0
"""After this time, no further shard is searched for stopped series; the next audit begins with that shard."""
DEADLINE_S = 780.0
"""After this time, nothing more is compared. The function has 900 s."""
MOST_THREADS = 16
BATCH = 50
"""Schedules that one thread compares in succession: with their statistics, they fill one read of the table."""
PAGE = MOST_THREADS * BATCH
DAY_S = 86_400
TICK = timedelta(milliseconds=1)
"""The resolution of stored instants."""
Key = tuple[str, str]


@dataclass
class Findings:
    """The findings of one audit.

    schedules: compared with their ledger. stopped: series that had no next time, now repaired. lost: runs whose pointer
    was sent again. expired: occurrences too old to run, now ranges of the ledger. corrected: counts that were wrong.
    unreadable: schedules whose stored text cannot be read; the sweep takes them out of service. waiting: schedules left
    for the next audit because the table did not answer. rest: what to continue if time ran out.
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

    def add(self, other: Findings) -> None:
        for name, value in other.counts().items():
            setattr(self, name, getattr(self, name) + value)

    @property
    def total(self) -> int:
        return self.stopped + self.lost + self.expired + self.corrected


@dataclass(frozen=True)
class _Audit:
    """One audit. since: for an audit of everything, when it began; None for the hourly one. shards: their number."""

    world: World
    findings: Findings
    began: float
    since: datetime | None
    shards: int

    def lasted(self, seconds: float) -> bool:
        return self.world.clock.monotonic() - self.began > seconds


def audit(
    world: World, *, worker: int = 0, workers: int = 1, everything: bool = False, rest: str | None = None
) -> Findings:
    """Audits this worker's shards, as far as the time allows.

    everything: compares all their schedules, not only the shards whose turn has come, and settles at once. rest: what
    such an audit left. Raises ValueError for a `rest` that no audit returned.
    """
    now = world.clock.now()
    known, shards = audits.rounds(world.table), world.shards.read()
    rounds = [known.get(shard, Round(shard)) for shard in range(worker, shards, workers)]
    since = None
    if everything:
        since = max([now, *(each.since + TICK for each in rounds)]) if rest is None else _instant(rest)
    this = _Audit(world, Findings(), world.clock.monotonic(), since, shards)
    if not everything:
        rounds = _searched(this, rounds)
    rounds = _compared(this, rounds, now)
    left = [each for each in rounds if _is_due(this, each, now)]
    if left and since is not None:
        this.findings.rest = text_ms(since)
    audits.write(world.table, worker, LastAudit(now, this.findings.counts(), everything, finished=not left))
    _report(this, left, known | {each.shard: each for each in rounds})
    return this.findings


def _report(this: _Audit, left: Sequence[Round], rounds: Mapping[int, Round]) -> None:
    """Writes the log lines and metrics. Each worker watches the shards of all workers."""
    world, findings = this.world, this.findings
    world.journal.info("audit", rows=findings.schedules, repaired=findings.stopped, findings=findings.total)
    if left:
        world.journal.warning("the audit ran out of time; the next one continues", left=len(left))
    overdue = audits.overdue(rounds.values(), world.clock.now())
    if overdue:
        world.journal.warning("schedules have not been compared for three days", left=overdue)
    if findings.total or overdue:
        world.journal.count("AuditFindings", findings.total + overdue)


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text} has no offset")
    return instant


# Series without a next time


def _searched(this: _Audit, rounds: Sequence[Round]) -> list[Round]:
    """Searches shards for stopped series, the one that was searched longest ago first. Notes no empty ones."""
    done = {each.shard: each for each in rounds}
    for each in sorted(rounds, key=lambda one: (one.searched_at, one.shard)):
        now = this.world.clock.now()
        searched = None if this.lasted(SEARCHES_S) else _search(this, each.shard)
        if searched is None:
            break
        if searched:
            done[each.shard] = replace(each, searched_at=now)
            audits.write_round(this.world.table, done[each.shard])
    return list(done.values())


def _search(this: _Audit, shard: int) -> int | None:
    """Restarts the shard's series that do not wait in the next-run index.

    Returns the number of its enabled schedules; None if time ran out.
    """
    table = this.world.table
    waiting = {row.own_id for page in next_run_index.due(table, shard, None, FAR) for row in page}
    after: str | None = ""
    searched = 0
    while after is not None:
        page, after = next_run_index.catalogue(table, shard, after, PAGE)
        searched += len(page)
        stopped = [key for key in page if not _of_messages(key) and keys.parts(key[1])[1] not in waiting]
        for begin in range(0, len(stopped), BATCH):
            this.findings.add(_audit_batch(this, stopped[begin : begin + BATCH], in_depth=False)[1])
        if this.lasted(DEADLINE_S):
            return None
    return searched


# Comparing with the ledger


def _compared(this: _Audit, rounds: Sequence[Round], now: datetime) -> list[Round]:
    """Compares the shards whose turn has come, the one that was compared longest ago first."""
    done = {each.shard: each for each in rounds}
    for each in sorted(rounds, key=lambda one: (one.since, one.shard)):
        if not this.lasted(DEADLINE_S) and _is_due(this, each, now):
            done[each.shard] = _compare(this, each)
    return list(done.values())


def _is_due(this: _Audit, progress: Round, now: datetime) -> bool:
    if this.since is not None:
        return progress.since < this.since
    return not progress.complete or progress.began_at < _turn(progress.shard, this.shards, now)


def _turn(shard: int, shards: int, now: datetime) -> datetime:
    """Returns the last time at which a round of this shard was to begin. The shards are spread over the day."""
    own_s = shard * DAY_S // shards
    return from_s((epoch_s(now) - own_s) // DAY_S * DAY_S + own_s)


def _compare(this: _Audit, progress: Round) -> Round:
    """Continues the shard's round, or begins one, until it is complete or time runs out. Returns its progress."""
    table = this.world.table
    if progress.complete or (this.since is not None and progress.began_at < this.since):
        now = this.world.clock.now()
        progress = replace(progress, began_at=max(now, this.since or now), after="", complete=False, compared=0)
    while not progress.complete:
        page, more = next_run_index.catalogue(table, progress.shard, progress.after, PAGE)
        done = _compare_page(this, page)
        if page and not done:
            break  # the table does not answer; the next audit continues here
        progress = replace(progress, compared=progress.compared + done)
        if done < len(page) or more is not None:
            progress = replace(progress, after=keys.parts(page[done - 1][1])[1])
        else:
            progress = replace(progress, complete=True, since=progress.began_at, schedules=progress.compared)
        audits.write_round(table, progress)
        if this.lasted(DEADLINE_S):
            break
    return progress


def _compare_page(this: _Audit, page: Sequence[Key]) -> int:
    """Compares these schedules in threads. Returns how many of them are done, counted from the first."""
    batches = [page[begin : begin + BATCH] for begin in range(0, len(page), BATCH)]
    done = 0
    for compared, findings in at_once(partial(_audit_batch, this), batches, MOST_THREADS):
        this.findings.add(findings)
        if done % BATCH == 0:  # all batches before it are done
            done += compared
    return done


def _audit_batch(this: _Audit, batch: Sequence[Key], *, in_depth: bool = True) -> tuple[int, Findings]:
    """Audits up to 50 schedules. Returns how many before time ran out: at least one, if the table answers at all."""
    findings = Findings()
    schedules = [key for key in batch if not _of_messages(key)]
    try:
        rows = reconcile.read(this.world, schedules, consistent=not in_depth) if schedules else {}
    except Unavailable as unavailable:
        this.world.journal.warning("schedules wait for their next audit", reason=unavailable.reason, rows=len(batch))
        return 0, Findings(waiting=len(batch))
    for n, key in enumerate(batch, 1):
        if _of_messages(key):
            findings.lost += lost_messages.send_again(this.world, key)
        elif key in rows:
            _guarded(this, findings, key, *rows[key], in_depth=in_depth)
        if this.lasted(DEADLINE_S):
            return n, findings
    return len(batch), findings


def _of_messages(key: Key) -> bool:
    """Returns whether a key of the catalogue is that of a day with messages, not of a schedule."""
    return key[1].startswith(keys.MESSAGE_DAY)


def _guarded(
    this: _Audit, findings: Findings, key: Key, item: ScheduleItem, before: StatsItem, *, in_depth: bool
) -> None:
    """Audits one schedule. If that fails, counts and logs it, so that the audit continues."""
    _, tenant, _, job_id = keys.parts(key[0])
    named = {"tenant": tenant, "job": job_id, "schedule": keys.parts(key[1])[1]}
    try:
        (schedule,) = jobs.schedules_of(this.world.table, [item])
        _audit_schedule(this, findings, schedule, before, in_depth=in_depth)
    except ValueError:
        findings.unreadable += 1
        this.world.journal.error("a schedule cannot be read", **named)
    except Unavailable as unavailable:
        findings.waiting += 1
        this.world.journal.warning("a schedule waits for its next audit", reason=unavailable.reason, **named)
    except Exception as unexpected:  # noqa: BLE001 - one schedule must not stop the audit of all others, each day anew
        findings.waiting += 1
        error = {"error": type(unexpected).__name__, "where": where(unexpected)}
        this.world.journal.error("the audit of a schedule failed", **error, **named)


def _audit_schedule(this: _Audit, findings: Findings, schedule: Schedule, before: StatsItem, *, in_depth: bool) -> None:
    if schedule.next_run_at is None and schedule.state in LIVE:
        if reconcile.restart(this.world, schedule):
            findings.stopped += 1
            _publish(this.world, "SERIES_STOPPED", schedule, 0)
        return
    if not in_depth or schedule.state in OVER:
        return
    findings.schedules += 1
    repairs = reconcile.repair(this.world, schedule, before, at_once=this.since is not None)
    findings.lost += repairs.lost
    findings.expired += repairs.expired
    findings.corrected += repairs.corrected
    if repairs.lost:
        _publish(this.world, "RUNS_LOST", schedule, repairs.lost)


def _publish(world: World, finding: str, schedule: Schedule, count: int) -> None:
    events.audit_finding(world, event.Finding(finding), schedule, count)
