"""A whole stack in a test: the client of the SDK, and a clock that only the test moves."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from sweephand.base.errors import InvalidRequest
from sweephand.domain.instants import text
from sweephand.domain.schedule import APPLICATION
from sweephand.sdk.aio.client import AsyncSweephand
from sweephand.sdk.errors import InvalidArgument
from sweephand.sdk.receiving.queues import SqsQueue
from sweephand.sdk.sync.client import Sweephand
from sweephand.sdk.transport.request import Answer
from sweephand.server import threads
from sweephand.server.facades.native.api import NativeApi
from sweephand.server.flow.tenants import access, tenancy
from sweephand.server.security.caller import TENANT_SCOPES, Door
from sweephand.server.security.guard import AwsSettings, GuardSettings, Outbound, networks
from sweephand.server.security.identity import Identity
from sweephand.server.security.tokens import derive_keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.runs import spread
from sweephand.server.store.tenants import credentials
from sweephand.testing import table as tables
from sweephand.testing.gateway import event
from sweephand.testing.memory import Client, Dynamo, Memory
from sweephand.testing.own_key import KEY_ID, OwnKey
from sweephand.testing.service import (
    BASE_URL,
    BUS,
    DEAD,
    REGION,
    TICK_S,
    URLS,
    Aws,
    Lines,
    Service,
    settings_of,
    world_of,
)
from sweephand.testing.sources import SeededChance, VirtualClock
from sweephand.testing.taps import Taps
from sweephand.testing.targets import Answering, Call, Targets

if TYPE_CHECKING:
    from sweephand.sdk.sync.root import JobScheduler
    from sweephand.sdk.worker import Worker

TENANT, ACCOUNT = "test", "123456789012"
STACK_SECRET = "of-the-stack-in-a-test"  # noqa: S105 - of no real stack
PROVIDER = "provider.admin"
ANYWHERE = networks("127.0.0.0/8,::1/128,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16")
AUDIT_EACH, BEAT = timedelta(hours=1), timedelta(seconds=30)
MOST_CALLS = 100_000
CRASHED = "a message failed"
"""The log line of an executor about an error that it did not expect."""


class Stack(Sweephand):
    """A client of a whole stack in this process. Use `stack(...)`, which makes and closes one.

    Time passes only in `advance`, and while the client waits. Everything is done at its instant, by the code that runs
    in AWS: the API answers, the sweeper sends, the executor calls targets, retries and settles. Targets are never
    called over the network: `answer` answers for them, and `calls` has what they received.
    """

    def __init__(self, now: datetime, answer: Answering | None = None) -> None:
        self._service, self._targets, self._dynamo = _service(now, answer)
        self._door = Door(
            derive_keys("test", STACK_SECRET, None),
            STACK_SECRET,
            lambda tenant, name: credentials.find_credential(self._service.world.table, tenant, name),
            callback_key=self._service.world.callback_keys.current,
        )
        guard = self._service.world.outbound.settings
        self._api = NativeApi(self._service.world, guard, lambda: self._door)
        self._requests = 0
        self._programs: list[_Program] = []
        self._advances = False
        self._next_tick = self._next_audit = self.now
        tenancy.create_tenant(self._service.world, TENANT, None)
        issued = access.create_credential(self._service.world, TENANT, None, TENANT_SCOPES)
        self._credential = issued.credential.client_id, issued.secret
        self._transport = _Here(self)
        super().__init__(BASE_URL, **self._access(*self._credential))

    def _access(self, client_id: str, secret: str) -> dict[str, Any]:
        return {
            "client_id": client_id,
            "secret": secret,
            "transport": self._transport,
            "clock": self._transport,
            "chance": SeededChance(1),
        }

    # Clients

    def client(self, client_id: str, secret: str, *, tenant: str | None = None) -> Sweephand:
        """Returns a client of this stack with another credential. tenant: for which a provider's credential acts."""
        return Sweephand(BASE_URL, tenant=tenant, **self._access(client_id, secret))

    @property
    def provider(self) -> Sweephand:
        """A client with the provider's credential, for tenants and operations."""
        return self.client(PROVIDER, STACK_SECRET)

    @property
    def asynchronous(self) -> AsyncSweephand:
        """An asyncio client of this stack, with this client's credential."""
        members = self._access(*self._credential)
        here = _HereAsync(self)
        return AsyncSweephand(BASE_URL, **{**members, "transport": here, "clock": here})

    # Calls and events

    @property
    def now(self) -> datetime:
        return self._service.clock.now()

    @property
    def calls(self) -> Sequence[Call]:
        """The calls that targets have received, in order."""
        return tuple(self._targets.calls)

    @property
    def events(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        """The events of the service on the stack's bus: type and detail, in order."""
        return tuple((told.kind.value, told.detail) for told in self._service.bus.told)

    @property
    def answer(self) -> Answering | None:
        """Answers for all targets; None answers 200. May be set at any time."""
        return self._targets.answer

    @answer.setter
    def answer(self, answer: Answering | None) -> None:
        self._targets.answer = answer

    # Time

    def advance(self, by: timedelta | str | datetime) -> list[Call]:
        """Lets time pass, and the service work at each instant. Returns the calls that targets received meanwhile.

        by: a timedelta, a string such as "1d", "90 minutes" or "PT1H", or the instant to move to. Raises
        InvalidArgument for the past, and whatever `answer` raises.
        """
        end = self._end_of(by)
        if self._advances:
            raise InvalidArgument("advance", "cannot be called while the clock is moving")
        begun = len(self._targets.calls)
        self._advances = True
        try:
            self._pass(end, begun)
        finally:
            self._advances = False
        self._raise_errors()
        return self._targets.calls[begun:]

    def wait(self, seconds: float) -> None:
        """Lets time pass for somebody who sleeps. While the clock moves anyway, nothing else happens meanwhile."""
        if self._advances:
            self._service.clock.advance(seconds)
        else:
            self.advance(timedelta(seconds=seconds))

    def _raise_errors(self) -> None:
        error, self._targets.error = self._targets.error, None
        if error is not None:
            raise error
        crashes = [members for _, message, members in self._service.journal.lines if message == CRASHED]
        if crashes:
            raise RuntimeError(f"the service itself failed, which is a fault of Sweephand: {crashes[0]}")

    def _end_of(self, by: timedelta | str | datetime) -> datetime:
        end = by if isinstance(by, datetime) else self.now + _duration(by)
        if end.tzinfo is None:
            raise InvalidArgument("by", f"must have a time zone, not {end.isoformat()}")
        if end < self.now:
            raise InvalidArgument("by", f"must not be before {text(self.now)}, which it is now, but is {text(end)}")
        return end.astimezone(UTC)

    def _pass(self, end: datetime, begun: int) -> None:
        while True:
            self._work()
            if len(self._targets.calls) - begun > MOST_CALLS:
                raise InvalidArgument("by", f"makes more than {MOST_CALLS:,} calls: advance by less")
            moment = self._next_event()
            if moment is None or moment > end:
                break
            self._service.clock.move_to(moment)
            if self.now >= self._next_tick:
                self._next_tick = _after(self._next_tick, self.now, timedelta(seconds=TICK_S))
                self._service.tick()
            if self.now >= self._next_audit:
                self._next_audit = _after(self._next_audit, self.now, AUDIT_EACH)
                self._service.audit(everything=False)
        self._service.clock.move_to(end)
        self._work()

    def _work(self) -> None:
        """Delivers everything that is visible now: to executors, and to workers."""
        while self._service.deliver_all() + sum(each.work() for each in self._programs):
            pass

    def _next_event(self) -> datetime | None:
        """Returns when the service has something to do. Ticks that would find nothing are left out."""
        urls = [*URLS.values(), DEAD, *(url for each in self._programs for url in each.urls)]
        visible = self._service.sqs.next_visible_at(urls)
        waits = self._dynamo.least(tables.NEXT_RUN)
        candidates = [each.next_at for each in self._programs if each.next_at is not None]
        if visible is not None and visible > self.now:
            candidates.append(visible)
        if waits is not None:
            ahead_s = self._service.world.settings.look_ahead_s
            due = max(datetime.fromtimestamp(waits - ahead_s, UTC), self._next_tick)
            candidates.append(_after(self._next_tick, due - timedelta(microseconds=1), timedelta(seconds=TICK_S)))
        return min(candidates, default=None)

    # Programs

    def work(self, worker: Worker) -> None:
        """Starts a worker in this process: its tasks become jobs, and `advance` carries out their runs."""
        worker.attach(self, self._queue())
        self._programs.append(_Working(worker, self._queue()))

    def consume(self, scheduler: JobScheduler, **start: Any) -> None:
        """Starts a consumer in this process: it keeps its lease, and `advance` hands it its events.

        start: as JobScheduler.start takes it, such as job_set= and jobs=.
        """
        scheduler.attach(self._queue())
        self._programs.append(_Consuming(scheduler, self._service.clock))
        scheduler.start(background=False, **start)

    def stop(self, program: Worker | JobScheduler) -> None:
        """Stops a worker or consumer as the end of its process does: without a word to the service."""
        self._programs = [each for each in self._programs if each.program is not program]

    def _queue(self) -> SqsQueue:
        return SqsQueue(client=self._service.sqs)

    # Requests

    def request(self, method: str, url: str, headers: Mapping[str, str], content: bytes | None) -> Answer:
        """Answers a request as the API's function does."""
        self._requests += 1
        parts = urlsplit(url)
        named = {name.lower(): value for name, value in headers.items()}
        asked = event(method, parts.path, parts.query, named, content)
        with threads.in_turn():
            answer = self._api.handle(asked, f"request-{self._requests}")
        body = answer["body"]
        content = base64.b64decode(body) if answer["isBase64Encoded"] else body.encode()
        return Answer(answer["statusCode"], answer["headers"], content)


class _Program(Protocol):
    """A worker or a consumer that has started. urls: its queues. next_at: when it acts without a message."""

    @property
    def program(self) -> object: ...
    @property
    def urls(self) -> Sequence[str]: ...
    @property
    def next_at(self) -> datetime | None: ...
    def work(self) -> int: ...


class _Working:
    next_at = None

    def __init__(self, worker: Worker, queue: SqsQueue) -> None:
        self.program = worker
        self._queues, self._attempts = worker.start(), worker.attempts(queue)

    @property
    def urls(self) -> Sequence[str]:
        return [url for url, _ in self._queues]

    def work(self) -> int:
        """Takes what is visible. Returns how many messages it took."""
        taken = 0
        for url, version in self._queues:
            for message in self._attempts.receive(url, 10, wait_s=0):
                self._attempts.take(message, version)
                taken += 1
        return taken


class _Consuming:
    def __init__(self, scheduler: JobScheduler, clock: VirtualClock) -> None:
        self.program, self._clock = scheduler, clock
        self.next_at = clock.now() + BEAT

    @property
    def urls(self) -> Sequence[str]:
        return [self.program.url] if self.program.url else []

    def work(self) -> int:
        """Extends the lease if it is time, and takes what is visible. Returns how many events it took."""
        if self._clock.now() >= self.next_at:
            self.next_at = self._clock.now() + BEAT
            self.program.beat()
        return self.program.receive(wait_s=0) if self.program.url else 0


class _Here:
    """The transport and the clock of a client: the API in this process, and time that passes in it."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    def now(self) -> datetime:
        return self._stack.now

    def monotonic(self) -> float:
        return self._stack.now.timestamp()

    def sleep(self, seconds: float) -> None:
        self._stack.wait(seconds)

    def send(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, _timeout_s: float
    ) -> Answer:
        return self._stack.request(method, url, headers, content)

    def close(self) -> None:
        """Closes nothing: there is no connection."""


class _HereAsync(_Here):
    """The asyncio form of _Here."""

    async def sleep(self, seconds: float) -> None:  # type: ignore[override]
        super().sleep(seconds)

    async def send(  # type: ignore[override]
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, timeout_s: float
    ) -> Answer:
        return super().send(method, url, headers, content, timeout_s)

    async def aclose(self) -> None:
        """Closes nothing: there is no connection."""


@contextmanager
def stack(*, now: datetime, answer: Answering | None = None) -> Iterator[Stack]:
    """Makes a stack for a test. now: when its clock starts, an aware datetime. answer: answers for all targets."""
    if now.tzinfo is None:
        raise InvalidArgument("now", f"must have a time zone, not {now.isoformat()}")
    spread.forget()
    with Stack(now.astimezone(UTC), answer) as made:
        yield made


def _service(now: datetime, answer: Answering | None) -> tuple[Service, Targets, Dynamo]:
    clock, chance, tap, journal = VirtualClock(now), SeededChance(), Taps(), Lines()
    dynamo = Dynamo({"GlobalSecondaryIndexes": tables.indexes()})
    memory = Memory(dynamo=dynamo)
    table = Table("sweephand-test", clock, chance, region=REGION, client=Client("dynamodb", memory, tap))
    targets, aws = Targets(clock, answer), Aws.made(clock, tap)
    settings = settings_of("test", table.name, "key-1", shards=1)
    outbound = Outbound(
        GuardSettings(
            private=ANYWHERE,
            plain_http=True,
            aws=AwsSettings(
                roles=frozenset({"*"}),
                account=ACCOUNT,
                region=REGION,
                stack_name="test",
                bus_name=BUS,
                application_queues=f"{settings.application_queues}-{APPLICATION}",
            ),
            identity=True,
        ),
        roles=targets,  # type: ignore[arg-type]
        identity=Identity(OwnKey, KEY_ID, BASE_URL),
        network=targets.network,
    )
    kms = Client("kms", memory, tap)
    world = world_of(settings, clock, chance, table, kms, aws, outbound, journal, targets.perform)
    return Service(world, clock, aws.sqs, aws.bus, aws.bucket, tap, journal), targets, dynamo


def _duration(by: timedelta | str) -> timedelta:
    if isinstance(by, timedelta):
        return by
    from sweephand.schedules.text import duration  # noqa: PLC0415 - needed for strings only

    try:
        read = duration.read(by, "by")
    except InvalidRequest as wrong:
        raise InvalidArgument("by", wrong.reason) from wrong
    if read.months:
        raise InvalidArgument("by", f"must be a number of seconds, minutes, hours, days or weeks, not {by!r}")
    return timedelta(seconds=read.seconds)


def _after(tick: datetime, now: datetime, each: timedelta) -> datetime:
    """Returns the first of these ticks after now."""
    return tick if tick > now else tick + each * ((now - tick) // each + 1)
