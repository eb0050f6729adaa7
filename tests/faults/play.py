"""A history of the service in which single calls meet their faults, and what must be true of it in the end.

One caller, one sweeper, one executor, a message at a time, so that the calls come in the same order each time and a
plan names them by number. A scenario (scenarios.py) says what is requested and what the result must be; the kinds of
faults (kinds.py) say what a call can meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any, ClassVar, Protocol, Self, TypeVar

from sweephand.base.errors import Conflict, NotFound, SweephandError, Unavailable
from sweephand.domain.run import Kind, Run, State
from sweephand.domain.schedule import Lane, Schedule, ScheduleState
from sweephand.schedules.calendars import calendars
from sweephand.schedules.timing import load
from sweephand.sdk.errors import TransportError
from sweephand.server.flow.idempotency import Once
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.store.dynamo.table import RunItem
from sweephand.server.store.runs import run_rows
from sweephand.testing.memory import Memory
from sweephand.testing.service import DEAD, URLS
from sweephand.testing.sources import START
from sweephand.testing.taps import Act, Passing, Taps
from tests.faults import invariants, sites
from tests.faults.sites import Site
from tests.support.stage import TENANT, Stage, stage
from tests.support.taps import Crash, in_memory

NOON = START.replace(microsecond=0)
TICK = timedelta(minutes=1)
AUDIT_EVERY = 15
"""Ticks from audit to audit, once an operator has purged a queue. The rule has an hour."""
MOST_MINUTES = 240

T = TypeVar("T")
Plan = tuple[tuple[int, str], ...]
"""Which call meets which fault; calls are counted from the last fault on. ((7, "crash-after"),) replays."""


def minutes(*numbers: float) -> list[datetime]:
    return [NOON + number * TICK for number in numbers]


@dataclass(frozen=True)
class Met:
    """One call of the history.

    verb: whose it is. in_flight: an executor holds a message. asked: a caller waits. state: tells one state of table
    and queues from another.
    """

    passing: Passing
    verb: str
    site: Site | None
    in_flight: bool
    asked: bool
    state: object = None

    def __str__(self) -> str:
        return f"{self.verb:<12} {self.passing.name:<36} {self.site or ''}".rstrip()

    @property
    def of_index(self) -> bool:
        return self.passing.operation == "Query" and "IndexName" in self.passing.request


class Scenario:
    """The requests to the service, and the result that they must have. Add one: a class with `history`, and its name
    below.

    callbacks: the target may report a result at any time; then the kind `callback` fits.
    constants: below server, such as "flow.jobs.change.IN_JOBS_TRANSACTION", smaller than they are, so that few rows do.
    not_yet: kinds of faults that are known not to be made good, each with the reason.
    forgets: the ledger goes with its owner, so that there are calls without a row.
    """

    name: ClassVar[str]
    callbacks: ClassVar[bool] = False
    constants: ClassVar[Mapping[str, object]] = {}
    not_yet: ClassVar[Mapping[str, str]] = {}
    forgets: ClassVar[bool] = False

    def history(self, at: Play) -> None:
        raise NotImplementedError

    def check(self, at: Play) -> None:
        """Checks what holds in the end, in addition to the invariants of every history."""


Ends = Mapping[datetime, State | frozenset[State]]


@dataclass
class Expected:
    """The expected ends of one schedule: how each of its occurrences ends.

    optional: occurrences that may have a row, or none (what is due as its schedule goes). in_lines: those that have a
    row or are counted in a line that stands for many. state None: the schedule was deleted.
    """

    ends: Ends
    optional: frozenset[datetime] = frozenset()
    in_lines: frozenset[datetime] = frozenset()
    state: ScheduleState | None = ScheduleState.COMPLETED


def surviving(step: Callable[[], object]) -> bool:
    """Runs one call of a function: False if it died or gave up. The caller continues."""
    try:
        step()
    except (Crash, SweephandError):
        return False
    return True


class Reader(Protocol):
    """A process that takes messages from the queue of an application."""

    def work(self) -> bool:
        """Takes messages. Returns whether there were any."""

    def twin(self) -> Self:
        """Returns another process of the kind."""


@dataclass
class Play:
    """One history under a plan. calls: since the last fault; met: all faults took place; ledger: in the end."""

    scene: Stage
    memory: Memory
    scenario: Scenario
    plan: list[tuple[int, str]]
    calls: list[Met] = field(default_factory=list)
    expected: dict[str, tuple[Schedule, Expected]] = field(default_factory=dict)
    ledger: list[Run] = field(default_factory=list)
    purged: bool = False
    faults: set[str] = field(default_factory=set)
    asking: Callable[[], object] | None = None
    looks: dict[str, int] = field(default_factory=dict)
    workers: list[Reader] = field(default_factory=list)
    _next_tick: datetime = START
    _ticks: int = 0
    _keys: int = 0
    _aside: bool = False

    @property
    def met(self) -> bool:
        return not self.plan

    # The words of a scenario

    def ask(self, request: Callable[[], T]) -> T:
        """Sends a request again a second later, until there is an answer, as a caller would.

        To be told then that it is gone, or there, is an answer too.
        """
        for tries in range(10):
            self.asking = request
            try:
                return request()
            except (Crash, Unavailable, TransportError):
                self.scene.clock.advance(1)
            except (NotFound, Conflict):
                if not tries and "second-caller" not in self.faults:
                    raise
                return None  # type: ignore[return-value]
            finally:
                self.asking = None
        raise AssertionError("never answered")

    def create(self, *timings: Mapping[str, object], **members: Any) -> Planned:
        once = self.key()
        return self.ask(lambda: self.scene.create(*timings, once=once, **members))

    def key(self) -> Once:
        """Returns the caller's Idempotency-Key."""
        self._keys += 1
        return Once(f"key {self._keys}", "the body")

    def go(self, seconds: float, *, sweeping: bool = True, executing: bool = True) -> None:
        """Lets that much time go by, with a tick a minute, each message delivered as it becomes visible, and all faults
        survived as by Lambda: the next tick, the next delivery. Without sweeping or executing, those are out.
        """
        end = self.scene.clock.now() + timedelta(seconds=seconds)
        while True:
            if executing:
                self._work()
            upcoming = self.scene.sqs.next_visible_at([*self.queues(), DEAD]) if executing else None
            moment = self._next_tick if upcoming is None else min(self._next_tick, upcoming)
            if moment > end:
                break
            self.scene.clock.move_to(moment)
            if self.scene.clock.now() >= self._next_tick:
                self._next_tick += TICK
                if sweeping:
                    surviving(self.scene.tick)
                self._ticks += 1
                if self.purged and self._ticks % AUDIT_EVERY == 0:
                    self.audit()
        self.scene.clock.move_to(end)
        if executing:
            self._work()

    def go_to(self, minute: float) -> None:
        """Moves the clock to that minute after noon."""
        self.go((NOON + minute * TICK - self.scene.clock.now()).total_seconds())

    def go_until(self, condition: Callable[[], object]) -> None:
        """Moves the clock for as long as it takes: under a fault it may be longer."""
        for _ in range(4 * MOST_MINUTES):
            if condition():
                return
            self.go(15)
        raise AssertionError("it never came to that")

    def outage(self, seconds: float) -> None:
        """Lets time go by while nothing works."""
        self.scene.clock.advance(seconds)
        self._next_tick = max(self._next_tick, self.scene.clock.now())

    def audit(self) -> None:
        surviving(self.scene.audit)

    def queues(self) -> list[str]:
        """Returns the addresses of all queues from which runs are taken. Without workers, nobody takes theirs."""
        return [*(URLS[lane] for lane in Lane), *(self.scene.sqs.created if self.workers else ())]

    def purge(self) -> None:
        """Empties the run queues, as an operator would: from here on, audits are among what makes it good."""
        for url in self.queues():
            self.scene.sqs.purge(url)
        self.purged = True

    def bury(self) -> None:
        """Makes the due messages dead letters, as if received too often: SQS moves them to the dead letters."""
        for lane in Lane:
            queue = self.scene.sqs._queues[URLS[lane]]
            for message in queue.messages:
                if message.visible_at <= self.scene.clock.now():
                    message.receive_count = queue.most_receives or 0

    def bury_held(self) -> None:
        """Repeats this for messages whose executor has died with them."""
        for lane in Lane:
            queue = self.scene.sqs._queues[URLS[lane]]
            for message in queue.messages:
                if message.receive_count:
                    message.receive_count = queue.most_receives or 0

    def expect(self, owner: Planned | Schedule, ends: Ends | list[datetime], **more: Any) -> None:
        """Expects these ends of the occurrences of the schedule (the first of a job); of a list: all succeed. See
        Expected.
        """
        schedule = owner.schedules[0] if isinstance(owner, Planned) else owner
        ends = ends if isinstance(ends, Mapping) else dict.fromkeys(ends, State.SUCCESS)
        sets = {name: frozenset(more.pop(name, ())) for name in ("optional", "in_lines")}
        self.expected[schedule.id] = schedule, Expected(ends, **sets, **more)

    def runs(self, kind: Kind | None = None) -> list[Run]:
        """Returns all rows of the ledger, of whatever schedule."""
        rows = [row for row in self.scene.items() if "state" in row and "attempt" in row and "kind" in row]
        found = [run_rows.run_of(RunItem.from_raw_data(row)) for row in rows if row["sk"]["S"].startswith("RUN#")]
        return sorted((run for run in found if kind in (None, run.kind)), key=lambda run: (run.uuid, run.id))

    # How it goes on

    def aside(self, step: Callable[[], object]) -> None:
        """Lets somebody else act at this very moment: not part of the numbered calls."""
        self._aside = True
        try:
            surviving(step)
        finally:
            self._aside = False

    def _work(self) -> None:
        """Works off all that is visible now, each message by a separate executor."""
        while self.scene.sqs.next_visible_at([*self.queues(), DEAD]) is not None:
            worked = [self._one(lambda lane=lane: self.scene.deliver(lane, most=1)) for lane in Lane]
            worked += [worker.work() for worker in self.workers]
            if not any([*worked, self._one(self.scene.deliver_dead)]):
                return

    def _one(self, deliver: Callable[[], int]) -> bool:
        """Was there a message? A function that died had one."""
        try:
            return deliver() > 0
        except Crash:
            return True

    def __call__(self, passing: Passing, act: Act) -> Any:
        """Passes a call on: counts the calls, and lets the numbered ones meet their faults."""
        if self._aside:
            return act()
        origin = sites.of_this_call()
        met = Met(passing, origin.verb, origin.site, self._in_flight(), self.asking is not None, self._state())
        self.calls.append(met)
        try:
            if not self.plan or len(self.calls) <= self.plan[0][0]:
                return act()
            return self._fault(met, act)
        finally:
            if met.of_index and self.memory.dynamo is not None:
                self.looks[passing.request["IndexName"]] = len(self.memory.dynamo.states)

    def _fault(self, met: Met, act: Act) -> Any:
        from tests.faults.kinds import KINDS  # noqa: PLC0415 - they are told of a Play

        _, kind = self.plan.pop(0)
        if not KINDS[kind].fits(met):
            return act()
        self.faults.add(kind)
        self.calls = []
        return KINDS[kind].act(self, met, act)

    def _state(self) -> object:
        dynamo, queues = self.memory.dynamo, self.scene.sqs._queues.values()
        return len(dynamo.states) if dynamo else 0, tuple(message.id for queue in queues for message in queue.messages)

    def _in_flight(self) -> bool:
        return any(message.receive_count for queue in self.scene.sqs._queues.values() for message in queue.messages)

    def recover(self) -> None:
        """Recovers without special measures: the minute rule and the queue; after a purge also the audit, twice at
        least.
        """
        ticks = self._ticks
        for _ in range(MOST_MINUTES):
            self.go(60)
            audited = not self.purged or self._ticks - ticks > 2 * AUDIT_EVERY
            if audited and not self.scene.waiting() and not self._messages():
                return
        raise AssertionError(f"still waiting: {self.scene.waiting()}, {self._messages()}")

    def _messages(self) -> list[str]:
        return [body for url in [*self.queues(), DEAD] for body in self.scene.sqs.bodies(url)]


