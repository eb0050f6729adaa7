"""A list of jobs that a team keeps in code: applied again, with other rules, with new names, and with fewer jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.contract.calls import Reply
from tests.year.courses import Course, Job, Span, Switch
from tests.year.rules import Rule, drawn
from tests.year.tenant import Tenant

PATH = "/v1/job-sets/team"
DEFAULTS: dict[str, Any] = {"misfire": {"type": "sap"}, "overlap": "allow"}
CHANGES = 12


@dataclass
class Entry:
    """An entry of the list. key, was: of its job, which is None until a list with the entry was applied."""

    key: str
    rule: Rule
    was: str | None = None
    job: Job | None = None

    def body(self) -> dict[str, Any]:
        former = {} if self.was is None else {"was": self.was}
        action = {"type": "http", "url": "https://example.org/run"}
        return {"key": self.key, **former, "action": action, "schedules": [{"name": "only", **self.rule.body}]}


@dataclass
class Team:
    """Applies its list until the answer says that nothing remains. entries: the list that was applied last."""

    tenant: Tenant
    entries: list[Entry] = field(default_factory=list)
    numbers: int = 0

    def arrive(self) -> None:
        self._apply([self._entry() for _ in range(3)])
        for _ in range(CHANGES):
            moment = self.tenant.now + self.tenant.chance.random() * 0.7 * self.tenant.length
            self.tenant.at(moment, self._change)

    def _entry(self) -> Entry:
        self.numbers += 1
        return Entry(f"entry-{self.numbers}", self._rule())

    def _rule(self) -> Rule:
        while True:
            rule = drawn(self.tenant.chance, self.tenant.now, self.tenant.length)
            if rule.exact and "at" not in rule.body:
                return rule

    def _change(self) -> None:
        """Applies the same list again, or one in which an entry has another rule or key, is new, or is missing."""
        if self.tenant.gone or PATH in self.tenant.busy:
            return
        entries = [Entry(each.key, each.rule, each.was, each.job) for each in self.entries]
        chosen = self.tenant.chance.choice(["again", "rule", "key", "new", "fewer"])
        if chosen == "new" or not entries:
            entries.append(self._entry())
        elif chosen == "fewer":
            entries.remove(self.tenant.chance.choice(entries))
        elif chosen != "again":
            entry = self.tenant.chance.choice(entries)
            if chosen == "rule":
                entry.rule = self._rule()
            else:
                self.numbers += 1
                entry.key, entry.was = f"entry-{self.numbers}", entry.key
        self._apply(entries)

    def _apply(self, entries: list[Entry]) -> None:
        self.tenant.busy.add(PATH)
        asked = self.tenant.now
        jobs = {"jobs": [each.body() for each in entries]}

        def then(reply: Reply, span: Span) -> None:
            if reply.status == 202:
                self.tenant.at(self.tenant.now, send)
                return
            self.tenant.busy.discard(PATH)
            if reply.status < 400:
                self._applied(entries, Span(asked, span.answered))

        def send() -> None:
            self.tenant.ask("PUT", PATH, jobs, query={"allowDeletes": "9"}, then=then)

        send()

    def _applied(self, entries: list[Entry], span: Span) -> None:
        kept = {id(each.job) for each in entries if each.job is not None}
        for job in [each.job for each in self.entries if each.job is not None and id(each.job) not in kept]:
            job.gone = job.courses[0].gone = span
        for entry in entries:
            if entry.job is None:
                entry.job = self._found(entry.key)
            course = entry.job.courses[0]
            if not course.plans or course.rule is not entry.rule:
                course.follow(entry.rule, span, None)
        self.entries = entries

    def _found(self, key: str) -> Job:
        """Returns the new job of an entry, which it finds in the table."""
        items = self.tenant.service.dynamo.items
        made = next(item for at, item in items.items() if at[1] == "JOB" and item.get("key", {}).get("S") == key)
        job_id = made["job_id"]["S"]
        schedule = next(at[1] for at in items if at[0].endswith(job_id) and at[1].startswith("SCH#"))
        job = Job(job_id, made["collection"]["S"], {}, Switch(), Switch(), foreign=True)
        switches = (Switch(), job.switch, job.pause, self.tenant.tenant)
        job.courses.append(Course(schedule.partition("#")[2], job_id, switches, DEFAULTS))
        self.tenant.jobs.append(job)
        return job
