"""Calendars: what a schedule does by them, what a change of one makes of its users, and every way to be cut off."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest

from sweephand.base.errors import Conflict, InvalidRequest, NotFound, QuotaExceeded, SweephandError, Unavailable
from sweephand.domain.calendar import Calendar
from sweephand.domain.instants import EPOCH
from sweephand.domain.occurrences.index_row import SweepText
from sweephand.domain.run import Reason, State
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.schedules.calendars import calendar_content
from sweephand.schedules.calendars import calendars as mathematics
from sweephand.schedules.timing import load
from sweephand.server.flow.calendars import calendars
from sweephand.server.flow.job_parts import named_calendars
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.tenants import tenancy
from sweephand.server.store.dynamo import keys
from sweephand.server.store.jobs import jobs as store_jobs
from sweephand.testing.sources import START
from sweephand.testing.taps import Act, Fault, Passing
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, conflict, crash_after, crash_before, refused
from tests.support.turns import at_once

NOON = START.replace(microsecond=0)
WEEKENDS = {"weekly": [{"days": ["SAT", "SUN"]}]}
NAMED = [{"name": "holidays", "mode": "exclude", "roll": "none"}]
MINUTELY = {"cron": "* * * * *", "calendars": NAMED}
DAILY = {"cron": "0 9 * * *", "calendars": NAMED}


@pytest.fixture(autouse=True)
def _cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test in a process that has read nothing yet."""
    monkeypatch.setattr(mathematics, "_kept", {})
    load.cache_clear()


def forget() -> None:
    """Begins as another process would."""
    mathematics._kept.clear()
    load.cache_clear()


def draft(name: str = "holidays", **content: Any) -> Calendar:
    facts = calendar_content.read(content)
    return Calendar(TENANT, name, EPOCH, EPOCH, content=content, facts=facts)


def make(stage: Stage, name: str = "holidays", **content: Any) -> Calendar:
    return calendars.create(stage.world, draft(name, **content), None)


def change(stage: Stage, name: str = "holidays", **content: Any) -> Calendar:
    wanted = draft(name, **content)

    def edit(before: Calendar) -> Calendar:
        return replace(before, content=wanted.content, facts=wanted.facts)

    return calendars.change(stage.world, TENANT, name, edit, None, None)


def minutes(first: int, last: int) -> dict[str, Any]:
    """Returns a range from one minute after noon to another, in which nothing runs."""
    begin, end = (NOON + timedelta(minutes=n) for n in (first, last + 1))
    return {"ranges": [{"from": begin.isoformat(), "to": end.isoformat()}]}


