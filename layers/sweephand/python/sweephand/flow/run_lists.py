"""Runs as users ask for them, for lists and files: of a job, of a schedule, or what wants attention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.domain.run import Run
from sweephand.flow import plan, tenancy
from sweephand.flow.drafts import PAST_GRACE
from sweephand.flow.world import World
from sweephand.ids import instant_ms_of
from sweephand.store.views import runs as views
from sweephand.store.views.runs import RunMark

ATTENTION_DAYS = 15


@dataclass(frozen=True)
class Wanted:
    """Without job and schedule: what did not succeed or waits, of the whole tenant. state, kind: only these."""

    job_id: str | None = None
    schedule_id: str | None = None
    state: str | None = None
    kind: str | None = None

    def holds(self, run: Run, now: datetime) -> bool:
        """What is over its time is not wanted any more."""
        return self.state in {None, run.state.value} and self.kind in {None, run.kind.value} and not run.is_gone(now)


def mark_of(run: Run) -> RunMark:
    return run.uuid, run.schedule_id or run.job_id


def check(world: World, tenant: str, wanted: Wanted) -> None:
    """Raises NotFound where there is no such job, or it has no such schedule."""
    if wanted.job_id is not None:
        _owners(world, tenant, wanted.job_id, wanted.schedule_id)


def listed(
    world: World, tenant: str, wanted: Wanted, behind: RunMark | None, page: int, now: datetime
) -> Iterator[Run]:
    """Latest planned first, behind a mark, state and kind not looked at. page: rows that a query reads. now: of the
    request, which may be long ago. Raises NotFound.
    """
    if wanted.job_id is not None:
        owners = _owners(world, tenant, wanted.job_id, wanted.schedule_id)
        yield from views.merged_runs(world.table, tenant, owners, behind, page)
    elif wanted.schedule_id is not None:
        yield from views.runs_of(world.table, tenant, wanted.schedule_id, behind, page)
    else:
        yield from _attention(world, tenant, behind, page, now)


def _owners(world: World, tenant: str, job_id: str, schedule_id: str | None) -> list[str]:
    planned = plan.find(world, tenant, job_id)
    if schedule_id is not None:
        return [plan.find_schedule(planned, schedule_id).id]
    return [job_id, *(each.id for each in planned.schedules)]


def _attention(world: World, tenant: str, behind: RunMark | None, page: int, now: datetime) -> Iterator[Run]:
    until_ms = epoch_ms(now + timedelta(days=1))
    if behind is not None:
        until_ms = min(until_ms, instant_ms_of(behind[0]))
    since = (now - timedelta(days=ATTENTION_DAYS)).date()
    found = views.attention(world.table, tenant, since, from_ms(until_ms), behind, page)
    began = tenancy.began_at(world, tenant)
    yield from found if began is None else takewhile(lambda run: run.planned_at >= began - PAST_GRACE, found)
