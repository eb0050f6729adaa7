"""The whole service within one test: moto's table, SQS by a virtual clock, a recording endpoint, and who drives it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any, TypeVar
from unittest import mock

from botocore.session import get_session
from moto import mock_aws

from sweephand import actions
from sweephand.actions.call import Call
from sweephand.domain.collection import Events
from sweephand.domain.job import DEFAULT_COLLECTION, ActionDraft, Job, JobDraft, Payload, ScheduleDraft
from sweephand.domain.occurrences.index_row import Waits
from sweephand.domain.run import FAILED, Kind, Outcome, Run, State
from sweephand.domain.schedule import Lane, Schedule
from sweephand.flow.audit import audit
from sweephand.flow.bulk import carry_on
from sweephand.flow.delivery import dead_letters, dispatch
from sweephand.flow.idempotency import Once
from sweephand.flow.jobs import change, creation, deletion
from sweephand.flow.jobs.lookup import Planned
from sweephand.flow.jobs.requested import ScheduleRequest
from sweephand.flow.sweep import sweep
from sweephand.flow.tenants import tenancy
from sweephand.flow.tenants.callback_keys import CallbackKeys
from sweephand.flow.tenants.secret_box import SecretBox
from sweephand.flow.verdict import Delivered
from sweephand.flow.world import World
from sweephand.messaging.event_bus import EventBus
from sweephand.messaging.run_queue import RunQueue
from sweephand.schedules.calendars import calendars
from sweephand.security import guard
from sweephand.security.identity import Identity
from sweephand.security.key_service import KeyService
from sweephand.settings import Settings
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Table
from sweephand.store.dynamo.table import RunItem
from sweephand.store.index.shards import Shards
from sweephand.store.jobs import jobs
from sweephand.store.operations.files import Files
from sweephand.store.runs import run_rows, spread
from sweephand.store.tenants.collection_cache import CollectionTerms
from sweephand.store.tenants.pointer_keys import PointerKeys
from sweephand.store.views import totals
from sweephand.store.views.totals import Totals
from sweephand.telemetry import ALLOWED, UNITS
from tests.faults.memory import Memory, in_memory
from tests.support import aws, taps
from tests.support import bucket as buckets
from tests.support.bucket import VirtualBucket
from tests.support.bus import VirtualBus
from tests.support.endpoint import Endpoint
from tests.support.own_key import KEY_ID, OwnKey
from tests.support.queues import Message, VirtualSqs
from tests.support.sources import SeededChance, VirtualClock
from tests.support.taps import Passing

T = TypeVar("T")
R = TypeVar("R")

TABLE = "sweephand-test"
REGION = "eu-central-1"
TENANT = "acme"
STACK_SECRET = "canary-stack-secret-0123456789abcdef"
TICK_S = 60
BASE_URL = "https://sweephand.example"


@dataclass
class Journal:
    """Log lines as (level, message, members), metrics line by line, and their sums. of_parts: with their dimension."""

    lines: list[tuple[str, str, dict[str, object]]] = field(default_factory=list)
    measures: list[dict[str, float | Sequence[float]]] = field(default_factory=list)
    of_parts: list[tuple[dict[str, str], dict[str, float | Sequence[float]]]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def info(self, message: str, /, **members: object) -> None:
        self._write("info", message, members)

    def warning(self, message: str, /, **members: object) -> None:
        self._write("warning", message, members)

    def error(self, message: str, /, **members: object) -> None:
        self._write("error", message, members)

    def count(self, metric: str, amount: float = 1) -> None:
        self.measure(**{metric: amount})

    def measure(self, part: Mapping[str, str] | None = None, /, **values: float | Sequence[float]) -> None:
        strangers = values.keys() - UNITS.keys()
        assert not strangers, f"telemetry would refuse the metrics {strangers}"
        if part is not None:
            self.of_parts.append((dict(part), values))
            return
        self.measures.append(values)
        for name, value in values.items():
            self.counts[name] += int(value if isinstance(value, int | float) else sum(value))

    def _write(self, level: str, message: str, members: dict[str, object]) -> None:
        strangers = members.keys() - ALLOWED
        assert not strangers, f"telemetry would refuse the line {message!r} for {strangers}"
        self.lines.append((level, message, members))

    def at(self, level: str) -> list[str]:
        return [message for line_level, message, _ in self.lines if line_level == level]


def in_turn(act: Callable[[T], R], pieces: Sequence[T], *_: object, **__: object) -> list[R]:
    """Stands in for threads.at_once, without its threads."""
    return [act(piece) for piece in pieces]


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
class Stage:
    world: World
    clock: VirtualClock
    sqs: VirtualSqs
    bus: VirtualBus
    bucket: VirtualBucket
    endpoint: Endpoint
    taps: taps.Taps
    journal: Journal
    _requests: int = 0
    _next_tick: datetime | None = None

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

        def perform(kind: str, params: Any, call: Call, there: guard.Outbound) -> Outcome:
            return self.taps(
                Passing("action", kind, {"call": call}), lambda: actions.perform(kind, params, call, there)
            )

        self.world = replace(self.world, perform=perform, outbound=outbound or self.world.outbound)

    def change(self, planned: Planned, **members: Any) -> Planned:
        """Replaces the job by PUT with other members; `timings`: one for each of its schedules, in their order."""
        timings = members.pop("timings", None)

        def edit(there: Planned, stored: Mapping[str, Payload]) -> JobDraft:
            wanted: tuple[ScheduleDraft, ...] | None = None
            if timings is not None:
                wanted = tuple(
                    replace(_redraft(schedule, stored), timing=timing)
                    for schedule, timing in zip(there.schedules, timings, strict=True)
                )
            action = members.get("action") or self.action()
            rest = {name: value for name, value in members.items() if name != "action"}
            return JobDraft(**{"name": there.job.name, "action": action, "schedules": wanted, **rest})

        return change.change_job(self.world, TENANT, planned.job.id, edit, None)

    def change_schedules(self, planned: Planned, request: Callable[[Planned], Sequence[ScheduleRequest]]) -> Planned:
        return change.change_schedules(self.world, TENANT, planned.job.id, request, None)

    def set_state(self, planned: Planned, **members: Any) -> Planned:
        """Switches it. active=..., pause=...: of the job."""
        return change.set_state(self.world, TENANT, planned.job.id, lambda job: replace(job, **members), None)

    def tell(self, choice: Events, collection: str = DEFAULT_COLLECTION) -> None:
        """Chooses which events of the collection are published."""
        tenancy.change_collection(self.world, TENANT, collection, lambda there: replace(there, events=choice), None)

    def delete(self, planned: Planned) -> None:
        deletion.delete_job(self.world, TENANT, planned.job.id, None)

    # Driving the service

    def tick(self, world: World | None = None) -> sweep.Tally:
        """Sweeps all shards. world: of another version of the sweeper."""
        world = world or self.world
        with mock.patch.object(sweep, "at_once", in_turn):  # most ticks here meet a row or none
            return sweep.tick(world)

    def audit(self, *, everything: bool = True, rest: str | None = None) -> audit.Findings:
        with mock.patch.object(audit, "at_once", in_turn):
            return audit.audit(self.world, everything=everything, rest=rest)

    def deliver(self, lane: Lane = Lane.FAST, most: int = 10) -> int:
        """Delivers one batch of the visible messages, as Lambda's poller does. Returns how many messages there were."""
        if lane is Lane.OPERATIONS:
            return self._batch(aws.URLS[lane], 1, lambda request, batch: carry_on.batch(self.world, request, batch))
        return self._batch(aws.URLS[lane], most, lambda request, batch: self._execute(lane, request, batch))

    def deliver_dead(self) -> int:
        """Takes the dead letters as their rule does, once some wait. Returns how many there were."""
        waits_until = self.sqs.next_visible_at([aws.DEAD])
        return 0 if waits_until is None or waits_until > self.clock.now() else dead_letters.take(self.world)

    def _execute(self, lane: Lane, request: str, batch: list[Delivered]) -> list[str]:
        return dispatch.batch(self.world, lane, request, batch)

    def _batch(self, url: str, most: int, work: Callable[[str, list[Delivered]], list[str]]) -> int:
        received = self.sqs.receive(url, most)
        if not received:
            return 0
        self._requests += 1
        batch = [self._delivered(message) for message in received]
        receipts = {message.id: message.receipt for message in received}
        failed = work(f"request-{self._requests}", batch)
        for message_id in receipts.keys() - set(failed):
            self.sqs.delete(url, receipts[message_id])
        return len(received)

    def _delivered(self, message: Message) -> Delivered:
        return Delivered(
            message_id=message.id,
            receipt=message.receipt,
            body=message.body,
            received_at=self.clock.now(),
            sent_at=message.sent_at,
            receive_count=message.receive_count,
        )

    def deliver_all(self, most: int = 10) -> int:
        """Delivers all that is visible now, in all lanes and among the dead letters."""
        total = 0
        while True:
            done = sum(self.deliver(lane, most) for lane in Lane) + self.deliver_dead()
            total += done
            if not done:
                return total

    def run(self, seconds: float, *, most: int = 10, tick_in_s: float | None = None) -> None:
        """Lets that much time go by, with a tick a minute, and each message delivered as it becomes visible.

        tick_in_s: until the next tick, where that is not settled by what ran before.
        """
        end = self.clock.now() + timedelta(seconds=seconds)
        if self._next_tick is None or tick_in_s is not None:
            self._next_tick = self.clock.now() + timedelta(seconds=tick_in_s or 0)
        while True:
            self.deliver_all(most)
            upcoming = self.sqs.next_visible_at([*aws.URLS.values(), aws.DEAD])
            if upcoming is not None and upcoming <= self.clock.now():
                upcoming = None  # the queue of the dead letters does not answer: the next minute asks again
            moment = self._next_tick if upcoming is None else min(self._next_tick, upcoming)
            if moment > end:
                break
            self.clock.move_to(moment)
            if self.clock.now() >= self._next_tick:
                self._next_tick += timedelta(seconds=TICK_S)
                self.tick()
        self.clock.move_to(end)
        self.deliver_all(most)

    def pass_time(self, seconds: float) -> None:
        """Lets time go by while nothing works."""
        self.clock.advance(seconds)
        if self._next_tick is not None:
            self._next_tick = max(self._next_tick, self.clock.now())

    # Reading the state

    def job(self, planned: Planned) -> Job:
        job = jobs.read_job(self.world.table, TENANT, planned.job.id)
        assert job is not None
        return job

    def stored(self, planned: Planned | Schedule) -> Schedule:
        """Returns the schedule (the first one of a job) as the table has it."""
        schedule = planned.schedules[0] if isinstance(planned, Planned) else planned
        there = jobs.read_schedule(self.world.table, TENANT, schedule.job_id, schedule.id)
        assert there is not None
        return there

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
        found = [run_rows.run_of(RunItem.from_raw_data(row)) for row in rows if "state" in row]
        return sorted((run for run in found if kind in (None, run.kind)), key=lambda run: run.uuid)

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
        found: Counter[str] = Counter()
        for item in self.items():
            if item["pk"]["S"].startswith(keys.stripe(tenant, 0)[:-2]) and item["sk"]["S"].startswith("COL#"):
                found[keys.parts(item["sk"]["S"])[1]] += int(item["jobs"]["N"])
        return dict(found)

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
def on_moto(tap: taps.Taps) -> Iterator[None]:
    """Makes moto answer below boto3."""
    with mock_aws(), taps.on_botocore(tap):
        yield


