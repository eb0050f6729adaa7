"""One walk through all routes with the documented requests. Its answers are the examples of openapi.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from tests.contract.calls import Reply
from tests.contract.native.api import JOB, Api, api
from tests.support.endpoint import ACCEPTED
from tools.openapi.examples import REQUESTS

HIDDEN = "..."
"""In the place of what a reader could take for a real secret."""
FORM = {"content-type": "application/x-www-form-urlencoded"}


@dataclass
class Walk:
    """answers: (method, path of the route) -> the body that the last request was answered with.

    Only the beginning of the list of problems.
    """

    api: Api
    answers: dict[tuple[str, str], Any] = field(default_factory=dict)
    statuses: dict[tuple[str, str], int] = field(default_factory=dict)

    def __call__(self, method: str, path: str, *, query: str = "", body: Any = None, **names: str) -> Any:
        where = path.format(**{name: quote(value, safe="") for name, value in names.items()})
        caller = "provider" if path.startswith("/v1/tenants") else "acme"
        return self._note(method, path, self.api(method, where, body, query=query, caller=caller))

    def each(self, method: str, path: str, schema: str, **names: str) -> Any:
        """Sends every example of a schema; the last answer."""
        return [self(method, path, body=body, **names) for body in REQUESTS[schema].values()][-1]

    def form(self, path: str, schema: str) -> None:
        for form in REQUESTS[schema].values():
            self._note("POST", path, self.api("POST", path, raw=urlencode(form), headers=FORM))

    def _note(self, method: str, path: str, reply: Reply) -> Any:
        assert reply.status < 300, (method, path, reply.text)
        body = None
        if reply.text:
            body = reply.text if reply.headers["content-type"].startswith("text/csv") else reply.json
        self.statuses[method, path] = reply.status
        if body is not None:
            self.answers[method, path] = _hidden(body) if path != "/problems" else {**body, "items": body["items"][:1]}
        return body


def walk() -> Walk:
    with api() as there:
        step = Walk(there)
        _service(step)
        _collections(step)
        _calendars(step)
        _flow_keys(step)
        job = _jobs(step)
        _job_sets(step)
        _consumers(step)
        _schedules(step, job)
        _runs(step, job)
        _messages(step)
        _workers(step)
        _errors(step, job)
        _operations(step, job)
        step("DELETE", "/v1/jobs/{job}", job=job)
        return step


def _service(step: Walk) -> None:
    step("GET", "/v1/health")
    step("GET", "/problems")
    step("GET", "/problems/{problem}", problem="invalid-field")
    step("GET", "/.well-known/jwks.json")
    step("GET", "/.well-known/openid-configuration")
    step.form("/oauth/token", "TokenRequest")
    tenant = step.each("POST", "/v1/tenants", "TenantDraft")["tenant"]
    step("GET", "/v1/tenants")
    _subscriptions(step, tenant)
    step("GET", "/v1/tenants/{tenant}", tenant=tenant)
    step.each("PATCH", "/v1/tenants/{tenant}", "TenantPatch", tenant=tenant)
    for verb in ("disable", "enable"):
        step.each("POST", f"/v1/tenants/{{tenant}}/{verb}", "Nothing", tenant=tenant)
    made = step.each("POST", "/v1/credentials", "CredentialDraft")
    step("GET", "/v1/credentials")
    place = "/v1/credentials/{credential}"
    step.each("POST", f"{place}/rotate", "CredentialRotation", credential=made["clientId"])
    step("DELETE", f"{place}/former-secret", credential=made["clientId"])
    step("DELETE", place, credential=made["clientId"])


def _subscriptions(step: Walk, tenant: str) -> None:
    place = "/v1/tenants/{tenant}/subscriptions"
    for application in ("invoicing", "reports"):
        step.each("PUT", f"{place}/{{application}}", "Nothing", tenant=tenant, application=application)
    step("GET", place, tenant=tenant)
    step("DELETE", f"{place}/{{application}}", tenant=tenant, application="invoicing")
    step("POST", "/v1/tenants", body={"tenant": "umbrella"})
    step("DELETE", "/v1/tenants/{tenant}", tenant="umbrella")


def _collections(step: Walk) -> None:
    place = "/v1/collections/{collection}"
    name = step.each("POST", "/v1/collections", "CollectionDraft")["name"]
    step("GET", "/v1/collections")
    step("GET", place, collection=name)
    step.each("PATCH", place, "CollectionPatch", collection=name)
    step.each("PUT", place, "CollectionReplacement", collection=name)
    for verb in ("disable", "enable"):
        step.each("POST", f"{place}/{verb}", "Nothing", collection=name)
    key = step.each("POST", f"{place}/signing-keys", "Nothing", collection=name)["id"]
    step("GET", f"{place}/signing-keys", collection=name)
    step("DELETE", f"{place}/signing-keys/{{key}}", collection=name, key=key)
    step("DELETE", place, collection=name)


def _calendars(step: Walk) -> None:
    """Makes calendars. The last one is kept: a schedule of the examples names it."""
    place = "/v1/calendars/{calendar}"
    name = step.each("POST", "/v1/calendars", "CalendarDraft")["name"]
    step("GET", "/v1/calendars")
    step("GET", place, calendar=name)
    step.each("PUT", place, "CalendarReplacement", calendar=name)
    step("GET", f"{place}/versions", calendar=name)
    step("GET", f"{place}/versions/{{version}}", calendar=name, version="1")
    step("DELETE", place, calendar="business-hours")


def _flow_keys(step: Walk) -> None:
    place = "/v1/flow-keys/{flow_key}"
    name = step.each("POST", "/v1/flow-keys", "FlowKeyDraft")["name"]
    step("GET", "/v1/flow-keys")
    step.each("PATCH", place, "FlowKeyPatch", flow_key=name)
    step.each("PUT", place, "FlowKeyReplacement", flow_key=name)
    step.each("POST", f"{place}/pause", "FlowKeyPause", flow_key=name)
    step("GET", place, flow_key=name)
    step.each("POST", f"{place}/resume", "Nothing", flow_key=name)
    step("DELETE", place, flow_key=name)


def _jobs(step: Walk) -> str:
    """Returns the id of a job that is active and has the schedules of the last example."""
    place = "/v1/jobs/{job}"
    job: str = step.each("POST", "/v1/jobs", "JobDraft")["id"]
    for draft in REQUESTS["JobDraft"].values():
        step("PUT", "/v1/jobs", query="name=named", body={**draft, "name": "named"})
    step("GET", "/v1/jobs", query="limit=1&include=total")
    step("DELETE", "/v1/jobs", query="tag=outdated&dryRun=true")
    for verb in ("activate", "deactivate", "pause", "resume"):
        step("POST", f"/v1/jobs:{verb}", query="tag=outdated&dryRun=true")
    step("GET", place, job=job, query="include=schedules")
    step.each("PATCH", place, "JobPatch", job=job)
    step.each("PUT", place, "JobReplacement", job=job)
    step.each("POST", f"{place}/pause", "PauseRequest", job=job)
    for verb in ("resume", "deactivate", "activate"):
        step.each("POST", f"{place}/{verb}", "Nothing", job=job)
    step("GET", f"{place}/changes", job=job, query="limit=2&include=before")
    step("GET", f"{place}/next", job=job)
    step("GET", f"{place}/occurrences", job=job, query="limit=2")
    return job


def _job_sets(step: Walk) -> None:
    place = "/v1/job-sets/{job_set}"
    step.each("PUT", place, "JobSetDraft", job_set="billing")
    step("GET", "/v1/job-sets")
    step("GET", place, job_set="billing")
    step("DELETE", f"{place}/owner", job_set="billing", query="owner=stack")
    step("DELETE", place, job_set="billing")


def _consumers(step: Walk) -> None:
    place = "/v1/consumers/{consumer}"
    step.each("PUT", f"{place}/lease", "LeaseRequest", consumer="billing")
    step.each("POST", f"{place}/start", "StartRequest", consumer="billing")
    step("GET", "/v1/consumers")
    step("GET", place, consumer="billing")
    step("DELETE", f"{place}/lease", consumer="billing", query="holder=host-1")
    step("DELETE", place, consumer="billing", query="force=true")


def _schedules(step: Walk, job: str) -> None:
    place = "/v1/jobs/{job}/schedules/{schedule}"
    schedule = step.each("POST", "/v1/jobs/{job}/schedules", "ScheduleDraft", job=job)["id"]
    step("GET", "/v1/jobs/{job}/schedules", job=job, query="limit=1")
    names = {"job": job, "schedule": schedule}
    step("GET", place, **names)
    step("GET", f"{place}/explain", query="at=2027-03-28T02:30:00", **names)
    step.each("PATCH", place, "SchedulePatch", **names)
    step.each("PUT", place, "ScheduleReplacement", **names)
    for verb in ("deactivate", "activate"):
        step.each("POST", f"{place}/{verb}", "Nothing", **names)
    step("DELETE", place, **names)
    step.each("POST", "/v1/schedules:preview", "PreviewRequest")


def _waiting_run(step: Walk) -> str:
    """Returns the id of a run that waits for its result, and would be tried again without one."""
    usual, step.api.stage.endpoint.answer = step.api.stage.endpoint.answer, ACCEPTED
    action = {**JOB["action"], "outcome": {"on202": "wait"}, "retry": {"type": "fixed", "delaySeconds": 60}}
    job = step.api.create(name="waits", action=action, policies={"onNoResult": "retry"}, schedules=[])
    run: str = step.api("POST", f"/v1/jobs/{job['id']}/run").json["runId"]
    step.api.stage.run(2)
    step.api.stage.endpoint.answer = usual
    return run


def _runs(step: Walk, job: str) -> None:
    """Makes runs: the first succeeds by its target's answer, the second by a report, the third is cancelled."""
    start = "/v1/jobs/{job}/run"
    run = step.each("POST", start, "RunRequest", job=job)["runId"]
    step.api.stage.run(1)
    step("GET", "/v1/runs/{run}", run=run)
    reported = step.each("POST", start, "RunRequest", job=job)["runId"]
    step.each("PUT", "/v1/runs/{run}/result", "Result", run=reported)
    step.each("POST", "/v1/runs/{run}/nack", "Nack", run=_waiting_run(step))
    cancelled = step.each("POST", start, "RunRequest", job=job)["runId"]
    step.each("POST", "/v1/runs/{run}/cancel", "Nothing", run=cancelled)
    step.each("POST", "/v1/runs/{run}/rerun", "RerunRequest", run=cancelled)
    step("GET", "/v1/runs", query=f"jobId={job}&limit=1")
    since = step("GET", "/v1/timeline", query="limit=1")["since"]
    step("GET", "/v1/timeline:changes", query=f"since={since}")
    step("GET", "/v1/load")
    step("GET", "/v1/attention")
    step("GET", "/v1/runs:export", query=f"jobId={job}&state=SUCCESS")


