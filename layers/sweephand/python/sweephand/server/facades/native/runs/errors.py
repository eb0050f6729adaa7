"""Errors of the native API: failed runs in groups, until somebody resolves them, and redirects."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

from sweephand.base.errors import InvalidRequest, NotFound
from sweephand.base.ids import is_uuid
from sweephand.base.json_schema import Schema, answer, items, one_of, or_null, text, whole
from sweephand.base.members import fields
from sweephand.domain.answers import Table, answered
from sweephand.domain.failure import Archived, Failure, Group
from sweephand.domain.instants import epoch_ms, text_ms
from sweephand.domain.job import HOOK_KINDS, TASK_KINDS, hook_owner
from sweephand.domain.run import FAILED, Reason, State
from sweephand.domain.runs.run_members import GROUP_ID
from sweephand.domain.schema_words import FLAG, ID, INSTANT, INSTANT_MS, RUN_ID, STATUS_CODE, TEXT
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native.context import TASKS, Context
from sweephand.server.facades.native.query import in_query
from sweephand.server.facades.native.runs.runs import wanted_of
from sweephand.server.flow.errors import failures, summaries
from sweephand.server.flow.errors.failures import OpenRuns
from sweephand.server.flow.idempotency import made_once
from sweephand.server.flow.jobs import lookup
from sweephand.server.flow.runs import run_lists
from sweephand.server.flow.runs.run_lists import JobNames, Wanted
from sweephand.server.flow.tenants import tenancy
from sweephand.server.store.views import resources as views

STATES = ("OPEN", "ARCHIVED", "RESOLVED")
STATES_MEAN = "OPEN: it has unresolved runs. RESOLVED: each was run again, archived or removed."
NAME_MEANS = "The current name of the job; for a deleted job, its name at the first of these failures."
MOST_GROUPS = 5_000
MOST_JOBS = 10_000
"""The most jobs that a filter may match. Only their lean rows are read, for about 200 read units."""
COUNTED_IN_LISTS = 1_000
_GROUP = re.compile("[0-9a-f]{32}", re.ASCII)
_NUMBER = re.compile("[0-9]{1,15}", re.ASCII)


class GroupView(NamedTuple):
    """A group of errors, with its open runs and the name of its job; None if the job is gone."""

    group: Group
    open_runs: OpenRuns
    job_name: str | None


class SeenRun(NamedTuple):
    """A failed run, and whether it is unresolved."""

    failure: Failure
    open: bool


def _state(group: Group, open_runs: OpenRuns) -> str:
    if open_runs.count:
        return "OPEN"
    return "RESOLVED" if group.closed_through is None else "ARCHIVED"


def _archived(archived: Archived | None) -> dict[str, Any] | None:
    if archived is None:
        return None
    return {"at": text_ms(archived.at), "by": archived.by, "reason": archived.reason}


def _archived_group(view: GroupView) -> dict[str, Any] | None:
    at, by, reason = view.group.closed_through, view.group.closed_by, view.group.closed_reason
    return None if at is None else _archived(Archived(at, by, reason))


_ARCHIVED: Schema = answer(
    {"at": {**INSTANT_MS, "description": "When it was archived."}, "by": or_null(TEXT), "reason": or_null(TEXT)}
)
OWNERS = ("action", "errorAction", *map(hook_owner, HOOK_KINDS))
GROUP = Table(
    {
        "id": answered(GROUP_ID, "group.id"),
        "state": answered(
            one_of(STATES, description=STATES_MEAN),
            lambda view: _state(view.group, view.open_runs),
        ),
        "jobId": answered(
            or_null({**ID, "description": "The id of its job; null for messages, which have none."}),
            lambda view: view.group.signature.shown_job_id,
        ),
        "jobName": answered(
            or_null({**TEXT, "description": NAME_MEANS}),
            lambda view: view.job_name or view.group.job_name,
        ),
        "action": answered(
            one_of(OWNERS, description="Which of the job's actions failed."),
            "group.signature.action",
        ),
        "runState": answered(
            one_of(state for state in State if state in FAILED),
            "group.signature.state",
            says="The state of these runs.",
        ),
        "reason": answered(or_null(one_of(Reason)), "group.signature.reason"),
        "httpStatus": answered(or_null(STATUS_CODE), "group.signature.http_status"),
        "message": answered(text(description="`#` stands for parts that differ between runs."), "group.signature.text"),
        "count": answered(whole(description="How many failed runs are unresolved."), "open_runs.count"),
        "countIsLeast": answered({**FLAG, "description": "True: there may be more than `count`."}, "open_runs.more"),
        "firstSeenAt": answered(INSTANT_MS, "group.first_at", says="When the first of these runs failed."),
        "lastSeenAt": answered({**INSTANT_MS, "description": "To within half a minute."}, "group.last_at"),
        "lastRunId": answered(RUN_ID, "group.last_run"),
        "lastMessage": answered(
            or_null(text(description="The message of that run; null in groups from before this member existed.")),
            "group.last_message",
        ),
        "expiresAt": answered(
            or_null({**INSTANT, "description": "When the first of the open runs is deleted by its retention."}),
            "open_runs.expires_at",
        ),
        "notes": answered(
            items(
                answer(
                    {
                        "text": TEXT,
                        "by": or_null(TEXT),
                        "at": {**INSTANT_MS, "description": "When the note was written."},
                    }
                )
            ),
            lambda view: [{"text": note.text, "by": note.by, "at": text_ms(note.at)} for note in view.group.notes],
        ),
        "archived": answered(or_null(_ARCHIVED), _archived_group, says="Whether somebody has archived it."),
    },
)
ERROR_RUN = Table(
    {
        "runId": answered(RUN_ID, "failure.run_id"),
        "open": answered({**FLAG, "description": "Whether it is unresolved."}, "open"),
        "seenAt": answered(or_null(INSTANT_MS), "failure.at", says="When it was found."),
        "rerunBy": answered(or_null(RUN_ID), "failure.rerun_by"),
        "actor": answered(or_null(text(description="The client id of the caller who ran it again.")), "failure.actor"),
        "operationId": answered(or_null(ID), "failure.operation", says="The operation that did this."),
        "archived": answered(
            or_null({**_ARCHIVED, "description": "The archiving of this run alone; its group may be archived too."}),
            lambda view: _archived(view.failure.archived),
        ),
        "expiresAt": answered(or_null(INSTANT), "failure.expires_at"),
    },
)
MOST_NAMED = 100
SUMMARY = Table(
    {
        "value": answered(
            or_null(text(description="The value that they share; null: their jobs have none, or are deleted.")), "value"
        ),
        "jobName": answered(
            or_null({**TEXT, "description": "The name of the job if `groupBy` is `job`; else null."}), "name"
        ),
        "count": answered(whole(description="How many failed runs are unresolved."), "count"),
        "countIsLeast": answered(
            {**FLAG, "description": "True: there may be more; up to 100 runs of a group are counted."}, "more"
        ),
        "jobs": answered(whole(description="How many jobs they belong to."), "jobs"),
        "groups": answered(whole(description="How many groups they belong to."), lambda view: len(view.groups)),
        "firstSeenAt": answered({**INSTANT_MS, "description": "When the first of these groups began."}, "first_at"),
        "lastSeenAt": answered(
            INSTANT_MS, "last_at", says="When the last of their runs failed, to within half a minute."
        ),
        "errors": answered(
            items(
                GROUP_ID, maxItems=MOST_NAMED, description="The ids of their groups, the last failure first, up to 100."
            ),
            lambda view: [group.id for group in view.groups[:MOST_NAMED]],
        ),
    },
)
REDIRECT = Table(
    {
        "from": answered(ID, "source", says="The job whose failed runs are redirected."),
        "to": answered(ID, says="The job that runs the failed runs again."),
        "actor": answered(or_null(TEXT), says="The client id of the caller who made the change."),
        "createdAt": answered(INSTANT_MS, "at"),
    },
)


def list_all(ctx: Context) -> Answer:
    """Lists groups, latest failure first; by default those with unresolved runs."""
    limit, mark = ctx.page(lambda text: bool(_NUMBER.fullmatch(text)), _is_group)
    state = ctx.choice("state", frozenset(STATES)) or "OPEN"
    after = (int(mark[0]), mark[1]) if mark else None
    groups = ((group, open_runs) for group, open_runs in _groups(ctx, after) if _state(group, open_runs) == state)
    page = list(islice(groups, limit + 1))
    last = page[limit - 1][0] if len(page) > limit else None
    cursor = ctx.cursor(str(epoch_ms(last.last_at)), last.id) if last else None
    names = JobNames(ctx.world, ctx.tenant).by_id(group.signature.job_id for group, _ in page[:limit])
    items = [GROUP.show(GroupView(*each, names[each[0].signature.job_id])) for each in page[:limit]]
    return Answer(200, {"items": items, "nextCursor": cursor})


def _groups(ctx: Context, after: tuple[int, str] | None) -> Iterator[tuple[Group, OpenRuns]]:
    for group in matching(ctx):
        if after is None or (epoch_ms(group.last_at), group.id) < after:
            yield group, failures.open_runs(ctx.world, group, COUNTED_IN_LISTS)


def matching(ctx: Context) -> Iterator[Group]:
    """Yields the groups in any state that match the query, latest failure first."""
    wanted = wanted_of(ctx)
    chosen = _chosen(ctx, wanted)
    began = tenancy.began_at(ctx.world, ctx.tenant)
    groups = (group for group in views.groups(ctx.world.table, ctx.tenant) if began is None or group.first_at >= began)
    rows = islice(groups, MOST_GROUPS)
    ordered = sorted(((epoch_ms(group.last_at), group.id, group) for group in rows), key=lambda each: each[:2])
    for _, _, group in reversed(ordered):
        if _holds(wanted, chosen, group):
            yield group


def _chosen(ctx: Context, wanted: Wanted) -> Container[str] | None:
    """Returns the ids of the jobs whose groups are listed; None for all jobs."""
    if wanted.job_id is not None:
        return {wanted.job_id}
    if not wanted.selects_jobs:
        return None
    with in_query():
        return frozenset(run_lists.job_ids_of(ctx.world, ctx.tenant, wanted, MOST_JOBS))


def _holds(wanted: Wanted, chosen: Container[str] | None, group: Group) -> bool:
    """Returns whether a group belongs to a chosen job, and its time from first to last failure meets the span."""
    since, until = wanted.span.since, wanted.span.until
    if chosen is not None and not (group.signature.job_id in chosen or _of_messages(wanted, group)):
        return False
    return (since is None or since <= group.last_at) and (until is None or group.first_at <= until)


def _of_messages(wanted: Wanted, group: Group) -> bool:
    """Returns whether a group of messages belongs to the chosen collection. It has neither tags nor a resource."""
    alone = wanted.job_id is wanted.tag is wanted.resource_id is None
    return alone and group.signature.shown_job_id is None and group.collection == wanted.collection


def read_error_summary(ctx: Context) -> Answer:
    """Sums up the open errors by job, job set, target or version."""
    by = ctx.choice("groupBy", frozenset(summaries.By))
    if by is None:
        raise InvalidRequest("groupBy", f"is required: {', '.join(summaries.By)}", code="INVALID_QUERY")
    sums, whole_ = summaries.summed(ctx.world, ctx.tenant, matching(ctx), summaries.By(by))
    return Answer(200, {"groupBy": by, "items": [SUMMARY.show(each) for each in sums], "complete": whole_})


def read(ctx: Context) -> Answer:
    return _answer(ctx, failures.find(ctx.world, ctx.tenant, _id(ctx)))


def list_error_runs(ctx: Context) -> Answer:
    """Lists the existing failed runs of a group by planned instant, each with what was done about it."""
    group = failures.find(ctx.world, ctx.tenant, _id(ctx))
    rows = partial(failures.runs, ctx.world, group)
    return ctx.page_of(rows, partial(_run_body, ctx, group), mark=attrgetter("uuid"), fits=is_uuid)


def add_note(ctx: Context) -> Answer:
    said = fields.free(fields.required(fields.members(ctx.body(), "", ("text",)), "text"), "text", 1, 2_000)
    group_id, once = _id(ctx), ctx.once()

    def make() -> Group:
        return failures.add_note(ctx.world, ctx.tenant, group_id, said, ctx.actor, once)

    def find(_: str) -> Group:
        return failures.find(ctx.world, ctx.tenant, group_id)

    return _answer(ctx, made_once(ctx.world, ctx.tenant, once, make, find), 201)


def archive(ctx: Context) -> Answer:
    return _answer(ctx, failures.archive(ctx.world, ctx.tenant, _id(ctx), _reason(ctx), ctx.actor))


def _reason(ctx: Context) -> str | None:
    members = fields.members(ctx.body(), "", ("reason",))
    return fields.free(members["reason"], "reason", 0, 1_000) if "reason" in members else None


def restore(ctx: Context) -> Answer:
    ctx.no_members()
    return _answer(ctx, failures.restore(ctx.world, ctx.tenant, _id(ctx), ctx.actor))


def archive_error_run(ctx: Context) -> Answer:
    """Archives one failed run; the others of its group stay."""
    reason = _reason(ctx)
    group = failures.find(ctx.world, ctx.tenant, _id(ctx))
    failure = failures.archive_run(ctx.world, group, *ctx.run("failed_run"), reason, ctx.actor)
    return Answer(200, _run_body(ctx, group, failure))


def restore_error_run(ctx: Context) -> Answer:
    ctx.no_members()
    group = failures.find(ctx.world, ctx.tenant, _id(ctx))
    failure = failures.restore_run(ctx.world, group, *ctx.run("failed_run"), ctx.actor)
    return Answer(200, _run_body(ctx, group, failure))


def _answer(ctx: Context, group: Group, status: int = 200) -> Answer:
    headers = {"Location": f"/v1/errors/{group.id}"} if status == 201 else {}
    job_id = group.signature.job_id
    name = JobNames(ctx.world, ctx.tenant).by_id([job_id])[job_id]
    return Answer(status, GROUP.show(GroupView(group, failures.open_runs(ctx.world, group), name)), headers)


def _id(ctx: Context) -> str:
    text = ctx.parameters["error"]
    if not _is_group(text):
        raise NotFound("no such group of errors")
    return text


def _is_group(text: str) -> bool:
    return _GROUP.fullmatch(text) is not None


def _run_body(ctx: Context, group: Group, failure: Failure) -> dict[str, Any]:
    return ERROR_RUN.show(SeenRun(failure, failure.is_open(group, ctx.now)))


# Redirects


def list_redirects(ctx: Context) -> Answer:
    rows = partial(views.redirects, ctx.world.table, ctx.tenant)
    return ctx.page_of(rows, REDIRECT.show, mark=attrgetter("source"), fits=is_uuid)


def put_redirect(ctx: Context) -> Answer:
    to = fields.text(fields.required(fields.members(ctx.body(), "", ("to",)), "to"), "to", 1, 36)
    if not is_uuid(to):
        raise InvalidRequest("to", f"is not the id of a job: {fields.shown(to)}")
    with suppress(NotFound):
        if lookup.find_job(ctx.world, ctx.tenant, to).action.kind in TASK_KINDS:
            ctx.require(TASKS)
    made = failures.redirect(ctx.world, ctx.tenant, ctx.id("job"), to, ctx.actor)
    return Answer(200, REDIRECT.show(made))


def delete_redirect(ctx: Context) -> Answer:
    failures.end_redirect(ctx.world, ctx.tenant, ctx.id("job"))
    return Answer(204)