@contextmanager
def _constants(wanted: Mapping[str, object]) -> Iterator[None]:
    split = [f"sweephand.server.{path}".rpartition(".") for path in wanted]
    places = [(import_module(module), name) for module, _, name in split]
    before = [getattr(module, name) for module, name in places]
    for (module, name), value in zip(places, wanted.values(), strict=True):
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name), value in zip(places, before, strict=True):
            setattr(module, name, value)


@contextmanager
def playing(scenario: Scenario, plan: Plan = ()) -> Iterator[Play]:
    """Plays a history, in which calls meet their faults; then recovery by ordinary ticks and redelivery, then the
    invariants.
    """
    memories: list[Memory] = []
    calendars._kept.clear()  # in a process that has read nothing yet
    load.cache_clear()

    @contextmanager
    def backend(tap: Taps) -> Iterator[None]:
        with in_memory(tap, remembers=True) as memory:
            memories.append(memory)
            yield

    with _constants(scenario.constants), stage(shards=1, backend=backend) as scene:
        at = Play(scene, memories[0], scenario, list(plan))
        with scene.taps.faulty(at):
            yield at
        at.recover()
        at.ledger = at.runs()
        invariants.check(at)
        scenario.check(at)


def play(scenario: Scenario, plan: Plan = ()) -> Play:
    """Plays the scenario's history under these faults. calls: those of the history after the last fault."""
    with playing(scenario, plan) as at:
        scenario.history(at)
        calls = list(at.calls)
    at.calls = calls
    return at


__all__ = [
    "NOON",
    "TENANT",
    "Expected",
    "Met",
    "Plan",
    "Play",
    "Scenario",
    "minutes",
    "play",
    "playing",
    "surviving",
]
