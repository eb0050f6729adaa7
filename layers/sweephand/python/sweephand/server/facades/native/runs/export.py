"""Exports runs as CSV or JSON Lines: page by page, or as a file that the service writes for longer lists."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from sweephand.base.errors import InvalidRequest
from sweephand.base.ids import is_uuid
from sweephand.base.members import fields
from sweephand.domain.instants import text_ms
from sweephand.domain.runs import run_file
from sweephand.domain.runs.run_file import MEDIA_TYPES, Format
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import cursors
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.operations import operations
from sweephand.server.facades.native.operations.operations import EXPORT_PATH
from sweephand.server.facades.native.query import exact_instant
from sweephand.server.facades.native.runs import runs
from sweephand.server.facades.native.runs.runs import KINDS, STATES
from sweephand.server.flow.bulk import export_runs as work
from sweephand.server.flow.runs.run_lists import JobNames
from sweephand.server.flow.tenants import tenancy

PAGE = 1_000
"""The runs of a page."""
FORMATS = frozenset(Format)
CHOICES: Mapping[str, frozenset[str]] = {"format": FORMATS, "state": STATES, "kind": KINDS}
TEXTS = {"collection": 128, "tag": 128, "resourceId": 256}
INSTANTS = ("from", "until")
MEMBERS = (*CHOICES, *TEXTS, *INSTANTS, "jobId", "scheduleId", "cursor")
LONGEST_CURSOR = 1_024


def export_runs(ctx: Context) -> Answer:
    """Returns a page of the list. All pages together are one file, whose first page has the line of names."""
    form = Format(ctx.choice("format", FORMATS) or Format.CSV)
    mark = cursors.read(ctx.place, ctx.query, is_uuid, is_uuid)
    limit = PAGE
    names = JobNames(ctx.world, ctx.tenant)
    while True:
        selected, last = runs.select(ctx, (mark[0], mark[1]) if mark else None, limit)
        text = ("" if mark else run_file.head(form)) + run_file.lines(form, selected, names.of(selected))
        headers = {}
        if last is not None:
            query = {**ctx.query, "cursor": ctx.cursor(*last)}
            headers["Link"] = f'<{EXPORT_PATH}?{urlencode(query)}>; rel="next"'
        answer = Answer(200, headers=headers, media_type=MEDIA_TYPES[form], raw=text)
        if not answer.too_large:
            return answer
        limit //= 4  # as in every list, a page that is too large for Lambda is shortened


def begin_export_files(ctx: Context) -> Answer:
    """Starts the export of a list, whose query is in the members. cursor: `nextCursor` of the previous file."""
    once = ctx.once()
    members = fields.members(ctx.body(), "", MEMBERS)
    wanted = {name: _member(ctx, name, value) for name, value in members.items()}
    if "collection" in wanted and "cursor" not in wanted:
        tenancy.check_collection(ctx.world, ctx.tenant, wanted["collection"])
    mark = cursors.read(ctx.place, wanted, is_uuid, is_uuid)
    last = None if mark is None else (mark[0], mark[1])
    params = {name: value for name, value in wanted.items() if name != "cursor"}
    return operations.begun(work.begin(ctx.world, ctx.tenant, params, last, actor=ctx.actor, once=once))


def _member(ctx: Context, name: str, value: object) -> str:
    if name in CHOICES:
        return fields.one_of(value, name, CHOICES[name])
    if name in TEXTS:
        return fields.text(value, name, 1, TEXTS[name])
    if name in INSTANTS:
        return text_ms(exact_instant(value, name))
    if name == "cursor":
        return fields.text(value, name, 1, LONGEST_CURSOR)
    if name == "jobId":
        return ctx.job_of(value)
    if not isinstance(value, str) or not is_uuid(value):
        raise InvalidRequest(name, f"is not the id of a schedule: {fields.shown(value)}")
    return value
