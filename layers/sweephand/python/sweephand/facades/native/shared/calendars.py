"""Calendars of the native API."""

from __future__ import annotations

import re
from itertools import islice

from sweephand.domain.calendar import Calendar
from sweephand.errors import NotFound
from sweephand.facades.http import Answer
from sweephand.facades.native import shapes
from sweephand.facades.native.context import Context
from sweephand.facades.native.shared import calendar_fields
from sweephand.flow.calendars import calendars
from sweephand.flow.job_parts.change_log import Operation
from sweephand.flow.tenants import tenancy
from sweephand.store.views import resources as views

_NUMBER = re.compile("[1-9][0-9]{0,7}", re.ASCII)


def create(ctx: Context) -> Answer:
    wanted = calendar_fields.read(ctx.body(), ctx.tenant, ctx.now)
    tenancy.find_tenant(ctx.world, ctx.tenant)
    return _answer(calendars.create(ctx.world, wanted, _actor(ctx)), 201)


def list_all(ctx: Context) -> Answer:
    """By name, without their content."""
    limit, mark = ctx.page(shapes.is_plain)
    page = list(islice(views.calendars(ctx.world.table, ctx.tenant, mark[0] if mark else None, limit + 1), limit + 1))
    cursor = ctx.cursor(page[limit - 1].name) if len(page) > limit else None
    return Answer(200, {"items": [calendar_fields.listed(each) for each in page[:limit]], "nextCursor": cursor})


def read(ctx: Context) -> Answer:
    return _answer(calendars.find(ctx.world, ctx.tenant, _name(ctx)))


def put(ctx: Context) -> Answer:
    body = ctx.body()

    def edit(before: Calendar) -> Calendar:
        return calendar_fields.read(body, ctx.tenant, ctx.now, before)

    return _answer(calendars.change(ctx.world, ctx.tenant, _name(ctx), edit, ctx.if_match(), _actor(ctx)))


def delete(ctx: Context) -> Answer:
    calendars.delete(ctx.world, ctx.tenant, _name(ctx), ctx.if_match())
    return Answer(204)


def list_versions(ctx: Context) -> Answer:
    """Newest first, without their content."""
    limit, mark = ctx.page(_is_number)
    name = calendars.find_head(ctx.world, ctx.tenant, _name(ctx)).name
    below = int(mark[0]) if mark else None
    page = list(islice(views.versions(ctx.world.table, ctx.tenant, name, below, limit + 1), limit + 1))
    cursor = ctx.cursor(str(page[limit - 1].number)) if len(page) > limit else None
    return Answer(200, {"items": [calendar_fields.version_listed(each) for each in page[:limit]], "nextCursor": cursor})


def read_version(ctx: Context) -> Answer:
    given = ctx.parameters["version"]
    if not _is_number(given):
        raise NotFound("no such version")
    found, members = calendars.find_version(ctx.world, ctx.tenant, _name(ctx), int(given))
    return Answer(200, {**calendar_fields.version_listed(found), **calendar_fields.content(members)})


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _name(ctx: Context) -> str:
    """The calendar that the path names. An impossible name is unknown, like any other."""
    name = ctx.parameters["calendar"]
    if not shapes.is_plain(name):
        raise NotFound("no such calendar")
    return name


def _actor(ctx: Context) -> str | None:
    return ctx.by(Operation.CHANGE).actor


def _answer(calendar: Calendar, status: int = 200) -> Answer:
    headers = {"ETag": f'"{calendar.version}"'}
    if status == 201:
        headers["Location"] = f"/v1/calendars/{calendar.name}"
    return Answer(status, calendar_fields.body(calendar), headers)
