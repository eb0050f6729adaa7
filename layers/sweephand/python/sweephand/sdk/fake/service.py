"""The stack in memory: answers the client's requests, and runs everything that falls due when its clock moves.

It knows jobs, schedules, runs and collections. Each run ends at its instant: there are no retries, overlaps or missed
occurrences.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from sweephand.domain.instants import epoch_ms, text, text_ms
from sweephand.errors import InvalidRequest, SweephandError
from sweephand.ids import run_uuid, uuid7
from sweephand.schedules.text.instants import parse_instant
from sweephand.sdk import models
from sweephand.sdk.errors import InvalidArgument
from sweephand.sdk.fake.jobs import FakeJob, FakeSchedule, members_of, schedules_of, timing_of
from sweephand.sdk.transport.request import Answer

TENANT = "fake"
MOST_RUNS = 100_000
PAGE = 50
STATUSES = {
    "NOT_FOUND": 404,
    "NAME_TAKEN": 409,
    "REVISION_MISMATCH": 412,
    "COUNT_MISMATCH": 412,
    "KEY_REUSED": 422,
    "INVALID_QUERY": 400,
}
"""Statuses by code. Every other code is a 422."""


class Occurrence(NamedTuple):
    """An occurrence, for the function of a test. payload: the run's own, else the schedule's, else the action's."""

    job: models.Job
    run: models.Run
    payload: Any


LISTS_BY = frozenset(
    {"limit", "cursor", "offset", "include", "collection", "state", "tag", "resourceId", "name", "search"}
)


class NotFaked(SweephandError):
    """A request that the stack in memory does not answer, but the local stack does."""

    code = "NOT_FAKED"


class Refused(SweephandError):
    """A refusal of the service, with its code."""


