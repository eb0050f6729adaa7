"""Hooks of schedules: what a caller asks for, compared with what is stored, and how they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sweephand.domain.job import TASK_KINDS, ActionDraft, ActionSpec, Job, ScheduleDraft
from sweephand.domain.runs.run_action import policies_of
from sweephand.domain.schedule import Schedule
from sweephand.errors import InvalidRequest
from sweephand.facades.native.context import Context
from sweephand.facades.native.jobs import defaults
from sweephand.facades.native.jobs.answers import waits_of
from sweephand.facades.native.jobs.defaults import Filling
from sweephand.facades.native.jobs.tasks import SCOPE
from sweephand.flow.job_parts import schedule_hooks as flow

ByName = Mapping[str, ActionSpec]
MOST_SECRETS = 100
"""That one request may bring in hooks of schedules: each takes a call of the key service."""


@dataclass(frozen=True)
class There:
    """The schedules that a change may speak of, each with its policies and the hooks that it brings.

    A schedule is found by its id, else by its name, as the change itself finds it. single: there is one, however the
    caller names it. waits_s: see defaults.Filling.
    """

    job: Job
    schedules: Sequence[Schedule] = ()
    hooks: Mapping[str, ByName] = field(default_factory=dict)
    single: bool = False
    waits_s: int | None = None

    def find(self, schedule_id: object, name: object) -> Schedule | None:
        if self.single:
            return self.schedules[0]
        for each in self.schedules:
            if (each.id == schedule_id) if schedule_id is not None else (each.name == name):
                return each
        return None

    def shown(self, schedule: Schedule) -> dict[str, Any]:
        """Its hooks by name, with payloads; secrets as `***`."""
        filling, hooks = self.of(schedule)
        return {name: _body(hook, filling) for name, hook in hooks.items()}

    def of(self, schedule: Schedule | None) -> tuple[Filling, ByName]:
        """What its hooks are shown by, and are."""
        hooks = self.hooks.get(schedule.id, {}) if schedule is not None else {}
        return Filling(policies_of(self.job, schedule), self.waits_s), hooks


def there(ctx: Context, job: Job, schedules: Sequence[Schedule], *, single: bool = False) -> There:
    return There(job, schedules, flow.stored(ctx.world, schedules), single, waits_of(ctx, job))


def _body(hook: ActionSpec, filling: Filling) -> dict[str, Any]:
    body = {**defaults.shown_action(hook, filling), "payload": None, "body": None}
    payload = hook.beside.payload if hook.beside is not None else None
    if payload is not None:
        body["payload" if payload.is_json else "body"] = defaults.payload_value(payload)
    return body


def check(ctx: Context, drafts: Sequence[ScheduleDraft], known: There | None = None) -> None:
    """What the schedules of one request bring. known: those that they change.

    Raises InvalidRequest where there are too many secrets, Forbidden where the caller may let no tasks run.
    """
    if not any(draft.hooks for draft in drafts) and not (known is not None and known.hooks):
        return
    secrets = sum(len(hook.secrets) for draft in drafts for hook in (draft.hooks or {}).values())
    if secrets > MOST_SECRETS:
        reason = f"bring {secrets} secrets in their hooks: one request takes {MOST_SECRETS}"
        raise InvalidRequest("schedules", reason)
    if _runs_tasks(drafts, known):
        assert ctx.caller is not None
        ctx.caller.require(SCOPE)


def _runs_tasks(drafts: Sequence[ScheduleDraft], known: There | None) -> bool:
    """Whether a hook that runs a task is new, changed or taken away from a schedule that stays."""
    for draft in drafts:
        found = known.find(draft.id, draft.name) if known is not None else None
        stored = known.of(found)[1] if known is not None else {}
        wanted = draft.hooks or {}
        for name in {*wanted, *stored}:
            new, old = wanted.get(name), stored.get(name)
            kinds = {each.kind for each in (new, old) if each is not None}
            if kinds & TASK_KINDS and not _same(new, old):
                return True
    return False


def _same(new: ActionDraft | None, old: ActionSpec | None) -> bool:
    if new is None or old is None or old.beside is None or new.secrets:
        return False
    asked = new.kind, new.params, new.retry, new.payload
    return asked == (old.kind, old.params, old.retry, old.beside.payload)
