"""The scope for jobs that run tasks, which are code of the tenant's choice in the stack's own account."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from sweephand.domain.job import HOOK_KINDS, TASK_KINDS, ActionDraft, ActionSpec, Job, JobDraft, Payload, hook_owner
from sweephand.server.facades.native.context import TASKS, Context


def require_scope(
    ctx: Context, draft: JobDraft, before: Job | None = None, stored: Mapping[str, Payload] | None = None
) -> None:
    """Raises Forbidden without the scope if an action that runs a task is new, changed or removed.

    before, stored: the job and its payloads before a change. Everything else may be changed without the scope.
    """
    pairs = [
        ("action", draft.action, before.action if before else None),
        ("errorAction", draft.error_action, before.error_action if before else None),
        *((hook_owner(name), draft.hooks.get(name), before.hooks.get(name) if before else None) for name in HOOK_KINDS),
    ]
    for owner, wanted, stored_action in pairs:
        kinds = {each.kind for each in (wanted, stored_action) if each is not None}
        if kinds & TASK_KINDS and not same(wanted, stored_action, (stored or {}).get(owner)):
            ctx.require(TASKS)
    if draft.action.kind in TASK_KINDS:
        known = set((stored or {}).values())
        require_for_payloads(ctx, draft.action.kind, [each.payload for each in draft.schedules or ()], known)


def require_for_payloads(ctx: Context, kind: str, wanted: Iterable[Payload | None], stored: Container[Payload]) -> None:
    """Raises Forbidden without the scope if a schedule has a new payload for an action that runs a task.

    The payload is sent instead of the action's own.
    """
    if kind in TASK_KINDS and any(each is not None and each not in stored for each in wanted):
        ctx.require(TASKS)


def same(wanted: ActionDraft | None, stored_action: ActionSpec | None, payload: Payload | None) -> bool:
    """Returns whether an action stays unchanged. payload: of the stored one."""
    if wanted is None or stored_action is None or wanted.secrets:
        return False
    asked = wanted.kind, wanted.params, wanted.retry, wanted.payload
    return asked == (stored_action.kind, stored_action.params, stored_action.retry, payload)
