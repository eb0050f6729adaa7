"""A life: the service and a tenant on a moved clock that jumps over all minutes in which nothing happens."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from random import Random  # noqa: TID251 - a life is played again by its seed
from typing import Any

from tests.year import foreign, job_sets, questions, workers
from tests.year.consumers import Program
from tests.year.courses import Course, Job
from tests.year.faults import PLAIN
from tests.year.rules import Rule, shown
from tests.year.service import FUNCTIONS, Service, service
from tests.year.tenant import Tenant

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
LENGTHS = {"hours": 6 * HOUR, "days": 3 * DAY, "month": 30 * DAY, "year": 366 * DAY}
SERVICES = frozenset({"dynamodb", "sqs", "kms"})
OUTAGES = (
    *({each} for each in (*FUNCTIONS, "worker")),
    *({"sweeper", "executor"}, {*FUNCTIONS}),
    *({"dynamodb"}, {"sqs", "executor", "worker"}, {"kms"}, {"dynamodb", "sqs", "kms", "executor", "worker"}),
)
"""Groups that fail together: without its queue, no function gets a message."""
QUIET = 16 * DAY
"""After the end: longer than a copy of a message can take, and than a row is kept."""


@dataclass(frozen=True)
class Luck:
    """The bad luck of a life. kinds, rate: of faults. copies: the share of messages that come again. deaths: pairs."""

    kinds: tuple[str, ...] = ()
    rate: float = 0.0
    copies: float = 0.0
    outages: int = 0
    deaths: int = 0

    @classmethod
    def drawn(cls, chance: Random) -> Luck:
        """Draws some of each kind: some lives have none of it."""
        return cls(
            kinds=tuple(chance.sample(PLAIN, chance.choice([0, 0, 1, 2, 4]))),
            rate=chance.choice([0.001, 0.004, 0.015]),
            copies=chance.choice([0.0, 0.0, 0.02, 0.1]),
            outages=chance.choice([0, 1, 3, 6]),
            deaths=chance.choice([0, 2, 6]),
        )


@dataclass
class Life:
    """outages: function, from, until; for the oracle."""

    seed: int
    length: timedelta
    luck: Luck
    service: Service
    chance: Random
    outages: list[tuple[str, datetime, datetime]] = field(default_factory=list)
    ended: datetime | None = None
    _events: list[tuple[datetime, int, Callable[[], None]]] = field(default_factory=list)
    _order: Iterator[int] = field(default_factory=count)
    _meanwhile: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tenant = Tenant(self.service, Random(f"tenant {self.seed}"), self.length, self.at)
        self.service.scene.endpoint.answer = self.tenant.answer
        self.program = Program(self.tenant)
        self.began = self.now

    @property
    def now(self) -> datetime:
        return self.service.now

    def at(self, moment: datetime, work: Callable[[], None]) -> None:
        whole = moment.replace(microsecond=moment.microsecond // 1_000 * 1_000)  # as the clock shows it
        heapq.heappush(self._events, (whole, next(self._order), work))

    # Plans of a life

    def live(self) -> None:
        """Lives from the beginning to a quiet end."""
        faults = self.service.faults
        faults.kinds, faults.rate, faults.between = self.luck.kinds, self.luck.rate, self._meddle
        self.service.copies = self.luck.copies
        end = self.began + self.length
        if self.chance.random() < 0.3:
            workers.start(self.tenant)
        self.tenant.settle(jobs=self.chance.randint(4, 8))
        if self.chance.random() < 0.5:
            self.at(self.began + self.chance.random() * 0.2 * self.length, lambda: foreign.arrive(self.tenant))
        if self.chance.random() < 0.4:
            self.at(self.began + self.chance.random() * 0.2 * self.length, job_sets.Team(self.tenant).arrive)
        self.program.visit()
        for _ in range(self.chance.randint(20, 60)):
            self.at(self.now + self.chance.uniform(0.02, 0.98) * self.length, self._somebody_acts)
            self.at(self.now + self.chance.uniform(0.02, 0.98) * self.length, lambda: questions.some(self.tenant, 1))
        for _ in range(self.luck.outages):
            self.at(self.now + self.chance.uniform(0, 0.95) * self.length, self._outage)
        for _ in range(self.luck.deaths):
            self.at(self.now + self.chance.random() * self.length, self.service.faults.die_twice)
        self.at(self.began + HOUR * self.chance.random(), self._audit)
        self.at(self.began + DAY * self.chance.random(), self._expire)
        self._go(end)
        self._end()

    def _outage(self) -> None:
        """Takes functions away, or services that they need: these for at most four hours, which end no run uncalled."""
        taken = self.chance.choice(OUTAGES)
        most_s = min(6 * DAY if taken <= {*FUNCTIONS, "worker"} else 4 * HOUR, self.length / 10).total_seconds()
        until = self.now + timedelta(seconds=round(40 * (most_s / 40) ** self.chance.random()))
        for each in sorted(taken):
            out = self.service.faults.out if each in SERVICES else self.service.out
            out[each] = max(until, out.get(each, until))
            self.outages.append((each, self.now, until))
        self.at(until, lambda: None)

    def _audit(self) -> None:
        if not self.service.is_out("auditor"):
            self.service.audit()
        self.at(self.now + HOUR, self._audit)

    def _expire(self) -> None:
        self.service.watch.expire(self.now - self.chance.random() * 2 * DAY)
        self.service.scene.taps.passed.clear()
        self.at(self.now + DAY, self._expire)

    def _somebody_acts(self) -> None:
        """Acts now, next to an instant of some schedule, or in the middle of the next function's work."""
        chosen = self.chance.random()
        if chosen < 0.4 and (instant := self._next_instant()) is not None:
            self.at(max(self.now, instant - timedelta(seconds=self.chance.uniform(-8, 12))), self.tenant.act)
        elif chosen < 0.7:
            self._meanwhile.append(self.tenant.act)
        else:
            self.tenant.act()

    def _next_instant(self) -> datetime | None:
        courses = [course for course in self.tenant.courses if course.gone is None]
        if not courses:
            return None
        plan = self.chance.choice(courses).plans[-1]
        return next(iter(plan.instants(self.now, self.now + self.length / 20)), None)

    def _meddle(self) -> None:
        if self._meanwhile and self.chance.random() < 0.1:
            self._meanwhile.pop()()

    # Time

    def _go(self, end: datetime) -> None:
        """Moves the clock from event to event."""
        while True:
            if not self.service.is_out("executor"):
                self.service.deliver()
            self.service.work()
            upcoming = self.service.next_event()
            planned = self._events[0][0] if self._events else end
            moment = planned if upcoming is None else min(planned, upcoming)
            if moment >= end:
                break
            self.service.scene.clock.move_to(moment)
            if planned <= self.now:
                heapq.heappop(self._events)[2]()
            elif moment >= self.service.next_tick and not self.service.is_out("sweeper"):
                self._tick(moment)
        self.service.scene.clock.move_to(end)

    def _tick(self, moment: datetime) -> None:
        self.service.begin_tick(moment)
        self.service.tick()
        if not self.service.is_out("executor"):
            self.service.deliver_dead()

    # The end

    def _end(self) -> None:
        """Ends all bad luck, switches all on, deletes half of the jobs and ends the others, and waits."""
        self.tenant.gone = True
        self.service.faults.end()
        self.service.copies = 0.0
        self.service.out.clear()
        self._meanwhile.clear()
        self.program.stay()
        self._go(self.now + 3 * HOUR)
        for step in (self._enable, self._switch_on, self._ask, self._finish):
            step()
            self._go(self.now + HOUR)
        self.program.until = None
        self.ended = self.now
        self._go(self.now + QUIET)

    def _ask(self) -> None:
        questions.some(self.tenant, 30)
        questions.count(self.tenant)

    def _enable(self) -> None:
        tenant = self.tenant
        if tenant.tenant.is_off:
            tenant.switch_tenant()
        for name, what in tenant.collections.items():
            if what.is_off:
                tenant.switch(f"/v1/collections/{name}", "enable", what, name, off=False)

    def _switch_on(self) -> None:
        for job in self.tenant.jobs:
            if job.gone is None and not job.foreign:
                path = f"/v1/jobs/{job.id}"
                self.tenant.switch(path, "resume", job.pause, job.id, off=False)
                self.tenant.switch(path, "activate", job.switch, job.id, off=False)
                for course in job.courses:
                    own = course.switches[0]
                    if own.is_off:
                        self.tenant.switch(f"{path}/schedules/{course.id}", "activate", own, job.id, off=False)

    def _finish(self) -> None:
        for job in self.tenant.jobs:
            if job.gone is not None:
                continue
            if self.chance.random() < 0.4 or not all(_may_end(job, course) for course in job.courses):
                self.tenant.delete(job)
            else:
                for course in job.courses:
                    self._end_course(job, course)

    def _end_course(self, job: Job, course: Course) -> None:
        """Ends a schedule an hour from now, or leaves it if it has ended."""
        last, plan = self.now + HOUR, course.plans[-1]
        if not plan.goes_on(self.now):
            return
        body: dict[str, Any] = {**course.rule.body, "endTime": shown(last)}
        until = last.replace(microsecond=0)
        ends = Rule(body, lambda after, to: course_instants(after, min(to, until)), course.rule.zone)
        course_instants = course.rule.instants
        self.tenant.replan(job, course, ends, plan.closed)


def _may_end(job: Job, course: Course) -> bool:
    return not job.foreign and course.rule.exact and "at" not in course.rule.body


@contextmanager
def life(seed: int, name: str, luck: Luck | None = None) -> Iterator[Life]:
    """Makes a life of that length, before it begins. luck: in the place of what its seed would draw."""
    chance = Random(f"life {seed}")
    with service(seed) as made:
        yield Life(seed, LENGTHS[name], luck or Luck.drawn(chance), made, chance)
