"""Dates as callers of SAP's service write them: a string of ISO 8601 or RFC 2822, or an object with a format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweephand.base.lazy import lazy
from sweephand.base.members import fields
from sweephand.schedules.text import instants, iso_dates

if TYPE_CHECKING:
    from sweephand.schedules.text.instants import Written
    from sweephand.schedules.zones.localtime import Gap, Overlap, Zone

with lazy():
    from sweephand.schedules.text import date_formats


def read(value: object, field: str, now: int, where: Zone) -> Written:
    """Returns the date of a string or of {"date", "format"}. Without a format, the string follows one of the standards.

    now, where: fill in the year, month or day that a format lacks. A date without an offset is wall time.
    Raises InvalidRequest for `field`, `field`.date or `field`.format.
    """
    if not isinstance(value, dict):
        return iso_dates.read(value, field)
    members = fields.members(value, field, ("date", "format"))
    written = fields.required(members, "date", field)
    if "format" not in members:
        return iso_dates.read(written, f"{field}.date")
    longest = fields.LONGEST_WORDS
    text = fields.notation(written, f"{field}.date", "a date", longest=longest)
    format_ = fields.notation(members["format"], f"{field}.format", "tokens such as YYYY-MM-DD", longest=longest)
    return date_formats.read(text, format_, field, where.wall(now))


def read_second(
    value: object, field: str, now: int, where: Zone, gap: Gap | None = None, overlap: Overlap | None = None
) -> int:
    """Returns the same in Unix seconds. gap, overlap: the caller's rules. Without them, ambiguous times are refused."""
    return instants.resolve(read(value, field, now, where), field, where, gap, overlap)


def read_whole_second(value: object, field: str, now: int, where: Zone) -> int:
    """Returns the second in which the instant lies. A fraction is cut off, as in SAP's service."""
    return instants.resolve(read(value, field, now, where).cut_off(), field, where, None, None)
