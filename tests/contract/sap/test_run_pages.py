"""Pages of a run log by offset: a cut from the whole log, at the price of what they show and of a count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bench.meter import Meter, metered
from sweephand.base.ids import run_uuid
from sweephand.domain.instants import epoch_ms
from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.domain.schedule import Lane
from sweephand.formats.sap import bodies
from sweephand.server.facades.sap import runs
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.table import Item
from sweephand.server.store.runs import run_rows
from sweephand.server.store.runs.attempts import attempt_item
from sweephand.server.store.views.runs import SETTLING
from sweephand.testing.taps import Act, Fault, Passing
from tests.contract.sap.api import TENANT, Sap, sap
from tests.support.examples import scaled

COUNTED = 12
KEPT = timedelta(days=15)
STANDS = [
    (State.SUCCESS, KEPT),
    (State.SUCCESS, timedelta(0)),
    (State.ERROR, KEPT),
    (State.TRIGGERED, KEPT),
    (State.SKIPPED, KEPT),
    (State.CANCELLED, KEPT),
    (State.MISSED, KEPT),
]
"""How a run stands, and when its row expires. MISSED: a line that stands for many occurrences."""
Stand = tuple[State, timedelta]
FEW_LINES, MANY = 25, 1_200


class Log:
    """A schedule whose ledger the test writes. Nothing is planned of one that is inactive."""

    def __init__(self, api: Sap, *, active: bool) -> None:
        made = api.create({"repeatInterval": "1 hour", "active": active}, name=f"log-{active}")
        self.api = api
        self.now = api.stage.clock.now()
        self.schedule = made["schedules"][0]["scheduleId"]
        self.where = f"/jobs/{made['_id']}/schedules/{self.schedule}/runs"
        self.planned = api.get(self.where).json["results"]
        assert len(self.planned) == active

    def fill(self, stands: Sequence[Stand], every: timedelta) -> list[str]:
        """Replaces the existing runs. Returns the ids of the lines that the log has then, newest first."""
        there = self._table
        for row in list(there.query_all(keys.runs(TENANT, self.schedule), consistent=True)):
            there.delete(row["pk"]["S"], row["sk"]["S"])
        made = [self._run(self.now - n * every, *stand) for n, stand in enumerate(stands)]
        for item in self._rows(made):
            there.put(item)
        told = [run.uuid for run in made if bodies.sap_status(run.state) and not run.is_gone(self.now)]
        return [*(line["runId"] for line in self.planned), *told]

    @property
    def _table(self):
        return self.api.stage.world.table

    def _run(self, at: datetime, state: State, kept: timedelta) -> Run:
        uuid = run_uuid(TENANT, self.schedule, epoch_ms(at), Kind.SCHEDULED.value)
        return Run(
            tenant=TENANT,
            job_id="any",
            schedule_id=self.schedule,
            uuid=uuid,
            kind=Kind.SCHEDULED,
            state=state,
            planned_at=at,
            reason=Reason.ON_TIME,
            finished_at=at,
            expires_at=self.now + kept,
            range_count=3 if state is State.MISSED else None,
        )

    @staticmethod
    def _rows(made: Sequence[Run]) -> Iterator[Item]:
        for run in made:
            yield run_rows.item_of(run, shards=1, lane=Lane.FAST)
            if run.state is not State.SUCCESS:
                yield attempt_item(run, reason=Reason.HTTP_STATUS, answer=None)

    def page(self, size: int, offset: int = 0) -> tuple[list[str], int, bool]:
        """Returns the ids of its lines, the total, and whether there is a next page."""
        found = self.api.get(self.where, query={"page_size": size, "offset": offset}).json
        return [line["runId"] for line in found["results"]], found["total"], found["next_url"] is not None


def behind(api: Sap, by: timedelta) -> Fault:
    """Copies of the table do not know yet of runs planned within `by`: only a consistent read sees them."""
    usual, since = api.stage.taps.fault, f"RUN#{epoch_ms(api.stage.clock.now() - by):012x}"
    assert usual is not None

    def answer(passing: Passing, act: Act) -> Any:
        found = usual(passing, act)
        if passing.operation != "Query" or passing.request.get("ConsistentRead"):
            return found
        return {**found, "Items": [row for row in found["Items"] if row["sk"]["S"].replace("-", "") < since]}

    return answer


@pytest.fixture(scope="module")
def logs():
    with sap() as api:
        api.stage.taps.fault = behind(api, SETTLING - timedelta(seconds=1))
        yield {active: Log(api, active=active) for active in (True, False)}


@settings(max_examples=scaled(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    stands=st.lists(st.sampled_from(STANDS), max_size=FEW_LINES),
    every=st.sampled_from([timedelta(seconds=20), timedelta(minutes=1), timedelta(hours=1)]),
    active=st.booleans(),
    size=st.integers(1, 9),
    offset=st.integers(0, FEW_LINES + 3),
)
@example(stands=STANDS[:1] * 20, every=timedelta(minutes=1), active=True, size=1, offset=0)
@example(stands=STANDS[:1] * 20, every=timedelta(minutes=1), active=True, size=1, offset=1)
@example(stands=STANDS[:1] * COUNTED, every=timedelta(minutes=1), active=False, size=4, offset=COUNTED - 4)
@example(stands=STANDS[:1] * (COUNTED + 1), every=timedelta(minutes=1), active=False, size=4, offset=COUNTED - 4)
@example(stands=[], every=timedelta(minutes=1), active=False, size=4, offset=0)
def test_a_page_is_a_slice_of_the_whole_log(logs, stands, every, active, size, offset):
    """Although copies of the table do not know yet what was planned in the last minutes."""
    log = logs[active]
    whole = log.fill(stands, every)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "COUNTED", COUNTED)
        lines, total, leads_on = log.page(size, offset)

    end = offset + size
    assert lines == whole[offset:end]
    assert total == min(len(whole), max(COUNTED, end + 1))
    assert leads_on == (end < len(whole))


def queries(log: Log, size: int, offset: int):
    passed = len(log.api.stage.taps.passed)
    log.page(size, offset)
    pk = keys.runs(TENANT, log.schedule)
    asked = [each.request for each in log.api.stage.taps.passed[passed:] if each.operation == "Query"]
    return [each for each in asked if {"S": pk} in each["ExpressionAttributeValues"].values()]


def test_a_log_that_fits_one_page_takes_one_query(logs):
    log = logs[True]
    log.fill(STANDS[:1] * 9, timedelta(minutes=1))

    assert len(queries(log, 10, 0)) == 1


@pytest.fixture
def meter() -> Iterator[Meter]:
    with metered() as there:
        yield there


def test_a_long_log_is_counted_up_to_a_thousand_at_half_the_read_units(logs, meter):
    """Rows of 280 bytes: a thousand of them are 68 units, of which half is paid."""
    log = logs[True]
    whole = log.fill(STANDS[:1] * MANY, timedelta(minutes=1))
    log.page(10)
    meter.take()

    assert log.page(10)[1] == runs.COUNTED
    first = meter.take().reads
    log.page(10, 1_100)
    far = meter.take().reads
    log.api.get(log.where, query={"page_size": 10, "next": whole[600]})
    beside = meter.take().reads

    assert (first <= 36, far <= 40, beside <= 37) == (True, True, True), (first, far, beside)
