"""The demo: some jobs in one tenant, created through the public API, that call the demo's own endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sweephand.local.api import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sweephand.local.api import Api

TENANT = "acme"


@dataclass(frozen=True)
class DemoJob:
    """A job of the demo. period_s: between two occurrences. reaches_us: its calls arrive at the demo's endpoint."""

    name: str
    period_s: int
    reaches_us: bool
    body: dict[str, Any]


def _job(name: str, url: str, schedule: dict[str, Any], **action: Any) -> dict[str, Any]:
    return {
        "name": name,
        "description": "Part of the demo of the local stack",
        "active": True,
        "action": {"type": "http", "method": "POST", "url": url, "payload": {"demo": name}, **action},
        "schedules": [schedule],
    }


def jobs(url: str, closed_url: str) -> tuple[DemoJob, ...]:
    """Returns the jobs of the demo. url: of the endpoint. closed_url: an address where nothing listens."""
    retry = {"type": "fixed", "maxRetries": 4, "delaySeconds": 5}
    return (
        DemoJob("demo-beat", 10, True, _job("demo-beat", f"{url}/sync", {"name": "10s", "every": "PT10S"})),
        DemoJob(
            "demo-flaky", 20, True, _job("demo-flaky", f"{url}/flaky", {"name": "20s", "every": "PT20S"}, retry=retry)
        ),
        DemoJob("demo-slow", 30, True, _job("demo-slow", f"{url}/slow", {"name": "30s", "every": "PT30S"})),
        DemoJob("demo-minute", 60, True, _job("demo-minute", f"{url}/sync", {"name": "cron", "cron": "* * * * *"})),
        DemoJob("demo-closed", 60, False, _job("demo-closed", f"{closed_url}/", {"name": "60s", "every": "PT60S"})),
    )


def scenery(url: str) -> dict[str, dict[str, Any]]:
    """Returns the jobs that are only for show in the console, by name: one at night, and one that is paused at once."""
    night = {"name": "weekdays", "cron": "30 2 * * 1-5", "timezone": "Europe/Berlin"}
    return {
        "demo-nightly": _job("demo-nightly", f"{url}/sync", night),
        "demo-paused": _job("demo-paused", f"{url}/sync", {"name": "30s", "every": "PT30S"}),
    }


def ensure_scenery(api: Api, url: str) -> None:
    """Creates the scenery that is not there yet."""
    jobs_by_name = _by_name(api)
    for name, body in scenery(url).items():
        if name not in jobs_by_name:
            job = api.call("POST", "/v1/jobs", body)
            if name == "demo-paused":
                api.call("POST", f"/v1/jobs/{job['id']}/pause", {"note": "the supplier moves to another system"})


def ensure(api: Api, wanted: Sequence[DemoJob]) -> dict[str, str]:
    """Creates the jobs, or activates existing ones with the current address. Returns job ids by name."""
    jobs_by_name = _by_name(api)
    for demo in wanted:
        if demo.name not in jobs_by_name:
            try:
                jobs_by_name[demo.name] = api.call("POST", "/v1/jobs", demo.body)
            except Refused as refused:
                if refused.code != "NAME_TAKEN":
                    raise
                jobs_by_name = _by_name(api)  # a report that began at the same moment has created it
        job = jobs_by_name[demo.name]
        if not job["active"] or job["action"]["url"] != demo.body["action"]["url"]:
            patch = {"active": True, "action": {"url": demo.body["action"]["url"]}}
            api.call("PATCH", f"/v1/jobs/{job['id']}", patch)
    return {demo.name: jobs_by_name[demo.name]["id"] for demo in wanted}


def _by_name(api: Api) -> dict[str, Any]:
    return {job["name"]: job for job in api.items("/v1/jobs")}


def suspend_orphans(api: Api) -> None:
    """Deactivates the jobs of a demo that ended together with its stack."""
    names = {demo.name for demo in jobs("", "")} | scenery("").keys()
    suspend(api, [job["id"] for job in api.items("/v1/jobs") if job["name"] in names and job["active"]])


def suspend(api: Api, ids: Sequence[str]) -> None:
    """Deactivates the jobs, because their endpoint ends with this process."""
    for job_id in ids:
        api.call("PATCH", f"/v1/jobs/{job_id}", {"active": False})
