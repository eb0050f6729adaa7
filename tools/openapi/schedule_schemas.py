"""Schemas of schedules: every notation, the rules for clock changes and months, and the members of answers."""

from __future__ import annotations

from sweephand.base.json_schema import NULL, Members, Schema, answer, items, one_of, or_null, ref, request, text, whole
from sweephand.domain.schema_words import GIVEN_INSTANT, PASSED_OVER, PLAIN_NAME, ZONE
from sweephand.schedules import notations
from sweephand.schedules.calendars.calendars import MOST, Mode, Roll
from sweephand.schedules.notations.every import Align
from sweephand.schedules.timing import MOST_COUNT, MOST_JITTER_S
from sweephand.schedules.zones.localtime import Gap, MonthOverflow, Overlap
from sweephand.server.facades.native.members import schedule_members as members
from tools.openapi import descriptions

DST_RULES: Members = {
    "dstGap": one_of(Gap, description="The rule for a wall time that the clock skips."),
    "dstOverlap": one_of(Overlap, description="The rule for a wall time that the clock shows twice."),
    "monthOverflow": one_of(MonthOverflow, description="The rule for a day that a month does not have."),
}
_NOTATIONS: Members = {name: notation.SCHEMA for name, notation in notations.NOTATIONS.items()}
NOTATIONS: Members = {**_NOTATIONS, "recurrence": ref("Recurrence"), "time": ref("Time")}
"""Long schemas have names, so that every form of a schedule refers to them."""


def _described(name: str) -> Schema:
    """Returns a notation's own description, where the document has no shorter one for its name."""
    return {} if name in descriptions.MEMBERS else {"description": _NOTATIONS[name]["description"]}


_USES: Schema = items(
    request(
        {
            "name": PLAIN_NAME,
            "mode": one_of(
                Mode,
                description="`exclude`, the default: nothing runs in the calendar's times. `include`: runs "
                "only in them.",
            ),
            "roll": one_of(
                Roll,
                description="Moves an excluded occurrence to the nearest day that all calendars allow. "
                "`none`, the default, leaves it out.",
            ),
        },
        ("name",),
    ),
    maxItems=MOST,
    description="The calendars of the schedule. An occurrence runs if all of them allow it.",
)
_SHOWN_USES: Schema = items(
    answer(
        {
            "name": PLAIN_NAME,
            "mode": one_of(Mode),
            "roll": one_of(
                Roll, description="Whether an excluded occurrence moves to the next or the previous free day."
            ),
        }
    ),
    maxItems=MOST,
)
ALIGN = one_of(Align, description="The point from which the steps of `every` count. Only with `every`.")
ONE_NOTATION = [{"required": [name], "properties": {name: {"not": NULL, **_described(name)}}} for name in NOTATIONS]
TIMING: Members = {
    **NOTATIONS,
    "align": ALIGN,
    "timezone": ZONE,
    **DST_RULES,
    "startTime": {**GIVEN_INSTANT, "description": "The start (inclusive). " + GIVEN_INSTANT["description"]},
    "endTime": {**GIVEN_INSTANT, "description": "The end (inclusive). " + GIVEN_INSTANT["description"]},
    "count": whole(1, MOST_COUNT, description="How many occurrences the schedule has in all."),
    "jitterSeconds": whole(
        0,
        MOST_JITTER_S,
        description="Delays each occurrence by 0 to this many seconds. The delay of an occurrence never changes.",
    ),
    "calendars": ref("CalendarUses"),
}
_SHOWN_TIMING: Members = {
    **TIMING,
    **{name: or_null(TIMING[name]) for name in ("startTime", "endTime", "count")},
    "calendars": _SHOWN_USES,
}
_STAMPS = ("createdAt", "modifiedAt")
SCHEDULE_DRAFT: Members = {**members.SCHEDULE.request(), **TIMING}
SCHEDULE_REPLACEMENT: Members = {
    "id": text(1, 64, description="The id of an existing schedule."),
    **SCHEDULE_DRAFT,
    **dict.fromkeys(sorted(members.SCHEDULE.read_only[1:], key=lambda name: name in _STAMPS), PASSED_OVER),
}
SCHEDULE: Members = members.with_timing(members.SCHEDULE.answer(), _SHOWN_TIMING)
SCHEMAS = {"Recurrence": _NOTATIONS["recurrence"], "Time": _NOTATIONS["time"], "CalendarUses": _USES}
OF_SOME_NOTATIONS = (*NOTATIONS, "align", *DST_RULES)
