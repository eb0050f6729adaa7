"""Judges a life: by the courses, the watched ledger and the calls that the targets received."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sweephand.domain.run import FAILED, REACTIONS, Kind, Reason, Run, State
from sweephand.domain.schedule import ScheduleState
from sweephand.server.store.jobs import jobs
from sweephand.server.store.views import totals
from tests.support.endpoint import Received
from tests.support.stage import SKIPPED, TENANT
from tests.year.courses import CLOCKS, Course
from tests.year.lives import Life
from tests.year.tenant import FLOW_KEY

LATE_BY_ITSELF = timedelta(minutes=20)
"""Deaths, redeliveries and throttled partitions delay a call by minutes; an audit finds a lost one hours later."""
OFF = frozenset({Reason.PAUSED, Reason.DISABLED})
LATE = frozenset({State.MISSED, State.EXPIRED})


@dataclass
class Verdict:
    """wrong: what broke, in words. rows, calls, owed: how much was judged."""

    wrong: list[str] = field(default_factory=list)
    rows: int = 0
    calls: int = 0
    owed: int = 0


@dataclass
class Oracle:
    life: Life

    def __post_init__(self) -> None:
        self.runs = self.life.service.watch.runs()
        self.calls = self.life.service.scene.endpoint.received
        self.of_schedule: dict[str, list[Run]] = defaultdict(list)
        for run in self.runs:
            if run.schedule_id is not None and run.kind is Kind.SCHEDULED:
                self.of_schedule[run.schedule_id].append(run)
        self.first_calls: dict[str, Received] = {}
        for received in self.calls:
            self.first_calls.setdefault(received.run_id, received)

    def judge(self) -> Verdict:
        verdict = Verdict(rows=len(self.runs), calls=len(self.calls))
        verdict.wrong += self.life.tenant.wrong + self.life.service.watch.wrong
        for course in self.life.tenant.courses:
            wrong, owed = self._course(course)
            verdict.owed += owed
            verdict.wrong += [f"schedule {course.id} ({dict(course.rule.body)}): {each}" for each in wrong]
        verdict.wrong += [*self._calls(), *self._reactions(), *self._left()]
        return verdict

    # One schedule

    def _course(self, course: Course) -> tuple[list[str], int]:
        until = self.life.now
        owed, allowed = course.owed(until), course.allowed(until)
        rows = [run for run in self.of_schedule[course.id] if run.range_count is None]
        lines = [run for run in self.of_schedule[course.id] if run.range_count is not None]
        own = {run.planned_at for run in rows}
        wrong = [f"two rows of {at}" for at, number in Counter(run.planned_at for run in rows).items() if number > 1]
        strange = set() if course.free else own - allowed
        wrong += [f"{at} is of no plan: {own_row(rows, at)}" for at in sorted(strange)]
        wrong += self._lines(course, lines, owed - own, allowed - own)
        for run in rows:
            wrong += self._row(course, run)
        wrong += list(self._totals(course, rows, lines))
        return wrong, len(owed)

    def _lines(self, course: Course, lines: list[Run], owed: set[datetime], allowed: set[datetime]) -> Iterator[str]:
        """Checks that each instant without a row of its own lies in exactly one line, and that lines count right."""
        for at in sorted(owed):
            over = [line for line in lines if covers(line, at)]
            if not over:
                yield f"{at} is neither called nor recorded"
        for line in lines:
            others = [each for each in lines if each is not line]
            alone = [at for at in owed if covers(line, at) and not any(covers(each, at) for each in others)]
            most = sum(covers(line, at) for at in allowed)
            if not len(alone) <= (line.range_count or 0) <= (most if not course.free else line.range_count or 0):
                yield f"a line counts {line.range_count}, not {len(alone)} to {most}: {brief(line)}"
            yield from self._skipped(course, line)
            if line.state in LATE:
                yield from self._missed(course, line)

    def _row(self, course: Course, run: Run) -> Iterator[str]:
        if not run.finished:
            yield f"open: {brief(run)}"
        if run.state is State.SKIPPED:
            yield from self._skipped(course, run)
        elif run.state in LATE:
            yield from self._missed(course, run)
        elif run.state is State.CANCELLED:
            yield from self._cancelled(course, run)
        elif run.reason is Reason.UNDELIVERED:
            yield f"undelivered: {brief(run)}"
        if run.id in self.first_calls and course.surely_off(run.planned_at) and not course.runs_when_enabled:
            yield f"called though it was off: {brief(run)}"
        if run.reason is Reason.EXECUTOR_LOST and not self.life.service.faults.met:
            yield f"lost without a fault: {brief(run)}"
        waits = course.held or course.policies["overlap"] != "allow" or "flowKey" in course.policies
        if not waits and run.id in self.first_calls and not course.runs_when_enabled:
            yield from self._late(course, run, self.first_calls[run.id].at)

    def _late(self, course: Course, run: Run, called_at: datetime) -> Iterator[str]:
        """Checks that a late call is allowed by the policy, and that an outage explains it."""
        late, misfire = called_at - run.planned_at, course.policies["misfire"]
        sent_in_time = run.enqueued_at is not None and run.enqueued_at <= run.planned_at
        limit_s = 120 if misfire["type"] == "skip" else misfire.get("maxLatenessSeconds")
        if sent_in_time and limit_s is not None and late > timedelta(seconds=limit_s) + CLOCKS:
            yield f"called {late} late under {misfire}: {brief(run)}"
        if late > LATE_BY_ITSELF and not self._outage(run.planned_at, called_at):
            yield f"called {late} late without an outage: {brief(run)}"

    def _outage(self, since: datetime, until: datetime) -> bool:
        """Tells whether something was out at some moment of that time, or just before it."""
        return any(begin <= until and since - timedelta(minutes=3) <= end for _, begin, end in self.life.outages)

    def _skipped(self, course: Course, run: Run) -> Iterator[str]:
        if run.state is not State.SKIPPED:
            return
        ended = run.finished_at or run.planned_at
        if run.reason in OFF:
            if not course.perhaps_off(run.planned_at, ended):
                yield f"skipped though it was on: {brief(run)}"
        elif run.reason is Reason.OVERLAP:
            if course.policies["overlap"] == "allow":
                yield f"skipped as if its policy was another: {brief(run)}"
        else:
            yield f"skipped for a strange reason: {brief(run)}"

    def _missed(self, course: Course, run: Run) -> Iterator[str]:
        """Checks that what is missed was due in an outage, or before the end of one, under a policy that leaves out."""
        misfire = course.policies["misfire"]
        if run.state is State.MISSED and misfire["type"] == "all" and not course.free:
            yield f"missed under the policy all: {brief(run)}"
        if run.reason is Reason.MAX_LATENESS and "maxLatenessSeconds" not in misfire:
            yield f"expired without a limit: {brief(run)}"
        ended = run.finished_at or run.planned_at
        waited = course.held or (run.state is State.EXPIRED and "flowKey" in course.policies)
        if (
            not waited
            and not course.free
            and not self._outage(run.planned_at, ended)
            and not self.life.service.faults.met
        ):
            yield f"missed without an outage: {brief(run)}"

    def _cancelled(self, course: Course, run: Run) -> Iterator[str]:
        match run.reason:
            case Reason.BY_USER if run.id in self.life.tenant.cancelled:
                return
            case Reason.REPLACED if course.policies["overlap"] == "replace":
                return
            case Reason.OWNER_GONE if course.gone is not None:
                return
        yield f"cancelled by nobody: {brief(run)}"

    def _totals(self, course: Course, rows: list[Run], lines: list[Run]) -> Iterator[str]:
        if course.gone is not None:
            return
        table = self.life.service.scene.world.table
        stored = jobs.read_schedule(table, TENANT, course.job_id, course.id)
        if stored is None:
            return
        if stored.state not in {ScheduleState.COMPLETED, ScheduleState.FAULTED}:
            yield f"not over, but {stored.state}"
        stats = totals.stats_of(table, [stored]).get(stored.id)
        shown = totals.totals_of(table, stored, stats, self.life.now)
        ended = [run for run in rows if run.finished]
        counted = (
            len(rows),
            len(ended),
            0,
            sum(run.state in FAILED for run in ended),
            sum(run.state in SKIPPED for run in ended),
        )
        said = (shown.planned, shown.ended, shown.open, shown.failed, shown.skipped)
        if said != counted:
            yield f"totals (planned, ended, open, failed, skipped) are {said}, its rows {counted}"

    # All calls and rows

    def _calls(self) -> Iterator[str]:
        by_id = {run.id: run for run in self.runs}
        numbers = Counter(received.run_id for received in self.calls)
        ahead_s = self.life.service.ahead_s
        workers = {job.id for job in self.life.tenant.jobs if job.of_worker}

        def ahead(run: Run) -> timedelta:
            """Returns how far the clock of whoever let it begin may be ahead: other executors and workers are exact."""
            return timedelta(seconds=0 if run.job_id in workers else max(0.0, ahead_s["executor"]))

        for received in self.calls:
            run = by_id.get(received.run_id)
            if run is not None and run.kind is Kind.SCHEDULED and received.at + ahead(run) < run.planned_at:
                yield f"called early: {received.run_id} at {received.at}, not {received.call.planned_at}"
        for run_id, number in numbers.items():
            run = by_id.get(run_id)
            if run is None:
                yield f"called without a row: {run_id}"
            elif number > run.attempt + run.lost:
                yield f"called {number} times: {brief(run)}"
        for run in self.runs:
            if run.state is State.SUCCESS and run.id not in numbers and run.id not in self.life.tenant.reported:
                yield f"never called: {brief(run)}"

    def _reactions(self) -> Iterator[str]:
        """Checks that each end has at most one reaction of a kind, and exactly one where the job has it."""
        own = (run for run in self.runs if run.rerun_of is None)
        reactions = Counter((run.parent_uuid, run.kind) for run in own if run.kind in REACTIONS)
        yield from (f"{number} of {kind} after {parent}" for (parent, kind), number in reactions.items() if number > 1)
        bodies = {job.id: job for job in self.life.tenant.jobs}
        for run in self.runs:
            job = bodies.get(run.job_id)
            if job is None or run.kind not in {Kind.SCHEDULED, Kind.MANUAL} or run.range_count is not None:
                continue
            if job.gone is not None and (run.finished_at or self.life.now) > job.gone.asked - CLOCKS:
                continue
            for kind in _due_reactions(job.body, run):
                if reactions[run.uuid, kind] != 1:
                    yield f"no {kind} after {brief(run)}"

    def _left(self) -> Iterator[str]:
        """Checks that nothing is left open: no slot, no wake, no message."""
        scene = self.life.service.scene
        yield from (f"left in the index: {key} at {at}" for key, at in scene.waiting().items())
        key = self.life.service.request("native", "GET", f"/v1/flow-keys/{FLOW_KEY}")
        if key is None or (live := key.json["live"])["waiting"] or live["running"]:
            yield f"left at the flow key: {key.text if key else None}"
        for item in scene.items():
            if item["sk"]["S"].startswith("SLOT#"):
                yield f"left: {item['pk']['S']} {item['sk']['S']}"
        for run in self.runs:
            if not run.finished and run.kind is not Kind.SCHEDULED:
                yield f"open: {brief(run)}"
        for url, queue in scene.sqs._queues.items():
            if not url.endswith("archive"):
                yield from (f"left in {url}: {message.body}" for message in queue.messages)
        yield from (
            f"logged: {message} {members}" for level, message, members in scene.journal.lines if level == "error"
        )


def covers(line: Run, at: datetime) -> bool:
    return line.planned_at <= at <= (line.range_until or line.planned_at)


def own_row(rows: list[Run], at: datetime) -> str:
    return next(brief(run) for run in rows if run.planned_at == at)


def brief(run: Run) -> str:
    line = f" to {run.range_until} ({run.range_count})" if run.range_count is not None else ""
    end = f"{run.state} {run.reason} ended {run.finished_at} {run.message or ''}"
    return f"{run.kind} {run.planned_at}{line} {end} {run.id}"


def _due_reactions(body: object, run: Run) -> Iterator[Kind]:
    assert isinstance(body, dict)
    hooks = body.get("hooks", {})
    if run.state is State.SUCCESS and "onSuccess" in hooks:
        yield Kind.ON_SUCCESS
    if run.state in FAILED and "onFailure" in hooks:
        yield Kind.ON_FAILURE
    if run.state in FAILED and "errorAction" in body:
        yield Kind.ERROR_ACTION
    if run.state in LATE and "onMissed" in hooks:
        yield Kind.ON_MISSED
