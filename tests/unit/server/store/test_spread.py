"""Busy partitions of the index `attention`: where entries go, and that every list finds them."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import pytest

from bench.meter import metered
from sweephand.base.ids import run_uuid
from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.domain.schedule import Lane
from sweephand.server.store.consumers import consumers
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Written
from sweephand.server.store.runs import ledger, spread
from sweephand.server.store.views import runs as views
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import ACCEPTED, WRONG
from tests.support.stage import TENANT, Stage
from tests.support.stage import stage as new_stage
from tests.support.taps import refused
from tests.unit.server.flow.common import MINUTE, NOON, SECOND, fixed

DAY = keys.attention_day(TENANT, NOON)
RUNS_A_SECOND, WRITES_A_SECOND = 10_000, 1_000
"""Runs of one tenant, and writes that one partition takes."""


def failed(n: int, **members: Any) -> Run:
    at = NOON + n * SECOND
    uuid = run_uuid(TENANT, f"schedule {n % 7}", int(at.timestamp() * 1000), "scheduled")
    members = {"state": State.ERROR, "reason": Reason.NO_ANSWER, **members}
    return Run(TENANT, "job", f"schedule {n % 7}", uuid, Kind.SCHEDULED, planned_at=at, **members)


def held(n: int) -> Run:
    return failed(n, state=State.HELD, reason=Reason.CONSUMER_AWAY, consumer="billing")


def write(stage: Stage, *runs: Run) -> None:
    for run in runs:
        assert ledger.claim_first(stage.world.table, run, shards=1, lane=Lane.FAST) == Written()


def listed(stage: Stage, page: int = 10) -> list[str]:
    """Lists the tenant's runs page by page."""
    seen: list[str] = []
    mark: views.RunMark | None = None
    while True:
        found = views.attention(stage.world.table, TENANT, NOON.date(), NOON + 60 * MINUTE, mark, page)
        some = list(islice((each for each in found if isinstance(each, Run)), page))
        if not some:
            return seen
        seen += [run.uuid for run in some]
        mark = some[-1].uuid, some[-1].schedule_id or some[-1].job_id


def places(stage: Stage) -> Counter[str]:
    return Counter(item["attention_day"]["S"] for item in stage.items() if "attention_day" in item)


def test_a_partition_is_spread_once_it_is_busy(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "BUSY", 3)

    write(stage, *map(failed, range(3)))
    quiet, noted = places(stage), spread.partitions(stage.world.table, TENANT)
    write(stage, *map(failed, range(3, 40)))

    assert (quiet, noted) == ({DAY: 3}, frozenset())
    assert spread.partitions(stage.world.table, TENANT) == {DAY}
    assert places(stage)[DAY] == 3
    assert len(places(stage)) > 15


@pytest.mark.parametrize("page", [1, 7, 100])
def test_lists_have_each_run_of_a_busy_day_once_and_in_order(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(spread, "BUSY", 5)
    made = [failed(n) for n in range(40)]

    write(stage, *made)

    assert listed(stage, page) == sorted((run.uuid for run in made), reverse=True)


def test_ranges_of_a_busy_day_are_found(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "BUSY", 0)
    planned = stage.create({"cron": "* * * * *"})
    write(stage, *map(failed, range(10)))
    stage.pass_time(3_600)
    stage.run(60)

    found = views.ranges_before(stage.world.table, TENANT, NOON.date(), NOON.date())

    expected = [run.uuid for run in stage.runs(planned) if run.range_until is not None]
    assert [run.uuid for run in found] == expected
    assert expected


def test_runs_held_for_a_busy_consumer_are_found_oldest_first(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "BUSY", 5)
    made = [held(n) for n in range(40)]

    write(stage, *made)

    found = list(consumers.held(stage.world.table, TENANT, "billing", 3))
    assert found == [(keys.runs(TENANT, str(run.schedule_id)), keys.run(run.uuid)) for run in made]
    assert len(places(stage)) > 15


def test_a_partition_is_noted_before_the_first_entry_leaves_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "BUSY", 3)

    def not_noted(passing: Passing, act: Act) -> Any:
        return refused(passing, act) if keys.SPREAD in str(passing.request.get("Key")) else act()

    with stage.taps.faulty(not_noted):
        write(stage, *map(failed, range(10)))
    away = places(stage)
    write(stage, *map(failed, range(10, 20)))

    assert away == {DAY: 10}
    assert len(places(stage)) > 3
    assert len(listed(stage)) == 20


def test_another_process_finds_what_this_one_spread_and_goes_on_by_itself(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spread, "BUSY", 3)
    write(stage, *map(failed, range(10)))

    spread.forget()  # a process that has just started
    write(stage, *map(failed, range(10, 12)))

    assert places(stage)[DAY] == 5
    assert len(listed(stage)) == 12


def test_a_quiet_tenant_pays_one_query_a_day_and_one_read(stage: Stage) -> None:
    write(stage, failed(0))
    stage.taps.passed.clear()

    listed(stage, 100)

    assert stage.taps.count("dynamodb.Query") == 2
    assert stage.taps.count("dynamodb.GetItem") == 2


def test_a_process_remembers_a_limited_number_of_partitions(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "REMEMBERED", 5)

    for n in range(20):
        spread.place(stage.world.table, f"{keys.tenant(TENANT)}#{n}", "uuid")

    assert len(spread._entries) <= 5


def test_the_parts_of_a_partition_bear_ten_thousand_runs_a_second(stage: Stage) -> None:
    """A run that waits for its result and then succeeds is two writes of the index."""
    table = stage.world.table
    uuids = [run_uuid(TENANT, f"schedule {n}", n, "scheduled") for n in range(RUNS_A_SECOND)]

    used = Counter(spread.place(table, DAY, uuid) for uuid in uuids)

    assert used.pop(DAY) == spread.BUSY
    assert 2 * max(used.values()) <= WRITES_A_SECOND


MANY = 48
MOST_UNITS = 16
"""Units of the busiest partition, however many jobs run: those of one job, or of a few runs by chance."""
SPLIT = "table", keys.errors(TENANT)
"""Has a row for each group of errors, written twice a minute. DynamoDB splits it, because the sort keys are hashes."""


def test_no_partition_takes_a_share_of_all_runs_of_a_busy_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asynchronous, failing, retried and plain runs of one tenant, each of a job of its own, in the same second."""
    monkeypatch.setattr(spread, "BUSY", 0)
    with new_stage(shards=64) as stage:
        waits = stage.action(outcome={"on202": "wait"}, url="https://example.org/wait")
        kinds = [waits, stage.action(payload={"fails": 1}), stage.action(payload={"again": 1}, retry=fixed(30, 1))]
        answers = {None: ACCEPTED}
        stage.endpoint.answer = lambda call: answers.get(call.payload, WRONG)
        for n in range(MANY):
            stage.create({"cron": "3 12 * * *"}, name=f"job {n}", action=kinds[n % 3])
        stage.clock.advance(60)
        with metered() as meter:
            stage.run(600)

    del meter.partitions[SPLIT]
    (hottest, units), *_ = meter.partitions.most_common(1)
    assert units <= MOST_UNITS, hottest
    assert sum(meter.partitions.values()) > 5 * MANY
