"""Runs failed runs again: one immediately, perhaps edited, or many as an operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sweephand.base.errors import InvalidRequest, PreconditionFailed
from sweephand.base.members import fields
from sweephand.domain.instants import epoch_ms, text_ms
from sweephand.domain.operation import OperationKind
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native.context import RUN_ID, TASKS, Context
from sweephand.server.facades.native.members import run_edits
from sweephand.server.facades.native.operations import operations
from sweephand.server.facades.native.query import exact_instant
from sweephand.server.facades.native.runs import errors
from sweephand.server.facades.native.runs.export import INSTANTS, TEXTS
from sweephand.server.flow.bulk import redrive
from sweephand.server.flow.errors import failures
from sweephand.server.flow.manual import rerun
from sweephand.server.flow.operations import verbs

EDIT_SCOPE = "errors:edit"


def rerun_run(ctx: Context) -> Answer:
    """Runs a finished run again. A request that changes what it sends also needs the scope errors:edit."""
    edit = run_edits.read(fields.members(ctx.body(), "", run_edits.MEMBERS), tasks=ctx.allows(TASKS))
    if edit is not None:
        ctx.require(EDIT_SCOPE)
    once, hop = ctx.once(), ctx.hop()
    run_id = rerun.rerun(ctx.world, ctx.tenant, *ctx.run(), edit=edit, once=once, actor=ctx.actor, hop=hop)
    return Answer(202, {"runId": run_id, "started": True}, {"Location": f"/v1/runs/{run_id}"})


def redrive_errors(ctx: Context) -> Answer:
    """Runs the named failed runs again, or the open ones of a group, or those of all groups that match a filter.

    dryRun: only counts them. Starts no operation if there are none.
    """
    once = ctx.once()
    members = fields.members(ctx.body(), "", (*CHOOSES, "ratePerMinute", "dryRun", "expectedCount"))
    chosen = [name for name in CHOOSES if name in members]
    if len(chosen) != 1:
        raise InvalidRequest("runs", "is required, or else `group` or `filter`")
    rate = fields.whole(members.get("ratePerMinute", redrive.USUAL_RATE), "ratePerMinute", 1, redrive.MOST_RATE)
    expected = fields.whole(members["expectedCount"], "expectedCount", 0, 10**9) if "expectedCount" in members else None
    only_count = "dryRun" in members and fields.flag(members["dryRun"], "dryRun")
    wanted, count = CHOOSES[chosen[0]](ctx, members[chosen[0]])
    begun = None if only_count else verbs.begun_before(ctx.world, ctx.tenant, once)
    if begun is None and expected not in {None, count}:
        reason = f"expectedCount is {expected}, but {count} runs would be run again"
        raise PreconditionFailed(reason, code="COUNT_MISMATCH")
    if only_count or (count == 0 and begun is None):
        return Answer(202, {"count": count, "operation": None})
    operation = verbs.begin(
        ctx.world,
        ctx.tenant,
        OperationKind.REDRIVE,
        {**wanted, "ratePerMinute": rate},
        actor=ctx.actor,
        total=len(wanted["runs"]) if "runs" in wanted else count,
        once=once,
    )
    return operations.begun(operation, {"count": count, "operation": operations.body(operation)})


def _of_runs(ctx: Context, value: object) -> tuple[dict[str, Any], int]:
    """Returns the request, and how many of its runs can be run again. The result reports the others."""
    runs = _runs(value)
    return {"runs": runs}, redrive.repeatable(ctx.world, ctx.tenant, runs)


def _of_group(ctx: Context, value: object) -> tuple[dict[str, Any], int]:
    """Returns the request for the failures up to now. Runs that fail after it are not included."""
    group = failures.find(ctx.world, ctx.tenant, fields.text(value, "group", 1, 64))
    wanted: dict[str, Any] = {"group": group.id, "until": epoch_ms(ctx.now)}
    if group.closed_through is not None:
        wanted["archivedThrough"] = epoch_ms(group.closed_through)
    return wanted, failures.open_runs(ctx.world, group, until=ctx.now).count


def _of_filter(ctx: Context, value: object) -> tuple[dict[str, Any], int]:
    """Returns the request for the open failures up to now of all groups that match a filter."""
    members = fields.members(value, "filter", (*TEXTS, *INSTANTS, "jobId"))
    try:
        query = {name: _member(ctx, name, each) for name, each in members.items()}
        groups = errors.matching(replace(ctx, request=replace(ctx.request, query=query)))
        counted = [
            (group, counts.count)
            for group in groups
            if (counts := failures.open_runs(ctx.world, group, until=ctx.now)).count
        ]
    except InvalidRequest as wrong:
        raise InvalidRequest(f"filter.{wrong.field}", wrong.reason, position=wrong.position) from wrong
    if len(counted) > redrive.MOST_GROUPS:
        reason = f"matches {len(counted):,} groups; the maximum is {redrive.MOST_GROUPS}: narrow it"
        raise InvalidRequest("filter", reason)
    closed = {group.id: epoch_ms(group.closed_through) for group, _ in counted if group.closed_through is not None}
    wanted = {"groups": [group.id for group, _ in counted], "closed": closed, "until": epoch_ms(ctx.now)}
    return wanted, sum(count for _, count in counted)


def _member(ctx: Context, name: str, value: object) -> str:
    if name in TEXTS:
        return fields.text(value, name, 1, TEXTS[name])
    return ctx.job_of(value) if name == "jobId" else text_ms(exact_instant(value, name))


CHOOSES: Mapping[str, Callable[[Context, object], tuple[dict[str, Any], int]]] = {
    "runs": _of_runs,
    "group": _of_group,
    "filter": _of_filter,
}
"""The members that select the runs of a request. It has exactly one of them."""


def _runs(value: object) -> list[str]:
    """Reads the ids in the given order, without duplicates."""
    listed = fields.listed(value, "runs", redrive.MOST_RUNS, "a list of ids of runs", least=1)
    for n, each in enumerate(listed):
        if not isinstance(each, str) or not RUN_ID.fullmatch(each):
            raise fields.must_be(f"runs[{n}]", "the id of a run", each)
    return list(dict.fromkeys(listed))
