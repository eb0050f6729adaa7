"""Improves refusals of a body: they list all mistakes at once, and say what to write instead.

It is imported only after a body was refused, and does not decide whether a body is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from sweephand.base.errors import MOST_SHOWN, InvalidRequest, Mistakes
from sweephand.base.members.near_names import quoted
from sweephand.domain.instants import EPOCH
from sweephand.schedules import notations
from sweephand.schedules.notations import NOTATIONS
from sweephand.schedules.rule import MOST, Undecided, limited, spend
from sweephand.schedules.timing import TIMING_MEMBERS, parse
from sweephand.schedules.zones import zone_names

HARMLESS = {"every": "PT1H"}
"""Replaces a notation that cannot be read, so that the other members can be checked."""
_SCHEDULE = re.compile(r"schedules\[(\d+)\]")
_SHORT = re.compile(r"([0-9]{1,9})\s*(s|sec|secs|m|min|mins|h|hr|hrs|d|w)", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_QUARTZ = 6
"""The number of fields in Quartz and Spring, whose first field is for seconds."""
_EXAMPLES = {"action": 'such as {"type": "http", "url": "https://example.org/"}'}
_COST_OF_ZONES = 1_500
_MOST_SCHEDULES = 40
LONGEST_TRIED = 1_000
"""The most characters of a string that is tried in other notations."""
NO_CLOCK: Mapping[str, Any] = {}
_MOST_STEPS = 4 * MOST
"""The limit of work for all hints of an answer. Each hint costs up to a dozen parses."""


def improved(wrong: InvalidRequest, body: object, now: datetime, *, change: bool = False) -> InvalidRequest:
    mistakes = Mistakes()
    if wrong.code not in {"INVALID_FIELD", "UNKNOWN_MEMBER", "NEVER_FIRES"}:
        return wrong
    with suppress(InvalidRequest):  # there are more than an answer shows
        mistakes.add(wrong)
        for path, timing in () if change else _timings(body):
            collect(timing, path, now, mistakes)
    listed = mistakes.all
    with limited(_MOST_STEPS):
        first, *others = (_with_hint(each, body, now, change=change) for each in listed[:MOST_SHOWN])
    return first.alone((*others, *listed[MOST_SHOWN:]))


def _timings(body: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the path and the members of each schedule of a job's body, or of a schedule's own body."""
    if not isinstance(body, Mapping):
        return
    if "action" not in body and "schedules" not in body:
        yield "", body
    schedules = body.get("schedules")
    for n, each in enumerate(schedules[:_MOST_SCHEDULES] if isinstance(schedules, list) else []):
        if isinstance(each, Mapping):
            yield f"schedules[{n}]", each


def collect(schedule: Mapping[str, Any], path: str, now: datetime, mistakes: Mistakes) -> None:
    """Adds all mistakes of a timing: removes each invalid member and reads the rest again."""
    members = {
        name: value for name, value in schedule.items() if name in TIMING_MEMBERS - {"calendars"} and value is not None
    }
    if not members.keys() & NOTATIONS.keys():
        return
    for _ in range(len(TIMING_MEMBERS)):
        try:
            parse(members, now=now, may_be_empty=True)
        except InvalidRequest as wrong:
            mistakes.add(wrong.within(path))
            name = re.split(r"[.\[]", wrong.field or "", maxsplit=1)[0]
            if name not in members:
                return
            if name in NOTATIONS:
                members = {each: value for each, value in members.items() if each in {"count", "jitterSeconds"}}
                members |= HARMLESS
            else:
                del members[name]
        else:
            return


def _with_hint(wrong: InvalidRequest, body: object, now: datetime, *, change: bool) -> InvalidRequest:
    hint = None
    with suppress(Undecided):  # the hints before it have spent all
        hint = _hint(wrong, body, now, change=change)
    if hint is None or hint in wrong.reason:
        return wrong
    return wrong.changed(reason=f"{wrong.reason}; {hint}")


def _member(field: str) -> str:
    """Returns the member of a schedule or of the body in a path."""
    return re.split(r"[.\[]", field.rpartition("].")[2] or field, maxsplit=1)[0]


