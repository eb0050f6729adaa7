"""Integer ids of jobs, unique in the stack: a combination of tenant ordinal and job number (decision 0032)."""

from __future__ import annotations

from sweephand.base.errors import NotFound
from sweephand.domain.job import Job, ordinal_and_number
from sweephand.server.flow.world import World
from sweephand.server.store.jobs import directory, jobs, ordinals


class Ordinals:
    """A cache of tenants' ordinals, for the life of the process, because they never change."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._of_tenant: dict[str, int] = {}
        self._tenant_of: dict[int, str] = {}

    def give(self, tenant: str) -> int:
        """Returns the tenant's ordinal; assigns one if it has none."""
        if tenant not in self._of_tenant:
            self._of_tenant[tenant] = ordinals.give(self._world.table, tenant)
        return self._of_tenant[tenant]

    def find(self, integer: int, tenant: str | None) -> tuple[str, str] | None:
        """Returns the tenant and the id of the job with this integer id, or None.

        tenant: limits the search to this tenant's jobs; None searches those of all tenants.
        """
        ordinal, number = ordinal_and_number(integer)
        owner = tenant if tenant is not None else self._owner(ordinal)
        if owner is None or (tenant is not None and self._known(tenant) != ordinal):
            return None
        job_id = directory.job_id_of(self._world.table, owner, number)
        return None if job_id is None else (owner, job_id)

    def _known(self, tenant: str) -> int | None:
        if tenant not in self._of_tenant:
            ordinal = ordinals.read(self._world.table, tenant)
            if ordinal is None:
                return None
            self._of_tenant[tenant] = ordinal
        return self._of_tenant[tenant]

    def _owner(self, ordinal: int) -> str | None:
        if ordinal not in self._tenant_of:
            tenant = ordinals.tenant_of(self._world.table, ordinal)
            if tenant is None:
                return None
            self._tenant_of[ordinal] = tenant
        return self._tenant_of[ordinal]


def job_with(world: World, tenant: str, integer: int) -> Job:
    """Returns the tenant's job with this integer id. Raises NotFound if there is none."""
    place = Ordinals(world).find(integer, tenant)
    job = None if place is None else jobs.read_job(world.table, *place)
    if job is None or job.integer_id != integer:
        raise NotFound("no such job")
    return job
