"""The target of an import: a stack's SAP facade. A request has at most 40 schedules and 100 KB."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweephand.cli.imports.sap_form import Changes, Form, form, schedule_changes
from sweephand.cli.imports.sap_service import SapService
from sweephand.cli.imports.service import Failed
from sweephand.domain.job import SCHEDULES_AT_ONCE
from sweephand.formats.sap.fields import COLLECTION

LONGEST_BODY = 100_000


@dataclass(frozen=True)
class Place:
    """The target of copies: the tenant of the credential, or the named one at provider level."""

    service: SapService
    tenant: str | None

    @property
    def _query(self) -> dict[str, str]:
        return {} if self.tenant is None else {"tenantId": self.tenant}

    def marked(self, mark: str) -> Any:
        """Returns the copy from an earlier import in the form of SAP's API; None without one."""
        headers = {} if self.tenant is None else {"Sweephand-Tenant": self.tenant}
        jobs = self.service.call("GET", "/v1/jobs", headers=headers, query={"resourceId": mark})["items"]
        return self.named(jobs[0]["name"]) if jobs else None

    def copies(self, mark: str) -> Iterator[Any]:
        """Yields the jobs whose mark begins with `mark`, in the form of the native API. Raises Failed."""
        headers = {} if self.tenant is None else {"Sweephand-Tenant": self.tenant}
        try:
            self.service.call("GET", f"/v1/collections/{COLLECTION}", headers=headers)
        except Failed as failed:
            if failed.status != 404:
                raise
            return  # the target has had no job of SAP's API yet
        query: dict[str, str | int] = {"collection": COLLECTION, "limit": 200}
        while True:
            page = self.service.call("GET", "/v1/jobs", headers=headers, query=query)
            yield from (each for each in page["items"] if str(each["resourceId"]).startswith(mark))
            if page["nextCursor"] is None:
                return
            query["cursor"] = page["nextCursor"]

    def named(self, name: str) -> Any:
        query = {"name": name, "displaySchedules": "true", **self._query}
        try:
            return self.service.call("GET", "/scheduler/jobs", query=query)
        except Failed as failed:
            if failed.status != 404:
                raise
            return None

    def create(self, body: Mapping[str, Any], mark: str) -> None:
        """Creates a copy. mark: identifies the copy in later imports.

        A job with more schedules than a request may have is switched on after the last one. If the import is
        interrupted before that, the copy is switched off and incomplete, and the next import completes it.
        """
        first, rest = first_of(body)
        job_id = self._create({**body, "active": body["active"] and not rest, "schedules": first}, mark)
        if rest:
            self.change(job_id, {"active": True} if body["active"] else {}, Form(dict(body)), Changes(rest, (), ()))

    def _create(self, body: Mapping[str, Any], mark: str) -> object:
        """Creates the job and returns its id.

        A name that was taken meanwhile is refused, except with a credential of provider level. If an answer was lost,
        the repeated request may find the job that the first one created.
        """
        try:
            if self.tenant is None:
                return self.service.call("POST", "/scheduler/jobs", body)["_id"]
            return self.service.call("PUT", f"/scheduler/jobs/{body['name']}", body, query=self._query)["_id"]
        except Failed:
            copy = self.marked(mark)
            if copy is None:
                raise
            return copy["_id"]

    def change(self, job_id: object, members: Mapping[str, Any], wanted: Form, schedules: Changes) -> None:
        """Changes a copy. Switches it off before all other changes, and on after them.

        Schedules that are not in `schedules` stay unchanged.
        """
        last = {"active": True} if schedules and members.get("active") else {}
        first = {name: value for name, value in members.items() if name not in last}
        where = f"/scheduler/jobs/{job_id}"
        if first:
            self.service.call("PUT", where, first)
        self._remove(job_id, schedules.gone)
        for schedule_id, changed in schedules.changed:
            self.service.call("PUT", f"{where}/schedules/{schedule_id}", changed)
        for schedule in schedules.new:
            self.service.call("POST", f"{where}/schedules", schedule)
        if schedules.new:
            # A request with a lost answer was repeated, so a schedule may exist twice.
            copy = form(self.service.job(job_id), self.service.clock.now())
            self._remove(job_id, schedule_changes(wanted, copy).gone)
        if last:
            self.service.call("PUT", where, last)

    def _remove(self, job_id: object, schedule_ids: Sequence[str]) -> None:
        for schedule_id in schedule_ids:
            try:
                self.service.call("DELETE", f"/scheduler/jobs/{job_id}/schedules/{schedule_id}")
            except Failed as failed:
                if failed.status != 404:  # 404: already deleted
                    raise


def first_of(body: Mapping[str, Any]) -> tuple[list[Any], Sequence[Any]]:
    """Returns the schedules in the request for a new job, and the remaining ones."""
    schedules: list[Any] = body["schedules"]
    size, fitting = _size({**body, "schedules": []}), 0
    for schedule in schedules[:SCHEDULES_AT_ONCE]:
        size += _size(schedule) + 1
        if size > LONGEST_BODY:
            break
        fitting += 1
    return schedules[:fitting], schedules[fitting:]


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
