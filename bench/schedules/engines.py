"""One case in each engine: a question that begins with the text, and one with the text already read.

An engine that does not speak a notation gives None. All answer with an aware instant in UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock
from zoneinfo import ZoneInfo

from bench.schedules import minimal
from bench.schedules.cases import NOW, Case
from sweephand.schedules.notations import NOTATIONS
from sweephand.schedules.notations.shapes import Beginning, Rules
from sweephand.schedules.zones.localtime import to_second, zone

if TYPE_CHECKING:
    from collections.abc import Iterator

Question = Callable[[datetime], datetime | None]
TICK = timedelta(microseconds=1)


class Engine(NamedTuple):
    """text: reads the expression each time. read: has read it before. None: it cannot say."""

    text: Question
    read: Question


@contextmanager
def without_caches() -> Iterator[None]:
    """Texts are read anew each time. The masks of single words (cron) stay: all texts are made of few words."""
    with ExitStack() as stack:
        for name in ("cron", "event_bridge", "rrule_parts"):
            module = import_module(f"sweephand.schedules.notations.{name}")
            stack.enter_context(mock.patch.object(module, "parse", module.parse.__wrapped__))
        yield


def sweephand(case: Case) -> Engine | None:
    """Asks as the tick does, from the stored text. An `rrule` is read from the caller's text, which is refused if it is
    wrong.
    """
    if case.notation not in NOTATIONS:
        return None
    notation, rules = NOTATIONS[case.notation], Rules(zone(case.zone))
    start = to_second(case.start.replace(tzinfo=ZoneInfo(case.zone))) if case.anchor_years else None
    beginning = Beginning(to_second(NOW), start)
    facts = notation.read(case.text, rules, beginning)

    def from_stored(after: datetime) -> datetime | None:
        return notation.compile_(facts, rules).series.next_after(after)

    def from_callers(after: datetime) -> datetime | None:
        return notation.compile_(notation.read(case.text, rules, beginning), rules).series.next_after(after)

    read = notation.compile_(facts, rules).series.next_after
    return Engine(from_callers if case.notation == "rrule" else from_stored, read)


def the_limit(case: Case) -> Engine | None:
    if case.notation != "cron":
        return None
    where, masks = ZoneInfo(case.zone), minimal.parse(case.text)
    return Engine(
        lambda after: minimal.next_after(minimal.parse(case.text), after, where),
        lambda after: minimal.next_after(masks, after, where),
    )


def cronsim(case: Case) -> Engine | None:
    if case.notation != "cron":
        return None
    from cronsim import CronSim  # noqa: PLC0415 - its import is measured

    where = ZoneInfo(case.zone)

    def ask(after: datetime) -> datetime:
        return next(CronSim(case.text, after.astimezone(where))).astimezone(UTC)

    return Engine(ask, ask)  # it has no form in which the text is read and the instant is not


def croniter(case: Case) -> Engine | None:
    if case.notation != "cron":
        return None
    from croniter import croniter as made  # noqa: PLC0415

    where = ZoneInfo(case.zone)
    read = made(case.text, NOW.astimezone(where))

    def again(after: datetime) -> datetime:
        found: datetime = read.get_next(datetime, start_time=after.astimezone(where))
        return found.astimezone(UTC)

    return Engine(lambda after: made(case.text, after.astimezone(where)).get_next(datetime).astimezone(UTC), again)


def apscheduler(case: Case) -> Engine | None:
    if case.notation != "cron":
        return None
    from apscheduler.triggers.cron import CronTrigger  # noqa: PLC0415

    where = ZoneInfo(case.zone)
    read = CronTrigger.from_crontab(case.text, timezone=where)

    def ask(trigger: Any, after: datetime) -> datetime | None:
        found: datetime | None = trigger.get_next_fire_time(None, (after + TICK).astimezone(where))
        return None if found is None else found.astimezone(UTC)

    return Engine(lambda after: ask(CronTrigger.from_crontab(case.text, timezone=where), after), lambda a: ask(read, a))


def dateutil(case: Case) -> Engine | None:
    """Asks dateutil's rrule, begun anew shortly before the instant by arithmetic, because otherwise it counts from the
    beginning.
    """
    if case.notation != "rrule":
        return None
    from dateutil.rrule import rrule, rrulestr  # noqa: PLC0415

    where = ZoneInfo(case.zone)
    read = rrulestr(case.text, dtstart=case.start)
    parts = read._original_rule | {"freq": read._freq, "interval": read._interval}

    def begun_near(after: datetime) -> datetime:
        """Returns a beginning of the same grid at most two steps before `after`."""
        start, step = case.start, parts["interval"]
        if read._freq == 0:
            return start.replace(year=start.year + (after.year - start.year - 1) // step * step)
        if read._freq == 1:
            months = (after.year - start.year) * 12 + after.month - start.month
            year, month = divmod(start.year * 12 + start.month - 1 + (months // step - 1) * step, 12)
            return start.replace(year=year, month=month + 1, day=1)
        unit = {2: 604_800, 3: 86_400, 4: 3_600, 5: 60, 6: 1}[read._freq] * step
        return start + timedelta(seconds=((after - start).total_seconds() // unit - 1) * unit)

    def ask(rule: Any, after: datetime) -> datetime | None:
        local = after.astimezone(where).replace(tzinfo=None)
        found = rule.replace(dtstart=begun_near(local)).after(local)
        return None if found is None else found.replace(tzinfo=where).astimezone(UTC)

    assert rrule
    return Engine(lambda after: ask(rrulestr(case.text, dtstart=case.start), after), lambda after: ask(read, after))


ENGINES: dict[str, Callable[[Case], Engine | None]] = {
    "Sweephand": sweephand,
    "limit": the_limit,
    "cronsim": cronsim,
    "croniter": croniter,
    "APScheduler": apscheduler,
    "dateutil": dateutil,
}
