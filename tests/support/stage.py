"""The whole service within one test: moto's table, SQS by a virtual clock, a recording endpoint, and who drives it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, TypeVar

from botocore.session import get_session
from moto import mock_aws

from sweephand.domain.collection import Events
from sweephand.domain.job import DEFAULT_COLLECTION, ActionDraft, Job, JobDraft, Payload, ScheduleDraft
from sweephand.domain.occurrences.index_row import Waits
from sweephand.domain.run import FAILED, Kind, Outcome, Run, State
from sweephand.domain.schedule import Schedule
from sweephand.schedules.calendars import calendars
from sweephand.server import actions
from sweephand.server.actions.call import Call
from sweephand.server.flow.idempotency import Once
from sweephand.server.flow.jobs import change, creation, deletion
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.jobs.requested import ScheduleRequest
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.security import guard
from sweephand.server.security.identity import Identity
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.dynamo.table import RunItem
from sweephand.server.store.jobs import jobs
from sweephand.server.store.runs import run_rows, spread
from sweephand.server.store.views import totals
from sweephand.server.store.views.totals import Totals
from sweephand.server.telemetry import ALLOWED, UNITS
from sweephand.testing.memory import Memory
from sweephand.testing.own_key import KEY_ID, OwnKey
from sweephand.testing.service import BASE_URL, BUS, REGION, Aws, Lines, Service, settings_of, world_of
from sweephand.testing.sources import SeededChance, VirtualClock
from sweephand.testing.taps import Passing, Taps
from tests.support import aws
from tests.support.bus import CheckedBus
from tests.support.endpoint import Endpoint
from tests.support.taps import in_memory, on_botocore

T = TypeVar("T")
R = TypeVar("R")

TABLE = "sweephand-test"
TENANT = "acme"
STACK_SECRET = "canary-stack-secret-0123456789abcdef"


@dataclass
class Journal(Lines):
    """The log and the metrics, which telemetry must permit."""

    def measure(self, part: Mapping[str, str] | None = None, /, **values: float | Sequence[float]) -> None:
        strangers = values.keys() - UNITS.keys()
        assert not strangers, f"telemetry would refuse the metrics {strangers}"
        super().measure(part, **values)

    def write(self, level: str, message: str, members: dict[str, object]) -> None:
        strangers = members.keys() - ALLOWED
        assert not strangers, f"telemetry would refuse the line {message!r} for {strangers}"
        super().write(level, message, members)


SKIPPED = {State.SKIPPED, State.CANCELLED}


@dataclass(frozen=True)
class Fold:
    """Totals counted row by row, without the views' shortcuts: what the views must say.

    rows: of occurrences that were sent. left_out: occurrences that were not, in lines that stand for many.
    """

    rows: int
    ended: int
    failed: int
    skipped: int
    left_out: int


@dataclass
class Stage(Service):
    bus: CheckedBus
    endpoint: Endpoint

    # Jobs

    def create(
        self,
        *timings: Mapping[str, object],
        name: str | None = None,
        once: Once | None = None,
        world: World | None = None,
        **members: Any,
    ) -> Planned:
        """Creates a job with one schedule for each timing. members: of its JobDraft; `action`, `error_action`: see
        `action`. own_hooks: what each schedule brings.
        """
        draft = self.draft(*timings, name=name, **members)
        return creation.create_job(world or self.world, TENANT, draft, once)

    def draft(self, *timings: Mapping[str, object], name: str | None = None, **members: Any) -> JobDraft:
        own = members.pop("own_hooks", None)
        schedules = tuple(self.schedule(timing, hooks=own) for timing in timings)
        return JobDraft(name, members.pop("action", None) or self.action(), schedules=schedules, **members)

    def schedule(self, timing: Mapping[str, object], name: str | None = None, **members: Any) -> ScheduleDraft:
        return ScheduleDraft(name, dict(timing), **members)

    def action(self, **fields: Any) -> ActionDraft:
        """Builds an HTTP action as the API would make it from these fields."""
        fields = {"type": "http", "url": "https://example.org/run", **fields}
        return actions.draft(fields, field="action", guard=guard.GuardSettings())

    def act_for_real(self, outbound: guard.Outbound | None = None) -> None:
        """Makes jobs really act from now on, instead of calling `endpoint`."""

        def perform(kind: str, params: Any, call: Call, passed: guard.Outbound) -> Outcome:
            return self.taps(
                Passing("action", kind, {"call": call}), lambda: actions.perform(kind, params, call, passed)
            )

        self.world = replace(self.world, perform=perform, outbound=outbound or self.world.outbound)

    def change(self, planned: Planned, **members: Any) -> Planned:
        """Replaces the job by PUT with other members; `timings`: one for each of its schedules, in their order."""
        timings = members.pop("timings", None)

        def edit(current: Planned, stored: Mapping[str, Payload]) -> JobDraft:
            wanted: tuple[ScheduleDraft, ...] | None = None
            if timings is not None:
                wanted = tuple(
                    replace(_redraft(schedule, stored), timing=timing)
                    for schedule, timing in zip(current.schedules, timings, strict=True)
                )
            action = members.get("action") or self.action()
            rest = {name: value for name, value in members.items() if name != "action"}
            return JobDraft(**{"name": current.job.name, "action": action, "schedules": wanted, **rest})

        return change.change_job(self.world, TENANT, planned.job.id, edit, None)

    def change_schedules(self, planned: Planned, request: Callable[[Planned], Sequence[ScheduleRequest]]) -> Planned:
        return change.change_schedules(self.world, TENANT, planned.job.id, request, None)

    def set_state(self, planned: Planned, **members: Any) -> Planned:
        """Switches it. active=..., pause=...: of the job."""
        return change.set_state(self.world, TENANT, planned.job.id, lambda job: replace(job, **members), None)

    def tell(self, choice: Events, collection: str = DEFAULT_COLLECTION) -> None:
        """Chooses which events of the collection are published."""
        tenancy.change_collection(self.world, TENANT, collection, lambda stored: replace(stored, events=choice), None)

    def delete(self, planned: Planned) -> None:
        deletion.delete_job(self.world, TENANT, planned.job.id, None)

    # Reading the state

    def job(self, planned: Planned) -> Job:
        job = jobs.read_job(self.world.table, TENANT, planned.job.id)
        assert job is not None
        return job

    def stored(self, planned: Planned | Schedule) -> Schedule:
        """Returns the schedule (the first one of a job) as the table has it."""
        schedule = planned.schedules[0] if isinstance(planned, Planned) else planned
        row = jobs.read_schedule(self.world.table, TENANT, schedule.job_id, schedule.id)
        assert row is not None
        return row

    def totals(self, planned: Planned | Schedule) -> Totals:
        table, schedule = self.world.table, self.stored(planned)
        stats = totals.stats_of(table, [schedule]).get(schedule.id)
        return totals.totals_of(table, schedule, stats, self.clock.now())

    def runs(self, owner: Planned | Schedule | str, kind: Kind | None = None) -> list[Run]:
        """Returns the ledger rows of a schedule (the first one of a job), by planned instant."""
        if isinstance(owner, Planned):
            owner = owner.schedules[0]
        owner_id = owner if isinstance(owner, str) else owner.id
        rows = [row for row in self.items() if row["pk"]["S"] == keys.runs(TENANT, owner_id)]
        stored = [run_rows.run_of(RunItem.from_raw_data(row)) for row in rows if "state" in row]
        return sorted((run for run in stored if kind in (None, run.kind)), key=lambda run: run.uuid)

    def only_run(self, owner: Planned | Schedule | str) -> Run:
        (run,) = self.runs(owner)
        return run

    def fold(self, planned: Planned | Schedule) -> Fold:
        rows = self.runs(planned, Kind.SCHEDULED)
        runs = [run for run in rows if run.range_count is None]
        ended = [run for run in runs if run.finished]
        return Fold(
            rows=len(runs),
            ended=len(ended),
            failed=sum(run.state in FAILED for run in ended),
            skipped=sum(run.state in SKIPPED for run in ended),
            left_out=sum(run.range_count or 0 for run in rows),
        )

    def items(self) -> list[dict[str, Any]]:
        """Returns every item of the table."""
        with self.untapped():
            answer = self.world.table.client.get_paginator("scan").paginate(TableName=TABLE)
            return [item for page in answer for item in page["Items"]]

    def job_counts(self, tenant: str = TENANT) -> dict[str, int]:
        """Returns how many jobs each collection of a tenant has, as the rows of its count say."""
        counts: Counter[str] = Counter()
        for item in self.items():
            if item["pk"]["S"].startswith(keys.stripe(tenant, 0)[:-2]) and item["sk"]["S"].startswith("COL#"):
                counts[keys.parts(item["sk"]["S"])[1]] += int(item["jobs"]["N"])
        return dict(counts)

    def edit_item(self, pk: str, sk: str, **attributes: Any) -> None:
        """Edits an item, as an operator or a defect would. attributes: in DynamoDB's JSON; None removes one."""
        actions = []
        for verb, gone in (("SET", False), ("REMOVE", True)):
            chosen = [name for name, value in attributes.items() if (value is None) is gone]
            if chosen:
                actions.append(f"{verb} " + ", ".join(f"#{name}" if gone else f"#{name} = :{name}" for name in chosen))
        values = {f":{name}": value for name, value in attributes.items() if value is not None}
        with self.untapped():
            self.world.table.client.update_item(
                TableName=TABLE,
                Key={"pk": {"S": pk}, "sk": {"S": sk}},
                UpdateExpression=" ".join(actions),
                ExpressionAttributeNames={f"#{name}": name for name in attributes},
                **({"ExpressionAttributeValues": values} if values else {}),
            )

    def edit_schedule(self, planned: Planned | Schedule, **attributes: Any) -> None:
        schedule = planned.schedules[0] if isinstance(planned, Planned) else planned
        self.edit_item(keys.job(TENANT, schedule.job_id), keys.schedule(schedule.id), **attributes)

    @contextmanager
    def untapped(self) -> Iterator[None]:
        """Lets the test read without the tap: neither counted nor faulty."""
        fault, self.taps.fault = self.taps.fault, None
        passed = len(self.taps.passed)
        try:
            yield
        finally:
            self.taps.fault = fault
            del self.taps.passed[passed:]

    def waiting(self) -> dict[tuple[str, str], int]:
        """Returns the content of the next-run index, without jobs that have ended and errors: key -> epoch seconds."""
        return {
            (item["pk"]["S"], item["sk"]["S"]): int(item["next_run_at"]["N"])
            for item in self.items()
            if "next_run_at" in item and "shard" in item and item["sweep"]["S"][0] not in {Waits.ENDED, Waits.ERRORS}
        }