class FakeService:
    """The stack. on_run: called with each occurrence; a run fails if it raises."""

    def __init__(self, now: datetime, on_run: Callable[[Occurrence], object] | None) -> None:
        if now.tzinfo is None:
            raise InvalidArgument("now", f"must have a time zone, not {now!r}")
        self.time = now.astimezone(UTC)
        self.calls: list[Occurrence] = []
        self._began, self._on_run, self._ids = self.time, on_run, 0
        self._jobs: dict[str, FakeJob] = {}
        self._runs: dict[str, dict[str, Any]] = {}
        self._collections = {"default"}
        self._once: dict[tuple[str, str], tuple[bytes | None, Answer]] = {}
        self._busy = False

    # A clock and a transport

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return (self.time - self._began).total_seconds()

    def advance_to(self, end: datetime) -> list[models.Run]:
        """Moves the clock, and runs each occurrence at its instant, in order."""
        if self._busy:
            raise InvalidArgument("advance", "cannot be called from within on_run")
        if end < self.time:
            raise InvalidArgument("by", f"must not move the clock back: it is {text(self.time)}")
        done: list[models.Run] = []
        self._busy = True
        try:
            while (due := self._next(end)) is not None:
                if len(done) == MOST_RUNS:
                    raise InvalidArgument("by", f"more than {MOST_RUNS:,} runs fall due: advance by less")
                job, schedule = due
                assert schedule.next_at is not None
                self.time = max(self.time, schedule.next_at)
                planned_at = schedule.next_at
                schedule.pass_on()
                done.append(self._run(job, schedule, planned_at))
            self.time = end
        finally:
            self._busy = False
        return done

    def send(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, timeout_s: float
    ) -> Answer:
        """Answers a request. Raises NotFaked."""
        del timeout_s
        parts = urlsplit(url)
        given = {name.lower(): value for name, value in headers.items()}
        key = (given.get("idempotency-key", ""), f"{method} {parts.path}")
        if key in self._once:
            body, before = self._once[key]
            return before if body == content else _problem("KEY_REUSED", "was used with another request")
        try:
            query = dict(parse_qsl(parts.query, keep_blank_values=True))
            body_json = None if content is None else json.loads(content)
            status, shown = self._routed(method, parts.path)(query, body_json, given.get("if-match"))
            answer = _answer(status, shown)
        except (InvalidRequest, Refused) as refused:
            answer = _problem(refused.code, str(refused), refused)
        else:
            if key[0]:
                self._once[key] = (content, answer)
        return answer

    # Routes

    def _routed(self, method: str, path: str) -> Callable[..., tuple[int, Any]]:
        for route_method, pattern, name in ROUTES:
            found = re.fullmatch(pattern, path)
            if route_method == method and found is not None:
                operation = getattr(self, name)
                return lambda query, body, match: operation(
                    *map(unquote, found.groups()), query=query, body=body, match=match
                )
        raise NotFaked(f"FakeSweephand does not answer {method} {path}: use the local stack for this test")

    def _create_job(self, *, body: Any, **_: Any) -> tuple[int, Any]:
        job_id = self._new_id()
        given, schedules = members_of(body, job_id)
        self._check_name(given, None)
        job = FakeJob(job_id, given, self.time, self.time)
        job.schedules = schedules_of(schedules or [], job, self.time, self._new_id)
        self._jobs[job_id] = job
        return 201, self._shown(job)

    def _list_jobs(self, *, query: dict[str, str], **_: Any) -> tuple[int, Any]:
        if not query.keys() <= LISTS_BY:
            raise NotFaked(
                "FakeSweephand does not list jobs by instants or job sets: use the local stack for this test"
            )
        found = self._matching(query)
        shown = [self._shown(job) for job in found]
        return 200, {**_page(shown, query), **({"total": len(shown)} if "total" in query.get("include", "") else {})}

    def _delete_jobs(self, *, query: dict[str, str], **_: Any) -> tuple[int, Any]:
        found = self._matching(query)
        if query.get("dryRun") == "true":
            return 200, {"count": len(found), "deleted": 0, "operation": None}
        if query.get("expectedCount") != str(len(found)):
            wanted = query.get("expectedCount", "missing")
            raise Refused(f"expectedCount is {wanted}, but the filters find {len(found)}", code="COUNT_MISMATCH")
        for job in found:
            del self._jobs[job.id]
        return 200, {"count": len(found), "deleted": len(found), "operation": None}

    def _read_job(self, job_id: str, **_: Any) -> tuple[int, Any]:
        return 200, self._shown(self._job(job_id))

    def _put_job(self, job_id: str, *, body: Any, match: str | None, **_: Any) -> tuple[int, Any]:
        return self._change(self._job(job_id), body, match)

    def _patch_job(self, job_id: str, *, body: Any, match: str | None, **_: Any) -> tuple[int, Any]:
        job = self._job(job_id)
        return self._change(job, {**_merged(job.given, body)}, match)

    def _delete_job(self, job_id: str, *, match: str | None, **_: Any) -> tuple[int, Any]:
        self._check_match(self._job(job_id), match)
        del self._jobs[job_id]
        return 204, None

    def _run_job(self, job_id: str, *, body: Any, **_: Any) -> tuple[int, Any]:
        job, given = self._job(job_id), body or {}
        schedule = next((each for each in job.schedules if each.id == given.get("scheduleId")), None)
        run = self._run(job, schedule, self.time, kind="manual", payload=given.get("payload"))
        return 202, {"runId": run.id, "started": True}

    def _pause(self, job_id: str, *, body: Any, match: str | None, **_: Any) -> tuple[int, Any]:
        note, until = ((body or {}).get(name) for name in ("note", "until"))
        if until is not None:
            raise NotFaked("FakeSweephand does not end a pause on its own: call resume, or use the local stack")
        pause = {"since": text_ms(self.time), "note": note, "until": None}
        return self._set(self._job(job_id), match, pause=pause)

    def _resume(self, job_id: str, *, match: str | None, **_: Any) -> tuple[int, Any]:
        return self._set(self._job(job_id), match, pause=None)

    def _activate(self, job_id: str, *, match: str | None, **_: Any) -> tuple[int, Any]:
        return self._set(self._job(job_id), match, active=True)

    def _deactivate(self, job_id: str, *, match: str | None, **_: Any) -> tuple[int, Any]:
        return self._set(self._job(job_id), match, active=False)

    def _next_run(self, job_id: str, **_: Any) -> tuple[int, Any]:
        job = self._job(job_id)
        first = next((each for each in job.live() if each.next_at == job.next_at is not None), None)
        return 200, {
            "nextRunAt": None if job.next_at is None else text(job.next_at),
            "scheduleId": None if first is None else first.id,
        }

    def _list_schedules(self, job_id: str, *, query: dict[str, str], **_: Any) -> tuple[int, Any]:
        job = self._job(job_id)
        return 200, _page([each.body(job.id) for each in job.schedules], query)

    def _read_schedule(self, job_id: str, schedule_id: str, **_: Any) -> tuple[int, Any]:
        job = self._job(job_id)
        found = next((each for each in job.schedules if each.id == schedule_id), None)
        if found is None:
            raise Refused("no such schedule", code="NOT_FOUND")
        return 200, found.body(job.id)

    def _list_runs(self, *, query: dict[str, str], **_: Any) -> tuple[int, Any]:
        """Lists runs. Without a filter by job, schedule or state, successful runs are left out."""
        found = [run for run in self._runs.values() if self._run_matches(run, query)]
        if not query.keys() & {"jobId", "scheduleId", "collection", "tag", "resourceId", "state"}:
            found = [run for run in found if run["state"] != "SUCCESS"]
        return 200, _page(sorted(found, key=lambda run: run["plannedAt"], reverse=True), query)

    def _read_run(self, run_id: str, **_: Any) -> tuple[int, Any]:
        if run_id not in self._runs:
            raise Refused("no such run", code="NOT_FOUND")
        return 200, self._runs[run_id]

    def _create_collection(self, *, body: Any, **_: Any) -> tuple[int, Any]:
        if body["name"] in self._collections:
            raise Refused(f'there is a collection with the name "{body["name"]}" already', code="NAME_TAKEN")
        self._collections.add(body["name"])
        return 201, {**body, "facade": "native", "state": "ENABLED", "revision": 1, "createdAt": text_ms(self.time)}

    def _preview(self, *, body: Any, **_: Any) -> tuple[int, Any]:
        after = self.time if body.get("after") is None else parse_instant(body["after"], "after")
        timing = timing_of(body, {}, after)
        items: list[dict[str, str]] = []
        at = timing.rule.next_after(after)
        while at is not None and len(items) < min(body.get("limit", 5), timing.count or MOST_RUNS):
            items.append({"plannedAt": text(at)})
            at = timing.rule.next_after(at)
        kind = "recurring" if timing.recurring else "one-time"
        return 200, {"type": kind, "summary": timing.summary, "items": items, "nextCursor": None}

    # Shared steps

    def _new_id(self) -> str:
        self._ids += 1
        return uuid7(epoch_ms(self.time), self._ids.to_bytes(10, "big"))

    def _job(self, job_id: str) -> FakeJob:
        if job_id not in self._jobs:
            raise Refused("no such job", code="NOT_FOUND")
        return self._jobs[job_id]

    def _check_name(self, given: Mapping[str, Any], own: str | None) -> None:
        where, name = given["collection"], given["name"]
        if where not in self._collections:
            raise InvalidRequest("collection", f'there is no such collection: "{where}"')
        there = [job for job in self._jobs.values() if (job.given["collection"], job.given["name"]) == (where, name)]
        if any(job.id != own for job in there):
            raise Refused(f'there is a job with the name "{name}" already: choose another name', code="NAME_TAKEN")

    def _check_match(self, job: FakeJob, match: str | None) -> None:
        if match not in {None, "*", f'"{job.revision}"'}:
            raise Refused(f'the revision is "{job.revision}", not {match}', code="REVISION_MISMATCH")

    def _change(self, job: FakeJob, body: Any, match: str | None) -> tuple[int, Any]:
        self._check_match(job, match)
        given, schedules = members_of(body, job.id)
        self._check_name(given, job.id)
        draft = FakeJob(job.id, given, job.created_at, self.time, job.schedules, job.revision, job.pause)
        if schedules is not None:
            draft.schedules = schedules_of(schedules, draft, self.time, self._new_id)
        return self._keep(job, draft)

    def _set(self, job: FakeJob, match: str | None, **state: Any) -> tuple[int, Any]:
        self._check_match(job, match)
        given = job.given | ({"active": state["active"]} if "active" in state else {})
        pause = state.get("pause", job.pause)
        draft = FakeJob(job.id, given, job.created_at, self.time, job.schedules, job.revision, pause)
        return self._keep(job, draft)

    def _keep(self, before: FakeJob, after: FakeJob) -> tuple[int, Any]:
        """Stores a change. The revision increases if anything differs; what fell due while off is left out."""
        if after.runs and not before.runs:
            for schedule in after.schedules:
                schedule.skip_to(self.time)
        same = (before.given, before.pause, [each.given for each in before.schedules]) == (
            after.given,
            after.pause,
            [each.given for each in after.schedules],
        )
        if not same:
            after.revision += 1
        self._jobs[after.id] = before if same else after
        return 200, self._shown(self._jobs[after.id])

    def _matching(self, query: Mapping[str, str]) -> list[FakeJob]:
        where = query.get("collection")
        if where is not None and where not in self._collections:
            raise InvalidRequest("collection", f'there is no such collection: "{where}"', code="INVALID_QUERY")
        return [job for job in self._jobs.values() if _job_matches(job, query)]

    def _run_matches(self, run: Mapping[str, Any], query: Mapping[str, str]) -> bool:
        job = self._jobs.get(run["jobId"])
        of_jobs = {name: query[name] for name in ("collection", "tag", "resourceId") if name in query}
        begin, end = (None if query.get(n) is None else parse_instant(query[n], n) for n in ("from", "until"))
        planned_at = datetime.fromisoformat(run["plannedAt"])
        return (
            all(run[name] == query[name] for name in ("jobId", "scheduleId", "state", "kind") if name in query)
            and (not of_jobs or (job is not None and _job_matches(job, of_jobs)))
            and (begin is None or planned_at >= begin)
            and (end is None or planned_at <= end)
        )

    def _shown(self, job: FakeJob) -> dict[str, Any]:
        states = [run["state"] for run in self._runs.values() if run["jobId"] == job.id and run["kind"] == "scheduled"]
        failed = states.count("ERROR")
        totals = {"planned": len(states), "open": 0, "succeeded": len(states) - failed, "failed": failed}
        return {**job.body(), "totals": {**totals, "failedAttempts": failed, "skipped": 0, "missed": 0, "exact": True}}

    # Runs

    def _next(self, end: datetime) -> tuple[FakeJob, FakeSchedule] | None:
        due = [
            (schedule.next_at, number, job, schedule)
            for number, job in enumerate(self._jobs.values())
            if job.runs
            for schedule in job.live()
            if schedule.next_at is not None and schedule.next_at <= end
        ]
        return min(due, key=lambda each: each[:2])[2:] if due else None

    def _run(
        self,
        job: FakeJob,
        schedule: FakeSchedule | None,
        planned_at: datetime,
        *,
        kind: str = "scheduled",
        payload: Any = None,
    ) -> models.Run:
        owner = job.id if schedule is None else schedule.id
        self._ids += 1
        run_id = f"{owner}_{run_uuid(TENANT, owner, epoch_ms(planned_at), kind, str(self._ids))}"
        own = None if schedule is None else schedule.given.get("payload")
        sent = next((each for each in (payload, own, job.given["action"].get("payload")) if each is not None), None)
        run = _run_body(run_id, job, schedule, planned_at, self.time, kind)
        occurrence = Occurrence(models.Job(self._shown(job)), models.Run(run), sent)
        self.calls.append(occurrence)
        failure = None
        if self._on_run is not None:
            try:
                self._on_run(occurrence)
            except Exception as error:  # noqa: BLE001 - on_run stands for the target: any error fails the run
                failure = f"{type(error).__name__}: {error}"
        self._runs[run_id] = _ended(run, failure, self.time)
        return models.Run(self._runs[run_id])