def _hint(wrong: InvalidRequest, body: object, now: datetime, *, change: bool) -> str | None:
    field = wrong.field or ""
    name, value = _member(field), _value(body, field)
    if field.endswith("timezone") and isinstance(value, str):
        spend(_COST_OF_ZONES)
        return zone_names.suggestion(value)
    if name not in NOTATIONS or wrong.code == "UNKNOWN_MEMBER":
        return _EXAMPLES.get(field) if wrong.reason == "is required" else None
    if "only one of" in wrong.reason:
        return _of_two(wrong, change=change)
    if "60 seconds in the past" in wrong.reason:
        return 'write a later instant, or "policies": {"onPastStart": "run_now"} to run it at once'
    if wrong.code == "NEVER_FIRES" or not isinstance(value, str):
        return None
    taken = taken_by(name, value, now, _clock(body, field))
    return None if taken is None or f"`{taken[0]}`" in wrong.reason else f'write "{taken[0]}": {quoted(taken[1])}'


def _of_two(wrong: InvalidRequest, *, change: bool) -> str | None:
    match = re.search(r"(\w+) is given too", wrong.reason)
    if not change:
        return "leave out the others"
    if match is None:
        return None
    return f'to change the notation, remove the former one: "{match[1]}": null'


def _value(body: object, field: str) -> object:
    """Returns the value at a path of the body; None if there is none."""
    value: object = body
    for piece in re.findall(r"[^.\[\]]+", field):
        if isinstance(value, Mapping):
            value = value.get(piece)
        elif isinstance(value, list) and piece.isdigit() and int(piece) < len(value):
            value = value[int(piece)]
        else:
            return None
    return value


def _clock(body: object, field: str) -> dict[str, Any]:
    """Returns the members next to a notation that decide about its wall times, if they are valid."""
    owner = _value(body, field.rpartition(".")[0]) if "." in field else body
    members = owner if isinstance(owner, Mapping) else {}
    clock = {name: members[name] for name in ("timezone", "dstGap", "dstOverlap") if members.get(name) is not None}
    with suppress(InvalidRequest):
        parse({"at": "2027-01-01T00:00:00", **clock}, now=EPOCH)
        return clock
    return {}


def taken_by(notation: str, text: str, now: datetime, clock: Mapping[str, Any] = NO_CLOCK) -> tuple[str, str] | None:
    """Returns the notation that would accept a string, and the string in the accepted form; None if none would.

    clock: the valid members next to it that decide about wall times.
    """
    if len(text) > LONGEST_TRIED:
        return None
    once = notations.is_one_time(notation, text)
    for name, written in _candidates(notation, text):
        if once and name == "every":
            continue  # a duration says when, not how often
        try:
            parse({name: written, **clock}, now=now)
        except InvalidRequest:
            continue
        return name, written
    return None


def _candidates(notation: str, text: str) -> Iterator[tuple[str, str]]:
    yield from _other_crons(notation, text.split())
    short = _SHORT.fullmatch(text.strip().lower())
    if short and notation == "every":
        yield "every", f"{short[1]} {_UNITS[short[2][0]]}"
    for name in ("cron", "every", "eventBridge", "rrule", "at", "time", "sapCron"):
        if name != notation:
            yield name, text.strip()


def _other_crons(notation: str, pieces: list[str]) -> Iterator[tuple[str, str]]:
    """Yields a cron string without the seconds of Quartz and Spring, and in the form of eventBridge with L, W and #."""
    if len(pieces) in {_QUARTZ, _QUARTZ + 1} and pieces[0] in {"0", "00"}:
        if len(pieces) == _QUARTZ:
            yield "cron", " ".join(pieces[1:])
        year = pieces[6:] or ["*"]
        yield "eventBridge", f"cron({' '.join([*_either(pieces[1:6]), *year])})"
    if len(pieces) == _QUARTZ - 1:
        if notation != "cron":
            yield "cron", " ".join(pieces)
        yield "eventBridge", f"cron({' '.join(_either(_weekdays_from_one(pieces)))} *)"


def _either(pieces: list[str]) -> list[str]:
    """Replaces either the day or the weekday with `?`, as eventBridge requires."""
    day, weekday = pieces[2], pieces[4]
    if "?" in {day, weekday}:
        return pieces
    return [*pieces[:2], "?", pieces[3], weekday] if day == "*" else [*pieces[:4], "?"]


def _weekdays_from_one(pieces: list[str]) -> list[str]:
    """Converts weekdays: five fields count Sunday as 0 or 7, eventBridge as 1."""
    weekday = re.sub(r"(?<![#\d])[0-7](?!\d)", lambda match: str(int(match[0]) % 7 + 1), pieces[4])
    return [*pieces[:4], weekday]
