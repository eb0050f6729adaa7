"""Errors of the native API: failed runs in groups, until somebody has seen to them; and where they are run again."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from sweephand.domain.failure import Archived, Failure, Group, Redirect
from sweephand.domain.instants import epoch_ms, text, text_ms
from sweephand.domain.job import TASK_KINDS
from sweephand.domain.members import fields
from sweephand.errors import InvalidRequest, NotFound
from sweephand.facades.http import Answer
from sweephand.facades.native.context import Context
from sweephand.facades.native.runs.runs import wanted_of
from sweephand.flow.errors import failures
from sweephand.flow.errors.failures import OpenRuns
from sweephand.flow.job_parts.change_log import Operation
from sweephand.flow.jobs import lookup
from sweephand.flow.runs import run_lists
from sweephand.flow.runs.run_lists import JobNames, Wanted
from sweephand.flow.tenants import tenancy
from sweephand.ids import is_uuid
from sweephand.store.views import resources as views

STATES = frozenset({"OPEN", "ARCHIVED", "RESOLVED"})
MOST_GROUPS = 5_000
MOST_JOBS = 10_000
"""Jobs that a filter may choose: of these only lean rows are read, some 200 read units."""
COUNTED_IN_LISTS = 1_000
_GROUP = re.compile("[0-9a-f]{32}", re.ASCII)
_NUMBER = re.compile("[0-9]{1,15}", re.ASCII)


def list_all(ctx: Context) -> Answer:
    """Lists groups, the last failure first; by default those with runs that nobody has resolved."""
    limit, mark = ctx.page(_is_number, _is_group)
    state = ctx.choice("state", STATES) or "OPEN"
    behind = (int(mark[0]), mark[1]) if mark else None
    found = ((group, standing) for group, standing in _groups(ctx, behind) if _state(group, standing) == state)
    page = list(islice(found, limit + 1))
    last = page[limit - 1][0] if len(page) > limit else None
    cursor = ctx.cursor(str(epoch_ms(last.last_at)), last.id) if last else None
    names = JobNames(ctx.world, ctx.tenant).by_id(group.signature.job_id for group, _ in page[:limit])
    items = [_body(*each, names[each[0].signature.job_id]) for each in page[:limit]]
    return Answer(200, {"items": items, "nextCursor": cursor})


def _groups(ctx: Context, behind: tuple[int, str] | None) -> Iterator[tuple[Group, OpenRuns]]:
    wanted = wanted_of(ctx)
    chosen = _chosen(ctx, wanted)
    began = tenancy.began_at(ctx.world, ctx.tenant)
    there = (group for group in views.groups(ctx.world.table, ctx.tenant) if began is None or group.first_at >= began)
    rows = islice(there, MOST_GROUPS)
    ordered = sorted(((epoch_ms(group.last_at), group.id, group) for group in rows), key=lambda each: each[:2])
    for last_at, group_id, group in reversed(ordered):
        if not _holds(wanted, chosen, group):
            continue
        if behind is None or (last_at, group_id) < behind:
            yield group, failures.open_runs(ctx.world, group, COUNTED_IN_LISTS)


def _chosen(ctx: Context, wanted: Wanted) -> Container[str] | None:
    """Returns the ids of the jobs whose groups are listed; None: of all jobs."""
    if wanted.job_id is not None:
        return {wanted.job_id}
    if not wanted.selects_jobs:
        return None
    try:
        return frozenset(run_lists.job_ids_of(ctx.world, ctx.tenant, wanted, MOST_JOBS))
    except InvalidRequest as wrong:
        raise InvalidRequest(wrong.field, wrong.reason, code="INVALID_QUERY") from wrong


def _holds(wanted: Wanted, chosen: Container[str] | None, group: Group) -> bool:
    """Returns whether a group is of a chosen job, and has failures between its first and its last within the span."""
    since, until = wanted.span.since, wanted.span.until
    if chosen is not None and group.signature.job_id not in chosen:
        return False
    return (since is None or since <= group.last_at) and (until is None or group.first_at <= until)


def read(ctx: Context) -> Answer:
    return _answer(ctx, failures.find(ctx.world, ctx.tenant, _id(ctx)))


def list_error_runs(ctx: Context) -> Answer:
    """All failed runs of a group that are still there, by planned instant, with what became of each."""
    limit, mark = ctx.page(is_uuid)
    group = failures.find(ctx.world, ctx.tenant, _id(ctx))
    found = failures.runs(ctx.world, group, mark[0] if mark else None, limit + 1)
    page = list(islice(found, limit + 1))
    cursor = ctx.cursor(page[limit - 1].uuid) if len(page) > limit else None
    return Answer(200, {"items": [_run_body(ctx, group, each) for each in page[:limit]], "nextCursor": cursor})


def add_note(ctx: Context) -> Answer:
    given = fields.members(ctx.body(), "", ("text",))
    if "text" not in given:
        raise InvalidRequest("text", "is required")
    said = fields.free(given["text"], "text", 1, 2_000)
    return _answer(ctx, failures.add_note(ctx.world, ctx.tenant, _id(ctx), said, _actor(ctx)), 201)


def archive(ctx: Context) -> Answer:
    return _answer(ctx, failures.archive(ctx.world, ctx.tenant, _id(ctx), _reason(ctx), _actor(ctx)))


def _reason(ctx: Context) -> str | None:
    given = fields.members(ctx.body(), "", ("reason",))
    return fields.free(given["reason"], "reason", 0, 1_000) if "reason" in given else None


def restore(ctx: Context) -> Answer:
    ctx.no_members()
    return _answer(ctx, failures.restore(ctx.world, ctx.tenant, _id(ctx)))


def archive_error_run(ctx: Context) -> Answer:
    """One failed run, whatever becomes of the others of its group."""
    reason = _reason(ctx)
    group = failures.find(ctx.world, ctx.tenant, _id(ctx))
    found = failures.archive_run(ctx.world, group, *ctx.run("failed_run"), reason, _actor(ctx))
    return Answer(200, _run_body(ctx, group, found))


def restore_error_run(ctx: Context) -> Answer:
    ctx.no_members()
    group = failures.find(ctx.world, ctx.tenant, _id(ctx))
    found = failures.restore_run(ctx.world, group, *ctx.run("failed_run"))
    return Answer(200, _run_body(ctx, group, found))


def _answer(ctx: Context, group: Group, status: int = 200) -> Answer:
    headers = {"Location": f"/v1/errors/{group.id}"} if status == 201 else {}
    job_id = group.signature.job_id
    name = JobNames(ctx.world, ctx.tenant).by_id([job_id])[job_id]
    return Answer(status, _body(group, failures.open_runs(ctx.world, group), name), headers)


def _id(ctx: Context) -> str:
    given = ctx.parameters["error"]
    if not _is_group(given):
        raise NotFound("no such group of errors")
    return given


def _is_group(given: str) -> bool:
    return _GROUP.fullmatch(given) is not None


def _is_number(given: str) -> bool:
    return _NUMBER.fullmatch(given) is not None


def _actor(ctx: Context) -> str | None:
    return ctx.by(Operation.CHANGE).actor


def _state(group: Group, standing: OpenRuns) -> str:
    if standing.count:
        return "OPEN"
    return "RESOLVED" if group.closed_through is None else "ARCHIVED"


def _body(group: Group, standing: OpenRuns, job_name: str | None) -> dict[str, Any]:
    signature = group.signature
    closed = group.closed_through
    return {
        "id": group.id,
        "state": _state(group, standing),
        "jobId": signature.job_id,
        "jobName": job_name or group.job_name,
        "action": signature.action,
        "runState": signature.state.value,
        "reason": signature.reason,
        "httpStatus": signature.http_status,
        "message": signature.text,
        "count": standing.count,
        "countIsLeast": standing.more,
        "firstSeenAt": text_ms(group.first_at),
        "lastSeenAt": text_ms(group.last_at),
        "lastRunId": group.last_run,
        "expiresAt": None if standing.expires_at is None else text(standing.expires_at),
        "notes": [{"text": note.text, "by": note.by, "at": text_ms(note.at)} for note in group.notes],
        "archived": None if closed is None else _archived(Archived(closed, group.closed_by, group.closed_reason)),
    }


def _archived(archived: Archived) -> dict[str, Any]:
    return {"at": text_ms(archived.at), "by": archived.by, "reason": archived.reason}


def _run_body(ctx: Context, group: Group, failure: Failure) -> dict[str, Any]:
    return {
        "runId": failure.run_id,
        "open": failure.is_open(group, ctx.now),
        "seenAt": None if failure.at is None else text_ms(failure.at),
        "rerunBy": failure.rerun_by,
        "actor": failure.actor,
        "operationId": failure.operation,
        "archived": None if failure.archived is None else _archived(failure.archived),
        "expiresAt": None if failure.expires_at is None else text(failure.expires_at),
    }


# Redirects


def list_redirects(ctx: Context) -> Answer:
    limit, mark = ctx.page(is_uuid)
    page = list(islice(views.redirects(ctx.world.table, ctx.tenant, mark[0] if mark else None, limit + 1), limit + 1))
    cursor = ctx.cursor(page[limit - 1].source) if len(page) > limit else None
    return Answer(200, {"items": [_redirect_body(each) for each in page[:limit]], "nextCursor": cursor})


def put_redirect(ctx: Context) -> Answer:
    given = fields.members(ctx.body(), "", ("to",))
    if "to" not in given:
        raise InvalidRequest("to", "is required")
    to = fields.text(given["to"], "to", 1, 36)
    if not is_uuid(to):
        raise InvalidRequest("to", f"is not the id of a job: {fields.shown(to)}")
    with suppress(NotFound):
        if lookup.find_job(ctx.world, ctx.tenant, to).action.kind in TASK_KINDS:
            assert ctx.caller is not None
            ctx.caller.require("tasks:write")
    made = failures.redirect(ctx.world, ctx.tenant, ctx.id("job"), to, _actor(ctx))
    return Answer(200, _redirect_body(made))


def delete_redirect(ctx: Context) -> Answer:
    failures.end_redirect(ctx.world, ctx.tenant, ctx.id("job"))
    return Answer(204)


def _redirect_body(redirect: Redirect) -> dict[str, Any]:
    return {"from": redirect.source, "to": redirect.to, "actor": redirect.actor, "createdAt": text_ms(redirect.at)}