ID = "([^/]+)"
ROUTES = (
    ("POST", "/v1/jobs", "_create_job"),
    ("GET", "/v1/jobs", "_list_jobs"),
    ("DELETE", "/v1/jobs", "_delete_jobs"),
    ("GET", f"/v1/jobs/{ID}", "_read_job"),
    ("PUT", f"/v1/jobs/{ID}", "_put_job"),
    ("PATCH", f"/v1/jobs/{ID}", "_patch_job"),
    ("DELETE", f"/v1/jobs/{ID}", "_delete_job"),
    ("POST", f"/v1/jobs/{ID}/run", "_run_job"),
    ("POST", f"/v1/jobs/{ID}/pause", "_pause"),
    ("POST", f"/v1/jobs/{ID}/resume", "_resume"),
    ("POST", f"/v1/jobs/{ID}/activate", "_activate"),
    ("POST", f"/v1/jobs/{ID}/deactivate", "_deactivate"),
    ("GET", f"/v1/jobs/{ID}/next", "_next_run"),
    ("GET", f"/v1/jobs/{ID}/schedules", "_list_schedules"),
    ("GET", f"/v1/jobs/{ID}/schedules/{ID}", "_read_schedule"),
    ("GET", "/v1/runs", "_list_runs"),
    ("GET", f"/v1/runs/{ID}", "_read_run"),
    ("POST", "/v1/collections", "_create_collection"),
    ("POST", "/v1/schedules:preview", "_preview"),
)


