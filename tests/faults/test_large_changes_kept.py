"""A change in many parts keeps its word under any fault, through each verb of the native API.

Each instant of the new plan since the request is called or recorded. No instant of the old plan after E is called. An
answer of success shows what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random  # noqa: TID251 - as with sources.Chance, a seed gives the same each time
from typing import Any

import pytest

from sweephand.domain.occurrences.generations import takes_effect
from sweephand.domain.run import Run
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.schedules.rule import between
from sweephand.schedules.timing import load
from sweephand.server.flow.jobs import change, creation, deletion, large_changes
from sweephand.server.store.jobs import jobs
from sweephand.testing.taps import Act, Passing
from tests.contract.calls import Reply
from tests.contract.native.api import Api, api
from tests.faults.at_calls import KINDS, READS, fits
from tests.support.stage import TENANT
from tests.support.taps import Crash
from tests.unit.server.flow.common import NOON, exact

SIZE = 8
BEFORE_S, AFTER_S = 95, 230
SLOW, FAST = ({"every": f"PT{n}S", "align": "epoch"} for n in (30, 20))
BY_CALENDAR = {**SLOW, "calendars": [{"name": "odd"}]}
ACTION = {"type": "http", "url": "https://example.org/run"}
STORM = "storm"
"""Refuses every call to the table from here to the end of the request."""
MOST = 1_000
PAIRS = 20
CALENDAR, WEEKDAYS = "/v1/calendars/odd", {"dates": ["03-02"]}


def schedules(timing: Mapping[str, Any], begin: int = 0) -> list[dict[str, Any]]:
    return [{"name": f"s{n}", **timing} for n in range(begin, begin + SIZE)]


@dataclass(frozen=True)
class Verb:
    """A request that changes many schedules. first: requests before it. ask: the request, given the job's id."""

    ask: Callable[[Api, str], Reply]
    first: Callable[[Api, str], object] = lambda _there, _job: None
    timing: Mapping[str, Any] = field(default_factory=lambda: SLOW)


def post(what: str) -> Callable[[Api, str], Reply]:
    return lambda there, job: there("POST", f"/v1/jobs/{job}/{what}", {} if what == "pause" else None)


def put(timing: Mapping[str, Any], begin: int = 0) -> Callable[[Api, str], Reply]:
    body = {"name": "many", "action": ACTION, "schedules": schedules(timing, begin)}
    return lambda there, job: there("PUT", f"/v1/jobs/{job}", body)


def patched(members: Mapping[str, Any]) -> Callable[[Api, str], Reply]:
    return lambda there, job: there("PATCH", f"/v1/jobs/{job}", members)


def applied(there: Api, timing: Mapping[str, Any]) -> Reply:
    body = {"jobs": [{"key": "k", "name": "of-set", "action": ACTION, "schedules": schedules(timing)}]}
    return there("PUT", "/v1/job-sets/large", body)


def switched(there: Api, what: str) -> Reply:
    return delivered(there, there("POST", f"/v1/collections/default/{what}"))


def delivered(there: Api, reply: Reply) -> Reply:
    """Lets the executors begin with what the request has left to them."""
    there.stage.deliver_all()
    return reply