def _messages(step: Walk) -> None:
    """Sends messages at once and later, and revokes one that has not begun."""
    place = "/v1/messages/{message}"
    for name in ("several", "atOnce", "inTenMinutes"):
        sent = step("POST", "/v1/messages", body=REQUESTS["MessageRequest"][name])
    step("GET", "/v1/messages", query="limit=1")
    step("GET", place, message=sent["id"])
    step("DELETE", place, message=sent["id"])


def _workers(step: Walk) -> None:
    """Registers an application, then claims, keeps and settles a run as its worker."""
    place = "/v1/runs/{run}"
    url = step.each("PUT", "/v1/applications/{application}", "ApplicationRequest", application="billing")["queueUrl"]
    action = {"type": "queue", "application": "billing", "task": "report", "version": "2", "payload": {"month": 7}}
    job = step.api.create(name="report", action=action, schedules=[])["id"]
    run = step.api("POST", f"/v1/jobs/{job}/run").json["runId"]
    (message,) = step.api.stage.sqs.bodies(url)
    claim = REQUESTS["ClaimRequest"]["asAWorker"] | {"message": message}
    step("POST", f"{place}/claim", body=claim, run=run)
    step.each("POST", f"{place}/heartbeat", "Heartbeat", run=run)
    step("POST", f"{place}/settle", body=REQUESTS["TaskReport"]["success"], run=run)
    step.api("DELETE", f"/v1/jobs/{job}")
    step("GET", "/v1/applications")
    step("GET", "/v1/applications/{application}", application="billing", query="version=2")
    step("DELETE", "/v1/applications/{application}", application="billing", query="version=2")