def _job_matches(job: FakeJob, query: Mapping[str, str]) -> bool:
    tags, given = job.given["tags"], job.given
    return (
        all(given[name] == query[name] for name in ("collection", "resourceId", "name") if name in query)
        and query.get("state", job.state) == job.state
        and query.get("search", "").casefold() in given["name"].casefold()
        and ("tag" not in query or (query["tag"] in tags if query["tag"] else not tags))
    )


def _run_body(
    run_id: str, job: FakeJob, schedule: FakeSchedule | None, planned_at: datetime, now: datetime, kind: str
) -> dict[str, Any]:
    at = text_ms(planned_at)
    return {
        "id": run_id,
        "jobId": job.id,
        "jobName": job.given["name"],
        "scheduleId": None if schedule is None else schedule.id,
        "kind": kind,
        "status": "RUNNING",
        "state": "TRIGGERED",
        "reason": None,
        "httpStatus": None,
        "plannedAt": at,
        "enqueuedAt": at,
        "startedAt": text_ms(now),
        "finishedAt": None,
        "latenessMs": 0,
        "attempt": 1,
        "maxAttempts": 1,
        "message": None,
        "attempts": [],
        "notes": [],
    }


def _ended(run: dict[str, Any], failure: str | None, now: datetime) -> dict[str, Any]:
    state, reason = ("SUCCESS", "ON_TIME") if failure is None else ("ERROR", "TARGET_ERROR")
    end = {"state": state, "finishedAt": text_ms(now), "message": failure}
    same = ("attempt", "plannedAt", "enqueuedAt", "startedAt")
    attempt = (
        {name: run[name] for name in same} | end | {"durationMs": 0, "reason": None if failure is None else reason}
    )
    return {**run, **end, "reason": reason, "status": "COMPLETED", "attempts": [attempt]}


