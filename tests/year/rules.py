"""Rules of schedules with their instants by a second arithmetic, which shares nothing with the product's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from importlib.resources import files
from random import Random  # noqa: TID251 - a life is played again by its seed
from zoneinfo import ZoneInfo

SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Kolkata")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MOST_COUNTED = 60
RUNS_IN_ALL = 250
"""About how many occurrences a schedule has in a life, however long that is."""
STEPS_S = (20, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400, 172_800, 604_800)

Instants = Callable[[datetime, datetime], Iterator[datetime]]


@dataclass(frozen=True)
class Rule:
    """body: the members of the schedule in a request. instants: those after the first and up to the second one.

    exact: whether its instants follow from the body alone. count: how many it has in all, if that is limited. free:
    whether it may have any instant, because it follows its actual starts.
    """

    body: Mapping[str, object]
    instants: Instants
    zone: str = "UTC"
    exact: bool = True
    count: int | None = None
    free: bool = False


@cache
def zone_of(name: str) -> ZoneInfo:
    """Returns the zone by the package's data, which the service uses as well; the machine's may be older."""
    place, _, city = name.rpartition("/")
    folder = files("tzdata.zoneinfo").joinpath(*place.split("/")) if place else files("tzdata.zoneinfo")
    with folder.joinpath(city).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


def on_the_wall(day: date, at: time, zone: ZoneInfo) -> datetime:
    """Returns the first instant at which the clock shows that time; in a gap, the first one after it."""
    local = datetime.combine(day, at, zone)
    instant = local.astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None):
        return instant
    offset = instant.astimezone(zone).utcoffset()
    while (instant - MINUTE).astimezone(zone).utcoffset() == offset:
        instant -= MINUTE
    return instant


def _on_days(zone: str, at: time, wanted: Callable[[date], bool]) -> Instants:
    def instants(after: datetime, until: datetime) -> Iterator[datetime]:
        local = zone_of(zone)
        day, last = after.astimezone(local).date() - DAY, until.astimezone(local).date()
        while day <= last:
            if wanted(day) and after < (instant := on_the_wall(day, at, local)) <= until:
                yield instant
            day += DAY

    return instants


def in_steps(step_s: int, anchor: datetime) -> Instants:
    def instants(after: datetime, until: datetime) -> Iterator[datetime]:
        step = timedelta(seconds=step_s)
        instant = anchor + max(0, -((anchor - after) // step)) * step
        while instant <= until:
            if instant > after:
                yield instant
            instant += step

    return instants


def _only(at: datetime) -> Instants:
    return lambda after, until: iter([at] if after < at <= until else [])


def shown(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def drawn(chance: Random, now: datetime, length: timedelta) -> Rule:
    """Draws a rule that fits a life of this length, from the kinds that a tenant has."""
    kinds = [_steps, _steps, _steps_from, _minutes, _one_time, _counted, _actual_starts]
    if length >= 6 * DAY:
        kinds += [_cron_of_days, _cron_of_days, _cron_of_weeks, _sap_cron, _weekly_rrule]
    if length >= 60 * DAY:
        kinds += [_cron_of_months, _monthly_rrule]
    return chance.choice(kinds)(chance, now.replace(microsecond=0), length)


def _step_s(chance: Random, length: timedelta) -> int:
    fitting = [step for step in STEPS_S if length.total_seconds() / step <= RUNS_IN_ALL]
    return chance.choice(fitting[:3])


def _steps(chance: Random, _now: datetime, length: timedelta) -> Rule:
    step_s = _step_s(chance, length)
    return Rule({"every": f"PT{step_s}S", "align": "epoch"}, in_steps(step_s, EPOCH))


def _steps_from(chance: Random, now: datetime, length: timedelta) -> Rule:
    step_s = _step_s(chance, length) + chance.choice([0, 0, 7])
    start = now + timedelta(seconds=chance.randrange(-600, 600))
    return Rule({"every": f"PT{step_s}S", "startTime": shown(start)}, in_steps(step_s, start))


def _minutes(chance: Random, _now: datetime, length: timedelta) -> Rule:
    if length >= 10 * DAY:
        return _steps(chance, _now, length)
    every = max(1, min(30, _step_s(chance, length) // 60))
    every = next(each for each in (1, 2, 5, 10, 15, 30) if each >= every)
    return Rule({"cron": f"*/{every} * * * *"}, in_steps(60 * every, EPOCH))


def _one_time(chance: Random, now: datetime, length: timedelta) -> Rule:
    at = now + chance.uniform(0.001, 0.4) * length
    at = at.replace(microsecond=0) + SECOND
    return Rule({"at": shown(at)}, _only(at))


def _counted(chance: Random, now: datetime, length: timedelta) -> Rule:
    plain = _steps(chance, now, length)
    count = chance.randint(1, MOST_COUNTED)
    return Rule({**plain.body, "count": count}, plain.instants, exact=False, count=count)


def _actual_starts(chance: Random, now: datetime, length: timedelta) -> Rule:
    plain, count = _steps_from(chance, now, length), chance.randint(1, MOST_COUNTED)
    body = {**plain.body, "align": "actual_start", "count": count}
    return Rule(body, plain.instants, exact=False, count=count, free=True)


def _hour(chance: Random) -> time:
    return time(chance.choice([0, 1, 2, 2, 3, 9, 17, 23]), chance.choice([0, 15, 30, 59]))


def _cron_of_days(chance: Random, _now: datetime, _length: timedelta) -> Rule:
    zone, at = chance.choice(ZONES), _hour(chance)
    body = {"cron": f"{at.minute} {at.hour} * * *", "timezone": zone}
    return Rule(body, _on_days(zone, at, lambda _day: True), zone)


def _cron_of_weeks(chance: Random, _now: datetime, _length: timedelta) -> Rule:
    zone, at = chance.choice(ZONES), _hour(chance)
    days = sorted(chance.sample(range(7), chance.randint(1, 4)))
    names = ",".join(WEEKDAYS[day] for day in days)
    body = {"cron": f"{at.minute} {at.hour} * * {names}", "timezone": zone}
    return Rule(body, _on_days(zone, at, lambda day: day.weekday() in days), zone)


def _cron_of_months(chance: Random, _now: datetime, _length: timedelta) -> Rule:
    zone, at, number = chance.choice(ZONES), _hour(chance), chance.choice([1, 15, 28, 31])
    body = {"cron": f"{at.minute} {at.hour} {number} * *", "timezone": zone}
    return Rule(body, _on_days(zone, at, lambda day: day.day == number), zone)


def _sap_cron(chance: Random, _now: datetime, _length: timedelta) -> Rule:
    at, weekday = _hour(chance), chance.randrange(7)
    body = {"sapCron": f"* * * {WEEKDAYS[weekday]} {at.hour} {at.minute} 0"}
    return Rule(body, _on_days("UTC", at, lambda day: day.weekday() == weekday))


def _weekly_rrule(chance: Random, _now: datetime, _length: timedelta) -> Rule:
    zone, at, weekday = chance.choice(ZONES), time(chance.choice([5, 9, 17]), 0), chance.randrange(7)
    day = WEEKDAYS[weekday][:2].upper()
    text = f"FREQ=WEEKLY;BYDAY={day};BYHOUR={at.hour};BYMINUTE=0;BYSECOND=0"
    return Rule({"rrule": text, "timezone": zone}, _on_days(zone, at, lambda day: day.weekday() == weekday), zone)


def _monthly_rrule(chance: Random, _now: datetime, _length: timedelta) -> Rule:
    """Draws the first weekday of each month."""
    zone, at, weekday = chance.choice(ZONES), time(9, 30), chance.randrange(7)
    day = WEEKDAYS[weekday][:2].upper()
    text = f"FREQ=MONTHLY;BYDAY={day};BYSETPOS=1;BYHOUR=9;BYMINUTE=30;BYSECOND=0"
    first = _on_days(zone, at, lambda day: day.weekday() == weekday and day.day <= len(WEEKDAYS))
    return Rule({"rrule": text, "timezone": zone}, first, zone)
