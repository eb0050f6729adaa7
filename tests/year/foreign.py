"""Jobs that come by the facades of SAP and Azure, and an application whose worker runs in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.contract.calls import Reply
from tests.year.courses import Course, Job, Span, Switch
from tests.year.rules import EPOCH, Instants, Rule, in_steps, shown
from tests.year.tenant import Tenant

NIGHTLY = "/subscriptions/sub-1/resourceGroups/group/providers/Microsoft.Scheduler/jobCollections/Nightly"
JOB = f"{NIGHTLY}/jobs/nightly"
VERSION = {"api-version": "2016-03-01"}
TARGET = "https://example.org/run"
ACTION = {"type": "Http", "request": {"uri": TARGET, "method": "POST"}}
DEFAULTS: dict[str, Any] = {"misfire": {"type": "sap"}, "overlap": "allow"}
WAITS = "https://example.org/waits"
Then = Callable[[Reply, Span], None]
MINUTES = (1, 2, 5, 10, 20, 30)


def _minutes(tenant: Tenant) -> int:
    return tenant.chance.choice([each for each in MINUTES if tenant.length / timedelta(minutes=each) <= 600] or [0])


def _until(instants: Instants, last: datetime) -> Instants:
    return lambda after, to: instants(after, min(to, last))


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
    collection: Switch = field(default_factory=Switch)

    def rule(self) -> Rule:
        raise NotImplementedError

    def joined(self, name: str, rule: Rule, span: Span) -> None:
        """Notes the job, which it finds by its name in the table, and lets people change it."""
        items = self.tenant.service.dynamo.items
        made = next(item for key, item in items.items() if key[1] == "JOB" and item["name"]["S"] == name)
        job_id = made["job_id"]["S"]
        schedule = next(key[1] for key in items if key[0].endswith(job_id) and key[1].startswith("SCH#"))
        self.job = Job(job_id, made["collection"]["S"], {}, Switch(), Switch(), foreign=True)
        switches = (Switch(), self.job.switch, self.job.pause, self.collection, self.tenant.tenant)
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
        job, verb = self.job, self.tenant.chance.choice(self.verbs())
        self.tenant.busy.add(job.id)
        verb(job)

    def verbs(self) -> list[Callable[[Job], None]]:
        """Returns the things that people do. A job that is over can only be read or deleted."""
        assert self.job is not None
        if not self.job.courses[0].plans[-1].goes_on(self.tenant.now):
            return [self.look]
        return [self.switch, self.switch, self.replan, self.replan, self.use, self.look]

    def use(self, job: Job) -> None:
        """Asks for what people most often want of this facade, in addition to changes."""
        raise NotImplementedError

    def look(self, job: Job) -> None:
        raise NotImplementedError

    def delete(self, job: Job, path: str, **more: Any) -> None:
        """Deletes the job by its own facade."""

        def then(reply: Reply, span: Span) -> None:
            self.tenant.busy.discard(job.id)
            if reply.status < 400:
                job.gone = job.courses[0].gone = span

        self.tenant.ask("DELETE", path, then=then, **more)

    def looked(self, job: Job) -> Then:
        return lambda _reply, _span: self.tenant.busy.discard(job.id)

    def switch(self, job: Job) -> None:
        raise NotImplementedError

    def replan(self, job: Job) -> None:
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
            "action": self.tenant.chance.choice([TARGET, WAITS]),
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
                then=lambda reply, _: join(reply, span),
            )

        def join(reply: Reply, span: Span) -> None:
            if reply.status < 400:
                self.joined("report", rule, span)
                assert self.job is not None
                number = reply.json.get("_id") or reply.json["results"][0]["_id"]
                self.path = f"/scheduler/jobs/{number}/schedules/{self.job.courses[0].id}"
                self.tenant.own_runs[self.job.courses[0].id] = f"{self.path}/runs"

        self.tenant.ask("POST", "/scheduler/jobs", body, facade="sap", then=then, expects=(400,))

    def verbs(self) -> list[Callable[[Job], None]]:
        return [*super().verbs(), self.gone] if self.tenant.chance.random() < 0.2 else super().verbs()

    def gone(self, job: Job) -> None:
        self.delete(job, self.path.partition("/schedules")[0], facade="sap")

    def switch(self, job: Job) -> None:
        off = not job.switch.is_off
        then = lambda reply, span: self.switched(job, reply, span, off=off)  # noqa: E731
        if self.tenant.chance.random() < 0.5:
            self._put({"active": not off}, then)
        else:
            path = f"{self.path.rpartition('/')[0]}/activationStatus"
            self.tenant.ask("POST", path, {"activationStatus": not off}, facade="sap", then=then)

    def replan(self, job: Job) -> None:
        rule = self.rule()
        self._put(rule.body, lambda reply, span: self.replanned(job, rule, reply, span))

    def use(self, job: Job) -> None:
        """Reads the schedule's log, as whoever waits for a report does."""
        self.tenant.ask("GET", f"{self.path}/runs", facade="sap", then=self.looked(job))

    def look(self, job: Job) -> None:
        query = {"displaySchedules": "true"}
        self.tenant.ask("GET", self.path.partition("/schedules")[0], query=query, facade="sap", then=self.looked(job))

    def _put(self, body: Any, then: Any) -> None:
        self.tenant.ask("PUT", self.path, body, facade="sap", then=then)


