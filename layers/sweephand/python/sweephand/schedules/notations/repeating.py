"""Repeating intervals of ISO 8601 in `every`: R5/2027-01-01T00:00Z/PT1H, R/2027-01-31T09:00/P1M, R/PT1H/2027-01-01T00Z.

An interval is a beginning with a duration or an end, or a duration with an end. Its occurrences are the beginnings of
the given number of intervals (`R`: without end), one after another. If an end is given, the last interval ends there.
`R5/PT1H` begins where `every` itself would. Source: ISO 8601-1, 5.6.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sweephand.base.errors import InvalidRequest
from sweephand.base.members import fields
from sweephand.schedules.notations.shapes import Rules
from sweephand.schedules.text import duration, instants, iso_dates

EXPECTED = 'a repeating interval such as "R5/2027-01-01T00:00Z/PT1H"'
_MOST = 2**31 - 1
_HEAD = re.compile(r"R(-?[0-9]+)?", re.ASCII)


class Repeating(NamedTuple):
    """A repeating interval as read. step: as written, or the seconds between beginning and end.

    at: the instant in the text, in Unix seconds. times: None for no end. backwards: whether `at` is the end of the last
    interval. step_at: the position of the step in the text. unread: the wall time in the text, if the clock jumps over
    it and `at` only stands for it.
    """

    step: duration.Duration
    at: int | None
    times: int | None
    backwards: bool
    step_at: int
    unread: int | None = None


def read(text: str, field: str, rules: Rules) -> Repeating:
    """Reads a string that begins with R. Raises InvalidRequest with the position of the mistake."""
    parts = text.split("/")
    head = _HEAD.fullmatch(parts[0])
    if head is None or len(parts) not in (2, 3):
        raise fields.must_be(field, EXPECTED, text, position=0)
    times = int(head[1]) if head[1] and head[1] != "-1" else None  # the standard writes "without end" as -1 too
    if times is not None and not 1 <= times <= _MOST:
        raise fields.must_be(
            field, f"R, or R and a number from 1 to {_MOST:,}", parts[0], part="its beginning", position=1
        )
    places = [len(parts[0]) + 1, len(parts[0]) + len(parts[1]) + 2]
    if len(parts) == 2:
        return Repeating(_step(parts[1], field, places[0]), None, times, False, places[0])
    if parts[1][:1] == "P":
        step = _step(parts[1], field, places[0])
        at, unread = _instant(parts[2], field, places[1], rules)
        return Repeating(step, at, times, True, places[0], unread)
    begin, unread = _instant(parts[1], field, places[0], rules)
    if parts[2][:1] == "P":
        return Repeating(_step(parts[2], field, places[1]), begin, times, False, places[1], unread)
    end, _ = _instant(parts[2], field, places[1], rules)
    if end <= begin:
        raise InvalidRequest(field, "the interval ends before it begins", position=places[1])
    return Repeating(duration.Duration(end - begin, 0), begin, times, False, places[1])


def _step(text: str, field: str, position: int) -> duration.Duration:
    if text[:1] != "P":
        raise fields.must_be(field, 'a duration such as "PT1H"', text, part="its step", position=position)
    try:
        return duration.read(text, field)
    except InvalidRequest as refused:
        raise refused.changed(field=field, position=position + (refused.position or 0)) from refused


def _instant(text: str, field: str, position: int, rules: Rules) -> tuple[int, int | None]:
    """Returns (`at`, `unread`) of an ISO 8601 date, with a time of day or at midnight. No offset means wall time."""
    if not text[:4].isdigit() or " " in text:
        wanted = "a date, or a date and time such as 2027-01-01T00:00Z"
        raise fields.must_be(field, wanted, text, part="its date", position=position)
    try:
        stated = iso_dates.read(text, field)
        return instants.resolve(stated, field, rules.zone, rules.gap, rules.overlap), stated.unread(rules.zone)
    except InvalidRequest as refused:
        raise refused.changed(field=field, position=position + (refused.position or 0)) from refused
