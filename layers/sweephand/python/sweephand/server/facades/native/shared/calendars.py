"""Calendars of the native API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Any

from sweephand.base.errors import InvalidRequest, NotFound
from sweephand.base.json_schema import or_null, text, whole
from sweephand.base.members import fields
from sweephand.domain.answers import Member, Table, answered
from sweephand.domain.calendar import Calendar, Version
from sweephand.domain.instants import EPOCH
from sweephand.domain.schema_words import FLAG, INSTANT_MS, PLAIN_NAME
from sweephand.schedules.calendars import calendar_content as content
from sweephand.schedules.calendars import icalendar, icalendar_text
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import shapes
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.members.resource import NAMED, Resource
from sweephand.server.flow.calendars import calendars
from sweephand.server.flow.idempotency import made_once
from sweephand.server.flow.tenants import tenancy
from sweephand.server.store.views import resources as views

IMPORT = icalendar_text.FIELD
DESCRIPTION = text(0, 1_000)
_NUMBER = re.compile("[1-9][0-9]{0,7}", re.ASCII)
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


def _from_body(body: object, tenant: str, now: datetime, before: Calendar | None = None) -> Calendar:
    """Reads POST (name in the body) or, with `before`, PUT, which removes everything that it does not name."""
    members = fields.members(body, "", (*CALENDAR.names(change=before is not None), *content.MEMBERS, IMPORT))
    if IMPORT in members:
        members |= _imported(members, now)
    name = shapes.plain_name(members, before.name if before else None)
    return replace(
        before or Calendar(tenant, name, EPOCH, EPOCH),
        description=fields.free(members["description"], "description", 0, 1_000) if "description" in members else None,
        content={name: members[name] for name in content.MEMBERS if members.get(name)},
        facts=content.read(members),
    )


def _imported(sent: Mapping[str, Any], now: datetime) -> dict[str, list[Any]]:
    """Returns the members with the events of an iCalendar file added; the file itself is not kept."""
    merged: dict[str, list[Any]] = {}
    for name, members in icalendar.read(sent[IMPORT], now.date()).items():
        own = sent.get(name, [])
        if not members or not isinstance(own, list):  # another type is refused under its own name
            continue
        merged[name] = [*own, *(each for each in members if each not in own)]
        most = content.MOST[name]
        if len(own) <= most < len(merged[name]):
            raise InvalidRequest(
                IMPORT, f"makes {len(merged[name]):,} {name} together with the given ones; the maximum is {most:,}"
            )
    return merged


def shown_content(members: Mapping[str, Any]) -> dict[str, Any]:
    return {"timezone": None, "dates": [], "ranges": [], "weekly": [], **members}


def create(ctx: Context) -> Answer:
    wanted = _from_body(ctx.body(), ctx.tenant, ctx.now)
    tenancy.find_tenant(ctx.world, ctx.tenant)
    once = ctx.once()

    def make() -> Calendar:
        return calendars.create(ctx.world, wanted, ctx.actor, once)

    return _answer(made_once(ctx.world, ctx.tenant, once, make, partial(calendars.find, ctx.world, ctx.tenant)), 201)


def list_all(ctx: Context) -> Answer:
    """Lists calendars by name, without their content."""
    rows = partial(views.calendars, ctx.world.table, ctx.tenant)
    return ctx.page_of(rows, CALENDAR.show, mark=attrgetter("name"), fits=shapes.is_plain)


def read(ctx: Context) -> Answer:
    return _answer(calendars.find(ctx.world, ctx.tenant, ctx.plain("calendar")))


def put(ctx: Context) -> Answer:
    body = ctx.body()

    def edit(before: Calendar) -> Calendar:
        return _from_body(body, ctx.tenant, ctx.now, before)

    return _answer(calendars.change(ctx.world, ctx.tenant, ctx.plain("calendar"), edit, ctx.if_match(), ctx.actor))


def delete(ctx: Context) -> Answer:
    calendars.delete(ctx.world, ctx.tenant, ctx.plain("calendar"), ctx.if_match())
    return Answer(204)


def list_versions(ctx: Context) -> Answer:
    """Lists versions, newest first, without their content."""
    name = calendars.find_head(ctx.world, ctx.tenant, ctx.plain("calendar")).name

    def rows(below: str | None, limit: int) -> Iterator[Version]:
        return views.versions(ctx.world.table, ctx.tenant, name, int(below) if below else None, limit)

    return ctx.page_of(rows, VERSION.show, mark=lambda each: str(each.number), fits=_is_number)


def read_version(ctx: Context) -> Answer:
    number = ctx.parameters["version"]
    if not _is_number(number):
        raise NotFound("no such version")
    version, members = calendars.find_version(ctx.world, ctx.tenant, ctx.plain("calendar"), int(number))
    return Answer(200, {**VERSION.show(version), **shown_content(members)})


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _answer(calendar: Calendar, status: int = 200) -> Answer:
    headers = {"ETag": f'"{calendar.version}"'}
    if status == 201:
        headers["Location"] = f"/v1/calendars/{calendar.name}"
    return Answer(status, {**CALENDAR.show(calendar), **shown_content(calendar.content)}, headers)
