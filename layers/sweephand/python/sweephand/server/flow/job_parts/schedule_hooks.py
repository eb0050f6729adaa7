"""Hooks of a schedule: each replaces its job's hook of the same name.

They are sealed when they are requested, and read when a run of the schedule has ended. The policy still decides which
hooks run. If a schedule lacks a hook, its job's hook runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from sweephand.base.errors import InvalidRequest, NotFound
from sweephand.base.lazy import lazy
from sweephand.base.members.fields import below
from sweephand.domain import application
from sweephand.domain.job import HOOKS, ActionDraft, ActionSpec, Inline, Job
from sweephand.domain.jobs.job_state import OwnHooks
from sweephand.domain.run import Kind, Run
from sweephand.domain.schedule import Schedule
from sweephand.server import actions
from sweephand.server.flow.world import World
from sweephand.server.store.jobs import jobs
from sweephand.server.store.jobs import own_hooks as store
from sweephand.server.store.jobs.own_hooks import ByName

with lazy():
    from sweephand.server.flow.tenants import applications


def brings(schedule: Schedule | None, name: str) -> bool:
    """Returns whether a schedule itself has a hook of this name. Its row alone shows this."""
    own = OwnHooks.read(schedule.hooks) if schedule is not None else None
    return own is not None and name in own.names


def stored(world: World, schedules: Iterable[Schedule]) -> Mapping[str, ByName]:
    """Returns the schedules' own hooks by schedule id; schedules without any are left out."""
    return store.read_all(world.table, schedules)


def job_of(world: World, job: Job, schedule: Schedule | None, kind: Kind) -> Job:
    """Returns the job as a run of this kind sees it: with its schedule's own hook, if any. Never write this job.

    Raises Unavailable.
    """
    if schedule is None or kind not in HOOKS or not brings(schedule, HOOKS[kind]):
        return job
    return replace(job, hooks={**job.hooks, **store.read(world.table, schedule)})


def job_for(world: World, job: Job, run: Run) -> Job:
    """Returns the same as job_of, but reads the run's schedule itself."""
    if run.kind not in HOOKS or run.schedule_id is None:
        return job
    return job_of(world, job, jobs.read_schedule(world.table, job.tenant, job.id, run.schedule_id), run.kind)


def secret_field(schedule_id: str, name: str, field: str) -> str:
    """Returns the field that a secret is sealed for, in addition to its tenant and job.

    So a secret of one schedule or hook cannot be opened for another.
    """
    return f"schedules.{schedule_id}.hooks.{name}.{field}"


def sealed(
    world: World, job: Job, schedule_id: str, wanted: Mapping[str, ActionDraft], stored: ByName, path: str
) -> ByName:
    """Returns hooks as they will be stored: seals new secrets and copies kept ones from `stored`.

    Unchanged hooks are returned as stored. Raises InvalidRequest with the member below `path`.
    """
    return {
        name: _sealed(world, job, schedule_id, name, draft, stored.get(name), path) for name, draft in wanted.items()
    }


def _sealed(
    world: World, job: Job, schedule_id: str, name: str, draft: ActionDraft, stored: ActionSpec | None, path: str
) -> ActionSpec:
    actions.check(draft, below(path, f"hooks.{name}"), world.clock.now(), reaction_of=job.id)
    if named := application.named_by({below(path, f"hooks.{name}"): draft}):
        applications.check(world, job.tenant, named)
    kept = stored.inline.sealed if stored is not None and stored.inline is not None else {}
    texts: dict[str, str] = {}
    for field in sorted({*draft.secrets, *draft.kept}):
        where = below(path, f"hooks.{name}.{field}")
        if field in draft.secrets:
            own = secret_field(schedule_id, name, field)
            try:
                texts[field] = world.secrets.encrypt(job.tenant, job.id, own, draft.secrets[field])
            except InvalidRequest as wrong:
                raise InvalidRequest(where, wrong.reason) from wrong
        elif field in kept:
            texts[field] = kept[field]
        else:
            raise InvalidRequest(where, "there is no stored value to keep; give the value")
    return ActionSpec(draft.kind, draft.params, draft.retry, inline=Inline(schedule_id, draft.payload, texts))


def opened(world: World, job: Job, name: str, inline: Inline) -> dict[str, str]:
    """Returns the secrets in clear text, by their field within the action. Leaves out secrets that cannot be opened."""
    secrets: dict[str, str] = {}
    for field, text in inline.sealed.items():
        with suppress(NotFound):
            own = secret_field(inline.of, name, field)
            secrets[field] = world.secrets.decrypt(job.tenant, job.id, own, text)
    return secrets
