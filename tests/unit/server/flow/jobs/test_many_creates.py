"""Many creates in one tenant meet in no row, and its quotas hold exactly whatever happens meanwhile."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from sweephand.base.errors import QuotaExceeded, SweephandError
from sweephand.domain.calendar import Calendar
from sweephand.domain.collection import Events, Quota, Usage
from sweephand.domain.flow_keys.flow_keys import FlowKey
from sweephand.domain.instants import EPOCH
from sweephand.schedules.calendars import calendar_content
from sweephand.server.flow.calendars import calendars
from sweephand.server.flow.flow_keys import flow_key_changes
from sweephand.server.flow.idempotency import Once
from sweephand.server.flow.jobs import creation
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.tenants import tenancy
from sweephand.server.store.dynamo import keys
from sweephand.server.store.jobs import directory
from sweephand.server.store.tenants import counts, usage
from sweephand.testing.taps import Act, Fault, Passing
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, conflict, crash_after, crash_before
from tests.support.turns import at_once

HOURLY = {"every": "PT1H"}
A_SECOND = 1_000
"""Write units of one partition, and of one row, in a second."""


def allow(stage: Stage, jobs: int | None = None, schedules: int | None = None) -> None:
    tenancy.change_tenant(stage.world, TENANT, None, Usage(most_jobs=jobs, most_schedules=schedules))


def allow_in_collection(stage: Stage, jobs: int | None) -> None:
    def limited(there: Any) -> Any:
        return replace(there, quota=Quota(max_jobs=jobs))

    tenancy.change_collection(stage.world, TENANT, "default", limited, None)


def there(stage: Stage, tenant: str = TENANT) -> tuple[int, int]:
    """Returns how many jobs and schedules the tenant has, counted one by one."""
    items = [row for row in stage.items() if row["pk"]["S"].startswith(f"{keys.tenant(tenant)}#")]
    jobs = sum(row["sk"]["S"] == keys.JOB for row in items)
    return jobs, sum(row["sk"]["S"].startswith("SCH#") for row in items)


def exact(stage: Stage) -> None:
    counted = usage.read(stage.world.table, TENANT)
    assert (counted.jobs, counted.schedules) == there(stage)
    assert stage.job_counts() == {"default": counted.jobs}


def leases(stage: Stage) -> int:
    """Returns how many more jobs the rows allow without another lease."""
    rows = counts.read(stage.world.table, usage.counted(TENANT, usage.read_quotas(stage.world.table, TENANT)))
    return sum(each.jobs_left or 0 for each in rows)


@pytest.fixture
def in_stripes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spreads even a small quota over all rows."""
    monkeypatch.setattr(counts, "FEW", 1)


# Rows


def written(stage: Stage) -> tuple[Counter[tuple[str, str]], Counter[str]]:
    """Returns the write units of each row and of each partition, if every row is small."""
    rows: Counter[tuple[str, str]] = Counter()
    for passing in stage.taps.passed:
        if passing.operation == "TransactWriteItems":
            for part in passing.request["TransactItems"]:
                (request,) = part.values()
                rows[_key(request)] += 2
        elif passing.operation in {"PutItem", "UpdateItem", "DeleteItem"}:
            rows[_key(passing.request)] += 1
    partitions: Counter[str] = Counter()
    for (pk, _), units in rows.items():
        partitions[pk] += units
    return rows, partitions


def _key(request: dict[str, Any]) -> tuple[str, str]:
    key = request.get("Key", request.get("Item", {}))
    return key["pk"]["S"], key["sk"]["S"]


MANY = 64
RATE = 500


def do_nothing(_planned: Planned, _stage: Stage) -> None:
    """Leaves the job as it was created."""


