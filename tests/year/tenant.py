"""A tenant with jobs, and people who change them: each request until it is answered, each answer into the courses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random  # noqa: TID251 - a life is played again by its seed
from typing import Any

from sweephand.domain.run import Outcome
from sweephand.server.actions.call import Call
from tests.contract.calls import Reply
from tests.support.endpoint import ACCEPTED, BUSY, DOWN, OK, WRONG
from tests.support.stage import TENANT
from tests.year import rules
from tests.year.courses import Calendar, Course, Job, Span, Switch
from tests.year.rules import Rule, shown
from tests.year.service import Service
from tests.year.watch import FINAL

TIMING = ("every", "align", "cron", "at", "rrule", "sapCron", "count", "timezone", "startTime", "endTime", "calendars")
RETRIES: tuple[dict[str, Any], ...] = (
    {"type": "none"},
    {"type": "fixed", "delaySeconds": 5, "maxRetries": 2},
    {"type": "fixed", "delaySeconds": 1_200, "maxRetries": 2},
    {"type": "exponential", "delaySeconds": 20, "maxRetries": 3},
    {"type": "two_level", "immediate": 1, "delayed": 2},
)
MISFIRES: tuple[dict[str, Any], ...] = (
    {"type": "sap"},
    {"type": "all"},
    {"type": "all", "ratePerMinute": 6},
    {"type": "latest"},
    {"type": "skip"},
    {"type": "sap", "maxLatenessSeconds": 3_600},
)
OVERLAPS = ("allow", "allow", "skip", "queue_one", "replace")
WAITS_S = 900
FLOW_KEY = "shared"
CONSUMER = "reader"
SMALL, QUOTA = "small", rules.MOST_COUNTED
"""A collection whose schedules may run so often in all, which is as often as those with a count of their own."""
At = Callable[[datetime, Callable[[], None]], None]


@dataclass
class Tenant:
    """at: has something done later. own_runs: where SAP's API has the runs of a schedule, if they report there.

    talk: what was asked, for the account of a life that failed."""

    service: Service
    chance: Random
    length: timedelta
    at: At
    tenant: Switch = field(default_factory=Switch)
    collections: dict[str, Switch] = field(default_factory=dict)
    calendars: dict[str, Calendar] = field(default_factory=dict)
    busy: set[object] = field(default_factory=set)
    jobs: list[Job] = field(default_factory=list)
    cancelled: set[str] = field(default_factory=set)
    reported: set[str] = field(default_factory=set)
    own_runs: dict[str, str] = field(default_factory=dict)
    talk: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    refused: int = 0
    gone: bool = False
    _numbers: int = 0

    @property
    def now(self) -> datetime:
        return self.service.now

    @property
    def courses(self) -> list[Course]:
        return [course for job in self.jobs for course in job.courses]

    # Requests

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        then: Callable[[Reply, Span], None] = lambda _reply, _span: None,
        expects: tuple[int, ...] = (),
        facade: str = "native",
        **more: Any,
    ) -> None:
        """Sends a request until there is an answer, which `then` is given. expects: refusals that are right; another is
        always right while the tenant is disabled.
        """
        asked = self.now

        def attempt() -> None:
            reply = self.service.request(facade, method, path, body, **more)
            if reply is None or (reply.status == 409 and "try again" in reply.text):
                self.at(self.now + timedelta(seconds=self.chance.choice([1, 2, 5, 30])), attempt)
                return
            self.talk.append(f"{asked:%m-%d %H:%M:%S} to {self.now:%H:%M:%S} {method} {path} {body} {reply.status}")
            disabled = reply.status == 403 and "the tenant is disabled" in reply.text
            if reply.status < 400 or reply.status in expects or disabled:
                self.refused += reply.status >= 400
                then(reply, Span(asked, self.now))
            else:
                self.wrong.append(f"{method} {path} {body}: {reply.status} {reply.text[:300]}")

        attempt()

    def switch(self, path: str, verb: str, what: Switch, owner: object, *, off: bool, **more: Any) -> None:
        """Switches something off or on, and notes from when to when it was off."""
        until: datetime | None = more.pop("until", None)
        self.busy.add(owner)

        def then(reply: Reply, span: Span) -> None:
            self.busy.discard(owner)
            if reply.status < 400 and off:
                what.off(span, until)
            elif reply.status < 400:
                what.on(span)

        self.ask("POST", f"{path}/{verb}", more.pop("body", None), then=then, expects=(404, 422), **more)

    # The beginning

    def settle(self, jobs: int) -> None:
        for name in ("north", "south"):
            self.collections[name] = Switch()
            self.ask("POST", "/v1/collections", {"name": name}, expects=(409,))
        for name in ("holidays", "nights"):
            self.calendars[name] = self._drawn(name)
            self.ask("POST", "/v1/calendars", {"name": name, **_body(self.calendars[name])}, expects=(409,))
        self.collections[SMALL] = Switch()
        self.ask("POST", "/v1/collections", {"name": SMALL, "quota": {"maxRunsPerJob": QUOTA}}, expects=(409,))
        limits = {"parallelism": 2, "rate": {"limit": 30, "periodSeconds": 60}}
        self.ask("POST", "/v1/flow-keys", {"name": FLOW_KEY, **limits}, expects=(409,))
        for _ in range(jobs):
            self.at(self.now + self.chance.uniform(0, 0.3) * self.length, self.create)

    def _drawn(self, name: str) -> Calendar:
        weekdays = self.chance.sample(range(7), self.chance.randint(0, 2) if self.length >= timedelta(days=6) else 0)
        begins = [self.now + self.chance.uniform(-0.1, 0.8) * self.length for _ in range(3)]
        ends = [begin + self.chance.uniform(0.001, 0.05) * self.length for begin in begins]
        whole = [[each.replace(microsecond=0) for each in pair] for pair in zip(begins, ends, strict=True)]
        return Calendar(name, frozenset(weekdays), tuple((begin, end) for begin, end in whole))

    def create(self) -> None:
        self._numbers += 1
        number, collection = self._numbers, self.chance.choice(sorted(self.collections))
        drawn = [self._schedule(collection) for _ in range(self.chance.choice([1, 1, 2, 3]))]
        body = {**self._job(number), "collection": collection, "schedules": [body for _, _, body in drawn]}

        def then(reply: Reply, span: Span) -> None:
            if reply.status >= 400:
                return
            job = Job(reply.json["id"], collection, body, Switch(), Switch())
            self.jobs.append(job)
            for (rule, closed, _), made in zip(drawn, self._schedules_of(job), strict=True):
                switches = (Switch(), job.switch, job.pause, self.collections[collection], self.tenant)
                course = Course(made, job.id, switches, body["policies"], held="consumer" in body["action"])
                course.follow(rule, span, closed)
                job.courses.append(course)
                if body["policies"]["overlap"] != "allow":
                    self.service.watch.exclusive.add(made)

        headers = {"idempotency-key": f"job-{number}"}
        self.ask("POST", "/v1/jobs", body, then=then, expects=(422,), headers=headers)

    def _schedules_of(self, job: Job) -> list[str]:
        """Returns the ids of its schedules, in order, by their names in the table."""
        rows = [key for key in self.service.dynamo.items if key[0].endswith(job.id) and key[1].startswith("SCH#")]
        named = {self.service.dynamo.items[key]["name"]["S"]: key[1].partition("#")[2] for key in rows}
        return [named[each["name"]] for each in job.body["schedules"]]

    def _schedule(self, collection: str) -> tuple[Rule, Calendar | None, dict[str, Any]]:
        rule, closed = self.draw_rule(collection)
        self._numbers += 1
        body: dict[str, Any] = {"name": f"s{self._numbers}", **rule.body}
        if closed is not None:
            body["calendars"] = [{"name": closed.name}]
        return rule, closed, body

    def draw_rule(self, collection: str) -> tuple[Rule, Calendar | None]:
        rule = rules.drawn(self.chance, self.now, self.length)
        if collection == SMALL:
            return replace(rule, exact=False, count=rule.count or QUOTA), None
        free = [each for name, each in sorted(self.calendars.items()) if name not in self.busy]
        if not rule.exact or "at" in rule.body or not free or self.chance.random() < 0.7:
            return rule, None
        return rule, self.chance.choice(free)

    def _job(self, number: int) -> dict[str, Any]:
        waits = self.chance.random() < 0.2
        hook = {"type": "http", "url": "https://example.org/hook"}
        hooks = {name: hook for name in ("onSuccess", "onFailure", "onMissed") if self.chance.random() < 0.15}
        outcome = {"on202": "wait", "callbackTimeoutSeconds": WAITS_S} if waits else {}
        http = {
            "type": "http",
            "url": f"https://example.org/{'waits' if waits else 'run'}",
            "retry": self.chance.choice(RETRIES),
            **({"outcome": outcome} if outcome else {}),
        }
        consumed = self.chance.random() < 0.15
        return {
            "name": f"job {number}",
            "action": {"type": "event", "detailType": "due", "consumer": CONSUMER} if consumed else http,
            **({"errorAction": hook} if self.chance.random() < 0.2 else {}),
            **({"hooks": hooks} if hooks else {}),
            "policies": {
                "misfire": self.chance.choice(MISFIRES),
                "overlap": self.chance.choice(OVERLAPS),
                "delivery": self.chance.choice(["at_least_once", "at_least_once", "at_most_once"]),
                "onNothingLeft": "complete",
                "onUnreachable": "continue",
                **({"onCreate": "run_now"} if self.chance.random() < 0.2 else {}),
                **({"onEnable": "run_now"} if self.chance.random() < 0.2 else {}),
                **({"flowKey": FLOW_KEY} if self.chance.random() < 0.2 else {}),
            },
        }

    # The targets

    def answer(self, call: Call) -> Outcome:
        url = self.service.scene.endpoint.received[-1].params.get("url", "")
        self.service.meet_twice()
        if url.endswith("/waits") and self.chance.random() < 0.7:
            for _ in range(self.chance.choice([0, 1, 1, 1, 2])):
                wait = timedelta(seconds=self.chance.choice([0, 2, 40, 600, WAITS_S - 1, WAITS_S + 60]))
                success = self.chance.random() < 0.8
                self.at(self.now + wait, lambda success=success: self._report(call.run_id, success=success))
            return ACCEPTED
        return self.chance.choices([OK, BUSY, WRONG, DOWN], [90, 5, 2, 3])[0]

    def _report(self, run: str, *, success: bool) -> None:
        self.reported.add(run)
        schedule, _, uuid = run.partition("_")
        if (place := self.own_runs.get(schedule)) is not None:
            report = {"success": success, "message": "done"}
            self.ask("PUT", f"{place}/{uuid}", report, facade="sap", expects=(400, 404, 409))
            return
        self.ask("PUT", f"/v1/runs/{run}/result", {"success": success}, expects=(404, 409))

    # People

    def act(self) -> None:
        """Carries out one of the things that people do, until they go."""
        if self.gone:
            return
        chosen = self.chance.choices(*zip(*self._acts(), strict=True))[0]
        chosen()

    def _acts(self) -> list[tuple[Callable[[], None], int]]:
        return [
            (self.create, 2),
            (self.delete, 1),
            (self.pause, 4),
            (self.pause_until, 3),
            (self.resume, 4),
            (self.switch_job, 5),
            (self.switch_schedule, 5),
            (self.switch_collection, 3),
            (self.switch_tenant, 1),
            (self.change_timing, 6),
            (self.change_description, 3),
            (self.run, 3),
            (self.cancel, 3),
            (self.rerun, 2),
            (self.change_calendar, 1),
            (self.pause_key, 1),
            (self.read, 4),
        ]

    def _job_of(self, chosen: Callable[[Job], bool] = lambda _job: True) -> Job | None:
        free = [each for each in self.jobs if each.gone is None and each.id not in self.busy and not each.foreign]
        free = [job for job in free if chosen(job)]
        return self.chance.choice(free) if free else None

    def delete(self, job: Job | None = None) -> None:
        job = job or self._job_of()
        if job is None:
            return
        self.busy.add(job.id)

        def then(reply: Reply, span: Span) -> None:
            if reply.status == 403:
                self.busy.discard(job.id)
                return
            job.gone = span
            for course in job.courses:
                course.gone = course.gone or span

        self.ask("DELETE", f"/v1/jobs/{job.id}", then=then, expects=(404,))

    def pause(self) -> None:
        if job := self._job_of(lambda job: not job.pause.is_off):
            self.switch(f"/v1/jobs/{job.id}", "pause", job.pause, job.id, off=True, body={})

    def pause_until(self) -> None:
        if job := self._job_of(lambda job: not job.pause.is_off):
            most_s = self.length.total_seconds() / 20
            until = (self.now + timedelta(seconds=self.chance.uniform(2, most_s))).replace(microsecond=0)
            self.switch(
                f"/v1/jobs/{job.id}",
                "pause",
                job.pause,
                job.id,
                off=True,
                body={"until": shown(until)},
                until=until,
            )

    def resume(self) -> None:
        if job := self._job_of(lambda job: job.pause.is_off):
            self.switch(f"/v1/jobs/{job.id}", "resume", job.pause, job.id, off=False)

    def switch_job(self) -> None:
        if job := self._job_of():
            off = not job.switch.is_off
            self.switch(f"/v1/jobs/{job.id}", "deactivate" if off else "activate", job.switch, job.id, off=off)

    def switch_schedule(self) -> None:
        if job := self._job_of(lambda job: bool(job.courses)):
            course = self.chance.choice(job.courses)
            own, off = course.switches[0], not course.switches[0].is_off
            path = f"/v1/jobs/{job.id}/schedules/{course.id}"
            self.switch(path, "deactivate" if off else "activate", own, job.id, off=off)

    def switch_collection(self) -> None:
        name = self.chance.choice(sorted(self.collections))
        if name not in self.busy:
            what, off = self.collections[name], not self.collections[name].is_off
            self.switch(f"/v1/collections/{name}", "disable" if off else "enable", what, name, off=off)

    def switch_tenant(self) -> None:
        if TENANT not in self.busy:
            off = not self.tenant.is_off
            verb = "disable" if off else "enable"
            self.switch(f"/v1/tenants/{TENANT}", verb, self.tenant, TENANT, off=off, caller="provider")
            if off:
                later = self.now + self.chance.uniform(0, 0.01) * self.length
                self.at(later, lambda: self.switch_tenant() if self.tenant.is_off else None)

    def change_timing(self) -> None:
        if job := self._job_of(lambda job: bool(job.courses)):
            self.replan(job, self.chance.choice(job.courses), *self.draw_rule(job.collection))

    def replan(self, job: Job, course: Course, rule: Rule, closed: Calendar | None) -> None:
        self.busy.add(job.id)

        def then(reply: Reply, span: Span) -> None:
            self.busy.discard(job.id)
            if reply.status < 400:
                course.follow(rule, span, closed)

        named = None if closed is None else [{"name": closed.name}]
        body = dict.fromkeys(TIMING) | dict(rule.body) | {"calendars": named}
        path = f"/v1/jobs/{job.id}/schedules/{course.id}"
        self.ask("PATCH", path, body, then=then, expects=(404, 422))

    def change_description(self) -> None:
        if job := self._job_of():
            self.ask("PATCH", f"/v1/jobs/{job.id}", {"description": shown(self.now)}, expects=(404,))

    def run(self) -> None:
        if job := self._job_of():
            self._numbers += 1
            body = {"scheduleId": self.chance.choice(job.courses).id} if job.courses else {}
            headers = {"idempotency-key": f"run-{self._numbers}"}
            self.ask("POST", f"/v1/jobs/{job.id}/run", body, expects=(404,), headers=headers)

    def _a_run(self, *, final: bool) -> str | None:
        rows = list(self.service.watch.rows.values())[-200:]
        rows = [row for row in rows if (row["state"]["S"] in FINAL) is final and "range_count" not in row]
        if not rows:
            return None
        row = self.chance.choice(rows)
        owner = row.get("schedule", row.get("job_id", {})).get("S")
        return None if owner is None else f"{owner}_{row['sk']['S'].partition('#')[2]}"

    def cancel(self) -> None:
        if run := self._a_run(final=False):
            self.cancelled.add(run)
            self.ask("POST", f"/v1/runs/{run}/cancel", expects=(404, 409))

    def rerun(self) -> None:
        if run := self._a_run(final=True):
            self._numbers += 1
            headers = {"idempotency-key": f"rerun-{self._numbers}"}
            self.ask("POST", f"/v1/runs/{run}/rerun", {}, expects=(404, 409, 422), headers=headers)

    def pause_key(self) -> None:
        """Pauses the flow key for a while that no queue and no limit outlasts."""
        path = f"/v1/flow-keys/{FLOW_KEY}"
        self.ask("POST", f"{path}/pause", {"note": "the target is being repaired"}, expects=(409,))
        later = self.now + min(timedelta(hours=6), self.chance.random() * 0.02 * self.length)
        self.at(later, lambda: self.ask("POST", f"{path}/resume", expects=(409,)))

    def change_calendar(self) -> None:
        """Changes a calendar. Its schedules follow by a message, and until then no request concerns them."""
        name = self.chance.choice(sorted(self.calendars))
        users = self._users(name)
        if name in self.busy or any(job.id in self.busy for job, _ in users):
            return
        owners = {name, *(job.id for job, _ in users)}
        self.busy |= owners
        changed, asked = self._drawn(name), self.now

        def answered(reply: Reply, _span: Span) -> None:
            if reply.status < 400:
                self.calendars[name] = changed
                look()
            else:
                self.busy.difference_update(owners)

        def followed(reply: Reply, span: Span) -> None:
            if reply.status >= 400 or reply.json["replanning"]:
                self.at(self.now + timedelta(seconds=30), look)
                return
            self.busy.difference_update(owners)
            going_on = [course for _, course in users if course.plans[-1].goes_on(asked)]  # the others are COMPLETED
            for course in going_on:
                course.follow(course.rule, Span(asked, span.answered), changed)

        def look() -> None:
            self.ask("GET", f"/v1/calendars/{name}", then=followed)

        self.ask("PUT", f"/v1/calendars/{name}", _body(changed), then=answered)

    def _users(self, name: str) -> list[tuple[Job, Course]]:
        return [
            (job, course)
            for job in self.jobs
            if job.gone is None
            for course in job.courses
            if course.plans[-1].closed is not None and course.plans[-1].closed.name == name
        ]

    def read(self) -> None:
        """Reads what the console shows."""
        near = min(self.length / 20, timedelta(days=6))
        since, until = shown(self.now - near), shown(self.now + near)
        paths: list[tuple[str, Mapping[str, str]]] = [
            ("/v1/jobs", {}),
            ("/v1/overview", {}),
            ("/v1/attention", {}),
            ("/v1/timeline", {"from": since, "until": until}),
            ("/v1/runs", {}),
            ("/v1/errors", {}),
        ]
        if job := self._job_of():
            paths += [(f"/v1/jobs/{job.id}", {}), (f"/v1/jobs/{job.id}/occurrences", {"from": since, "until": until})]
            paths += [("/v1/runs", {"jobId": job.id}), (f"/v1/jobs/{job.id}/changes", {})]
        path, query = self.chance.choice(paths)
        self.ask("GET", path, query=query, expects=(404,))


def _body(calendar: Calendar) -> dict[str, Any]:
    days = [rules.WEEKDAYS[day].upper() for day in sorted(calendar.weekdays)]
    return {
        "ranges": [{"from": shown(begin), "to": shown(end)} for begin, end in calendar.ranges],
        **({"weekly": [{"days": days}]} if days else {}),
    }
