"""Calendars in native JSON, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sweephand.domain.calendar import Calendar, Version
from sweephand.domain.instants import EPOCH, text_ms
from sweephand.domain.members import fields
from sweephand.errors import InvalidRequest
from sweephand.facades.native import shapes
from sweephand.facades.native.members.calendar_schemas import READ_ONLY
from sweephand.schedules.calendars import calendar_content, icalendar, icalendar_text

IMPORT = icalendar_text.FIELD


def read(body: object, tenant: str, now: datetime, before: Calendar | None = None) -> Calendar:
    """POST (name in the body); with `before`, PUT: what it does not name is not in the calendar any more.

    Members that only answers have are let through unread in a change, so that what was read can be sent back.
    """
    known = ("name", "description", *calendar_content.MEMBERS, IMPORT, *(READ_ONLY if before else ()))
    given = fields.members(body, "", known)
    if IMPORT in given:
        given |= _imported(given, now)
    name = shapes.plain_name(given, before.name if before else None)
    return replace(
        before or Calendar(tenant, name, EPOCH, EPOCH),
        description=fields.free(given["description"], "description", 0, 1_000) if "description" in given else None,
        content={name: given[name] for name in calendar_content.MEMBERS if given.get(name)},
        facts=calendar_content.read(given),
    )


def _imported(given: Mapping[str, Any], now: datetime) -> dict[str, list[Any]]:
    """The members that the events of an iCalendar text are added to; the text itself is not kept."""
    found: dict[str, list[Any]] = {}
    for name, members in icalendar.read(given[IMPORT], now.date()).items():
        there = given.get(name, [])
        if not members or not isinstance(there, list):  # anything else is refused by its own name
            continue
        found[name] = [*there, *(each for each in members if each not in there)]
        most = calendar_content.MOST[name]
        if len(there) <= most < len(found[name]):
            raise InvalidRequest(
                IMPORT, f"makes {len(found[name]):,} {name} together with the given ones, and may make {most:,}"
            )
    return found


def listed(calendar: Calendar) -> dict[str, Any]:
    """Without its content."""
    return {
        "name": calendar.name,
        "description": calendar.description,
        "version": calendar.version,
        "usedBy": calendar.users,
        "replanning": calendar.replanning,
        "createdAt": text_ms(calendar.created_at),
        "modifiedAt": text_ms(calendar.modified_at),
    }


def content(members: Mapping[str, Any]) -> dict[str, Any]:
    return {"timezone": None, "dates": [], "ranges": [], "weekly": [], **members}


def body(calendar: Calendar) -> dict[str, Any]:
    return {**listed(calendar), **content(calendar.content)}


def version_listed(version: Version) -> dict[str, Any]:
    return {
        "version": version.number,
        "description": version.description,
        "createdAt": text_ms(version.at),
        "actor": version.actor,
    }
