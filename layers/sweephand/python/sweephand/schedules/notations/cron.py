"""`cron`: five fields by the rules of Vixie cron: minute, hour, day of the month, month, weekday.

A day matches if either day field has it when both are restricted; a field that starts with `*` is not restricted.
Names of months and weekdays in any case, 0 and 7 for Sunday, lists, ranges, steps, `@daily` and its kin; no @reboot, no
seconds, none of L, W, # and ?.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import NamedTuple

from sweephand.errors import InvalidRequest
from sweephand.schedules import english, members
from sweephand.schedules.calendar_masks import CalendarMasks
from sweephand.schedules.localtime import Gap, Overlap
from sweephand.schedules.notations.shapes import Beginning, Compiled, Facts, Rules
from sweephand.schedules.wallclock import OnWallClock, certain_gap

FIELD = "cron"
EXPECTED = 'five fields such as "30 2 * * 1-5"'
_WORD = re.compile(r"[^ \t]+")
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_ALL_HOURS = (1 << 24) - 1


class _Field(NamedTuple):
    """top: the largest value that may be written; last: the one that `*` and an open step end with."""

    name: str
    low: int
    last: int
    top: int
    names: dict[str, int]


_FIELDS = (
    _Field("minute", 0, 59, 59, {}),
    _Field("hour", 0, 23, 23, {}),
    _Field("day of the month", 1, 31, 31, {}),
    _Field("month", 1, 12, 12, {name: number for number, name in enumerate(english.MONTHS_SHORT, 1)}),
    _Field("weekday", 0, 6, 7, {name: number for number, name in enumerate(english.WEEKDAYS_SHORT)}),
)


class Parsed(NamedTuple):
    """stepped_hours: the hour field is a step over the whole day, so it does not fix the hour."""

    masks: CalendarMasks
    stepped_hours: bool


def read(value: object, rules: Rules, beginning: Beginning) -> Facts:  # noqa: ARG001 - a calendar needs no anchor
    """The text itself, its blanks tidied. Raises NEVER_FIRES for 30 February and its kin."""
    text = " ".join(members.text(value, FIELD, EXPECTED).split())
    if not parse(text).masks.ever():
        raise members.never_fires(FIELD, "none of its months has a day that it names")
    return text


def compile_(facts: Facts, rules: Rules) -> Compiled:
    parsed = parse(facts)
    masks = parsed.masks
    if masks.hours == _ALL_HOURS:
        series = OnWallClock(masks, rules.zone, Gap.SKIP, Overlap.BOTH, marked=False)
    elif parsed.stepped_hours:
        series = OnWallClock(masks, rules.zone, Gap.NEXT_VALID, Overlap.FIRST)
    else:
        series = OnWallClock(masks, rules.zone, rules.gap or Gap.NEXT_VALID, rules.overlap or Overlap.FIRST)
    return Compiled(
        series,
        summary=partial(english.calendar, masks, rules.zone.name),
        interval=lambda: certain_gap(series, masks.shortest_gap_s()),
    )


@lru_cache(maxsize=2048)
def parse(text: str) -> Parsed:
    """The masks of a text. Raises InvalidRequest with the position at which it leaves the grammar.

    Cached by text: most schedules of a stack share a few (hourly, daily).
    """
    if text[:1] == "@":
        return parse(_macro(text))
    words = [(found.start(), found[0]) for found in _WORD.finditer(text)]
    if len(words) != 5:
        surplus = words[5][0] if len(words) > 5 else len(text)
        names = ", ".join(field.name for field in _FIELDS)
        raise InvalidRequest(FIELD, f"expected 5 fields ({names}), found {len(words)}", position=surplus)
    minutes, hours, days, months, weekdays = (
        _mask(word, position, field) for (position, word), field in zip(words, _FIELDS, strict=True)
    )
    hour_text, day_text, weekday_text = words[1][1], words[2][1], words[4][1]
    either = day_text[0] != "*" and weekday_text[0] != "*"
    masks = CalendarMasks(minutes, hours, days, months, (weekdays | weekdays >> 7) & 0x7F, either)
    return Parsed(masks, stepped_hours=_is_step_over_all_hours(hour_text, hours))


def _macro(text: str) -> str:
    fields = _MACROS.get(text.lower())
    if fields is not None:
        return fields
    if text.lower() == "@reboot":
        raise InvalidRequest(FIELD, "@reboot names an event, not a time", position=0)
    raise InvalidRequest(FIELD, f"expected one of {', '.join(_MACROS)}", position=0)


def _mask(text: str, position: int, field: _Field) -> int:
    mask = 0
    for item in text.split(","):
        mask |= _item(item, position, field)
        position += len(item) + 1
    return mask


def _item(item: str, position: int, field: _Field) -> int:
    """The mask of `*`, `a`, `a-b` and each with `/step`; `a/step` runs to the end of the field."""
    body, slash, step = item.partition("/")
    begin, dash, end = body.partition("-")
    if begin == "*":
        if dash:
            raise InvalidRequest(FIELD, f"{field.name}: * cannot begin a range", position=position + 1)
        low, high = field.low, field.last
    else:
        low = _value(begin, position, field)
        high = _value(end, position + len(begin) + 1, field) if dash else field.last if slash else low
    if low > high and (dash or low > field.top):
        raise InvalidRequest(FIELD, f"{field.name}: the range {_shown(body)} runs backwards", position=position)
    if not slash:
        return (2 << high) - (1 << low)
    width = _step(step, position + len(body) + 1, field)
    return sum(1 << value for value in range(low, max(high, low) + 1, width))


def _value(text: str, position: int, field: _Field) -> int:
    if text.isdigit():
        value = int(text)
        if field.low <= value <= field.top:
            return value
        outside = f"{field.name} {_shown(text)} is outside {field.low}..{field.top}"
        raise InvalidRequest(FIELD, outside, position=position)
    named = field.names.get(text.lower())
    if named is None:
        kinds = f"a number from {field.low} to {field.top}" + (f" or {', '.join(field.names)}" if field.names else "")
        raise InvalidRequest(FIELD, f"{field.name}: expected *, {kinds}", position=position)
    return named


def _shown(text: str) -> str:
    return text if len(text) <= 12 else f"{text[:9]}..."


def _step(text: str, position: int, field: _Field) -> int:
    width = int(text) if text.isdigit() else 0
    if width < 1:
        raise InvalidRequest(FIELD, f"{field.name}: expected a step of 1 or more", position=position)
    return width


def _is_step_over_all_hours(text: str, mask: int) -> bool:
    """`*/n`, `0-23/n` and `0/n` with more than one hour."""
    if "/" not in text or "," in text or not mask & 1 or mask == 1:
        return False
    width = (mask >> 1 & -(mask >> 1)).bit_length()
    return mask == sum(1 << hour for hour in range(0, 24, width))
