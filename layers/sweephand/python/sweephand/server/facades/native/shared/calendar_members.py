"""The members of a calendar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.json_schema import or_null, text, whole
from sweephand.base.members import fields
from sweephand.domain.answers import Member, Table, answered
from sweephand.domain.calendar import Calendar
from sweephand.domain.instants import EPOCH
from sweephand.domain.schema_words import FLAG, INSTANT_MS, PLAIN_NAME
from sweephand.schedules.calendars import calendar_content as content
from sweephand.schedules.calendars import icalendar, icalendar_text
from sweephand.server.facades.native import shapes
from sweephand.server.facades.native.members.resource import NAMED, Resource

IMPORT = icalendar_text.FIELD
DESCRIPTION = text(0, 1_000)
CALENDAR = Resource(
    Calendar,
    {
        "name": replace(NAMED, shown=PLAIN_NAME),
        "description": Member(DESCRIPTION, shown=or_null(DESCRIPTION)),
        "version": answered(whole(1, description="The number of the version. Each change adds one.")),
        "usedBy": answered(whole(description="How many jobs have schedules that name it."), "users"),
        "replanning": answered({**FLAG, "description": "Whether some of these jobs still follow an earlier version."}),
        "createdAt": answered(INSTANT_MS),
        "modifiedAt": answered(INSTANT_MS),
    },
)
VERSION = Table(
    {
        "version": answered(whole(1), "number"),
        "description": answered(or_null(DESCRIPTION)),
        "createdAt": answered(INSTANT_MS, "at"),
        "actor": answered(or_null(text(description="The caller's client id."))),
    },
)


def read(body: object, tenant: str, now: datetime, before: Calendar | None = None) -> Calendar:
    """Reads POST (name in the body) or, with `before`, PUT, which removes everything that it does not name."""
    given = fields.members(body, "", (*CALENDAR.names(change=before is not None), *content.MEMBERS, IMPORT))
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