@dataclass
class _Azure(_Foreign):
    def rule(self) -> Rule:
        minutes = _minutes(self.tenant)
        start = self.tenant.now.replace(microsecond=0) + timedelta(seconds=self.tenant.chance.randint(60, 600))
        recurrence: dict[str, Any] = {"frequency": "Minute", "interval": minutes}
        if self.tenant.chance.random() < 0.6:
            return Rule({"startTime": shown(start), "recurrence": recurrence}, in_steps(60 * minutes, start))
        last = start + timedelta(seconds=self.tenant.chance.randint(0, 200 * minutes))
        recurrence |= {"endTime": shown(last)}
        return Rule({"startTime": shown(start), "recurrence": recurrence}, _until(in_steps(60 * minutes, start), last))

    def arrive(self) -> None:
        rule = self.rule()

        def then(reply: Reply, span: Span) -> None:
            if reply.status < 400:
                self.joined("nightly", rule, span)

        def made(reply: Reply, _span: Span) -> None:
            if reply.status < 400:
                body = {"properties": {"action": ACTION, **rule.body}}
                self._ask("PUT", JOB, body, then)

        self._ask("PUT", NIGHTLY, {"location": "West US", "properties": {}}, made)

    def verbs(self) -> list[Callable[[Job], None]]:
        return [*super().verbs(), self.close, self.gone] if self.tenant.chance.random() < 0.4 else super().verbs()

    def gone(self, job: Job) -> None:
        self.delete(job, JOB, facade="azure", query=VERSION)

    def switch(self, job: Job) -> None:
        off = not job.switch.is_off
        body = {"properties": {"state": "Disabled" if off else "Enabled"}}
        self._ask("PATCH", JOB, body, lambda reply, span: self.switched(job, reply, span, off=off))

    def replan(self, job: Job) -> None:
        """Replaces the job, or only its rule: a PATCH keeps the members of the recurrence that it does not name."""
        rule = self.rule()
        body = {"state": "Disabled" if job.switch.is_off else "Enabled", "action": ACTION, **rule.body}
        method = self.tenant.chance.choice(["PUT", "PATCH"])
        if method == "PATCH":
            body = {**rule.body, "recurrence": {"endTime": None} | rule.body["recurrence"]}
        self._ask(method, JOB, {"properties": body}, lambda reply, span: self.replanned(job, rule, reply, span))

    def use(self, job: Job) -> None:
        """Runs the job now."""
        self._ask("POST", f"{JOB}/run", None, self.looked(job))

    def look(self, job: Job) -> None:
        self._ask(
            "GET",
            self.tenant.chance.choice([JOB, f"{JOB}/history", NIGHTLY, f"{NIGHTLY}/jobs"]),
            None,
            self.looked(job),
        )

    def close(self, job: Job) -> None:
        """Disables the job collection for a while."""

        def then(reply: Reply, span: Span) -> None:
            self.tenant.busy.discard(job.id)
            if reply.status < 400:
                self.collection.off(span)
                wait = self.tenant.chance.uniform(0, 0.02) * self.tenant.length
                self.tenant.at(self.tenant.now + wait, self.open)

        self._ask("POST", f"{NIGHTLY}/disable", None, then)

    def open(self) -> None:
        """Enables the job collection, also if the tenant is disabled at first."""

        def then(reply: Reply, span: Span) -> None:
            if reply.status < 400:
                self.collection.on(span)
            else:
                self.tenant.at(self.tenant.now + timedelta(minutes=5), self.open)

        self._ask("POST", f"{NIGHTLY}/enable", None, then)

    def _ask(self, method: str, path: str, body: Any, then: Any) -> None:
        """Sends a request. It may get 409 if the rule has an end, after which the job is final."""
        ends = self.job is not None and "endTime" in self.job.courses[0].rule.body["recurrence"]
        expects = (409,) if ends else ()
        self.tenant.ask(method, path, body, facade="azure", query=VERSION, then=then, expects=expects)
