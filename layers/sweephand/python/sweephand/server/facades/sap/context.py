"""The context of an operation of the SAP facade, and the small steps that many operations share."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from sweephand.base.errors import InvalidRequest, NotFound
from sweephand.base.records import dataclass
from sweephand.domain.job import Job
from sweephand.domain.schedule import Schedule
from sweephand.formats import strict_json
from sweephand.formats.sap.fields import FACADE
from sweephand.server.facades.api import RequestContext
from sweephand.server.flow.job_parts.change_log import By, Operation
from sweephand.server.flow.jobs import lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.tenants.integer_ids import Ordinals
from sweephand.server.security.caller import PROVIDER, Caller, is_tenant_name

T = TypeVar("T")
MAX_BODY = 102_400
_INTEGER = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)


@dataclass(frozen=True)
class Context(RequestContext):
    """The context of one request. caller: verified. ordinals: for the integer ids of jobs."""

    caller: Caller
    ordinals: Ordinals

    @property
    def own(self) -> str:
        """The caller's namespace. Jobs of provider level have a namespace of their own."""
        return self.caller.tenant or PROVIDER

    @property
    def target_tenant(self) -> str:
        """The namespace of the request: the caller's own, or the tenant that a caller of provider level names."""
        return self.named_tenant() or self.own

    def existing_tenant(self, *, stays: bool = True) -> str:
        """Returns the namespace of the request. A named tenant must exist.

        stays: True for writes, which a tenant in deletion refuses. Raises NotFound, and Conflict for such a tenant.
        """
        if self.target_tenant != self.own:
            try:
                named = tenancy.find_tenant(self.world, self.target_tenant)
            except NotFound as unknown:
                raise NotFound("Tenant Not Found") from unknown
            if stays and named.purge is not None:
                raise named.being_purged()
        return self.target_tenant

    def named_tenant(self) -> str | None:
        """Returns the tenant that a caller of provider level asks for. Raises InvalidRequest for a tenant's caller."""
        tenant = self.option("tenantId")
        if tenant is None:
            return None
        if not self.caller.provider:
            raise InvalidRequest(None, "tenantId is for callers of provider level")
        if not is_tenant_name(tenant):
            raise InvalidRequest(None, "Invalid tenantId")
        return tenant

    def refuse_tenant_header(self) -> None:
        """Raises InvalidRequest for a header of the native API that would have no effect here."""
        if self.request.headers.get("sweephand-tenant", self.caller.tenant) != self.caller.tenant:
            reason = "the header Sweephand-Tenant has no effect here: provider credentials name a tenant by ?tenantId="
            raise InvalidRequest(None, reason)

    def option(self, name: str) -> str | None:
        """Returns a query parameter; ignores the value that SAP's client sends for an option without one."""
        value = self.query.get(name)
        return None if value in (None, "", "undefined") else value

    def flag(self, name: str, *, usual: bool) -> bool:
        value = self.option(name)
        if value is None:
            return usual
        if value not in {"true", "false"}:
            raise InvalidRequest(None, f"{name} must be true or false")
        return value == "true"

    def body(self) -> Any:
        if len(self.request.body) > MAX_BODY:
            reason = f"the body has {len(self.request.body):,} bytes; the maximum is {MAX_BODY:,}"
            raise InvalidRequest(None, reason, code="TOO_LARGE")
        if not self.request.body:
            raise InvalidRequest(None, "a JSON body is required")
        return strict_json.loads(self.request.plain_body(), max_bytes=MAX_BODY)

    def by(self, operation: Operation = Operation.CHANGE) -> By:
        """Returns the author of a change, for the change log."""
        return By(operation, f"{self.own}.{self.caller.credential_id}")

    # Job and schedule of the path

    def job_key(self, integer_id: str | None = None) -> tuple[str, str]:
        """Returns tenant and id of the job with the integer id of the path. Raises NotFound, also for others' jobs."""
        integer = self.parameters["job"] if integer_id is None else integer_id
        if not _INTEGER.fullmatch(integer):
            raise NotFound("Job Not Found")
        place = self.ordinals.find(int(integer), self.caller.tenant or self.named_tenant())
        if place is None:
            raise NotFound("Job Not Found")
        return place

    def find(self, integer_id: str | None = None) -> Planned:
        """Returns the job with its schedules. Raises NotFound."""
        try:
            planned = lookup.find(self.world, *self.job_key(integer_id))
        except NotFound as unknown:
            raise NotFound("Job Not Found") from unknown
        return _made_here(planned, planned.job)

    def find_job(self) -> Job:
        try:
            job = lookup.find_job(self.world, *self.job_key())
        except NotFound as unknown:
            raise NotFound("Job Not Found") from unknown
        return _made_here(job, job)

    def find_schedule(self, planned: Planned, schedule_id: str | None = None) -> Schedule:
        """Returns a job's schedule: the one in the path, or the given one. Raises NotFound."""
        try:
            return lookup.find_schedule(planned, self.parameters["schedule"] if schedule_id is None else schedule_id)
        except NotFound as unknown:
            raise NotFound("Schedule Not Found") from unknown


def _made_here(resource: T, job: Job) -> T:
    """Raises NotFound for a job that this facade did not make."""
    if job.facade != FACADE:
        raise NotFound("Job Not Found")
    return resource
