"""Dates as two standards write them: ISO 8601 (calendar, week and ordinal dates) and RFC 2822. Linear time.

Without an offset, they are wall time. Fractions of a second are rounded up. The strict RFC 3339 of the native members
is in instants.py; these forms are for callers who already have their strings.
"""

from __future__ import annotations

import re
from datetime import date

from sweephand.base.errors import InvalidRequest
from sweephand.base.members import fields
from sweephand.schedules.grids.calendar_masks import MONTHS_SHORT
from sweephand.schedules.text.instants import Written

EXPECTED = "a date of ISO 8601 such as 2027-02-08T09:30:00Z or of RFC 2822 such as Mon, 08 Feb 2027 09:30:00 GMT"
FIRST_YEAR, LAST_YEAR = 1970, 2199
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTH_NAMES = tuple(name.title() for name in MONTHS_SHORT)
_DATES = tuple(
    re.compile(shape, re.ASCII)
    for shape in (
        r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})",
        r"(?P<year>[0-9]{4})-?W(?P<week>[0-9]{2})(?:-?(?P<weekday>[0-9]))?",
        r"(?P<year>[0-9]{4})-(?P<ordinal>[0-9]{3})",
        r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})",
        r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})",
        r"(?P<year>[0-9]{4})(?P<ordinal>[0-9]{3})",
    )
)
_AFTER_DATE = re.compile(r"$|[Tt ](?=[0-9]{2})", re.ASCII)
_TIME = re.compile(
    r"(?P<hour>[0-9]{2})(?::?(?P<minute>[0-9]{2})(?::?(?P<second>[0-9]{2})(?P<fraction>[.,][0-9]+)?)?)?", re.ASCII
)
_OFFSET = re.compile(r" ?(?P<zulu>[Zz])| ?(?P<sign>[+-])(?P<hours>[0-9]{2})(?::?(?P<minutes>[0-9]{2}))?", re.ASCII)
_RFC_2822 = re.compile(
    r"(?:(?P<weekday>[A-Za-z]{3})(?:, *| +))?(?P<day>[0-9]{1,2}) +(?P<month>[A-Za-z]{3}) +(?P<year>[0-9]{4}|[0-9]{2}) +"
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?"
    r"(?: +(?:(?P<name>[A-Za-z]{1,3})|(?P<sign>[+-])(?P<hours>[0-9]{2})(?P<minutes>[0-9]{2})))?",
    re.ASCII,
)
_COMMENT = re.compile(r"\([^()]*\)")
_LIKE_ONE = re.compile(
    r"[ \t]*(?:[0-9]{4}(?![0-9]*[ \t]*[a-z]{2})"  # not 2015 hours
    rf"|(?:[a-z]{{3}}(?:, *| +))?[0-9]{{1,2}} +(?:{'|'.join(_MONTH_NAMES)}) )",
    re.ASCII | re.IGNORECASE,
)
_NAMED_OFFSETS_H = dict.fromkeys(("UT", "GMT", "UTC", "Z"), 0)
_NAMED_OFFSETS_H |= {"EDT": -4, "EST": -5, "CDT": -5, "CST": -6, "MDT": -6, "MST": -7, "PDT": -7, "PST": -8}


def read(value: object, field: str) -> Written:
    """Returns the date of a string of up to 100 characters. Raises InvalidRequest with the position of the mistake."""
    text = fields.notation(value, field, EXPECTED, longest=fields.LONGEST_WORDS)
    whole = text.strip()
    try:
        return _iso(whole, field) if whole[:4].isdigit() else _rfc_2822(_without_comments(text).strip(), field)
    except InvalidRequest as refused:
        lead = len(text) - len((text if whole[:4].isdigit() else _without_comments(text)).lstrip())
        position = None if refused.position is None else refused.position + lead
        raise refused.changed(field=field, position=position) from refused


def looks_like_one(text: str) -> bool:
    """Returns whether a string begins like such a date, so that its mistakes are reported as those of a date."""
    return _LIKE_ONE.match(_without_comments(text)) is not None


def _without_comments(text: str) -> str:
    """Replaces the comments of RFC 2822 with blanks, so that all positions stay the same."""
    plain = _COMMENT.sub(lambda match: " " * len(match[0]), text)
    return text if plain == text else _without_comments(plain)


def wall_of(day: date, hour: int = 0, minute: int = 0, second: int = 0) -> int:
    """Returns the wall seconds since 1970-01-01T00:00:00. 24 hours are the next midnight."""
    return number_of(day) * 86_400 + hour * 3600 + minute * 60 + second


def day_on(number: int) -> date:
    """Returns the day that is `number` days after 1970-01-01."""
    return date.fromordinal(number + _EPOCH_DAY)


def number_of(day: date) -> int:
    """Returns days since 1970-01-01."""
    return day.toordinal() - _EPOCH_DAY


def within(name: str, digits: str, least: int, most: int, field: str, position: int) -> int:
    """Returns the number. Raises InvalidRequest if it lies outside these bounds."""
    number = int(digits)
    if not least <= number <= most:
        raise fields.must_be(field, f"{least} to {most}", digits, part=name, position=position)
    return number


def offset_s(sign: str, hours: str, minutes: str | None, field: str, position: int) -> int:
    """Returns seconds east of UTC."""
    in_hours = within("offset hour", hours, 0, 23, field, position)
    in_minutes = within("offset minute", minutes or "0", 0, 59, field, position)
    return (-1 if sign == "-" else 1) * (in_hours * 3600 + in_minutes * 60)