@contextmanager
def with_targets_on_moto(tap: taps.Taps) -> Iterator[None]:
    """Makes moto answer what jobs call on AWS. The table and the key of the service stay in memory."""
    with mock_aws(), taps.on_botocore(tap, Memory(), {"dynamodb", "kms"}):
        yield


@contextmanager
def stage(
    *, shards: int = 2, seed: int = 0, backend: Callable[[taps.Taps], AbstractContextManager[Any]] | None = None
) -> Iterator[Stage]:
    """Makes a fresh service with the tenant acme and nothing else. backend: what answers below boto3; moto without
    it.
    """
    spread.forget()
    calendars._kept.clear()  # a process that has read none yet, so that each history makes the same calls
    clock, chance, tap, journal = VirtualClock(), SeededChance(seed), taps.Taps(), Journal()
    clients = _clients()
    with (backend or in_memory)(tap):
        known, kms = clients
        table = copy(known)
        table._clock, table._chance, table._throttled = clock, chance, partial(journal.count, "Throttled")
        table.client.create_table(**aws.table_request(TABLE))
        key_id = kms.create_key()["KeyMetadata"]["KeyId"]
        settings = Settings(
            stack_name="test",
            table_name=TABLE,
            region=REGION,
            shards=shards,
            queue_urls=aws.URLS,
            dead_letter_queue_url=aws.DEAD,
            archive_queue_url=aws.ARCHIVE,
            event_bus_name=aws.BUS,
            key_id=key_id,
            public_base_url=BASE_URL,
        )
        sqs = VirtualSqs(clock, tap, aws.queues())
        bus = VirtualBus(tap, settings.event_bus_name)
        bucket = VirtualBucket(tap)
        endpoint = Endpoint(clock, tap)
        key = KeyService(kms, key_id)
        pointers = PointerKeys(table, clock, chance)
        world = World(
            settings=settings,
            clock=clock,
            chance=chance,
            table=table,
            terms=CollectionTerms(table, clock),
            bus=EventBus(bus, settings.event_bus_name, clock, chance),
            queue=RunQueue(
                sqs,
                settings.queue_urls,
                clock,
                key=pointers.current,
                dead_letter_url=settings.dead_letter_queue_url,
                archive_url=settings.archive_queue_url,
                applications=settings.application_queues,
            ),
            secrets=SecretBox(table, key, clock, chance),
            files=Files(bucket, buckets.NAME),
            outbound=guard.Outbound(guard.GuardSettings(), identity=Identity(OwnKey, KEY_ID, BASE_URL)),
            perform=endpoint.perform,
            callback_keys=CallbackKeys(table, key, clock, chance),
            pointer_keys=pointers,
            shards=Shards(table, shards),
            journal=journal,
        )
        tenancy.create_tenant(world, TENANT, None)
        world.shards.read()  # as any process that has written a wake before
        tap.passed.clear()
        yield Stage(world, clock, sqs, bus, bucket, endpoint, tap, journal)
