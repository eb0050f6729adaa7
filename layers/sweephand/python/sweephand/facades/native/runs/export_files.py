"""Runs as a file that the service writes by itself: for lists longer than anybody wants to read page by page."""

from __future__ import annotations

from collections.abc import Mapping

from sweephand.domain.instants import text_ms
from sweephand.domain.members import fields
from sweephand.errors import InvalidRequest
from sweephand.facades.http import Answer
from sweephand.facades.native import cursors
from sweephand.facades.native.context import Context
from sweephand.facades.native.operations import operations
from sweephand.facades.native.runs.export import FORMATS
from sweephand.facades.native.runs.runs import KINDS, STATES, exact_instant
from sweephand.flow.bulk import export_runs
from sweephand.flow.tenants import tenancy
from sweephand.ids import is_uuid

CHOICES: Mapping[str, frozenset[str]] = {"format": FORMATS, "state": STATES, "kind": KINDS}
TEXTS = {"collection": 128, "tag": 128, "resourceId": 256}
INSTANTS = frozenset({"from", "until"})
MEMBERS = (*CHOICES, *TEXTS, *sorted(INSTANTS), "jobId", "scheduleId", "cursor")
LONGEST_CURSOR = 1_024


def begin(ctx: Context) -> Answer:
    """As the query of the same list, but with members. cursor: `nextCursor` of the file before."""
    once = ctx.once()
    given = fields.members(ctx.body(), "", MEMBERS)
    wanted = {name: _member(ctx, name, value) for name, value in given.items()}
    if "collection" in wanted and "cursor" not in wanted:
        tenancy.check_collection(ctx.world, ctx.tenant, wanted["collection"])
    mark = cursors.read(ctx.place, wanted, is_uuid, is_uuid)
    behind = None if mark is None else (mark[0], mark[1])
    params = {name: value for name, value in wanted.items() if name != "cursor"}
    operation = export_runs.begin(ctx.world, ctx.tenant, params, behind, actor=ctx.actor, once=once)
    return Answer(202, operations.body(operation), {"Location": f"/v1/operations/{operation.id}"})


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