VERBS: dict[str, Verb] = {
    "PUT": Verb(put(FAST)),
    "PUT with other schedules": Verb(put(FAST, begin=SIZE // 2)),
    "PATCH": Verb(patched({"policies": {"misfire": {"type": "all"}}})),
    "PATCH window": Verb(patched({"endTime": "2027-03-01T12:02:40Z"})),
    "deactivate": Verb(post("deactivate")),
    "activate": Verb(post("activate"), post("deactivate")),
    "pause": Verb(post("pause")),
    "resume": Verb(post("resume"), post("pause")),
    "delete": Verb(lambda there, job: there("DELETE", f"/v1/jobs/{job}")),
    "create": Verb(
        lambda there, _job: there("POST", "/v1/jobs", {"action": ACTION, "name": "new", "schedules": schedules(FAST)})
    ),
    "apply": Verb(lambda there, _job: applied(there, FAST), lambda there, _job: applied(there, SLOW)),
    "apply first": Verb(lambda there, _job: applied(there, FAST)),
    "calendar": Verb(lambda there, _job: delivered(there, there("PUT", CALENDAR, WEEKDAYS)), timing=BY_CALENDAR),
    "disable": Verb(lambda there, _job: switched(there, "disable")),
    "enable": Verb(lambda there, _job: switched(there, "enable"), lambda there, _job: switched(there, "disable")),
}


@dataclass
class Refusals:
    """Faults at numbered calls of a request. seen: the calls of the request. plan: (number, kind)."""

    plan: list[tuple[int, str]]
    seen: list[Passing] = field(default_factory=list)
    storm: bool = False

    def __call__(self, passing: Passing, act: Act) -> Any:
        number = len(self.seen)
        self.seen.append(passing)
        kind = next((kind for at, kind in self.plan if at == number), None)
        self.storm = self.storm or kind == STORM
        if kind == STORM or (self.storm and passing.service == "dynamodb"):
            return KINDS["throttled"](passing, act)
        return act() if kind is None else KINDS[kind](passing, act)


@dataclass
class Play:
    """One history. asked, answered: around the request. before, after: the schedules of all jobs."""

    there: Api
    asked: datetime
    answered: datetime
    reply: Reply | None
    before: dict[str, Schedule]
    after: dict[str, Schedule]
    effective: datetime | None


def all_schedules(there: Api) -> dict[str, Schedule]:
    table = there.stage.world.table
    with there.stage.untapped():
        keys = {item["pk"]["S"].split("#")[3] for item in there.stage.items() if item["sk"]["S"] == "JOB"}
        found = [each for job in keys for each in jobs.read_schedules(table, TENANT, job)]
    return {each.id: each for each in found}


def open_changes(there: Api) -> list[str]:
    with there.stage.untapped():
        return [item["pk"]["S"] for item in there.stage.items() if "open_change" in item]


@contextmanager
def small() -> Iterator[None]:
    """Makes a job of 8 schedules as one of 200: two schedules or so in each part."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deletion, "IN_JOBS_TRANSACTION", 4)
        patch.setattr(change, "IN_JOBS_TRANSACTION", 4)
        patch.setattr(creation, "TRANSACTION_MOST", 16)
        patch.setattr(large_changes, "WRITES_IN_PART", 8)
        yield


def play(name: str, refusals: Refusals) -> Play:
    verb = VERBS[name]
    with small(), api(shards=1) as there:
        there.tolerated |= {503}
        stage, usual = there.stage, there.stage.taps.fault
        assert there("POST", "/v1/calendars", {"name": "odd", "dates": ["12-24"]}).status == 201
        job = there.create(name="many", action=ACTION, schedules=schedules(verb.timing))["id"]
        verb.first(there, job)
        stage.run(BEFORE_S)
        before, asked, reply = all_schedules(there), stage.clock.now(), None

        def faulty(passing: Passing, act: Act) -> Any:
            return refusals(passing, lambda: act() if usual is None else usual(passing, act))

        stage.taps.fault = faulty
        try:
            reply = verb.ask(there, job)
        except Crash:
            pass
        finally:
            stage.taps.fault = usual
        answered = stage.clock.now()
        if reply is not None and reply.status < 300 and "schedules" in (reply.text or ""):
            assert not open_changes(there), "the answer shows schedules that will change"
            shown(there, reply)
        found = jobs.read_job(stage.world.table, TENANT, job)
        stage.run(AFTER_S)
        assert not open_changes(there)
        after = all_schedules(there)
        effective = takes_effect(max([asked] if found is None else [asked, found.modified_at]))
        done = Play(there, asked, answered, reply, before, after, effective)
        finished(done)
        for each in {*before, *after}:
            kept(done, before.get(each), after.get(each))
        return done


def shown(there: Api, reply: Reply) -> None:
    """Checks that an answer with a job shows it as it is stored."""
    if reply.status in {200, 201} and "schedules" in (said := reply.json):
        assert there.get(f"/v1/jobs/{said['id']}/schedules").json["items"] == said["schedules"]


def finished(done: Play) -> None:
    """Enables the collection again and stops all jobs, so that everything that was planned has its row."""
    there = done.there
    assert switched(there, "enable").status < 300
    there.stage.run(70)
    for job in {each.job_id for each in done.after.values()}:
        assert there("POST", f"/v1/jobs/{job}/deactivate").status < 300
    there.stage.run(400)
    assert "error" not in {level for level, _, _ in there.stage.journal.lines}
    for each in done.after.values():
        exact(there.stage, each)


def kept(done: Play, before: Schedule | None, after: Schedule | None) -> None:
    """Checks one schedule."""
    stage, owner = done.there.stage, (after or before)
    assert owner is not None
    rows = stage.runs(owner.id)
    calls = [each for each in stage.endpoint.received if each.call.schedule_id == owner.id]
    called = [each.call.planned_at for each in calls]
    assert len(called) == len(set(called)), "called twice"
    assert all(each.at >= each.call.planned_at for each in calls), "called early"
    changed = before is None or after is None or after.generation > before.generation
    end = done.answered + timedelta(seconds=AFTER_S - 30)
    asked = after.modified_at if changed and after is not None else done.asked
    old_end = asked if changed else end
    old = instants(before, NOON, old_end)
    new = instants(after, asked, end) if changed else set()
    assert [at for at in sorted(old | new) if not recorded(rows, at)] == [], "silent"
    if changed:
        effective = takes_effect(asked) if after is not None else done.effective
        assert [at for at in called if at > effective and at <= end and at not in new] == [], "the old plan went on"


def instants(schedule: Schedule | None, since: datetime, until: datetime) -> set[datetime]:
    """Returns the instants of a plan that is on; a plan that was switched off has none that must be recorded."""
    if schedule is None or schedule.state in {ScheduleState.INACTIVE, ScheduleState.PAUSED}:
        return set()
    return set(between(load(schedule.packed).rule, since, until, MOST))


def recorded(rows: Sequence[Run], at: datetime) -> bool:
    return any(run.planned_at <= at <= (run.range_until or run.planned_at) for run in rows)


def plans(name: str) -> list[list[tuple[int, str]]]:
    """Returns each fault at each call of the request, then some pairs."""
    seen = Refusals([])
    play(name, seen)
    single = [
        (number, kind)
        for number, passing in enumerate(seen.seen)
        for kind in (*KINDS, STORM)
        if kind == STORM or fits(kind, passing) or (kind == "throttled" and passing.operation in READS)
    ]
    chance = Random(name)
    return [*([each] for each in single), *(sorted(chance.sample(single, 2)) for _ in range(PAIRS))]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", VERBS)
def test_a_large_change_keeps_its_word_if_the_table_refuses_its_last_calls(name: str) -> None:
    """Plays a storm in each third of the request, and a pair of faults; the long tests play all."""
    every = plans(name)
    storms = [plan for plan in every if plan[0][1] == STORM]
    for plan in (storms[len(storms) // 3], storms[len(storms) * 2 // 3], storms[-1], every[-1]):
        played(name, plan)


@pytest.mark.long
@pytest.mark.parametrize("name", VERBS)
def test_a_large_change_keeps_its_word_under_each_fault(name: str) -> None:
    for plan in plans(name):
        played(name, plan)


def played(name: str, plan: list[tuple[int, str]]) -> None:
    refusals = Refusals(plan)
    try:
        play(name, refusals)
    except BaseException as broken:
        where = [(number, refusals.seen[number].name, kind) for number, kind in plan if number < len(refusals.seen)]
        raise AssertionError(f"{name}: {where} {plan}") from broken
