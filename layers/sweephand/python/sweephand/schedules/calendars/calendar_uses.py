"""The member `calendars` of a schedule: which calendars it names, and how it uses each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.members import fields
from sweephand.base.records import dataclass
from sweephand.schedules.calendars.calendars import MOST, MOST_ROLLED_A_DAY, Mode, Roll, Use
from sweephand.schedules.rule import Series

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
    uses: list[Named] = []
    for n, each in enumerate(fields.listed(value, FIELD, MOST, 'a list of calendars such as [{"name": "holidays"}]')):
        use = _read_one(each, f"{FIELD}[{n}]")
        if any(use.name == earlier.name for earlier in uses):
            raise InvalidRequest(f"{FIELD}[{n}].name", f"appears twice: {fields.shown(use.name)}")
        uses.append(use)
    rolls = [(n, use.roll) for n, use in enumerate(uses) if use.roll is not Roll.NONE]
    for n, roll in rolls:
        if roll is not rolls[0][1]:
            reason = f"all calendars of a schedule must roll the same way: {rolls[0][1]}"
            raise InvalidRequest(f"{FIELD}[{n}].roll", reason)
    return uses


def _read_one(value: object, field: str) -> Named:
    record = fields.members(value, field, MEMBERS, wanted='an object such as {"name": "holidays"}')
    return Named(
        name=fields.notation(fields.required(record, "name", field), f"{field}.name", "the name of a calendar"),
        mode=fields.chosen(record.get("mode", Mode.EXCLUDE), f"{field}.mode", Mode),
        roll=fields.chosen(record.get("roll", Roll.NONE), f"{field}.roll", Roll),
    )


def packed(uses: Sequence[Named], book: Mapping[str, str]) -> list[str]:
    """Packs each use with the current reference of its name. Raises InvalidRequest for a name without one."""
    for n, use in enumerate(uses):
        if use.name not in book:
            raise InvalidRequest(f"{FIELD}[{n}].name", f"there is no such calendar: {fields.shown(use.name)}")
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