ACTS: dict[str, Callable[[Planned, Stage], Any]] = {
    "create": do_nothing,
    "deactivate": lambda planned, stage: stage.set_state(planned, active=False),
    "delete": lambda planned, stage: stage.delete(planned),
}


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("act", ACTS)
def test_no_row_and_no_partition_limits_500_jobs_a_second(stage: Stage, act: str, limited: bool) -> None:
    if limited:
        allow(stage, 100_000, 200_000)
        allow_in_collection(stage, 100_000)
    stage.taps.passed.clear()
    made = [stage.create(HOURLY, name=f"{n:03d}", once=Once(f"key {n}", "body")) for n in range(MANY)]
    if act != "create":
        stage.taps.passed.clear()
        for planned in made:
            ACTS[act](planned, stage)

    rows, partitions = written(stage)

    numbers = keys.directory(TENANT), keys.LAST_NUMBER
    assert rows.pop(numbers, 0) in {0, MANY}, "the counter is no part of a transaction: each write is one unit"
    if limited:
        rows.pop((keys.tenant(TENANT), keys.USAGE), None)
        rows.pop((keys.tenant(TENANT), keys.collection("default")), None)  # while the first leases are granted
        partitions.pop(keys.tenant(TENANT), None)
    in_transactions = max(rows.values()) / 2
    assert in_transactions * RATE / MANY <= 50, rows.most_common(3)
    in_a_second = {pk: units * RATE / MANY for pk, units in partitions.items()}
    assert max(in_a_second.values()) <= A_SECOND, "the names of one collection"
    part, names = keys.directory_part(TENANT, 0), keys.names(TENANT, "default")
    assert 2 * directory.PART <= A_SECOND / 2, "all that creates ever write in a partition of the directory"
    assert max(each for pk, each in in_a_second.items() if pk not in {part, names}) <= A_SECOND * 3 / 4, in_a_second


def no_row_is_hot(stage: Stage) -> None:
    """Checks that 500 such changes a second would write no row in more than 50 transactions, and no partition too much.

    The counter of numbers is no part of a transaction.
    """
    rows, partitions = written(stage)
    rows.pop((keys.directory(TENANT), keys.LAST_NUMBER), None)
    assert max(rows.values()) / 2 * RATE / MANY <= 50, rows.most_common(3)
    assert max(partitions.values()) * RATE / MANY <= A_SECOND, partitions.most_common(3)


@pytest.mark.parametrize("act", ["create", "rename", "leave", "delete"])
def test_no_row_limits_500_jobs_a_second_that_name_one_calendar_and_one_flow_key(stage: Stage, act: str) -> None:
    content = {"weekly": [{"days": ["SUN"]}]}
    facts = calendar_content.read(content)
    calendars.create(stage.world, Calendar(TENANT, "c", EPOCH, EPOCH, content=content, facts=facts), None)
    flow_key_changes.create(stage.world, FlowKey(TENANT, "k", EPOCH, EPOCH))
    named, policies = {**HOURLY, "calendars": [{"name": "c"}]}, {"flowKey": "k"}
    stage.taps.passed.clear()
    made = [stage.create(named, name=f"{n:03d}", policies=policies) for n in range(MANY)]

    acts: dict[str, Callable[[Planned], Any]] = {
        "rename": lambda each: stage.change(each, timings=[{**named, "every": "PT2H"}], policies=policies),
        "leave": lambda each: stage.change(each, timings=[HOURLY], policies={}),
        "delete": stage.delete,
    }
    if act != "create":
        stage.taps.passed.clear()
        for each in made:
            acts[act](each)

    no_row_is_hot(stage)
    users = MANY if act in {"create", "rename"} else 0
    assert calendars.find(stage.world, TENANT, "c").users == users
    assert flow_key_changes.find(stage.world, TENANT, "k").users == users


def test_500_creates_in_a_second_do_not_wait_for_each_other(stage: Stage) -> None:
    """Each begins 2 ms after the one before. A transaction takes 15 ms, and another one that meets it is refused."""
    slow = []

    def create(n: int) -> Planned:
        stage.clock.sleep(n / RATE)
        began = stage.clock.monotonic()
        made = stage.create(HOURLY, name=f"{n:03d}")
        slow.append(stage.clock.monotonic() - began)
        return made

    with at_once(stage) as run:
        found = run([lambda n=n: create(n) for n in range(100)])

    assert all(isinstance(each, Planned) for each in found)
    exact(stage)
    assert max(slow) < 0.2, "one transaction and a few calls"


# Quotas