def ran(stage: Stage, planned: Planned) -> list[int]:
    """Returns the minutes after noon at which it ran."""
    runs = [run for run in stage.runs(planned) if run.state is State.SUCCESS]
    return [int((run.planned_at - NOON).total_seconds() // 60) for run in runs]


def head(stage: Stage, name: str = "holidays") -> Calendar:
    return calendars.find_head(stage.world, TENANT, name)


def row(stage: Stage, planned: Planned) -> dict[str, Any]:
    """Returns the row of its first schedule, in DynamoDB's JSON."""
    (found,) = (item for item in stage.items() if item["sk"]["S"] == keys.schedule(planned.schedules[0].id))
    return found


def replan_rows(stage: Stage) -> list[str]:
    return [item["sk"]["S"] for item in stage.items() if item["sk"]["S"].startswith("REPLAN#")]


def check_settled(stage: Stage, *planned: Planned) -> None:
    """Checks that all users follow the current version, and that nothing is left of the work."""
    assert replan_rows(stage) == []
    there = head(stage)
    assert not there.replanning
    for each in planned:
        assert mathematics.references(stage.stored(each).packed) == [there.reference]


# Effects of calendars on a schedule


def test_an_excluded_occurrence_neither_runs_nor_counts(stage: Stage) -> None:
    make(stage, **minutes(3, 6))

    planned = stage.create({**MINUTELY, "count": 5})
    stage.run(12 * 60)

    assert ran(stage, planned) == [1, 2, 7, 8, 9]
    there = stage.stored(planned)
    assert (there.state, there.planned_total) == (ScheduleState.COMPLETED, 5)
    assert stage.audit().lost == 0


def test_a_stopped_occurrence_rolls_to_the_next_day(stage: Stage) -> None:
    make(stage, dates=["2027-03-02", "2027-03-03"])

    planned = stage.create({"cron": "0 9 2 * *", "calendars": [{**NAMED[0], "roll": "next"}]})

    assert stage.stored(planned).next_run_at == datetime.fromisoformat("2027-03-04T09:00:00Z")


def test_a_schedule_excluded_entirely_by_its_calendars_is_refused_without_a_write(stage: Stage) -> None:
    make(stage, weekly=[{"days": list(calendar_content.WEEKDAYS)}])
    before = stage.items()

    with pytest.raises(InvalidRequest) as wrong:
        stage.create(DAILY)

    assert (wrong.value.field, wrong.value.code) == ("schedules[0].calendars", "NEVER_FIRES")
    assert stage.items() == before


def test_an_unknown_calendar_is_refused_by_its_path(stage: Stage) -> None:
    make(stage, **WEEKENDS)

    with pytest.raises(InvalidRequest) as wrong:
        stage.create({**DAILY, "calendars": [*NAMED, {"name": "none"}]})

    assert wrong.value.field == "schedules[0].calendars[1].name"
    assert head(stage).users == 0


def test_a_row_with_five_calendars_stays_small(stage: Stage) -> None:
    names = [f"{'calendar-with-a-long-name' * 4}-{n}" for n in range(5)]
    for name in names:
        make(stage, name, dates=[f"2027-04-{day:02d}" for day in range(1, 30)])

    planned = stage.create({**DAILY, "calendars": [{"name": name} for name in names]})

    assert len(stage.stored(planned).packed) < 200
    waiting = row(stage, planned)["sweep"]["S"]
    assert len(waiting) < 250


def test_a_job_names_at_most_six_calendars(stage: Stage) -> None:
    for n in range(7):
        make(stage, f"c{n}", **WEEKENDS)

    def naming(*numbers: int) -> dict[str, Any]:
        return {"cron": "0 9 * * *", "calendars": [{"name": f"c{n}"} for n in numbers]}

    stage.create(naming(0, 1, 2, 3, 4), naming(4, 5))
    with pytest.raises(QuotaExceeded, match="at most 6"):
        stage.create(naming(0, 1, 2, 3, 4), naming(5, 6))

    assert [head(stage, f"c{n}").users for n in range(7)] == [1, 1, 1, 1, 1, 1, 0]


# Reads


def reads_of_a_tick(stage: Stage) -> int:
    """Reads by key: a tick's own are queries."""
    before = len(stage.taps.passed)
    stage.tick()
    return Counter(stage.taps.names()[before:])["dynamodb.BatchGetItem"]


def test_a_sweeper_reads_each_version_once_and_none_for_schedules_without_calendars(stage: Stage) -> None:
    stage.create({"cron": "* * * * *"})
    without = reads_of_a_tick(stage)
    make(stage, **minutes(3, 6))
    for _ in range(3):
        stage.create(MINUTELY)
    forget()
    stage.clock.advance(60)
    first = reads_of_a_tick(stage)
    stage.clock.advance(60)
    second = reads_of_a_tick(stage)

    assert without == 0
    assert 1 <= first <= 2  # of two shards at a time
    assert second == 0


def test_a_temporarily_unreadable_calendar_delays_no_other_schedule(stage: Stage) -> None:
    make(stage, **minutes(30, 40))
    with_calendar = stage.create(MINUTELY)
    without = stage.create({"cron": "* * * * *"})
    stage.run(1)
    before = stage.stored(with_calendar).next_run_at
    forget()
    stage.clock.advance(120)
    with stage.taps.faulty(lambda call, act: refused(call, act) if call.operation == "BatchGetItem" else act()):
        stage.tick()
    forget()
    there, other = row(stage, with_calendar), row(stage, without)

    assert before is not None
    assert int(there["next_run_at"]["N"]) == before.timestamp()
    assert int(other["next_run_at"]["N"]) > before.timestamp()
    stage.run(300)
    assert ran(stage, with_calendar) == ran(stage, without)
    assert stage.stored(with_calendar).state is ScheduleState.ACTIVE


# A change of a calendar


def test_a_changed_calendar_replans_all_its_schedules(stage: Stage) -> None:
    make(stage, **minutes(100, 100))
    users = [stage.create(MINUTELY, name=f"user {n}") for n in range(3)]
    other = stage.create({"cron": "* * * * *"})
    stage.run(150)

    changed = change(stage, **minutes(4, 8))
    stage.run(10 * 60)

    assert changed.version == 2
    for each in users:
        assert ran(stage, each) == [1, 2, 3, 9, 10, 11, 12]
        assert stage.stored(each).generation == 2
        assert stage.fold(each).rows == stage.totals(each).planned - ahead(stage, each)
    check_settled(stage, *users)
    assert stage.stored(other).generation == 1
    assert (stage.audit().lost, stage.audit().corrected) == (0, 0)


def ahead(stage: Stage, planned: Planned) -> int:
    """Occurrences that are sent and counted, but not due yet."""
    return stage.totals(planned).planned - stage.fold(planned).rows


def test_an_occurrence_excluded_after_it_was_sent_ahead_does_not_run(stage: Stage) -> None:
    make(stage)
    planned = stage.create(MINUTELY)
    stage.run(50)  # minutes 1 and 2 are on their way

    change(stage, **minutes(2, 4))
    stage.run(6 * 60)

    assert ran(stage, planned) == [1, 5, 6]
    assert stage.audit().corrected == 0


def test_a_calendar_change_that_leaves_a_schedule_no_run_ends_it(stage: Stage) -> None:
    make(stage)
    planned = stage.create(DAILY)

    change(stage, weekly=[{"days": list(calendar_content.WEEKDAYS)}])
    stage.run(40 * 60)

    there = stage.stored(planned)
    assert (there.state, there.state_reason) == (ScheduleState.COMPLETED, "NO_FUTURE_DATES")
    assert not head(stage).replanning


def hard_to_compute(stage: Stage, **state: Any) -> Planned:
    """Makes a schedule whose calendars are then changed so that no search within bounds tells whether it ever fires."""
    make(stage, "away", weekly=[{"days": ["SUN"]}])
    make(stage, "apia", timezone="Pacific/Apia", weekly=[{"days": ["TUE", "THU", "SAT", "SUN", "MON"]}])
    named = [{"name": name, "mode": "exclude", "roll": "next"} for name in ("away", "apia")]
    planned = stage.create({"cron": "0 9 * * 5", "calendars": named})
    if state:
        stage.set_state(planned, **state)
    change(stage, "away", weekly=[{"days": ["SUN", "WED", "FRI", "MON", "SAT"]}])
    return planned


def test_a_calendar_change_that_makes_a_schedule_too_expensive_marks_it_unreadable(stage: Stage) -> None:
    planned = hard_to_compute(stage)
    other = stage.create({"cron": "* * * * *"})

    stage.run(5 * 60)

    there = stage.stored(planned)
    (run,) = stage.runs(planned)
    assert (there.state, there.state_reason) == (ScheduleState.BROKEN, "UNREADABLE")
    assert (run.state, run.reason) == (State.ERROR, Reason.BAD_PAYLOAD)
    assert "takes too long to compute" in (run.message or "")
    assert len(ran(stage, other)) >= 4
    assert replan_rows(stage) == []
    assert not head(stage, "away").replanning


def test_an_expensive_inactive_schedule_stays_off_and_another_calendar_version_repairs_it(stage: Stage) -> None:
    planned = hard_to_compute(stage, active=False)
    stage.run(5 * 60)
    with pytest.raises(InvalidRequest, match="takes too long to compute"):
        stage.set_state(planned, active=True)
    off = stage.stored(planned).state

    change(stage, "away", weekly=[{"days": ["SUN"]}])
    stage.run(2 * 60)
    stage.set_state(planned, active=True)

    there = stage.stored(planned)
    assert off is ScheduleState.INACTIVE
    assert there.state is ScheduleState.ACTIVE
    assert there.next_run_at is not None
    assert (there.next_run_at.weekday(), there.next_run_at.hour) == (4, 9)
    assert replan_rows(stage) == []


def test_an_inactive_schedule_follows_the_change_and_a_completed_one_stays_completed(stage: Stage) -> None:
    make(stage, **minutes(100, 101))
    off = stage.create(MINUTELY)
    over = stage.create({**MINUTELY, "count": 1})
    stage.run(30 * 60)
    stage.set_state(off, active=False)

    changed = change(stage, **minutes(200, 201))
    stage.run(120)

    assert mathematics.references(stage.stored(off).packed) == [changed.reference]
    assert stage.stored(off).state is ScheduleState.INACTIVE
    assert stage.stored(over).state is ScheduleState.COMPLETED
    assert stage.stored(over).generation == 1
    assert replan_rows(stage) == []


def test_a_calendar_change_keeps_the_rhythm_of_an_interval(stage: Stage) -> None:
    make(stage)
    planned = stage.create({"every": "7 minutes", "calendars": NAMED})
    stage.run(8 * 60)

    change(stage, **minutes(20, 22))
    stage.run(30 * 60)

    assert ran(stage, planned) == [7, 14, 28, 35]


def test_the_same_content_changes_nothing(stage: Stage) -> None:
    made = make(stage, **minutes(3, 6))
    before = stage.items()

    assert replace(change(stage, **minutes(3, 6)), facts={}) == replace(made, facts={})

    assert stage.items() == before


def test_a_new_description_makes_a_version_and_replans_nothing(stage: Stage) -> None:
    make(stage, **minutes(30, 31))
    planned = stage.create(MINUTELY)

    calendars.change(stage.world, TENANT, "holidays", lambda there: replace(there, description="new"), None, "acme.x")

    assert (head(stage).version, head(stage).description, head(stage).replanning) == (2, "new", False)
    assert stage.stored(planned).generation == 1
    (second, first) = calendars.resources.versions(stage.world.table, TENANT, "holidays", None, 5)
    assert (first.number, second.number, second.actor) == (1, 2, "acme.x")
    assert first.reference == second.reference


def test_a_second_change_during_the_replanning_restarts_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calendars, "PAGE", 1)
    monkeypatch.setattr(calendars, "STRETCH_S", -1.0)
    make(stage)
    users = [stage.create(MINUTELY, name=f"user {n}") for n in range(4)]
    change(stage, **minutes(100, 101))
    stage.run(1)  # the first of them

    change(stage, **minutes(4, 8))
    stage.run(15 * 60)

    for each in users:
        assert ran(stage, each)[-5:] == [11, 12, 13, 14, 15]
        assert not set(ran(stage, each)) & set(range(4, 9))
    check_settled(stage, *users)


def test_a_schedule_that_cannot_follow_now_follows_later_and_delays_no_other(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(stage)
    users = [stage.create(MINUTELY, name=f"user {n}") for n in range(3)]
    follow = calendars._follow
    until = stage.clock.now() + timedelta(seconds=30)

    def failing(world: Any, tenant: str, job_id: str) -> bool:
        busy = job_id == users[0].job.id and stage.clock.now() < until
        return not busy and follow(world, tenant, job_id)

    monkeypatch.setattr(calendars, "_follow", failing)
    change(stage, **minutes(10, 12))
    stage.run(5)
    waiting = [mathematics.references(stage.stored(each).packed) == [head(stage).reference] for each in users]
    there = replan_rows(stage)
    stage.run(180)

    assert waiting == [False, True, True]
    assert there == ["REPLAN#holidays"]
    check_settled(stage, *users)


def test_a_job_of_many_schedules_follows_in_parts(stage: Stage) -> None:
    make(stage)
    planned = stage.create(*({"cron": f"{n} * * * *", "calendars": NAMED} for n in range(40)))

    changed = change(stage, **minutes(4, 8))
    stage.run(120)

    there = store_jobs.read_schedules(stage.world.table, TENANT, planned.job.id)
    assert len(there) == 40
    assert {tuple(mathematics.references(each.packed)) for each in there} == {(changed.reference,)}
    assert replan_rows(stage) == []


def test_held_schedules_follow_the_change_and_continue(stage: Stage) -> None:
    make(stage)
    planned = stage.create(MINUTELY)
    stage.run(60)
    tenancy.change_collection(stage.world, TENANT, "default", lambda there: tenancy.enabled(there, on=False), None)
    stage.run(300)
    change(stage, **minutes(12, 13))
    stage.run(120)
    tenancy.change_collection(stage.world, TENANT, "default", lambda there: tenancy.enabled(there, on=True), None)
    stage.run(10 * 60)

    assert not set(ran(stage, planned)) & {12, 13}
    assert {11, 14, 15} <= set(ran(stage, planned))
    check_settled(stage, planned)


# Cut off


FAULTS: list[Fault] = [crash_before, crash_after, answer_lost, refused]


@pytest.mark.sampled(7)
@pytest.mark.repeats
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("operation", ["TransactWriteItems", "GetItem", "Query", "UpdateItem", "BatchGetItem"])
@pytest.mark.parametrize("nth", [0, 1, 2])
def test_all_schedules_follow_a_change_after_any_fault(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, fault: Fault, operation: str, nth: int
) -> None:
    monkeypatch.setattr(calendars, "PAGE", 1)
    monkeypatch.setattr(calendars, "STRETCH_S", -1.0)
    make(stage)
    users = [stage.create(MINUTELY, name=f"user {n}") for n in range(2)]
    stage.run(90)

    met = count()

    def only_nth(call: Passing, act: Act) -> Any:
        return fault(call, act) if call.operation == operation and next(met) == nth else act()

    with stage.taps.faulty(only_nth), suppress(Crash, SweephandError):
        change(stage, **minutes(6, 8))
        stage.run(4)
    with suppress(SweephandError):
        change(stage, **minutes(6, 8))  # the caller, who may not have had an answer
    stage.run(15 * 60)

    for each in users:
        assert [n for n in ran(stage, each) if n <= 15] == [1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 15]
        assert stage.fold(each).rows == stage.totals(each).planned - ahead(stage, each)
    check_settled(stage, *users)


def test_a_lost_message_is_sent_by_the_sweep(stage: Stage) -> None:
    make(stage)
    planned = stage.create(MINUTELY)
    with stage.taps.once("sqs.SendMessageBatch", crash_before), suppress(Crash):
        change(stage, **minutes(6, 8))

    stage.run(15 * 60)

    assert [n for n in ran(stage, planned) if n <= 12] == [1, 2, 3, 4, 5, 9, 10, 11, 12]
    check_settled(stage, planned)


@pytest.mark.parametrize("replans", [True, False])
def test_a_create_whose_calendar_changes_meanwhile_is_planned_by_the_new_version(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, replans: bool
) -> None:
    """replans: whether the jobs that name the calendar are replanned before the create is written, or after that."""
    make(stage)
    book_of = named_calendars.book_of
    changes = iter([minutes(3, 5)])

    def meanwhile(*args: Any) -> Any:
        book = book_of(*args)
        if content := next(changes, None):
            change(stage, **content)
            if replans:
                stage.deliver()
        return book

    monkeypatch.setattr(named_calendars, "book_of", meanwhile)

    planned = stage.create(MINUTELY)

    assert (mathematics.references(stage.stored(planned).packed) == [head(stage).reference]) is replans
    stage.run(5)
    assert mathematics.references(stage.stored(planned).packed) == [head(stage).reference]
    assert head(stage).users == 1


# Users of a calendar


def test_a_calendar_in_use_is_not_deleted(stage: Stage) -> None:
    make(stage, **WEEKENDS)
    planned = stage.create(DAILY, DAILY)

    with pytest.raises(Conflict, match=planned.job.id):
        calendars.delete(stage.world, TENANT, "holidays", None)
    stage.delete(planned)
    calendars.delete(stage.world, TENANT, "holidays", None)

    with pytest.raises(NotFound):
        calendars.find(stage.world, TENANT, "holidays")
    left = [item for item in stage.items() if "#CAL" in item["pk"]["S"] or item["sk"]["S"].startswith("CAL")]
    assert all("expires_at" in item for item in left)


@pytest.mark.parametrize("changes", [0, 2])
def test_a_create_cannot_use_a_calendar_that_is_replaced_meanwhile_by_one_of_its_name(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, changes: int
) -> None:
    make(stage, **WEEKENDS)
    for n in range(changes):
        change(stage, **minutes(n, n))
    stage.deliver()
    book_of = named_calendars.book_of
    replaced = iter([True])

    def meanwhile(*args: Any) -> Any:
        book = book_of(*args)
        if next(replaced, False):
            calendars.delete(stage.world, TENANT, "holidays", None)
            stage.clock.advance(0.001)
            make(stage, **minutes(3, 5))
        return book

    monkeypatch.setattr(named_calendars, "book_of", meanwhile)

    planned = stage.create(MINUTELY)

    assert mathematics.references(stage.stored(planned).packed) == [head(stage).reference]
    assert head(stage).users == 1


def test_a_calendar_is_not_deleted_under_a_create_nor_the_other_way_round(stage: Stage) -> None:
    """Each create meets a delete, in whichever order their transactions come."""
    for n in range(20):
        stage.clock.advance(1)
        make(stage, **WEEKENDS)
        works: list[Any] = [
            lambda: stage.create(DAILY),
            lambda: calendars.delete(stage.world, TENANT, "holidays", None),
        ]
        first = (-1) ** n
        with at_once(stage) as run:
            made, deleted = run(works[::first])[::first]

        if deleted is None:
            assert isinstance(made, InvalidRequest)
            with pytest.raises(NotFound):
                head(stage)
        else:
            assert isinstance(deleted, Conflict)
            stage.delete(made)
            calendars.delete(stage.world, TENANT, "holidays", None)


def test_users_are_counted_as_schedules_come_and_go(stage: Stage) -> None:
    make(stage, **WEEKENDS)
    make(stage, "other", **WEEKENDS)
    planned = stage.create(DAILY, {"cron": "0 8 * * *"})

    def users() -> tuple[int, int]:
        rows = [item for item in stage.items() if item["sk"]["S"].startswith("USE#")]
        both = head(stage).users, head(stage, "other").users
        assert len(rows) == sum(both)
        return both

    assert users() == (1, 0)
    stage.change(planned, timings=[{**DAILY, "calendars": [{"name": "other"}]}, DAILY])
    assert users() == (1, 1)
    stage.change(planned, timings=[{"cron": "0 7 * * *"}, DAILY])
    assert users() == (1, 0)
    stage.change(planned, timings=[{"cron": "0 7 * * *"}, {"cron": "0 7 * * *"}])
    assert users() == (0, 0)
    stage.change(planned, timings=[DAILY, DAILY])
    stage.delete(planned)
    assert users() == (0, 0)


@pytest.mark.parametrize("fault", [answer_lost, crash_after, crash_before, conflict], ids=lambda each: each.__name__)
def test_a_use_is_counted_once_even_if_the_answer_is_lost(stage: Stage, fault: Fault) -> None:
    make(stage, **WEEKENDS)
    with stage.taps.once("dynamodb.TransactWriteItems", fault), suppress(Crash, SweephandError):
        stage.create(DAILY, name="one")
    with suppress(SweephandError):
        stage.create(DAILY, name="one")

    assert head(stage).users == 1
    assert len([item for item in stage.items() if item["sk"]["S"].startswith("USE#")]) == 1


@pytest.mark.parametrize("fault", [answer_lost, crash_after, crash_before, conflict], ids=lambda each: each.__name__)
def test_a_calendar_is_created_once_even_if_the_answer_is_lost(stage: Stage, fault: Fault) -> None:
    with stage.taps.once("dynamodb.TransactWriteItems", fault), suppress(Crash):
        make(stage, **WEEKENDS)
    with suppress(Conflict):
        make(stage, **WEEKENDS)

    assert (head(stage).version, head(stage).users) == (1, 0)


def test_two_calendars_cannot_have_the_same_name(stage: Stage) -> None:
    make(stage, **WEEKENDS)

    with pytest.raises(Conflict) as taken:
        make(stage, dates=["2027-05-01"])

    assert taken.value.code == "NAME_TAKEN"


def test_a_deleted_calendar_can_be_created_again_at_version_1(stage: Stage) -> None:
    make(stage, **WEEKENDS)
    change(stage, dates=["2027-05-01"])
    calendars.delete(stage.world, TENANT, "holidays", None)
    stage.clock.advance(5)

    made = make(stage, **WEEKENDS)

    assert made.version == 1
    assert [each.number for each in calendars.resources.versions(stage.world.table, TENANT, "holidays", None, 9)] == [1]


def test_a_missing_version_stops_its_schedule_and_not_its_shard(stage: Stage) -> None:
    """It cannot happen by the service; but a restored table may lack it."""
    made = make(stage, **minutes(30, 31))
    broken, whole = stage.create(MINUTELY), stage.create({"cron": "* * * * *"})
    stage.world.table.delete(keys.calendar_text(TENANT, made.reference), keys.CALENDAR_TEXT)
    forget()

    stage.run(300)

    assert stage.stored(broken).state is ScheduleState.BROKEN
    assert len(ran(stage, whole)) == 5


def test_the_packed_text_of_a_catch_up_names_its_calendars_too(stage: Stage) -> None:
    make(stage, **minutes(3, 20))
    planned = stage.create(MINUTELY, policies={"misfire": {"type": "all", "ratePerMinute": 600}})
    stage.run(61)
    stage.clock.advance(30 * 60)
    forget()
    stage.run(10 * 60)

    done = ran(stage, planned)
    assert done == [1, 2, *range(21, max(done) + 1)]
    assert max(done) >= 38


def test_the_parser_refuses_an_unreadable_list_of_names() -> None:
    assert named_calendars.named({"calendars": "x"}) == []
    assert named_calendars.named({}) == []
    assert named_calendars.named({"calendars": [{"name": "a"}, {"name": "b"}]}) == ["a", "b"]


def test_a_row_is_read_back_with_its_calendars(stage: Stage) -> None:
    make(stage, **WEEKENDS)
    planned = stage.create(DAILY)

    there: Schedule = stage.stored(planned)

    text = SweepText.read(row(stage, planned)["sweep"]["S"])
    assert text.packed == there.packed
    forget()
    with pytest.raises(Unavailable):
        load(there.packed)
