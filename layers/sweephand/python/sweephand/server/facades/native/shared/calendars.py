"""Calendars of the native API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from operator import attrgetter

from sweephand.base.errors import NotFound
from sweephand.domain.calendar import Calendar, Version
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import shapes
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.shared import calendar_members
from sweephand.server.facades.native.shared.calendar_members import CALENDAR, VERSION
from sweephand.server.flow.calendars import calendars
from sweephand.server.flow.idempotency import made_once
from sweephand.server.flow.tenants import tenancy
from sweephand.server.store.views import resources as views

_NUMBER = re.compile("[1-9][0-9]{0,7}", re.ASCII)


def create(ctx: Context) -> Answer:
    wanted = calendar_members.read(ctx.body(), ctx.tenant, ctx.now)
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
        return calendar_members.read(body, ctx.tenant, ctx.now, before)

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
    return Answer(200, {**VERSION.show(version), **calendar_members.shown_content(members)})


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _answer(calendar: Calendar, status: int = 200) -> Answer:
    headers = {"ETag": f'"{calendar.version}"'}
    if status == 201:
        headers["Location"] = f"/v1/calendars/{calendar.name}"
    return Answer(status, {**CALENDAR.show(calendar), **calendar_members.shown_content(calendar.content)}, headers)
