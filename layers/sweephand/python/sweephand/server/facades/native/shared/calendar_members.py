"""The members of a calendar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.json_schema import Members, Schema, answer, items, one_of, or_null, request, text, whole
from sweephand.domain.calendar import Calendar, Version
from sweephand.domain.instants import EPOCH
from sweephand.domain.members import fields
from sweephand.schedules.calendars import calendar_content as content
from sweephand.schedules.calendars import icalendar, icalendar_text
from sweephand.server.facades.native import shapes
from sweephand.server.facades.native.members.json_schema import page
from sweephand.server.facades.native.members.resource import NAMED, Member, Resource, answered
from sweephand.server.facades.native.members.schema_words import FLAG, INSTANT_MS, PASSED_OVER, PLAIN_NAME

IMPORT = icalendar_text.FIELD
_LONGEST = 1_000
_DESCRIPTION = text(0, 1_000)
_END = text(1, _LONGEST, description=f"{content.AN_END[0].upper()}{content.AN_END[1:]}.")
_TIME = text(1, _LONGEST, description=content.A_TIME[0].upper() + content.A_TIME[1:] + ".")
_CONTENT: Members = {
    "timezone": text(1, _LONGEST, description="An IANA time zone; by default that of each schedule."),
    "dates": items(
        text(1, _LONGEST, description="`2026-12-25`, or `12-25` for each year."), maxItems=content.MOST_DATES
    ),
    "ranges": items(
        request(
            {"from": _END, "to": {**_END, "description": "The end. A day is included, a time is not."}}, ("from", "to")
        ),
        maxItems=content.MOST_RANGES,
    ),
    "weekly": items(
        request(
            {"days": items(one_of(content.WEEKDAYS), minItems=1, maxItems=7), "from": _TIME, "to": _TIME}, ("days",)
        ),
        maxItems=content.MOST_WEEKLY,
        description="Hours of weekdays: whole days without `from` and `to`; past midnight if `to` is not "
        "later than `from`.",
    ),
}
_IMPORT: Members = {
    IMPORT: text(
        1,
        icalendar.LONGEST,
        description="A calendar as RFC 5545 defines it. Its events are added to the other members; the text "
        "itself is not stored.",
    )
}
_SHOWN_CONTENT: Members = {**_CONTENT, "timezone": or_null(_CONTENT["timezone"])}
CALENDAR = Resource(
    Calendar,
    {
        "name": replace(NAMED, shown=PLAIN_NAME),
        "description": Member(_DESCRIPTION, shown=or_null(_DESCRIPTION)),
        "version": answered(whole(1, description="The number of the version. Each change adds one.")),
        "usedBy": answered(whole(description="How many jobs have schedules that name it."), "users"),
        "replanning": answered({**FLAG, "description": "Whether some of these jobs still follow an earlier version."}),
        "createdAt": answered(INSTANT_MS),
        "modifiedAt": answered(INSTANT_MS),
    },
)
VERSION = Resource(
    Version,
    {
        "version": answered(whole(1), "number"),
        "description": answered(or_null(_DESCRIPTION)),
        "createdAt": answered(INSTANT_MS, "at"),
        "actor": answered(or_null(text(description="The caller's client id."))),
    },
)
_DRAFT: Members = {**CALENDAR.request(), **_CONTENT, **_IMPORT}
SCHEMAS: dict[str, Schema] = {
    "CalendarDraft": request(_DRAFT, ("name",)),
    "CalendarReplacement": request({**_DRAFT, **dict.fromkeys(CALENDAR.read_only, PASSED_OVER)}),
    "Calendar": answer({**CALENDAR.answer(), **_SHOWN_CONTENT}),
    "ListedCalendar": answer(CALENDAR.answer()),
    "CalendarPage": page("ListedCalendar"),
    "CalendarVersion": answer({**VERSION.answer(), **_SHOWN_CONTENT}),
    "ListedCalendarVersion": answer(VERSION.answer()),
    "CalendarVersionPage": page("ListedCalendarVersion"),
}


def read(body: object, tenant: str, now: datetime, before: Calendar | None = None) -> Calendar:
    """Reads POST (name in the body) or, with `before`, PUT, which removes everything that it does not name."""
    given = fields.members(body, "", (*CALENDAR.names(change=before is not None), *_CONTENT, IMPORT))
    if IMPORT in given:
        given |= _imported(given, now)
    name = shapes.plain_name(given, before.name if before else None)
    return replace(
        before or Calendar(tenant, name, EPOCH, EPOCH),
        description=fields.free(given["description"], "description", 0, 1_000) if "description" in given else None,
        content={name: given[name] for name in content.MEMBERS if given.get(name)},
        facts=content.read(given),
    )


def _imported(given: Mapping[str, Any], now: datetime) -> dict[str, list[Any]]:
    """Returns the members with the events of an iCalendar file added; the file itself is not kept."""
    found: dict[str, list[Any]] = {}
    for name, members in icalendar.read(given[IMPORT], now.date()).items():
        there = given.get(name, [])
        if not members or not isinstance(there, list):  # another type is refused under its own name
            continue
        found[name] = [*there, *(each for each in members if each not in there)]
        most = content.MOST[name]
        if len(there) <= most < len(found[name]):
            raise InvalidRequest(
                IMPORT, f"makes {len(found[name]):,} {name} together with the given ones; the maximum is {most:,}"
            )
    return found


def shown_content(members: Mapping[str, Any]) -> dict[str, Any]:
    return {"timezone": None, "dates": [], "ranges": [], "weekly": [], **members}
