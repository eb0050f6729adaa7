"""`time`: one instant as SAP's callers write it: words, ISO 8601, RFC 2822, or an object of a date and its format.

Words are read once, at creation, relative to that instant. Without an offset, a date is wall time in `timezone`. No
startTime limits it, neither the schedule's nor the job's: as in SAP's service, the requested time takes precedence
(timing.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweephand.base import json_schema
from sweephand.base.lazy import lazy
from sweephand.base.members import fields
from sweephand.schedules.notations import at
from sweephand.schedules.notations.shapes import Beginning, Defaults, Facts, Rules
from sweephand.schedules.zones.localtime import Gap, Overlap

if TYPE_CHECKING:
    from sweephand.schedules.text.instants import Written

with lazy():
    from sweephand.schedules.text import dates, iso_dates, relative_dates

FIELD = "time"
EXPECTED = 'words such as "tomorrow at 4pm" or "in 2 hours", a date of ISO 8601 or RFC 2822, or an object with a format'
DEFAULTS: Defaults = at.DEFAULTS
_WORDS = json_schema.text(1, fields.LONGEST_WORDS)
SCHEMA: json_schema.Schema = {
    "oneOf": [
        json_schema.text(1, fields.LONGEST_WORDS, description="`tomorrow at 4pm`, `in 2 hours`, ISO 8601 or RFC 2822."),
        json_schema.request({"date": _WORDS, "format": _WORDS}, ("date",)),
    ],
    "description": "One instant, as SAP's callers write it. Words are read when the schedule is created.",
}


def read(value: object, rules: Rules, beginning: Beginning) -> Facts:
    """Returns {"second"} or {"wall"}, as `at` does. Ambiguous wall times are refused unless the caller states the rule.

    Words without a time of the day ("in 1 day") mean the first valid instant, and the first of two.
    """
    written = _written(value, rules, beginning.now)
    if not written.exact:
        gap, overlap = rules.gap or Gap.NEXT_VALID, rules.overlap or Overlap.FIRST
        rules = Rules(rules.zone, gap, overlap, rules.month_overflow)
    return at.facts_of(written, FIELD, rules)


compile_, is_one_time = at.compile_, at.is_one_time


def _written(value: object, rules: Rules, now: int) -> Written:
    """Reads the value. The grammars are loaded here, because a sweeper that loads a schedule needs none of them."""
    if isinstance(value, dict):
        return dates.read(value, FIELD, now, rules.zone)
    text = fields.notation(value, FIELD, EXPECTED, longest=fields.LONGEST_WORDS)
    if iso_dates.looks_like_one(text):
        return iso_dates.read(text, FIELD)
    return relative_dates.read(text, FIELD, now, rules.zone, rules.overlap)