def _errors(step: Walk, job: str) -> None:
    """Makes a run that failed, by its target's own report."""
    run = step("POST", "/v1/jobs/{job}/run", job=job)["runId"]
    step("PUT", "/v1/runs/{run}/result", body={"success": False, "message": "no rows"}, run=run)
    step.api.stage.run(1)
    place = "/v1/errors/{error}"
    group = step("GET", "/v1/errors", query="limit=1")["items"][0]["id"]
    step.each("POST", f"{place}/notes", "NoteDraft", error=group)
    step.each("POST", f"{place}/archive", "ArchiveRequest", error=group)
    step.each("POST", f"{place}/restore", "Nothing", error=group)
    step("GET", place, error=group)
    names = {"error": group, "failed_run": run}
    step.each("POST", f"{place}/runs/{{failed_run}}/archive", "ArchiveRequest", **names)
    step.each("POST", f"{place}/runs/{{failed_run}}/restore", "Nothing", **names)
    step("GET", f"{place}/runs", error=group)
    step("GET", "/v1/errors:summary", query="groupBy=target")
    step("GET", "/v1/errors", query="limit=1")
    other = step("POST", "/v1/jobs", body={"action": {"type": "http", "url": "https://example.org/new"}})["id"]
    redirect = "/v1/error-redirects/{job}"
    step("PUT", redirect, body={"to": other}, job=job)
    step("GET", "/v1/error-redirects")
    step("DELETE", redirect, job=job)


