"""Copies jobs and schedules out of SAP Job Scheduling Service, over its own API, into the SAP facade of a stack.

It can be repeated: each copy carries the address of its source and its id there as `resourceId`, so a second run
changes what has changed since and creates nothing twice.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

import httpx

PAGE = 100
TIMEOUT_S = 30.0
MODES = ("cron", "time", "repeatInterval", "repeatAt")
JOB_MEMBERS = (
    "name",
    "description",
    "action",
    "active",
    "httpMethod",
    "startTime",
    "endTime",
    "ansConfig",
    "calmConfig",
)


class Failed(Exception):
    """One side refused a request, or did not answer."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="source", required=True, metavar="URL", help="base URL of the service to copy from"
    )
    parser.add_argument("--credentials", metavar="ID:SECRET", help="for --from; else SWEEPHAND_IMPORT_CREDENTIALS")
    parser.add_argument("--to", metavar="URL", help="base URL of the stack; else SWEEPHAND_URL")
    parser.add_argument("--to-credentials", metavar="ID:SECRET", help="for --to; else SWEEPHAND_CREDENTIALS")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")


def run(options: argparse.Namespace) -> int:
    given = {
        "--credentials": options.credentials or os.environ.get("SWEEPHAND_IMPORT_CREDENTIALS"),
        "--to": options.to or os.environ.get("SWEEPHAND_URL"),
        "--to-credentials": options.to_credentials or os.environ.get("SWEEPHAND_CREDENTIALS"),
    }
    for name, value in given.items():
        if not value:
            sys.stderr.write(f"{name} is missing\n")
            return 2
    source = Service.at(options.source, given["--credentials"] or "")
    target = Service.at(given["--to"] or "", given["--to-credentials"] or "")
    try:
        return copy(source, target, dry_run=options.dry_run, out=sys.stdout)
    except Failed as failed:
        sys.stderr.write(f"{failed}\n")
        return 1
    finally:
        source.client.close()
        target.client.close()


@dataclass(frozen=True)
class Service:
    """One side. base_url: without a slash at its end."""

    base_url: str
    client: httpx.Client

    @classmethod
    def at(cls, base_url: str, credentials: str) -> Service:
        """credentials: `id:secret`."""
        client_id, _, secret = credentials.partition(":")
        base_url = base_url.rstrip("/")
        auth = httpx.BasicAuth(client_id, secret)
        return cls(base_url, httpx.Client(base_url=base_url, auth=auth, timeout=TIMEOUT_S))

    def call(self, method: str, path: str, body: Any = None, **query: str | int) -> Any:
        """The answer's JSON. Raises Failed with the service's own words."""
        try:
            answer = self.client.request(method, path, json=body, params=query or None)
        except httpx.HTTPError as error:
            raise Failed(f"{self.base_url}: {error}") from error
        try:
            told = answer.json() if answer.content else None
        except ValueError:
            told = None
        if not answer.is_success:
            words = told.get("message") or told.get("detail") if isinstance(told, dict) else None
            raise Failed(f"{method} {self.base_url}{path}: {answer.status_code} {words or answer.text[:200]}")
        return told

    def jobs(self) -> Iterator[Any]:
        """All jobs, each with its schedules."""
        offset = 0
        while True:
            page = self.call("GET", "/scheduler/jobs", page_size=PAGE, offset=offset)
            for listed in page["results"]:
                yield self.call("GET", f"/scheduler/jobs/{listed['_id']}", displaySchedules="true")
            offset += PAGE
            if page.get("next_url") is None and offset >= page.get("total", 0):
                return


def copy(source: Service, target: Service, *, dry_run: bool, out: TextIO) -> int:
    """Copies every job; one line each on `out`. Returns the exit status: 1 where a job could not be copied."""
    counts = {"created": 0, "changed": 0, "unchanged": 0, "failed": 0}
    for job in source.jobs():
        try:
            verdict, remark = _copy(source, target, job, dry_run=dry_run)
        except Failed as failed:
            verdict, remark = "failed", str(failed)
        counts[verdict] += 1
        line = f"{verdict:<10} {job['name']}  ({len(job['schedules'])} schedules)  {remark}"
        out.write(line.rstrip() + "\n")
    mood = "would be " if dry_run else ""
    out.write(mood + ", ".join(f"{name} {number}" for name, number in counts.items()) + "\n")
    return 1 if counts["failed"] else 0


def _copy(source: Service, target: Service, job: Mapping[str, Any], *, dry_run: bool) -> tuple[str, str]:
    """What became of a job (created, changed, unchanged), and what its owner must know."""
    mark = marked(source.base_url, job["_id"])
    wanted, remark = wanted_job(job, mark)
    there = _there(target, mark)
    if there is not None and wanted_job(there, mark)[0] == {**wanted, "active": there["active"] and wanted["active"]}:
        return "unchanged", remark
    verdict = "created" if there is None else "changed"
    if not dry_run:
        if there is not None and there["name"] != wanted["name"]:
            target.call("PUT", f"/scheduler/jobs/{there['_id']}", {"name": wanted["name"]})
        target.call("PUT", f"/scheduler/jobs/{wanted['name']}", wanted)
    return verdict, remark


def marked(base_url: str, job_id: object) -> str:
    """By what the copy of a job is found again."""
    return f"sap:{hashlib.sha256(base_url.encode()).hexdigest()[:16]}:{job_id}"


def _there(target: Service, mark: str) -> Any:
    """The copy that an earlier run made, as SAP's API shows it."""
    found = target.call("GET", "/v1/jobs", resourceId=mark)["items"]
    if not found:
        return None
    return target.call("GET", "/scheduler/jobs", name=found[0]["name"], displaySchedules="true")


def wanted_job(job: Mapping[str, Any], mark: str) -> tuple[dict[str, Any], str]:
    """A job as it is read, in the form in which it is asked for, and a remark.

    A password is never shown, so a job with Basic credentials arrives without them and switched off.
    """
    wanted = {name: job[name] for name in JOB_MEMBERS if job.get(name) is not None}
    wanted["schedules"] = [_schedule(each) for each in job["schedules"]]
    wanted["resourceId"] = mark
    if not job.get("user"):
        return wanted, ""
    return {**wanted, "active": False}, f"has the user {job['user']}: give its password, and switch it on"


def _schedule(schedule: Mapping[str, Any]) -> dict[str, Any]:
    names = ("description", "active", "startTime", "endTime", *MODES)
    wanted = {name: schedule[name] for name in names if schedule.get(name) not in (None, "")}
    data = schedule.get("data")
    if data:
        wanted["data"] = json.loads(data) if isinstance(data, str) else data
    return wanted
