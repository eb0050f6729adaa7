"""The member `calendars` of a schedule: which calendars it names, and how it uses each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.records import dataclass
from sweephand.schedules.calendars.calendars import MOST, MOST_ROLLED_A_DAY, Mode, Roll, Use
from sweephand.schedules.rule import Series
from sweephand.schedules.text import members

FIELD = "calendars"
MEMBERS = ("name", "mode", "roll")
WEEK_S = 7 * 86_400


@dataclass(frozen=True)
class Named:
    """One calendar as a caller names it."""

    name: str
    mode: Mode = Mode.EXCLUDE
    roll: Roll = Roll.NONE

    def body(self) -> dict[str, str]:
        return {"name": self.name, "mode": self.mode.value, "roll": self.roll.value}


def read(value: object) -> list[Named]:
    """Returns at most five calendars, each once. All that roll do so in one direction. Raises InvalidRequest."""
    if value is None:
        return []
    if not isinstance(value, Sequence) or isinstance(value, str):
        reason = f'expected a list of calendars such as [{{"name": "holidays"}}], not {members.kind_of(value)}'
        raise InvalidRequest(FIELD, reason)
    if len(value) > MOST:
        raise InvalidRequest(FIELD, f"a schedule has at most {MOST} calendars")
    found: list[Named] = []
    for n, each in enumerate(value):
        use = _read_one(each, f"{FIELD}[{n}]")
        if any(use.name == earlier.name for earlier in found):
            raise InvalidRequest(f"{FIELD}[{n}].name", "this calendar is listed twice")
        found.append(use)
    rolls = [(n, use.roll) for n, use in enumerate(found) if use.roll is not Roll.NONE]
    for n, roll in rolls:
        if roll is not rolls[0][1]:
            reason = f"all calendars of a schedule must roll the same way: {rolls[0][1]}"
            raise InvalidRequest(f"{FIELD}[{n}].roll", reason)
    return found


def _read_one(value: object, field: str) -> Named:
    if not isinstance(value, Mapping):
        raise InvalidRequest(field, f'expected an object such as {{"name": "holidays"}}, not {members.kind_of(value)}')
    for name in value:
        if name not in MEMBERS:
            raise InvalidRequest(f"{field}.{str(name)[:100]}", "is not a member here", code="UNKNOWN_MEMBER")
    given = {name: member for name, member in value.items() if member is not None}
    if "name" not in given:
        raise InvalidRequest(f"{field}.name", "is required")
    return Named(
        name=members.text(given["name"], f"{field}.name", "the name of a calendar"),
        mode=members.choice(given.get("mode", Mode.EXCLUDE.value), f"{field}.mode", Mode),
        roll=members.choice(given.get("roll", Roll.NONE.value), f"{field}.roll", Roll),
    )


def packed(uses: Sequence[Named], book: Mapping[str, str]) -> list[str]:
    """Packs each use with the current reference of its name. Raises InvalidRequest for a name without one."""
    for n, use in enumerate(uses):
        if use.name not in book:
            raise InvalidRequest(f"{FIELD}[{n}].name", "there is no such calendar")
    return [str(Use(book[use.name], use.mode, use.roll)) for use in uses]


def check_rolling(uses: Sequence[Named], series: Series, first: int) -> None:
    """Raises InvalidRequest if a rule that rolls has over MOST_ROLLED_A_DAY occurrences a day in its first week."""
    begin = series.after(first - 1)
    if begin is None or all(use.roll is Roll.NONE for use in uses):
        return
    most = MOST_ROLLED_A_DAY * 7
    if len(list(islice(series.seconds(begin - 1, begin + WEEK_S - 1), most + 1))) > most:
        field = next(f"{FIELD}[{n}].roll" for n, use in enumerate(uses) if use.roll is not Roll.NONE)
        raise InvalidRequest(field, f"only rules with at most {MOST_ROLLED_A_DAY} occurrences a day can roll")


def shown(value: Any) -> list[dict[str, str]]:
    """Returns the member with all defaults filled in."""
    return [use.body() for use in read(value)]