@pytest.mark.parametrize(("few", "gap_s"), [(True, 0.02), (False, 0.001)], ids=["few", "many"])
def test_a_quota_is_reached_exactly_at_1000_creates_a_second(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, few: bool, gap_s: float
) -> None:
    """A small quota is counted in one row, which takes 50 creates a second."""
    monkeypatch.setattr(counts, "FEW", 1_000 if few else 1)
    allow(stage, 30, 70)
    allow_in_collection(stage, 35)

    def create(n: int) -> Planned:
        stage.clock.sleep(n * gap_s)
        return stage.create(HOURLY, HOURLY, name=f"{n:03d}")

    with at_once(stage) as run:
        found = run([lambda n=n: create(n) for n in range(50)])

    assert {type(each) for each in found} == {Planned, QuotaExceeded}
    assert there(stage)[0] == 30
    exact(stage)


@pytest.mark.long
def test_a_quota_of_5000_is_reached_exactly_at_1000_creates_a_second(stage: Stage) -> None:
    allow(stage, 5_000)
    found: Counter[type] = Counter()

    def create(n: int) -> Planned:
        stage.clock.sleep(n * 0.001)
        return stage.create(HOURLY)

    for _ in range(21):
        with at_once(stage) as run:
            found.update(map(type, run([lambda n=n: create(n) for n in range(250)])))

    assert found == {Planned: 5_000, QuotaExceeded: 250}
    assert there(stage)[0] == 5_000
    exact(stage)


@pytest.mark.parametrize("fault", [answer_lost, conflict], ids=lambda fault: fault.__name__)
@pytest.mark.usefixtures("in_stripes")
def test_a_quota_is_reached_exactly_at_1000_creates_a_second_under_faults_and_other_tenants_are_unmoved(
    stage: Stage, fault: Fault
) -> None:
    """Each fifth transaction of the limited tenant meets the fault."""
    tenancy.create_tenant(stage.world, "globex", None)
    allow(stage, 40)
    transactions = itertools.count(1)
    took_s = []

    def faulty(passing: Passing, act: Act) -> Any:
        hit = passing.operation == "TransactWriteItems" and "#acme" in str(passing.request)
        return fault(passing, act) if hit and next(transactions) % 5 == 0 else act()

    def create(tenant: str, n: int) -> Planned:
        stage.clock.sleep(n * 0.001)
        began = stage.clock.monotonic()
        made = creation.create_job(stage.world, tenant, stage.draft(HOURLY, name=f"{n:03d}"))
        if tenant == "globex":
            took_s.append(stage.clock.monotonic() - began)
        return made

    with stage.taps.faulty(faulty), at_once(stage) as run:
        works = [lambda n=n: create(TENANT, n) for n in range(60)]
        found = run([*works, *(lambda n=n: create("globex", n) for n in range(0, 60, 6))])

    assert Counter(map(type, found[:60])) == {Planned: 40, QuotaExceeded: 20}
    assert there(stage) == (40, 40)
    assert usage.read(stage.world.table, TENANT).jobs == 40
    assert {type(each) for each in found[60:]} == {Planned}
    assert max(took_s) < 0.2, "as if the other tenant were not there"


@pytest.mark.usefixtures("in_stripes")
def test_the_last_place_is_found_in_whichever_row_it_is(stage: Stage) -> None:
    allow(stage, 40)
    made = [stage.create(HOURLY) for _ in range(40)]
    with pytest.raises(QuotaExceeded, match="40 jobs at most"):
        stage.create(HOURLY)

    for planned in made[::7]:
        stage.delete(planned)
    again = [stage.create(HOURLY) for _ in made[::7]]

    assert len(again) == 6
    with pytest.raises(QuotaExceeded):
        stage.create(HOURLY)
    exact(stage)


@pytest.mark.usefixtures("in_stripes")
def test_a_job_of_many_schedules_collects_what_other_rows_have_not_used(stage: Stage) -> None:
    allow(stage, schedules=64)
    for _ in range(16):
        stage.create(HOURLY)

    stage.create(*[HOURLY] * 40)
    with pytest.raises(QuotaExceeded, match="64 schedules at most"):
        stage.create(*[HOURLY] * 9)
    stage.create(*[HOURLY] * 8)

    assert there(stage)[1] == 64
    exact(stage)


