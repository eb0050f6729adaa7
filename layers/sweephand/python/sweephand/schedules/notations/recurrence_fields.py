"""Reads the members of a `recurrence`: the values that each may have, and which can be combined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from operator import or_
from typing import NamedTuple

from sweephand.base.errors import InvalidRequest
from sweephand.base.json_schema import Schema, items, request, text, whole
from sweephand.base.members import fields
from sweephand.schedules.text.english import WEEKDAYS

FIELD = "recurrence"
EXPECTED = 'an object such as {"frequency": "week", "interval": 2, "schedule": {"weekDays": ["monday"]}}'
LONGEST = {"minute": 1_000, "hour": 1_000, "day": 548, "week": 78, "month": 18, "year": 1}
"""The largest interval of each frequency."""
MONDAY_FIRST = tuple(name.lower() for name in (*WEEKDAYS[1:], WEEKDAYS[0]))
MOST = {"minutes": 60, "hours": 24, "weekDays": 7, "monthDays": 62, "monthlyOccurrences": 77}
"""The most entries of each list: one for each value that it may contain."""
_ONLY_WITH = {"weekDays": "week", "monthDays": "month", "monthlyOccurrences": "month"}
_INTERVALS = ", ".join(f"{unit} {most:,}" for unit, most in LONGEST.items()) + " at most."
_OF_MONTHS = "With the frequency `month`. -1 is the last."


def _any_case(names: Iterable[str]) -> Schema:
    spelled = ("".join(f"[{letter.upper()}{letter}]" for letter in name) for name in names)
    return text(pattern=f"^({'|'.join(spelled)})$", description=f"{', '.join(names)}; in any case.")


def _one_or_more(name: str, number: Schema, description: str = "A number alone is a list of one.") -> Schema:
    return {"anyOf": [items(number, maxItems=MOST[name]), number], "description": description}


_WEEKDAY = _any_case(MONDAY_FIRST)
_OCCURRENCE = request({"day": _WEEKDAY, "occurrence": {**whole(-5, 5), "not": {"const": 0}}}, ("day",))
_SCHEDULE = request(
    {
        "minutes": _one_or_more("minutes", whole(0, 59)),
        "hours": _one_or_more("hours", whole(0, 23)),
        "weekDays": items(_WEEKDAY, maxItems=MOST["weekDays"], description="With the frequency `week`."),
        "monthDays": _one_or_more("monthDays", {**whole(-31, 31), "not": {"const": 0}}, _OF_MONTHS),
        "monthlyOccurrences": items(
            _OCCURRENCE,
            maxItems=MOST["monthlyOccurrences"],
            description=f"{_OF_MONTHS} Without `occurrence` every one. Not together with `monthDays`.",
        ),
    }
)
SCHEMA = request(
    {
        "frequency": _any_case(LONGEST),
        "interval": whole(1, max(LONGEST.values()), description=_INTERVALS),
        "schedule": _SCHEDULE,
    },
    ("frequency",),
    description="Every `interval` units from `startTime` or creation. `count` and `endTime` belong to the schedule.",
)
_OF_THE_SCHEDULE = ("count", "endTime", "startTime", "timezone")


class Spec(NamedTuple):
    """A recurrence as masks. 0 means not given.

    anchor: Unix seconds of an elapsed grid, else wall seconds. minutes, hours: bit n is n. week_days: bit 0 is Monday.
    month_days: bit n is day n; from_end: bit n is the n-th last day. nth: eleven bits per weekday from Monday on: every
    one, the first to the fifth, the last to the fifth from the end.
    """

    unit: str
    interval: int
    anchor: int = 0
    minutes: int = 0
    hours: int = 0
    week_days: int = 0
    month_days: int = 0
    from_end: int = 0
    nth: int = 0

    @property
    def scheduled(self) -> bool:
        return any(self[3:])


def read_spec(value: object) -> Spec:
    """Returns everything but the anchor. Raises InvalidRequest with the path of the member that breaks a rule."""
    if isinstance(value, dict):
        for name in _OF_THE_SCHEDULE:
            if value.get(name) is not None:
                reason = "belongs next to `recurrence`, as a member of the schedule"
                raise InvalidRequest(f"{FIELD}.{name}", reason, code="UNKNOWN_MEMBER")
    members = fields.members(value, FIELD, ("frequency", "interval", "schedule"), wanted=EXPECTED)
    if "frequency" not in members:
        raise InvalidRequest(f"{FIELD}.frequency", f"is required: one of {', '.join(LONGEST)}")
    unit = fields.one_of(members["frequency"], f"{FIELD}.frequency", LONGEST, any_case=True)
    interval = fields.whole(members.get("interval", 1), f"{FIELD}.interval", 1, LONGEST[unit])
    return Spec(unit, interval, **_schedule(members.get("schedule", {}), unit))


def _schedule(value: object, unit: str) -> dict[str, int]:
    path = f"{FIELD}.schedule"
    members = fields.members(value, path, MOST, wanted='an object such as {"minutes": [0, 30], "hours": [6]}')
    lists = {name: _list(each, f"{path}.{name}", MOST[name]) for name, each in members.items()}
    lists = {name: each for name, each in lists.items() if each}
    for name, needed in _ONLY_WITH.items():
        if name in lists and unit != needed:
            raise InvalidRequest(f"{path}.{name}", f"is only allowed with the frequency {needed}")
    if "monthDays" in lists and "monthlyOccurrences" in lists:
        raise InvalidRequest(f"{path}.monthlyOccurrences", "must not be combined with monthDays")
    month_days = _month_days(lists.get("monthDays", []), f"{path}.monthDays")
    return {
        "minutes": _mask(lists.get("minutes", []), f"{path}.minutes", partial(fields.whole, lowest=0, highest=59)),
        "hours": _mask(lists.get("hours", []), f"{path}.hours", partial(fields.whole, lowest=0, highest=23)),
        "week_days": _mask(lists.get("weekDays", []), f"{path}.weekDays", _weekday),
        "month_days": sum(1 << day for day in month_days if day > 0),
        "from_end": sum(1 << -day for day in month_days if day < 0),
        "nth": _nth(lists.get("monthlyOccurrences", []), f"{path}.monthlyOccurrences"),
    }


def _list(value: object, path: str, most: int) -> Sequence[object]:
    """Reads a list. A single number is a list of one."""
    if isinstance(value, int) and not isinstance(value, bool):
        return [value]
    return fields.listed(value, path, most)


def _weekday(value: object, path: str) -> int:
    return MONDAY_FIRST.index(fields.one_of(value, path, MONDAY_FIRST, any_case=True))


def _mask(values: Sequence[object], path: str, read: Callable[[object, str], int]) -> int:
    return reduce(or_, (1 << read(each, f"{path}[{n}]") for n, each in enumerate(values)), 0)


def _month_days(values: Sequence[object], path: str) -> set[int]:
    days = {fields.whole(each, f"{path}[{n}]", -31, 31): n for n, each in enumerate(values)}
    if 0 in days:
        raise fields.must_be(f"{path}[{days[0]}]", "1 to 31, or -1 (the last) to -31", 0)
    return set(days)


def _in_lower_case(value: object) -> object:
    """Returns members in lower case, as Azure's Python client writes `Occurrence`, unless two differ in case only."""
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        return value
    lower = {name.lower(): each for name, each in value.items()}
    return lower if len(lower) == len(value) else value


def _nth(values: Sequence[object], path: str) -> int:
    mask = 0
    for n, each in enumerate(values):
        here = f"{path}[{n}]"
        wanted = 'an object such as {"day": "friday"}'
        members = fields.members(_in_lower_case(each), here, ("day", "occurrence"), wanted=wanted)
        weekday = _weekday(fields.required(members, "day", here), f"{here}.day")
        which = 0
        if "occurrence" in members:
            which = fields.whole(members["occurrence"], f"{here}.occurrence", -5, 5)
            if which == 0:
                raise fields.must_be(f"{here}.occurrence", "1 to 5, or -1 (the last) to -5", which)
        mask |= 1 << 11 * weekday + (which if which >= 0 else 5 - which)
    return mask
