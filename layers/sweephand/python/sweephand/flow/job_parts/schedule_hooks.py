"""Hooks that a schedule brings itself, each in the place of its job's of that name: sealed when they are asked for, and
found again when a run of the schedule has ended.

Which of a schedule's hooks run is still the policy's to say; what it does not bring, its job does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from sweephand import actions
from sweephand.domain.job import HOOKS, ActionDraft, ActionSpec, Beside, Job
from sweephand.domain.jobs.own_hooks import OwnHooks
from sweephand.domain.members.fields import below
from sweephand.domain.run import Kind, Run
from sweephand.domain.schedule import Schedule
from sweephand.errors import InvalidRequest, NotFound
from sweephand.flow.world import World
from sweephand.store.jobs import jobs
from sweephand.store.jobs import own_hooks as store
from sweephand.store.jobs.own_hooks import ByName


def brings(schedule: Schedule | None, name: str) -> bool:
    """Whether it has such a hook of its own, by its row alone."""
    own = OwnHooks.read(schedule.hooks) if schedule is not None else None
    return own is not None and name in own.names


def stored(world: World, schedules: Iterable[Schedule]) -> Mapping[str, ByName]:
    """What schedules bring, by their ids; of those that bring any."""
    return store.read_all(world.table, schedules)


def job_of(world: World, job: Job, schedule: Schedule | None, kind: Kind) -> Job:
    """The job as a run of this kind sees it: with its schedule's own hook, if there is one. It is never written.

    Raises Unavailable.
    """
    if schedule is None or kind not in HOOKS or not brings(schedule, HOOKS[kind]):
        return job
    return replace(job, hooks={**job.hooks, **store.read(world.table, schedule)})


def job_for(world: World, job: Job, run: Run) -> Job:
    """As job_of, for who has not read the run's schedule."""
    if run.kind not in HOOKS or run.schedule_id is None:
        return job
    return job_of(world, job, jobs.read_schedule(world.table, job.tenant, job.id, run.schedule_id), run.kind)


def secret_field(schedule_id: str, name: str, field: str) -> str:
    """What a secret is sealed for, beside its tenant and job: that of another schedule or hook does not open here."""
    return f"schedules.{schedule_id}.hooks.{name}.{field}"


def sealed(
    world: World, job: Job, schedule_id: str, wanted: Mapping[str, ActionDraft], stored: ByName, path: str
) -> ByName:
    """Hooks as they shall be stored: new secrets sealed, kept ones taken over from `stored`.

    What is asked for as it is there comes back equal to it. Raises InvalidRequest at its member below `path`.
    """
    return {
        name: _sealed(world, job, schedule_id, name, draft, stored.get(name), path) for name, draft in wanted.items()
    }


def _sealed(
    world: World, job: Job, schedule_id: str, name: str, draft: ActionDraft, there: ActionSpec | None, path: str
) -> ActionSpec:
    actions.check_reaction(draft, below(path, f"hooks.{name}"), job.id)
    actions.check_lasting(draft, below(path, f"hooks.{name}"), world.clock.now())
    kept = there.beside.sealed if there is not None and there.beside is not None else {}
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
            raise InvalidRequest(where, "nothing is stored that could be kept: give the value")
    return ActionSpec(draft.kind, draft.params, draft.retry, beside=Beside(schedule_id, draft.payload, texts))


def opened(world: World, job: Job, name: str, beside: Beside) -> dict[str, str]:
    """The secrets in the clear, by their field within the action; one that cannot be opened is left out."""
    found: dict[str, str] = {}
    for field, text in beside.sealed.items():
        with suppress(NotFound):
            own = secret_field(beside.of, name, field)
            found[field] = world.secrets.decrypt(job.tenant, job.id, own, text)
    return found
