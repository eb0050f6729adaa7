"""The limits of the Free plan for the jobs that a collection has."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from sweephand.base.errors import QuotaExceeded
from sweephand.base.lazy import lazy
from sweephand.domain.collection import Collection
from sweephand.domain.job import Job
from sweephand.formats.azure import collection_fields as fields
from sweephand.schedules.timing import load_or_never

if TYPE_CHECKING:
    from sweephand.server.facades.azure.context import Context

with lazy():
    from sweephand.server.store.views import jobs as views
    from sweephand.server.store.views import tenants


def check_jobs(ctx: Context, collection: Collection) -> None:
    """Raises QuotaExceeded if the Free plan does not allow the jobs that a collection has."""
    plan = fields.PLANS[fields.FREE]
    (jobs,) = tenants.job_counts(ctx.world.table, [collection])
    if jobs > plan.jobs:
        raise QuotaExceeded(f"the collection has {jobs} jobs; the plan Free allows {plan.jobs}")
    rows = views.by_name(ctx.world.table, ctx.tenant, collection.name, None, plan.jobs)
    ids = [row.job_id for row in islice(rows, plan.jobs)]
    for job, schedules in views.jobs_with_schedules(ctx.world.table, ctx.tenant, ids):
        gaps = [load_or_never(each.packed).clock_interval_s for each in schedules]
        if any(gap is not None and gap < plan.least_s for gap in gaps):
            raise QuotaExceeded(f"the job {job.attributes['name']} recurs more often than the plan Free allows")
        if _authenticates(job):
            raise QuotaExceeded(f"the job {job.attributes['name']} has authentication, which the plan Free forbids")


def _authenticates(job: Job) -> bool:
    action = job.attributes["properties"]["action"]
    return any("authentication" in each.get("request", {}) for each in (action, action.get("errorAction", {})))
