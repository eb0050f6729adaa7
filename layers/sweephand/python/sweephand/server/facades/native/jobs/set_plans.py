"""Plans of job sets as JSON: each change with old and new members, and with the next times before and after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from sweephand.base.json_text import Difference
from sweephand.domain.instants import text
from sweephand.domain.job import JobDraft, Payload, by_owner
from sweephand.domain.job_set import Change, Plan, Verb
from sweephand.domain.occurrences import upcoming
from sweephand.domain.schedule import Schedule
from sweephand.schedules.rule import of_answer
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.jobs import changes
from sweephand.server.facades.native.jobs.changes import Shown
from sweephand.server.facades.native.members.defaults import waits_of
from sweephand.server.facades.native.members.stored_hooks import StoredHooks
from sweephand.server.flow.job_sets import apply
from sweephand.server.flow.job_sets.apply import SetPlan
from sweephand.server.flow.jobs import lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.jobs.steps import DryRun
from sweephand.server.store.views import totals as counts

DETAILED = 50
"""How many deleted jobs of a plan have their runs counted."""
MOST_LINES = 500
"""How many changed members a plan shows. Later jobs have only their key and next times."""
LONGEST_VALUE = 400
LISTS: Mapping[str, Verb] = {
    "created": Verb.CREATE,
    "updated": Verb.UPDATE,
    "repaired": Verb.REPAIR,
    "deleted": Verb.DELETE,
}
"""The members of an answer, and the changes that they list."""


def plan_body(ctx: Context, set_plan: SetPlan, drafts: Mapping[str, JobDraft]) -> dict[str, Any]:
    """Returns a checked plan as JSON. drafts: by key."""
    lines = MOST_LINES
    shown = []
    for n, each in enumerate(set_plan.plan.changes):
        changed, after = _dry_run(ctx, set_plan, each, drafts, lines)
        lines -= len(changed or ())
        body = {**entry(ctx, set_plan, each, detailed=n < DETAILED), "changes": changed}
        shown.append((each, body, after))
    with of_answer():
        bodies = [(each, {**body, **_next_runs(ctx, set_plan, each, after)}) for each, body, after in shown]
    return {**lists_body(set_plan.plan, bodies), "token": set_plan.plan.token}


def lists_body(plan: Plan, shown: Sequence[tuple[Change, dict[str, Any]]]) -> dict[str, Any]:
    """Returns the changes in lists by kind, with the other members of an answer."""
    lists = {name: [body for each, body in shown if each.verb is verb] for name, verb in LISTS.items()}
    return {"set": plan.job_set, **lists, "unchanged": plan.unchanged, "failed": [], "remaining": 0, "token": None}


def entry(ctx: Context, set_plan: SetPlan, each: Change, *, detailed: bool) -> dict[str, Any]:
    """Returns a change as JSON. detailed: counts the runs of a job that is deleted."""
    planned = set_plan.job_of(each)
    body: dict[str, Any] = {"key": each.key, "jobId": planned and planned.job.id, "name": planned and planned.job.name}
    if each.member is not None and each.member.key != each.key:
        body["was"] = each.member.key
    if each.verb is not Verb.DELETE:
        return body
    runs = open_runs = None
    if planned is not None and detailed:
        ledgers = counts.ledgers_of(ctx.world.table, planned.schedules, ctx.now, last=False)
        totals = [one.totals for one in ledgers]
        runs, open_runs = sum(one.planned for one in totals), sum(one.open for one in totals)
    return {**body, "runs": runs, "openRuns": open_runs}


def _dry_run(
    ctx: Context, set_plan: SetPlan, each: Change, drafts: Mapping[str, JobDraft], most: int
) -> tuple[list[dict[str, Any]] | None, Sequence[Schedule]]:
    """Returns the changed members, and the schedules as they would be.

    most: how many members may still be shown; None instead of more.
    """
    planned, draft = set_plan.job_of(each), drafts.get(each.key)
    if draft is None:
        return [], ()
    stored = lookup.payloads_of(ctx.world, planned) if planned is not None else {}
    after = apply.dry_run(ctx.world, set_plan, each, draft, stored)
    lines = [] if planned is None else list(islice(_lines(ctx, planned, after, draft, stored), most + 1))
    return lines if len(lines) <= most else None, after.schedules


def _next_runs(ctx: Context, set_plan: SetPlan, each: Change, after: Sequence[Schedule]) -> dict[str, Any]:
    """Returns the next run before the change, and after it."""
    planned = set_plan.job_of(each)
    was, _ = upcoming.next_of_job(() if planned is None else planned.schedules, ctx.now)
    is_, _ = upcoming.next_of_job(after, ctx.now)
    return {
        "nextRunAtBefore": was.first and text(was.first),
        "nextRunAt": is_.first and text(is_.first),
        "nextRunExact": was.exact and is_.exact,
    }


def _lines(
    ctx: Context, planned: Planned, after: DryRun, draft: JobDraft, stored: Mapping[str, Payload]
) -> Iterator[dict[str, Any]]:
    """Yields the changed members. Secrets are not compared, because a plan may not decrypt the stored ones.

    Every secret in the entry is named, because it is written again.
    """
    named: set[str] = set()
    pairs = [(step.before, step.after) for step in after.steps if step.before != step.after]
    was = replace(changes.shown_as_stored(ctx, planned.job, [before for before, _ in pairs]), payloads=stored)
    job = replace(after.job, secret_version=planned.job.secret_version)
    is_ = Shown(job, _payloads_after(after, stored), _hooks_after(ctx, after, was.hooks))
    for schedule, difference in changes.differences_between(was, is_, pairs):
        if difference.path:
            old, new = difference.old, difference.new
        else:
            old, new = (_without_id(side) for side in (difference.old, difference.new))
        name = None if schedule is None else schedule.name
        named |= {difference.path} if schedule is None else set()
        yield {"schedule": name, **changes.member_body(difference._replace(old=old, new=new), LONGEST_VALUE)}
    for path in sorted(_secrets(draft)):
        if path in named or any(path.startswith(f"{each}.") for each in named):
            continue
        yield {"schedule": None, **changes.member_body(Difference(path, changes.MASK, changes.MASK))}


def _secrets(draft: JobDraft) -> set[str]:
    """Returns the paths of the secrets that a draft gives; those of its schedules' hooks are compared with them."""
    owners = by_owner(draft.action, draft.error_action, draft.hooks)
    return {f"{owner}.{name}" for owner, asked in owners.items() for name in asked.secrets}


def _without_id(body: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Leaves out the id, because a new schedule gets its id when it is written."""
    return None if body is None else {name: value for name, value in body.items() if name != "id"}


def _payloads_after(after: DryRun, stored: Mapping[str, Payload]) -> dict[str, Payload]:
    """Returns the payloads that the job will have: those that change, and those that stay."""
    job = after.job
    versions = {name: spec.payload_version for name, spec in by_owner(job.action, job.error_action, job.hooks).items()}
    versions |= {each.id: each.payload_version for each in after.schedules}
    payloads = {**stored, **after.payloads}
    return {owner: payloads[owner] for owner, version in versions.items() if version is not None and owner in payloads}


def _hooks_after(ctx: Context, after: DryRun, had: StoredHooks | None) -> StoredHooks | None:
    new = {step.after.id: step.hooks for step in after.steps if step.after is not None and step.hooks is not None}
    if had is None and not new:
        return None
    hooks = {} if had is None else had.hooks
    return StoredHooks(after.job, after.schedules, {**hooks, **new}, waits_s=waits_of(ctx, after.job))