def _operations(step: Walk, job: str) -> None:
    """Shows operations. The redrive of the examples names no run that exists, so it begins nothing."""
    step.each("POST", "/v1/errors:redrive", "RedriveRequest")
    operation = _redrive(step, job)
    place = "/v1/operations/{operation}"
    for verb in ("pause", "resume"):
        step.each("POST", f"{place}/{verb}", "Nothing", operation=operation)
    step.api.stage.run(1)
    step("GET", place, operation=operation)
    step("GET", "/v1/operations", query="limit=1")
    step.each("POST", "/v1/runs:export", "ExportRequest")
    step.each("POST", f"{place}/cancel", "Nothing", operation=_redrive(step, job))


def _redrive(step: Walk, job: str) -> str:
    """Redrives a run that failed."""
    run = step("POST", "/v1/jobs/{job}/run", job=job)["runId"]
    step("PUT", "/v1/runs/{run}/result", body={"success": False, "message": "no rows"}, run=run)
    step.api.stage.run(1)
    operation: str = step("POST", "/v1/errors:redrive", body={"runs": [run]})["operation"]["id"]
    return operation


def _hidden(body: Any) -> Any:
    if isinstance(body, Mapping) and "keys" in body:  # of another test's key each time
        return {"keys": [{**key, "n": HIDDEN} for key in body["keys"]]}
    hides = {"secret", "access_token"}
    return {**body, **dict.fromkeys(hides & body.keys(), HIDDEN)} if isinstance(body, Mapping) else body
