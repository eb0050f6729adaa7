"""Jobs that come by the facades of SAP and Azure, and an application whose worker runs in this process."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.contract.calls import Reply
from tests.year.courses import Course, Job, Span, Switch
from tests.year.rules import EPOCH, Rule, in_steps, shown
from tests.year.tenant import Tenant

NIGHTLY = "/subscriptions/sub-1/resourceGroups/group/providers/Microsoft.Scheduler/jobCollections/Nightly"
VERSION = {"api-version": "2016-03-01"}
TARGET = "https://example.org/run"
DEFAULTS: dict[str, Any] = {"misfire": {"type": "sap"}, "overlap": "allow"}
MINUTES = (1, 2, 5, 10, 20, 30)


def _minutes(tenant: Tenant) -> int:
    return tenant.chance.choice([each for each in MINUTES if tenant.length / timedelta(minutes=each) <= 600] or [0])


def arrive(tenant: Tenant) -> None:
    """Makes a job by SAP's API and one by Azure's, if a life is short enough for what they repeat."""
    if not _minutes(tenant):
        return
    _Sap(tenant).arrive()
    _Azure(tenant).arrive()


@dataclass
class _Foreign:
    """A job of another facade, whose people only use that facade."""

    tenant: Tenant
    job: Job | None = None

    def rule(self) -> Rule:
        raise NotImplementedError

    def joined(self, name: str, rule: Rule, span: Span) -> None:
        """Notes the job, which it finds by its name in the table, and lets people change it."""
        items = self.tenant.service.dynamo.items
        made = next(item for key, item in items.items() if key[1] == "JOB" and item["name"]["S"] == name)
        job_id, collection = made["job_id"]["S"], Switch()
        schedule = next(key[1] for key in items if key[0].endswith(job_id) and key[1].startswith("SCH#"))
        self.job = Job(job_id, made["collection"]["S"], {}, Switch(), Switch(), foreign=True)
        switches = (Switch(), self.job.switch, self.job.pause, collection, self.tenant.tenant)
        course = Course(schedule.partition("#")[2], job_id, switches, DEFAULTS)
        course.follow(rule, span, None)
        self.job.courses.append(course)
        self.tenant.jobs.append(self.job)
        for _ in range(8):
            moment = self.tenant.now + self.tenant.chance.random() * 0.6 * self.tenant.length
            self.tenant.at(moment, self.change)

    def change(self) -> None:
        if self.job is None or self.job.gone is not None or self.job.id in self.tenant.busy or self.tenant.gone:
            return
        self.tenant.busy.add(self.job.id)
        if self.tenant.chance.random() < 0.5:
            self.switch(self.job, off=not self.job.switch.is_off)
        else:
            self.replan(self.job, self.rule())

    def switch(self, job: Job, *, off: bool) -> None:
        raise NotImplementedError

    def replan(self, job: Job, rule: Rule) -> None:
        raise NotImplementedError

    def switched(self, job: Job, reply: Reply, span: Span, *, off: bool) -> None:
        self.tenant.busy.discard(job.id)
        if reply.status < 400:
            (job.switch.off if off else job.switch.on)(span)

    def replanned(self, job: Job, rule: Rule, reply: Reply, span: Span) -> None:
        self.tenant.busy.discard(job.id)
        if reply.status < 400:
            job.courses[0].follow(rule, span, None)


@dataclass
class _Sap(_Foreign):
    path: str = ""

    def rule(self) -> Rule:
        minutes = _minutes(self.tenant)
        return Rule({"cron": f"* * * * * */{minutes} 0"}, in_steps(60 * minutes, EPOCH))

    def arrive(self) -> None:
        rule = self.rule()
        body = {
            "name": "report",
            "description": "a report",
            "action": TARGET,
            "active": True,
            "httpMethod": "POST",
            "schedules": [{"active": True, **rule.body}],
        }

        def then(_reply: Reply, span: Span) -> None:
            self.tenant.ask(
                "GET",
                "/scheduler/jobs",
                query={"name": "report"},
                facade="sap",
                then=lambda reply, _: found(reply, span),
            )

        def found(reply: Reply, span: Span) -> None:
            if reply.status < 400:
                self.joined("report", rule, span)
                assert self.job is not None
                number = reply.json.get("_id") or reply.json["results"][0]["_id"]
                self.path = f"/scheduler/jobs/{number}/schedules/{self.job.courses[0].id}"

        self.tenant.ask("POST", "/scheduler/jobs", body, facade="sap", then=then, expects=(400,))

    def switch(self, job: Job, *, off: bool) -> None:
        self._put({"active": not off}, lambda reply, span: self.switched(job, reply, span, off=off))

    def replan(self, job: Job, rule: Rule) -> None:
        self._put(rule.body, lambda reply, span: self.replanned(job, rule, reply, span))

    def _put(self, body: Any, then: Any) -> None:
        self.tenant.ask("PUT", self.path, body, facade="sap", then=then)


@dataclass
class _Azure(_Foreign):
    def rule(self) -> Rule:
        minutes = _minutes(self.tenant)
        start = self.tenant.now.replace(microsecond=0) + timedelta(seconds=self.tenant.chance.randint(60, 600))
        body = {"startTime": shown(start), "recurrence": {"frequency": "Minute", "interval": minutes}}
        return Rule(body, in_steps(60 * minutes, start))

    def arrive(self) -> None:
        rule = self.rule()
        request = {"type": "Http", "request": {"uri": TARGET, "method": "POST"}}

        def then(reply: Reply, span: Span) -> None:
            if reply.status < 400:
                self.joined("nightly", rule, span)

        def made(reply: Reply, _span: Span) -> None:
            if reply.status < 400:
                body = {"properties": {"action": request, **rule.body}}
                self._ask("PUT", f"{NIGHTLY}/jobs/nightly", body, then)

        self._ask("PUT", NIGHTLY, {"location": "West US", "properties": {}}, made)

    def switch(self, job: Job, *, off: bool) -> None:
        body = {"properties": {"state": "Disabled" if off else "Enabled"}}
        self._ask(
            "PATCH", f"{NIGHTLY}/jobs/nightly", body, lambda reply, span: self.switched(job, reply, span, off=off)
        )

    def replan(self, job: Job, rule: Rule) -> None:
        then = lambda reply, span: self.replanned(job, rule, reply, span)  # noqa: E731
        self._ask("PATCH", f"{NIGHTLY}/jobs/nightly", {"properties": dict(rule.body)}, then)

    def _ask(self, method: str, path: str, body: Any, then: Any) -> None:
        self.tenant.ask(method, path, body, facade="azure", query=VERSION, then=then)
