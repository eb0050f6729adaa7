"""SAP's API as one side of an import: its own service, or the SAP facade of a stack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sweephand.cli.commands.files import unreadable
from sweephand.cli.imports.service import Access, Failed, Service

PAGE = 100


class SapService(Service):
    """A client of SAP's API."""

    def listed(self, tenant: str | None) -> Iterator[dict[str, Any]]:
        """Yields all jobs of the list. tenant: None for all tenants. Raises Failed."""
        narrowed = {} if tenant is None else {"tenantId": tenant}
        offset = 0
        while True:
            page = self.call("GET", "/scheduler/jobs", query={"page_size": PAGE, "offset": offset, **narrowed})
            if not isinstance(page, dict) or not isinstance(page.get("results"), list):
                raise Failed(f"{self.base_url}/scheduler/jobs: its answer is not a list of jobs")
            yield from page["results"]
            offset += PAGE
            if not page["results"] or (page.get("next_url") is None and offset >= page.get("total", 0)):
                return

    def job(self, job_id: object) -> dict[str, Any]:
        """Returns a job with its schedules. Raises Failed."""
        answer = self.call("GET", f"/scheduler/jobs/{job_id}", query={"displaySchedules": "true"})
        if not isinstance(answer, dict):
            raise Failed(f"{self.base_url}/scheduler/jobs/{job_id}: its answer is not a job")
        return answer


def service_key(path: str) -> Access:
    """Reads a service key from the cockpit or `cf service-key`, or the VCAP_SERVICES of a binding.

    Raises Failed.
    """
    try:
        credentials = _credentials(json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, RecursionError, ValueError) as wrong:
        raise Failed(unreadable(path, wrong)) from wrong
    if credentials is None:
        raise Failed(f"{path}: must contain a url with uaa, or with user and password")
    uaa = credentials.get("uaa")
    try:
        if isinstance(uaa, dict):
            token_url = f"{uaa['url'].rstrip('/')}/oauth/token"
            return Access(credentials["url"], uaa["clientid"], uaa["clientsecret"], token_url)
        return Access(credentials["url"], credentials["user"], credentials["password"])
    except KeyError as missing:
        raise Failed(f"{path}: {missing} is missing: a key with a secret is needed, not with a certificate") from None


def _credentials(value: Any) -> dict[str, Any] | None:
    """Returns the object with the address, inside VCAP_SERVICES, a service's label or `credentials`."""
    if isinstance(value, list):
        return next((credentials for each in value if (credentials := _credentials(each))), None)
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("url"), str) and ("uaa" in value or "user" in value):
        return value
    inner = [value[name] for name in ("VCAP_SERVICES", "jobscheduler", "credentials") if name in value]
    return next((credentials for each in inner if (credentials := _credentials(each))), None)