@pytest.mark.parametrize("lowered", [10, 0, 39, 41, None])
@pytest.mark.usefixtures("in_stripes")
def test_a_changed_quota_ends_the_leases_of_the_one_before(stage: Stage, lowered: int | None) -> None:
    allow(stage, 1_000)
    made = [stage.create(HOURLY) for _ in range(40)]
    assert leases(stage) > 0
    allow(stage, lowered)

    while lowered is not None and len(made) >= lowered + 1:
        with pytest.raises(QuotaExceeded):
            stage.create(HOURLY)
        stage.delete(made.pop())

    made += [stage.create(HOURLY) for _ in range(2 if lowered is None else lowered - len(made))]
    if lowered is not None:
        with pytest.raises(QuotaExceeded):
            stage.create(HOURLY)
    exact(stage)


@pytest.mark.usefixtures("in_stripes")
def test_a_quota_is_changed_although_a_create_holds_one_of_its_rows(stage: Stage) -> None:
    allow(stage, 100)
    stage.create(HOURLY)

    with stage.taps.once("dynamodb.UpdateItem", conflict):
        allow(stage, 1)

    with pytest.raises(QuotaExceeded):
        stage.create(HOURLY)


@pytest.mark.usefixtures("in_stripes")
def test_a_create_that_began_before_another_change_of_its_collection_uses_no_former_lease(stage: Stage) -> None:
    allow_in_collection(stage, 20)
    stage.create(HOURLY)

    def meanwhile(_passing: Passing, act: Act) -> Any:
        stage.taps.fault = None
        stage.tell(Events.ALL)
        for _ in range(19):
            stage.create(HOURLY)
        return act()

    with stage.taps.once("dynamodb.TransactWriteItems", meanwhile), pytest.raises(QuotaExceeded, match="has 20 jobs"):
        stage.create(HOURLY)

    assert stage.job_counts() == {"default": 20}


def test_most_creates_under_a_quota_read_one_row_more_and_write_nothing_more(stage: Stage) -> None:
    allow(stage, 500)
    stage.create(HOURLY)
    stage.taps.passed.clear()

    stage.create(HOURLY)

    under = stage.taps.names()
    allow(stage)
    stage.taps.passed.clear()
    stage.create(HOURLY)
    assert Counter(under) - Counter(stage.taps.names()) == Counter(["dynamodb.GetItem"])


FAULTS = [crash_before, crash_after, answer_lost, conflict]


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_no_crash_between_two_calls_costs_the_tenant_a_place(
    stage: Stage, fault: Any, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not few:
        monkeypatch.setattr(counts, "FEW", 1)
    allow(stage, 30)
    calls = 0

    def at(number: int) -> Callable[[Passing, Act], Any]:
        def faulty(passing: Passing, act: Act) -> Any:
            nonlocal calls
            calls += 1
            writes = passing.operation == "TransactWriteItems" or fault is not conflict
            return fault(passing, act) if calls == number and writes else act()

        return faulty

    for number in range(1, 12):
        calls = 0
        with stage.taps.faulty(at(number)), suppress(Crash, SweephandError):
            stage.create(HOURLY)
    with suppress(QuotaExceeded):
        while True:
            stage.create(HOURLY)

    assert there(stage) == (30, 30)
    exact(stage)


@pytest.mark.usefixtures("in_stripes")
@pytest.mark.parametrize("seed", range(2))
def test_creates_deletes_and_changes_of_the_quota_at_once_stay_exact(stage: Stage, seed: int) -> None:
    allow(stage, 10)
    made = [stage.create(HOURLY, name=f"old-{n}") for n in range(7)]
    works: list[Callable[[], Any]] = [lambda n=n: stage.create(HOURLY, name=f"{seed}-{n}") for n in range(10)]
    works += [lambda planned=planned: stage.delete(planned) for planned in made[:4]]
    works.insert(2 + seed, lambda: allow(stage, 9))

    with at_once(stage) as run:
        found = run(works)

    assert not [each for each in found if isinstance(each, Exception) and not isinstance(each, QuotaExceeded)]
    exact(stage)
    with suppress(QuotaExceeded):
        while True:
            stage.create(HOURLY)
    assert there(stage)[0] == 9


def test_a_tenant_at_its_quota_delays_no_other(stage: Stage) -> None:
    tenancy.create_tenant(stage.world, "globex", None)
    allow(stage, 1)
    stage.create(HOURLY)
    stage.taps.passed.clear()

    with pytest.raises(QuotaExceeded):
        stage.create(HOURLY)

    assert not [passing for passing in stage.taps.passed if "globex" in str(passing.request)]