def _merged(before: Any, patch: Any) -> Any:
    """Returns a merge patch's result (RFC 7396)."""
    if not isinstance(patch, Mapping) or not isinstance(before, Mapping):
        return patch
    merged = {name: _merged(before.get(name), value) for name, value in patch.items() if value is not None}
    return {name: value for name, value in before.items() if name not in patch} | merged


def _page(items: list[Any], query: Mapping[str, str]) -> dict[str, Any]:
    begin = int(query.get("cursor") or query.get("offset") or 0)
    end = begin + int(query.get("limit", PAGE))
    return {"items": items[begin:end], "nextCursor": str(end) if end < len(items) else None}


def _answer(status: int, body: Any) -> Answer:
    content = b"" if body is None else json.dumps(body).encode()
    return Answer(status, {"content-type": "application/json"}, content)


def _problem(code: str, detail: str, refused: SweephandError | None = None) -> Answer:
    status = STATUSES.get(code, 422)
    body: dict[str, Any] = {
        "type": f"/problems/{code.lower().replace('_', '-')}",
        "title": code,
        "status": status,
        "code": code,
        "detail": detail,
        "requestId": "fake",
    }
    if isinstance(refused, InvalidRequest):
        body["detail"] = f"{refused.field}: {refused.reason}"
        body["errors"] = [{"field": each.field or "body", "reason": each.reason} for each in refused.all]
    return _answer(status, body)


def until(now: datetime, by: timedelta | str | datetime) -> datetime:
    """Returns the instant to move to. by: how much later, such as "1d" or a timedelta, or the instant itself."""
    if isinstance(by, datetime):
        return by
    if isinstance(by, timedelta):
        return now + by
    from sweephand.schedules.text import duration  # noqa: PLC0415 - needed for strings only

    found = duration.read(by, "by")
    if found.months:
        raise InvalidArgument("by", f"must be a number of seconds, minutes, hours, days or weeks, not {by!r}")
    return now + timedelta(seconds=found.seconds)
