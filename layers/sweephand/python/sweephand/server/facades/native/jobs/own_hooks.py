"""The schedules' own hooks: checks them against the stored ones."""

from __future__ import annotations

from collections.abc import Sequence

from sweephand.base.errors import InvalidRequest
from sweephand.domain.job import TASK_KINDS, Job, ScheduleDraft
from sweephand.domain.schedule import Schedule
from sweephand.server.facades.native.context import TASKS, Context
from sweephand.server.facades.native.jobs.tasks import same
from sweephand.server.facades.native.members.defaults import waits_of
from sweephand.server.facades.native.members.stored_hooks import StoredHooks
from sweephand.server.flow.job_parts import schedule_hooks as flow

MOST_SECRETS = 100
"""The most secrets in the hooks of one request, because each takes a call to KMS."""


def stored_hooks(ctx: Context, job: Job, schedules: Sequence[Schedule], *, single: bool = False) -> StoredHooks:
    return StoredHooks(job, schedules, flow.stored(ctx.world, schedules), single, waits_of(ctx, job))


def check(ctx: Context, drafts: Sequence[ScheduleDraft], known: StoredHooks | None = None) -> None:
    """Checks the own hooks of the schedules of one request. known: the stored ones that they change.

    Raises InvalidRequest for too many secrets, and Forbidden for tasks without the scope.
    """
    if not any(draft.hooks for draft in drafts) and not (known is not None and known.hooks):
        return
    secrets = sum(len(hook.secrets) for draft in drafts for hook in (draft.hooks or {}).values())
    if secrets > MOST_SECRETS:
        reason = f"have {secrets} secrets in their hooks; the most in one request is {MOST_SECRETS}"
        raise InvalidRequest("schedules", reason)
    if _runs_tasks(drafts, known):
        ctx.require(TASKS)


def _runs_tasks(drafts: Sequence[ScheduleDraft], known: StoredHooks | None) -> bool:
    """Returns whether a hook that runs a task is new, changed or removed from a schedule that stays."""
    for draft in drafts:
        schedule_id = known.find(draft.id, draft.name) if known is not None else None
        stored = known.of(schedule_id)[1] if known is not None else {}
        wanted = draft.hooks or {}
        for name in {*wanted, *stored}:
            new, old = wanted.get(name), stored.get(name)
            kinds = {each.kind for each in (new, old) if each is not None}
            known_as = old.inline if old is not None else None
            if kinds & TASK_KINDS and (known_as is None or not same(new, old, known_as.payload)):
                return True
    return False