def _redraft(schedule: Schedule, stored: Mapping[str, Payload]) -> ScheduleDraft:
    return ScheduleDraft(
        schedule.name,
        schedule.timing,
        schedule.active,
        stored.get(schedule.id),
        schedule.policies,
        schedule.id,
    )


@cache
def _clients() -> tuple[Any, Any]:
    """Makes a table with its client and session, and a KMS client: making one takes longer than a whole test."""
    with mock_aws():  # gives them credentials
        table = Table(TABLE, VirtualClock(), SeededChance(), region=REGION)
        table.open()
        return table, get_session().create_client("kms", region_name=REGION)


@contextmanager
def on_moto(tap: Taps) -> Iterator[None]:
    """Makes moto answer below boto3."""
    with mock_aws(), on_botocore(tap):
        yield


@contextmanager
def with_targets_on_moto(tap: Taps) -> Iterator[None]:
    """Makes moto answer what jobs call on AWS. The table and the key of the service stay in memory."""
    with mock_aws(), on_botocore(tap, Memory(), {"dynamodb", "kms"}):
        yield


@contextmanager
def stage(
    *, shards: int = 2, seed: int = 0, backend: Callable[[Taps], AbstractContextManager[Any]] | None = None
) -> Iterator[Stage]:
    """Makes a fresh service with the tenant acme and nothing else. backend: what answers below boto3; moto without
    it.
    """
    spread.forget()
    calendars._kept.clear()  # a process that has read none yet, so that each history makes the same calls
    clock, chance, tap, journal = VirtualClock(), SeededChance(seed), Taps(), Journal()
    clients = _clients()
    with (backend or in_memory)(tap):
        known, kms = clients
        table = copy(known)
        table._clock, table._chance, table._throttled = clock, chance, partial(journal.count, "Throttled")
        table.client.create_table(**aws.table_request(TABLE))
        key_id = kms.create_key()["KeyMetadata"]["KeyId"]
        aws_ = Aws.made(clock, tap, CheckedBus(tap, BUS))
        endpoint = Endpoint(clock, tap)
        outbound = guard.Outbound(guard.GuardSettings(), identity=Identity(OwnKey, KEY_ID, BASE_URL))
        settings = settings_of("test", TABLE, key_id, shards)
        world = world_of(settings, clock, chance, table, kms, aws_, outbound, journal, endpoint.perform)
        tenancy.create_tenant(world, TENANT, None)
        world.shards.read()  # as any process that has written a wake before
        tap.passed.clear()
        yield Stage(world, clock, aws_.sqs, aws_.bus, aws_.bucket, tap, journal, endpoint)
