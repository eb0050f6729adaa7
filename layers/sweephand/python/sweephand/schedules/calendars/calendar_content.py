"""Reads a calendar's content, as a caller writes it, into facts (calendars.py): dates, ranges and hours of the week.

dates    a day, "2026-12-25", or a day of each year, "12-25"
ranges   {"from", "to"}: two days, both included; or two times, the second one excluded. Times without an offset are
         wall times; times with one are instants
weekly   {"days", "from", "to"}: hours of some weekdays, "08:00" to "17:30"; past midnight if `to` is not later

Everything without an offset is wall time in the calendar's own zone or, without one, in that of the schedule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.members import fields
from sweephand.schedules.grids.coverage import DAY_S, WEEK_S
from sweephand.schedules.grids.days import EPOCH_DAY
from sweephand.schedules.text import instants

MEMBERS = ("timezone", "dates", "ranges", "weekly")
MOST_DATES, MOST_RANGES, MOST_WEEKLY, MOST_YEARLY = 2_000, 1_000, 50, 366
MOST = {"dates": MOST_DATES, "ranges": MOST_RANGES, "weekly": MOST_WEEKLY}
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
FIRST_YEAR, LAST_YEAR = 1970, 2199
A_DATE = 'a date such as "2026-12-25", or "12-25" for each year'
AN_END = 'a date, or a time such as "2026-12-24T18:00:00", with or without an offset'
A_TIME = 'a time of the day such as "08:00", up to "24:00"'
_DATE = re.compile(r"(?:([0-9]{4})-)?([0-9]{2})-([0-9]{2})", re.ASCII)
_TIME = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?", re.ASCII)

Facts = dict[str, Any]


def read(content: Mapping[str, Any]) -> Facts:
    """Returns the facts of all MEMBERS. Raises InvalidRequest with the path of a value that cannot be read."""
    facts: Facts = {}
    if content.get("timezone") is not None:
        facts["zone"] = instants.read_zone(content["timezone"]).name
    for n, value in enumerate(_listed(content.get("dates"), "dates", MOST_DATES)):
        _add_date(facts, value, f"dates[{n}]")
    if len(facts.get("yearly", ())) > MOST_YEARLY:
        raise InvalidRequest("dates", f"has more than {MOST_YEARLY} days of each year")
    for n, value in enumerate(_listed(content.get("ranges"), "ranges", MOST_RANGES)):
        _add_range(facts, value, f"ranges[{n}]")
    for n, value in enumerate(_listed(content.get("weekly"), "weekly", MOST_WEEKLY)):
        facts.setdefault("week", []).extend(_hours(value, f"weekly[{n}]"))
    return facts


def _listed(value: object, field: str, most: int) -> Sequence[object]:
    return () if value is None else fields.listed(value, field, most)


# Dates and ranges


def _add_date(facts: Facts, value: object, field: str) -> None:
    year, month, day = _date(fields.notation(value, field, A_DATE), field, A_DATE)
    if year is None:
        facts.setdefault("yearly", []).append([month, day])
    else:
        number = date(year, month, day).toordinal() - EPOCH_DAY
        facts.setdefault("days", []).append([number, number])


def _date(text: str, field: str, wanted: str) -> tuple[int | None, int, int]:
    match = _DATE.fullmatch(text)
    if match is None:
        raise fields.must_be(field, wanted, text, position=0)
    year = None if match[1] is None else int(match[1])
    month, day = int(match[2]), int(match[3])
    if year is not None and not FIRST_YEAR <= year <= LAST_YEAR:
        raise fields.must_be(field, f"{FIRST_YEAR} to {LAST_YEAR}", match[1], part="year", position=0)
    try:
        date(2000 if year is None else year, month, day)
    except ValueError:
        if not 1 <= month <= 12:
            raise fields.must_be(field, "1 to 12", match[2], part="month", position=match.start(2)) from None
        raise InvalidRequest(field, f"month {month} has no day {day}", position=match.start(3)) from None
    return year, month, day


def _add_range(facts: Facts, value: object, field: str) -> None:
    record = fields.members(value, field, ("from", "to"))
    ends = [_end(fields.required(record, name, field), f"{field}.{name}") for name in ("from", "to")]
    (kind, begin), (other, end) = ends
    if kind != other:
        reason = "must be written as `from` is: both days, both wall times, or both instants with an offset"
        raise InvalidRequest(f"{field}.to", reason)
    if end < begin or (end == begin and kind != "days"):
        raise InvalidRequest(f"{field}.to", "must be after `from`" if kind != "days" else "is before `from`")
    facts.setdefault(kind, []).append([begin, end])


def _end(value: object, field: str) -> tuple[str, int]:
    """Returns the member of the facts to which the end belongs, and its number there."""
    text = fields.notation(value, field, AN_END)
    if "T" not in text and "t" not in text:
        year, month, day = _date(text, field, AN_END)
        if year is None:
            raise fields.must_be(field, AN_END, text, position=0)
        return "days", date(year, month, day).toordinal() - EPOCH_DAY
    written = instants.read(text, field)
    return ("walls", written.wall) if written.second is None else ("fixed", written.second)


# Hours of the week


def _hours(value: object, field: str) -> list[list[int]]:
    """Returns stretches in seconds since Monday's midnight. None extends beyond the end of Sunday."""
    record = fields.members(value, field, ("days", "from", "to"))
    begin = _time(record.get("from", "00:00"), f"{field}.from")
    end = _time(record.get("to", "24:00"), f"{field}.to")
    if begin == DAY_S:
        raise InvalidRequest(f"{field}.from", "must be before 24:00", position=0)
    if end <= begin:
        end += DAY_S
    days = fields.listed(fields.required(record, "days", field), f"{field}.days", len(WEEKDAYS))
    if not days:
        raise InvalidRequest(f"{field}.days", "must name at least one day")
    spans: list[list[int]] = []
    for n, name in enumerate(days):
        midnight = WEEKDAYS.index(fields.one_of(name, f"{field}.days[{n}]", WEEKDAYS)) * DAY_S
        spans.append([midnight + begin, min(midnight + end, WEEK_S)])
        if midnight + end > WEEK_S:
            spans.append([0, midnight + end - WEEK_S])
    return spans


def _time(value: object, field: str) -> int:
    text = fields.notation(value, field, A_TIME)
    match = _TIME.fullmatch(text)
    if match is None:
        raise fields.must_be(field, A_TIME, text, position=0)
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    if hour > 24 or (hour == 24 and (minute or second)):
        raise fields.must_be(field, A_TIME, text, position=0)
    if minute > 59:
        raise fields.must_be(field, "0 to 59", match[2], part="minute", position=3)
    if second > 59:
        raise fields.must_be(field, "0 to 59", match[3], part="second", position=6)
    return hour * 3600 + minute * 60 + second
