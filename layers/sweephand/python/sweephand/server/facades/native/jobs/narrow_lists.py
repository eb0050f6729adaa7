"""Lists of jobs by values that only the jobs themselves have: job set, type of action, creation and next run.

No index has these values, so the jobs that match the other filters are read. More than MOST of them are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from sweephand.base.errors import InvalidRequest
from sweephand.domain.instants import epoch_ms
from sweephand.domain.occurrences import upcoming
from sweephand.domain.schedule import Schedule
from sweephand.server.actions import KINDS
from sweephand.server.facades.native import cursors
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.jobs.answers import AsHeld, all_as_held
from sweephand.server.facades.native.query import exact_instant, instant
from sweephand.server.store.views import jobs as views
from sweephand.server.store.views import resources
from sweephand.server.store.views.jobs import Filters

MOST = 1_000
"""How many jobs a request reads with their schedules, for about 1,000 read units."""
BY_NEXT_RUN = "nextRunAt"
TOO_MANY = (
    f"would have to read more than {MOST:,} jobs: narrow the list by tag, resourceId, collection, jobSet, name or state"
)
TOO_HARD = (
    "needs the next runs of schedules that take too long to compute together: narrow the list by tag, resourceId,"
    " collection, jobSet, name or state"
)
_LAST = 10**15 - 1
"""The position of a job that will not run, in milliseconds."""


class Found(NamedTuple):
    """A job of the list. place: the list is ordered by it and by the id."""

    place: int
    shown: AsHeld

    @property
    def key(self) -> tuple[int, str]:
        return self.place, self.shown.job.id

    @property
    def mark(self) -> tuple[str, str]:
        return str(self.place), self.shown.job.id


class Window(NamedTuple):
    """The instants from `after` (inclusive) to `before` (exclusive). None: no limit on that side."""

    after: datetime | None
    before: datetime | None

    def has(self, instant: datetime | None) -> bool:
        """Returns whether an instant is inside. None is inside only if there are no limits."""
        if instant is None:
            return self == Window(None, None)
        return (self.after is None or self.after <= instant) and (self.before is None or instant < self.before)


def page(
    ctx: Context, filters: Filters, limit: int, mark: tuple[str, ...] | None
) -> tuple[list[Found], str | None, int]:
    """Returns a page, the cursor of the next one, and the number of matches. Raises InvalidRequest for too many."""
    matching = sorted(_matching(ctx, filters), key=lambda each: each.key)
    after = None if mark is None else (int(mark[0]), mark[1])
    rest = [each for each in matching if after is None or each.key > after][cursors.offset_of(ctx.query) :]
    cursor = ctx.cursor(*rest[limit - 1].mark) if len(rest) > limit else None
    return rest[:limit], cursor, len(matching)


def _matching(ctx: Context, filters: Filters) -> list[Found]:
    created, next_run = _window(ctx, "created"), _window(ctx, "nextRun")
    job_set = ctx.text("jobSet", 128)
    action_type = ctx.choice("actionType", frozenset(KINDS))
    by_next_run = ctx.choice("sort", frozenset({BY_NEXT_RUN})) is not None
    with_schedules = views.jobs_with_schedules(ctx.world.table, ctx.tenant, _candidates(ctx, filters, job_set))
    wanted = [
        (job, schedules)
        for job, schedules in with_schedules
        if filters.hold_now(job, schedules)
        and created.has(job.created_at)
        and job_set in {None, job.job_set}
        and action_type in {None, job.action.kind}
    ]
    matching = []
    for each in all_as_held(ctx, wanted):
        place = epoch_ms(each.job.created_at)
        if by_next_run or next_run != Window(None, None):
            at = _next_run(ctx, each.schedules)
            if not next_run.has(at):
                continue
            if by_next_run:
                place = _LAST if at is None else epoch_ms(at)
        matching.append(Found(place, each))
    return matching


def _next_run(ctx: Context, schedules: Sequence[Schedule]) -> datetime | None:
    """Raises InvalidRequest if the list cannot be ordered or filtered because next runs are too hard to compute."""
    ahead, _ = upcoming.next_of_job(schedules, ctx.now)
    if not ahead.exact:
        raise InvalidRequest(_named(ctx), TOO_HARD, code="INVALID_QUERY")
    return ahead.first


def _window(ctx: Context, name: str) -> Window:
    return Window(*(instant(ctx.query, f"{name}{side}", exact_instant) for side in ("After", "Before")))


def _candidates(ctx: Context, filters: Filters, job_set: str | None) -> list[str]:
    """Returns the ids of the jobs to read."""
    if job_set is not None:
        return [each.job_id for each in resources.members(ctx.world.table, ctx.tenant, job_set)]
    try:
        rows = views.listed(ctx.world.table, ctx.tenant, filters, None, MOST + 1)
        ids = [row.job_id for row in islice(rows, MOST + 1)]
    except views.TooMany as many:
        raise _too_many(ctx) from many
    if len(ids) > MOST:
        raise _too_many(ctx)
    return ids


def _too_many(ctx: Context) -> InvalidRequest:
    return InvalidRequest(_named(ctx), TOO_MANY, code="INVALID_QUERY")


def _named(ctx: Context) -> str:
    """Returns the parameter that needs the jobs themselves."""
    return next(each for each in ctx.query if each.startswith(("nextRun", "sort", "actionType", "created")))
