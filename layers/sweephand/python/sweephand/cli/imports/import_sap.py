"""Copies jobs and schedules from SAP Job Scheduling Service, through its API, to the SAP facade of a stack.

The import can be repeated, because the `resourceId` of a copy contains the address of its source and its id there. A
second import updates differences and creates no duplicates. Jobs that are not copies are never touched.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any, TextIO
from urllib.parse import quote

import click

from sweephand.base.errors import InvalidRequest
from sweephand.base.sources import SystemClock
from sweephand.cli.imports.sap_form import Form, differing, form, is_on, schedule_changes
from sweephand.cli.imports.sap_place import Place
from sweephand.cli.imports.sap_service import SapService, service_key
from sweephand.cli.imports.service import Access, Failed, access, target, target_options

NO_HEADER_OVER_HTTP = "its target gets no Authorization: the stack sends its token over https only"
NO_HEADER_AT_ALL = "its target gets no Authorization: the stack has no identity (parameter OutboundIdentity)"
GONE = "its job no longer exists in the old service; the copy is {}: delete it, or keep it"
NO_PASSWORD = "has the user {}: give its password, and switch it on"  # noqa: S105 - a message, not a password


def command() -> click.Command:
    """Returns the command `import sap`."""
    described = {
        "--from": ("URL", "Base URL of the service to copy from."),
        "--credentials": ("ID:SECRET", "For --from; default: SWEEPHAND_IMPORT_CREDENTIALS."),
        "--token-url": ("URL", "The OAuth token endpoint for --credentials; default: Basic authentication."),
        "--service-key": ("FILE", "A service key or VCAP_SERVICES, instead of these three."),
        "--tenant": ("ID", "Copy only the jobs of this tenant of the source (its tenantId)."),
    }
    names = {"--from": "source"}
    options: list[click.Parameter] = [
        click.Option([each, *([names[each]] if each in names else [])], metavar=kind, help=about)
        for each, (kind, about) in described.items()
    ]
    to_tenant = "The tenant for the jobs of a subdomain, or for all jobs; needs --to-credentials of provider level."
    return click.Command(
        "sap",
        help="Copy jobs from SAP Job Scheduling Service.",
        params=[
            *options,
            *target_options(),
            click.Option(["--to-tenant"], metavar="[SUBDOMAIN=]TENANT", multiple=True, help=to_tenant),
            click.Option(["--inactive"], is_flag=True, help="Create copies switched off, until --switch."),
            click.Option(["--switch"], is_flag=True, help="Copy, then switch the copies on and the old jobs off."),
            click.Option(["--dry-run"], is_flag=True, help="Print what would be done, and do nothing."),
        ],
        callback=lambda **members: run(SimpleNamespace(**members)),
    )


def run(options: Any) -> int:
    """Runs the command. Returns the exit status."""
    if options.inactive and options.switch:
        raise click.UsageError("--inactive and --switch exclude each other")
    try:
        source, to = _accesses(options)
    except Failed as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 2
    clock = SystemClock()
    one, other = SapService.at(source, clock), SapService.at(to, clock)
    try:
        copying = Copying(
            one,
            other,
            tenant=options.tenant,
            to_tenants=list(options.to_tenant),
            inactive=options.inactive,
            switch=options.switch,
            dry_run=options.dry_run,
        )
        return copying.run(sys.stdout, sys.stderr)
    finally:
        one.client.close()
        other.client.close()


def _accesses(options: Any) -> tuple[Access, Access]:
    """Returns source and target. Raises Failed if an option is missing."""
    if options.service_key is not None:
        for name in ("source", "credentials", "token_url"):
            if getattr(options, name) is not None:
                shown = "--from" if name == "source" else f"--{name.replace('_', '-')}"
                raise Failed(f"{shown} and --service-key exclude each other: leave out {shown}")
        source = service_key(options.service_key)
    else:
        pair = options.credentials or os.environ.get("SWEEPHAND_IMPORT_CREDENTIALS")
        source = access(("--from", options.source), ("--credentials", pair), options.token_url)
    return source, target(options)


@dataclass
class Copying:
    """One import.

    tenant: of the source. to_tenants: values of --to-tenant. taken: names used by this import. tenants: of the target,
    True for those that exist. seen: the marks of the jobs in the source.
    """

    source: SapService
    target: SapService
    tenant: str | None = None
    to_tenants: list[str] = field(default_factory=list)
    inactive: bool = False
    switch: bool = False
    dry_run: bool = False
    taken: dict[tuple[str | None, str], str] = field(default_factory=dict)
    tenants: dict[str, bool] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def run(self, out: TextIO, err: TextIO) -> int:
        """Copies every job. Writes a line for each to `out`, and one with the counts.

        Returns the exit status: 1 if a job could not be copied or the list could not be read to its end.
        """
        counts = {"created": 0, "changed": 0, "unchanged": 0, "failed": 0}
        ended: str | None = None
        try:
            by_tenant = self._is_of_provider_level()
            for listed in self.source.listed(self.tenant):
                verdict, line = self._line(listed, by_tenant=by_tenant)
                counts[verdict] += 1
                out.write(f"{verdict:<10} {line}".rstrip() + "\n")
            for line in self._gone(by_tenant=by_tenant):
                counts["gone"] = counts.get("gone", 0) + 1
                out.write(f"{'gone':<10} {line}\n")
        except Failed as failed:
            ended = str(failed)
        mood = "would be " if self.dry_run else ""
        out.write(mood + ", ".join(f"{name} {number}" for name, number in counts.items()) + "\n")
        if ended is not None:
            err.write(f"ended early: {ended}\n")
        return 1 if counts["failed"] or ended is not None else 0

    def _is_of_provider_level(self) -> bool:
        """Returns True if the target's credential may name a tenant. Raises Failed."""
        try:
            self.target.call("GET", "/scheduler/jobs", query={"page_size": 1, "tenantId": "any"})
        except Failed as failed:
            if failed.status != 400:
                raise
            if self.to_tenants:
                raise Failed("--to-tenant needs --to-credentials of provider level") from failed
            return False
        return True

    def _line(self, listed: Mapping[str, Any], *, by_tenant: bool) -> tuple[str, str]:
        """Copies one job. Returns the verdict and the line about it."""
        name = listed.get("name")
        try:
            job = self.source.job(listed.get("_id", listed.get("jobId")))
            self.seen.add(marked(self.source.base_url, job["_id"]))
            place = Place(self.target, self._tenant_of(listed) if by_tenant else None)
            copy = place.marked(marked(self.source.base_url, job["_id"]))
            if self._is_switched(job, copy):
                return "unchanged", f"{name}  already switched"
            wanted = form(job, self.source.clock.now(), copy)
            verdict, remarks = self._copy(place, job, wanted, copy)
        except (Failed, InvalidRequest) as failed:
            return "failed", f"{name}  {failed}"
        shown = "; ".join([*wanted.remarks, *remarks])
        return verdict, f"{name}  ({len(wanted.body['schedules'])} schedules)  {shown}"

    def _gone(self, *, by_tenant: bool) -> Iterator[str]:
        """Yields a line for each copy whose job was deleted in the source. Raises Failed.

        Yields nothing if a tenant of the source was named, because its list then contains only some of the jobs.
        """
        if self.tenant is not None:
            return
        for tenant in sorted(name for name, exists in self.tenants.items() if exists) if by_tenant else [None]:
            for copy in Place(self.target, tenant).copies(marked(self.source.base_url, "")):
                if copy["resourceId"] not in self.seen:
                    yield f"{copy['name']}  {GONE.format('on' if copy['active'] else 'off')}"

    @cached_property
    def _has_identity(self) -> bool:
        """Returns True if the stack signs its own tokens. Raises Failed."""
        try:
            self.target.call("GET", "/.well-known/jwks.json")
        except Failed as failed:
            if failed.status != 404:
                raise
            return False
        return True

    def _without_header(self, job: Mapping[str, Any]) -> list[str]:
        """Returns the reason if the target of a switched job will get no Authorization header. Raises Failed."""
        if job.get("user"):
            return []
        if str(job.get("action")).lower().startswith("http:"):
            return [NO_HEADER_OVER_HTTP]
        return [] if self._has_identity else [NO_HEADER_AT_ALL]

    def _is_switched(self, job: Mapping[str, Any], copy: Any) -> bool:
        """Returns True if the copy is on and the job is off. The copy then takes precedence and stays as it is.

        Without --switch and --inactive, an import also switches the copy off.
        """
        on_here = copy is not None and bool(copy["active"])
        return on_here and not is_on(job) and (self.switch or self.inactive)

    def _tenant_of(self, listed: Mapping[str, Any]) -> str:
        """Returns the target's tenant for a job. Raises Failed."""
        pairs = dict(each.split("=", 1) for each in self.to_tenants if "=" in each)
        every = next((each for each in self.to_tenants if "=" not in each), None)
        whose = str(listed.get("subDomain") or "")
        tenant = pairs.get(whose) or every or whose
        if not tenant:
            raise Failed("it has no subDomain: name the tenant with --to-tenant")
        if tenant not in self.tenants:
            self.tenants[tenant] = self._is_there(tenant)
        if not self.tenants[tenant]:
            raise Failed(
                f"the stack has no tenant {tenant}: create it, or name another with --to-tenant {whose}=TENANT"
            )
        return tenant

    def _is_there(self, tenant: str) -> bool:
        """Returns False if the tenant does not exist, True if reading it is forbidden: the first write will tell."""
        try:
            self.target.call("GET", f"/v1/tenants/{quote(tenant, safe='')}")
        except Failed as failed:
            if failed.status not in {403, 404}:
                raise
            return failed.status == 403
        return True

    def _copy(self, place: Place, job: Mapping[str, Any], wanted: Form, copy: Any) -> tuple[str, list[str]]:
        """Returns created, changed or unchanged, and remarks for the owner. copy: None without one. Raises Failed."""
        mark = marked(self.source.base_url, job["_id"])
        self._check_name(place, wanted.body["name"], mark, copy)
        secret_missing = bool(job.get("user")) and (copy is None or copy.get("user") != job["user"])
        active = self._active(wanted.body["active"], job, copy, secret_missing=secret_missing)
        remarks = [NO_PASSWORD.format(job["user"])] if secret_missing else []
        body = {**wanted.body, "active": active, "resourceId": mark}
        if copy is None:
            verdict = "created"
            if not self.dry_run:
                place.create(body, mark)
        else:
            current = form(copy, self.source.clock.now())
            changes = differing({**wanted.body, "active": active}, current.body)
            schedules = schedule_changes(wanted, current)
            verdict = "changed" if changes or schedules else "unchanged"
            if not self.dry_run:
                place.change(copy["_id"], changes, wanted, schedules)
        if self.switch and wanted.body["active"]:
            if secret_missing:
                raise Failed(f"not switched: {remarks[0]}, or the job off")
            if not self.dry_run:
                self.source.call("PUT", f"/scheduler/jobs/{job['_id']}", {"active": False})
            remarks.append("to be switched" if self.dry_run else "switched")
            remarks += self._without_header(job)
        return verdict, remarks

    def _check_name(self, place: Place, name: str, mark: str, copy: Any) -> None:
        """Raises Failed if a job that is not a copy of this one has the name."""
        holder = self.taken.setdefault((place.tenant, name), mark)
        if holder == mark and copy is not None and copy["name"] == name:
            return
        other = place.named(name)
        if holder != mark or (other is not None and (copy is None or other["_id"] != copy["_id"])):
            raise Failed("its name is taken by a job that is not a copy of it: rename one of them")

    def _active(self, on: bool, job: Mapping[str, Any], copy: Any, *, secret_missing: bool) -> bool:
        """Returns True if the copy is to be active, even if only its owner switched it on. on: the job is active."""
        if copy is None:
            return on and not (self.inactive or secret_missing)
        if self.inactive or secret_missing or (job.get("user") and not self.switch):
            return on and bool(copy["active"])
        return on


def marked(base_url: str, job_id: object) -> str:
    """Returns the mark by which the copy of a job is found."""
    return f"sap:{hashlib.sha256(base_url.encode()).hexdigest()[:16]}:{job_id}"
