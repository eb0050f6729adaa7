"""The oracle's own record of each schedule: which instants it owes, and when it was off, by requests and answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from tests.year.rules import Rule, zone_of

LAST = datetime.max.replace(tzinfo=UTC) - timedelta(days=400)
CLOCKS = timedelta(seconds=5)
"""Two processes whose clocks differ by up to four seconds may disagree about an instant this close to a request."""
OLD_PLAN = timedelta(seconds=6)
"""So long after a change, instants of the former plan still run."""
NOTICED = timedelta(seconds=3)
"""So long after a switch, an executor may not have noticed it."""


@dataclass(frozen=True)
class Span:
    """The time in which a request took effect: between the first time it was sent and its answer."""

    asked: datetime
    answered: datetime


@dataclass
class Stretch:
    """A plan, or a time that is off. end None: it lasts."""

    begin: Span
    end: Span | None = None

    def surely(self, instant: datetime, margin: timedelta) -> bool:
        return self.begin.answered + margin < instant < (self.end.asked if self.end else LAST) - margin

    def perhaps(self, instant: datetime, margin: timedelta) -> bool:
        return self.begin.asked - margin < instant < (self.end.answered if self.end else LAST) + margin

    def meets(self, since: datetime, until: datetime) -> bool:
        """Tells whether it may share an instant with that time."""
        return self.begin.asked - NOTICED - CLOCKS <= until and since <= (
            (self.end.answered if self.end else LAST) + NOTICED + CLOCKS
        )


@dataclass
class Switch:
    """Whatever can be switched off and on: a schedule, a job, a collection, the tenant."""

    stretches: list[Stretch] = field(default_factory=list)

    @property
    def is_off(self) -> bool:
        return bool(self.stretches) and self.stretches[-1].end is None

    def off(self, span: Span, until: datetime | None = None) -> None:
        """Begins a stretch, which replaces one that lasts: a pause may be replaced by a shorter one."""
        self.on(span)
        self.stretches.append(Stretch(span, None if until is None else Span(until, until)))

    def on(self, span: Span) -> None:
        """Ends the stretch that lasts, or whose end is still ahead."""
        if self.stretches and (self.stretches[-1].end is None or self.stretches[-1].end.answered > span.asked):
            self.stretches[-1].end = span


@dataclass(frozen=True)
class Calendar:
    """weekdays, ranges: left out."""

    name: str
    weekdays: frozenset[int] = frozenset()
    ranges: tuple[tuple[datetime, datetime], ...] = ()

    def leaves_out(self, instant: datetime, zone: str) -> bool:
        day: date = instant.astimezone(zone_of(zone)).date()
        return day.weekday() in self.weekdays or any(begin <= instant < end for begin, end in self.ranges)


@dataclass
class Plan(Stretch):
    """A rule while it was in force. closed: the calendar as it was. follows: whether the calendar was the change."""

    rule: Rule = field(kw_only=True)
    closed: Calendar | None = None

    def instants(self, after: datetime, until: datetime) -> Iterator[datetime]:
        for instant in self.rule.instants(after, until):
            if self.closed is None or not self.closed.leaves_out(instant, self.rule.zone):
                yield instant

    def goes_on(self, after: datetime) -> bool:
        """Tells whether an instant is left. A rule or a calendar that leaves none completes its schedule."""
        return next(iter(self.instants(after, after + timedelta(days=400))), None) is not None


@dataclass
class Course:
    """One schedule. switches: its own, its job's, its collection's and the tenant's. gone: when it was deleted. held:
    whether its events wait for a consumer.
    """

    id: str
    job_id: str
    switches: tuple[Switch, ...]
    policies: Mapping[str, Any]
    plans: list[Plan] = field(default_factory=list)
    gone: Span | None = None
    held: bool = False

    @property
    def rule(self) -> Rule:
        return self.plans[-1].rule

    @property
    def free(self) -> bool:
        return any(plan.rule.free for plan in self.plans)

    @property
    def runs_when_enabled(self) -> bool:
        """Tells whether it runs as soon as its owner is enabled, if it fell due while that was disabled."""
        return self.policies.get("onEnable") == "run_now" and "at" in self.rule.body

    def follow(self, rule: Rule, span: Span, closed: Calendar | None) -> None:
        if self.plans:
            self.plans[-1].end = span
        self.plans.append(Plan(span, rule=rule, closed=closed))

    def owed(self, until: datetime) -> set[datetime]:
        """Returns the instants that must have an outcome."""
        return {
            instant
            for plan in self.plans
            if plan.rule.exact
            for instant in plan.instants(plan.begin.answered, until)
            if plan.surely(instant, CLOCKS) and (self.gone is None or instant < self.gone.asked - CLOCKS)
        }

    def allowed(self, until: datetime) -> set[datetime]:
        """Returns the instants that may have one."""
        margin = OLD_PLAN + CLOCKS
        return self._first(margin) | {
            instant
            for plan in self.plans
            for instant in plan.instants(plan.begin.asked - margin, until)
            if plan.perhaps(instant, margin) and (self.gone is None or instant < self.gone.answered + CLOCKS)
        }

    def _first(self, margin: timedelta) -> set[datetime]:
        """Returns the instants at one of which it runs because it was created."""
        if self.policies.get("onCreate") != "run_now" or "at" in self.plans[0].rule.body:
            return set()
        begin = self.plans[0].begin
        since = begin.asked.replace(microsecond=0) - margin
        return {since + timedelta(seconds=n) for n in range(int((begin.answered + 2 * margin - since).total_seconds()))}

    def surely_off(self, instant: datetime) -> bool:
        return any(each.surely(instant, NOTICED + CLOCKS) for each in self._off())

    def perhaps_off(self, since: datetime, until: datetime) -> bool:
        """Tells whether it may have been off at some moment of that time."""
        return any(each.meets(since, until) for each in self._off())

    def _off(self) -> Iterable[Stretch]:
        return (stretch for switch in self.switches for stretch in switch.stretches)


@dataclass
class Job:
    """foreign: its people use another facade, which could not show whatever the native API can do. of_worker:
    whether a worker carries it out.
    """

    id: str
    collection: str
    body: Mapping[str, Any]
    switch: Switch
    pause: Switch
    courses: list[Course] = field(default_factory=list)
    foreign: bool = False
    of_worker: bool = False
    gone: Span | None = None