def _iso(text: str, field: str) -> Written:
    matches = [match for shape in _DATES if (match := shape.match(text))]
    match = next((match for match in matches if _AFTER_DATE.match(text, match.end())), None)
    if match is None:
        furthest = max((match.end() for match in matches), default=0)
        raise fields.must_be(field, EXPECTED, text, position=furthest)
    day = _day(match.groupdict(), match, field)
    position = match.end()
    if position == len(text):
        return Written(None, wall_of(day))
    if not match.groupdict().keys() & {"day", "ordinal"} and not match.groupdict().get("weekday"):
        raise fields.must_continue(field, "a day before the time of day", text, position)
    position += 1
    time = _TIME.match(text, position)
    assert time is not None  # _AFTER_DATE has seen its first two digits
    wall = wall_of(day) + _clock_s(time, field)
    position = time.end()
    rounded_up = bool((time["fraction"] or "").strip(".,0"))
    if position == len(text):
        return Written(None, wall, rounded_up)
    offset = _OFFSET.fullmatch(text, position)
    if offset is None:
        raise fields.must_continue(field, "an offset such as Z, +07:00, +0700 or +07", text, position)
    if offset["zulu"]:
        return Written(wall, wall, rounded_up)
    east = offset_s(offset["sign"], offset["hours"], offset["minutes"], field, position)
    return Written(wall - east, wall, rounded_up)


def _day(parts: dict[str, str | None], match: re.Match[str], field: str) -> date:
    year = within("year", str(parts["year"]), FIRST_YEAR, LAST_YEAR, field, 0)
    if parts.get("week") is not None:
        week = within("week", str(parts["week"]), 1, 53, field, match.start("week"))
        weekday = within("weekday", parts["weekday"] or "1", 1, 7, field, match.start("weekday"))
        try:
            return date.fromisocalendar(year, week, weekday)
        except ValueError:
            raise InvalidRequest(field, f"{year} has no week {week}", position=match.start("week")) from None
    if parts.get("ordinal") is not None:
        days = date(year, 12, 31).timetuple().tm_yday
        ordinal = within("day of the year", str(parts["ordinal"]), 1, days, field, match.start("ordinal"))
        return date.fromordinal(date(year, 1, 1).toordinal() + ordinal - 1)
    month = within("month", str(parts["month"]), 1, 12, field, match.start("month"))
    at = match.start("day") if parts.get("day") else 0
    return day_of(year, month, int(parts.get("day") or 1), field, at)


def day_of(year: int, month: int, day: int, field: str, position: int) -> date:
    """Returns the day. Raises InvalidRequest for 30 February and the like."""
    try:
        return date(year, month, day)
    except ValueError:
        raise InvalidRequest(field, f"month {year}-{month:02d} has no day {day}", position=position) from None


def _clock_s(time: re.Match[str], field: str) -> int:
    """Returns seconds since midnight, a fraction rounded up; 24:00 is the next midnight."""
    hour = within("hour", time["hour"], 0, 24, field, time.start("hour"))
    minute = within("minute", time["minute"] or "0", 0, 59, field, time.start("minute"))
    second = within("second", time["second"] or "0", 0, 59, field, time.start("second"))
    fraction = time.groupdict().get("fraction") or ""
    seconds = hour * 3600 + minute * 60 + second + (1 if fraction.strip(".,0") else 0)
    if hour == 24 and seconds > 86_400:
        raise InvalidRequest(field, "24:00:00 is the last time of a day", position=time.start("hour"))
    return seconds


def _rfc_2822(text: str, field: str) -> Written:
    match = _RFC_2822.fullmatch(text)
    if match is None:
        raise fields.must_be(field, EXPECTED, text, position=0)
    day = _rfc_day(match, field)
    wall = wall_of(day) + _clock_s(match, field)
    if match["name"]:
        east_h = _NAMED_OFFSETS_H.get(match["name"].upper())
        if east_h is None:
            wanted = f"one of {', '.join(_NAMED_OFFSETS_H)}, or +hhmm"
            raise fields.must_be(field, wanted, match["name"], part="offset", position=match.start("name"))
        return Written(wall - east_h * 3600, wall)
    if match["sign"]:
        return Written(
            wall - offset_s(match["sign"], match["hours"], match["minutes"], field, match.start("sign")), wall
        )
    return Written(None, wall)


def _rfc_day(match: re.Match[str], field: str) -> date:
    """Reads the day. Two-digit years mean 1950 to 2049, as in the standard."""
    if match["month"].title() not in _MONTH_NAMES:
        wanted = f"one of {', '.join(_MONTH_NAMES)}"
        raise fields.must_be(field, wanted, match["month"], part="month", position=match.start("month"))
    year = int(match["year"])
    if len(match["year"]) == 2:
        year += 2000 if year < 50 else 1900
    year = within("year", str(year), FIRST_YEAR, LAST_YEAR, field, match.start("year"))
    day = day_of(year, _MONTH_NAMES.index(match["month"].title()) + 1, int(match["day"]), field, match.start("day"))
    right = _WEEKDAYS[day.weekday()]
    if match["weekday"] and match["weekday"].title() != right:
        raise InvalidRequest(field, f"{day} is a {right}, not a {match['weekday']}", position=0)
    return day
