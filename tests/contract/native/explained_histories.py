"""Random histories of one job, and the checks that explanations, lists and the ledger agree about every instant."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random  # noqa: TID251 - a history is played again by its seed
from typing import Any

from sweephand.domain.run import Kind, Run
from tests.contract.native.api import Api
from tests.support.endpoint import BUSY, OK, WRONG

TIMINGS: tuple[dict[str, Any], ...] = (
    {"every": "PT20S"},
    {"every": "PT45S", "jitterSeconds": 7},
    {"every": "PT1M", "count": 25},
    {"every": "PT50S", "align": "actual_start"},
    {"cron": "*/2 * * * *", "timezone": "Europe/Berlin"},
    {"cron": "* * * * *", "calendars": [{"name": "holidays"}]},
    {"rrule": "FREQ=MINUTELY;INTERVAL=3"},
    {"at": "2027-03-01T12:09:00Z"},
    {"every": "PT30S", "startTime": "2027-03-01T12:04:00Z", "endTime": "2027-03-01T12:40:00Z"},
    {"every": "PT40S", "align": "actual_start", "endTime": "2027-03-01T12:12:00Z"},
    {"cron": "* * * * *", "calendars": [{"name": "holidays"}], "endTime": "2027-03-01T12:14:30Z"},
    {"at": "2027-03-01T12:03:30Z", "calendars": [{"name": "holidays"}]},
)
POLICIES: tuple[dict[str, Any], ...] = (
    {},
    {"misfire": {"type": "skip"}},
    {"misfire": {"type": "latest"}},
    {"misfire": {"type": "all"}},
    {"misfire": {"type": "latest", "maxLatenessSeconds": 300}},
    {"onEnable": "run_now", "onPastStart": "run_now"},
    {"overlap": "skip"},
)
LEFT_OUT = {"SKIPPED", "MISSED", "EXPIRED", "CANCELLED"}
ASKED_AT_MOST = 150
ASKED_NOW = 6
OTHERS = 12
AHEAD = 12
NOTICED = timedelta(seconds=5)
"""Executors know within this time that a collection was disabled."""


def text(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


@dataclass
class History:
    """A job and its API, and the steps that the seed drew so far, for the message of a failure."""

    api: Api
    chance: Random
    job: str = ""
    schedules: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    calendar_changed_at: datetime = datetime(2027, 1, 1, tzinfo=UTC)
    collection_switched_at: datetime = datetime(2027, 1, 1, tzinfo=UTC)
    seen: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def begin(self) -> None:
        self.api("POST", "/v1/collections", {"name": "customer"})
        self.api("POST", "/v1/calendars", {"name": "holidays", "dates": ["12-25"]})
        timings = self.chance.sample(TIMINGS, self.chance.choice((1, 1, 2)))
        policies = self.chance.choice(POLICIES)
        made = self.api.create(schedules=timings, policies=policies, collection="customer")
        self.job = f"/v1/jobs/{made['id']}"
        self.schedules = [each["id"] for each in made["schedules"]]
        self.steps.append(f"create {timings} {policies}")

    def step(self) -> None:
        act = self.chance.choice(ACTS)
        self.steps.append(f"{text(self.now)} {act.__name__.strip('_')}")
        act(self)

    @property
    def now(self) -> datetime:
        return self.api.stage.clock.now()

    @property
    def late(self) -> bool:
        """Returns whether nothing has worked for a while."""
        pause = self.api.get(self.job).json["pause"] or {}
        ended = (pause.get("until") or "9") < text(self.now)
        return ended or any(act in self.steps[-1] for act in ("outage", "executors")) or bool(self._overdue())

    def _overdue(self) -> list[str]:
        shown = self.api.get("/v1/timeline").json["items"]
        return [each["dueSince"] for each in shown if each["dueSince"] is not None]

    @property
    def one(self) -> str:
        """Returns the place of one of its schedules."""
        return f"{self.job}/schedules/{self.chance.choice(self.schedules)}"

    def send(self, method: str, path: str, body: Any = None) -> None:
        """Sends a request that may be refused, such as a change of a job that has ended."""
        reply = self.api(method, path, body)
        assert reply.status < 500, reply.text
        self.steps.append(f"  {method} {path.rpartition('/')[2]} {body or ''} {reply.status}")


def _run(history: History) -> None:
    history.api.stage.run(history.chance.choice((3, 20, 60, 200)))


def _outage(history: History) -> None:
    history.api.stage.pass_time(history.chance.choice((30, 150, 400, 900)))


def _no_executors(history: History) -> None:
    for _ in range(history.chance.choice((2, 5))):
        history.api.stage.pass_time(60)
        history.api.stage.tick()


def _pause(history: History) -> None:
    body: dict[str, Any] = {"note": f"note {history.chance.randrange(100)}"}
    if history.chance.random() < 0.6:
        body["until"] = text(history.now + timedelta(seconds=history.chance.choice((4, 20, 90, 400))))
    history.send("POST", f"{history.job}/pause", body)


def _resume(history: History) -> None:
    history.send("POST", f"{history.job}/resume")


def _switch_job(history: History) -> None:
    history.send("POST", f"{history.job}/{history.chance.choice(('activate', 'activate', 'deactivate'))}")


def _switch_schedule(history: History) -> None:
    history.send("POST", f"{history.one}/{history.chance.choice(('activate', 'activate', 'deactivate'))}")


def _change_timing(history: History) -> None:
    members = dict.fromkeys(("every", "cron", "rrule", "timezone", "calendars", "count", "align", "jitterSeconds"))
    members |= dict.fromkeys(("startTime", "endTime", "at"))
    history.send("PATCH", history.one, {**members, **history.chance.choice(TIMINGS)})


def _change_policies(history: History) -> None:
    history.send("PATCH", history.job, {"policies": history.chance.choice(POLICIES)})


def _switch_collection(history: History) -> None:
    history.collection_switched_at = history.now
    history.send("POST", f"/v1/collections/customer/{history.chance.choice(('enable', 'enable', 'disable'))}")


def _change_calendar(history: History) -> None:
    begin = history.now + timedelta(seconds=history.chance.choice((-120, 0, 60)))
    end = begin + timedelta(seconds=history.chance.choice((60, 240)))
    history.calendar_changed_at = history.now
    history.send("PUT", "/v1/calendars/holidays", {"ranges": [{"from": text(begin), "to": text(end)}]})


def _run_by_hand(history: History) -> None:
    history.send("POST", f"{history.job}/run", {"scheduleId": history.one.rpartition("/")[2]})


def _failing_target(history: History) -> None:
    history.api.stage.endpoint.script = [history.chance.choice((OK, BUSY, WRONG)) for _ in range(4)]


def _add_schedule(history: History) -> None:
    reply = history.api("POST", f"{history.job}/schedules", history.chance.choice(TIMINGS))
    if reply.status == 201:
        history.schedules.append(reply.json["id"])


def _delete_schedule(history: History) -> None:
    if len(history.schedules) > 1:
        gone = history.schedules.pop()
        history.send("DELETE", f"{history.job}/schedules/{gone}")


ACTS: tuple[Callable[[History], None], ...] = (
    *(_run, _run, _run, _outage, _no_executors, _pause, _pause, _resume, _resume, _switch_job, _switch_schedule),
    *(_change_timing, _change_policies, _switch_collection, _change_calendar, _run_by_hand, _failing_target),
    *(_add_schedule, _delete_schedule),
)


# Checks


def check_now(history: History) -> None:
    """Checks that list and explanation agree around now, also about instants that were once announced."""
    now = history.now.replace(microsecond=0)
    begin, until = now - timedelta(minutes=8), now + timedelta(minutes=12)
    ahead = set[str]()
    for schedule in history.schedules:
        listed = occurrences(history, schedule, begin, until)
        ahead |= {at for at, item in listed.items() if item["state"] == "SCHEDULED" and at > text(history.now)}
        history.seen[schedule].update(listed)
        once = [at for at in sorted(history.seen[schedule]) if text(begin) <= at <= text(until)]
        for at in history.chance.sample(once, min(len(once), ASKED_NOW)):
            _check_alike(history, schedule, at, listed.get(at))
    [lane] = history.api.get("/v1/timeline", query={"from": text(begin), "until": text(until)}).json["items"]
    drawn = {text(begin + timedelta(seconds=second)) for second in lane["planned"]["seconds"]}
    assert drawn <= ahead, ("drawn, and not listed", sorted(drawn - ahead))
    if not lane["planned"]["leftOut"] and not lane["held"]:
        assert ahead <= drawn, ("listed, and not drawn", sorted(ahead - drawn))


def _check_alike(history: History, schedule: str, at: str, item: dict[str, Any] | None) -> None:
    body = explain(history, schedule, at)
    asked = (text(history.now), schedule, at, item, body)
    expected = (None, None) if item is None else (item["state"], item["reason"])
    assert (body["state"], body["reason"]) == expected, asked
    if item is None:
        assert not body["occurs"], asked
    elif body["runId"] is not None:
        assert body["runId"] == item["runId"], asked
    else:
        assert body["occurs"] is (item["state"] == "SCHEDULED"), asked


def check_past(history: History) -> None:
    """Checks every instant of each schedule's ledger, those that are listed, and some that are no occurrences."""
    for schedule in history.schedules:
        _check_schedule(history, schedule)


def _check_schedule(history: History, schedule: str) -> None:
    now = history.now
    listed = occurrences(history, schedule, datetime(2027, 3, 1, 11, tzinfo=UTC), now)
    ledger = history.api.stage.runs(schedule, Kind.SCHEDULED)
    own = {text(run.planned_at): run for run in ledger if run.range_until is None and run.planned_at <= now}
    ranges = {run.id: run for run in ledger if run.range_until is not None}
    assert list(listed) == sorted(listed)
    assert own.keys() <= listed.keys()
    counted = Counter(each["runId"] for each in listed.values())
    for run_id, run in ranges.items():
        if run.range_until <= now:
            _check_count(run, counted[run_id], own)
    asked = history.chance.sample(sorted(listed), min(len(listed), ASKED_AT_MOST))
    for at in asked:
        _check_occurrence(history, schedule, at, listed[at], own.get(at), ranges)
    for _ in range(OTHERS):
        other = text(now - timedelta(seconds=history.chance.randrange(1, 2_400)))
        if other not in listed:
            body = explain(history, schedule, other)
            assert (body["occurs"], body["state"], body["runId"]) == (False, None, None), (other, body)


def _check_count(row: Run, listed: int, own: dict[str, Run]) -> None:
    """Checks how many of a range's occurrences are listed under it: those without a run of their own.

    It may count some that run nevertheless: an executor receives them at that moment, or a change plans them again.
    """
    within = sum(row.planned_at <= run.planned_at <= row.range_until for run in own.values() if row.range_until)
    assert (row.range_count or 0) - within <= listed <= (row.range_count or 0), (row, listed, within)


def _check_occurrence(
    history: History, schedule: str, at: str, item: dict[str, Any], run: Run | None, ranges: dict[str, Run]
) -> None:
    body = explain(history, schedule, at)
    told = (at, item, body)
    assert (body["state"], body["reason"]) == (item["state"], item["reason"]), told
    if item["state"] == "SCHEDULED" or item["runId"] is None:
        assert run is None, told
        assert body["runId"] is None, told
        assert body["occurs"] is (item["state"] == "SCHEDULED"), told
        return
    row = run or ranges[body["runId"]]
    assert body["runId"] == item["runId"] == row.id, told
    assert (row.state.value, row.reason) == (item["state"], item["reason"]), told
    assert body["occurs"] is (row.state.value not in LEFT_OUT or row.started_at is not None), told
    assert row.planned_at <= datetime.fromisoformat(at) <= (row.range_until or row.planned_at), told
    if history.chance.random() < 0.1:
        window = {"scheduleId": schedule, "from": at, "until": at, "limit": 100}
        assert row.id in {each["id"] for each in history.api.get("/v1/runs", query=window).json["items"]}, told


def explain(history: History, schedule: str, at: str) -> dict[str, Any]:
    reply = history.api.get(f"{history.job}/schedules/{schedule}/explain", query={"at": at})
    assert reply.status == 200, reply.text
    body: dict[str, Any] = reply.json
    if body["runId"] is not None:
        assert history.api.get(f"/v1/runs/{body['runId']}").status == 200, body
    return body


def occurrences(history: History, schedule: str, begin: datetime, until: datetime) -> dict[str, dict[str, Any]]:
    """Returns what the list of occurrences shows, by instant."""
    query: dict[str, Any] = {"scheduleId": schedule, "from": text(begin), "until": text(until), "limit": 100}
    found: list[dict[str, Any]] = []
    while True:
        page = history.api.get(f"{history.job}/occurrences", query=query).json
        found += page["items"]
        if page["nextCursor"] is None:
            assert len(found) == len({each["plannedAt"] for each in found}), "an instant comes once"
            return {each["plannedAt"]: each for each in found}
        query["cursor"] = page["nextCursor"]


def check_future(history: History) -> None:
    """Lets time pass without a change, and checks that what was announced happened, and nothing else."""
    if history.late:
        history.api.stage.run(150)  # policies and actual starts move what an outage has delayed
    if history.now < history.calendar_changed_at + timedelta(seconds=70):
        history.api.stage.run(70)  # until the schedules follow, only occurrences of both versions are announced
    if history.now < history.collection_switched_at + NOTICED:
        history.api.stage.run(NOTICED.total_seconds())
    begin = history.now.replace(microsecond=0) + timedelta(seconds=1)
    until = begin + timedelta(seconds=history.chance.choice((60, 240, 600)))
    announced = {each: occurrences(history, each, begin, until) for each in history.schedules}
    held = history.api.get(history.job).json["held"] is not None
    for schedule, items in announced.items():
        _check_announced(history, schedule, items)

    history.api.stage.run((until - history.now).total_seconds() + 90)

    for schedule, items in announced.items():
        own = {
            text(run.planned_at): run
            for run in history.api.stage.runs(schedule, Kind.SCHEDULED)
            if run.range_until is None and begin <= run.planned_at <= until
        }
        will_run = {at for at, item in items.items() if item["state"] == "SCHEDULED"}
        if held:  # a one-time occurrence waits until its collection is enabled
            assert all(explain(history, schedule, at)["state"] == "SCHEDULED" for at in will_run)
            will_run.clear()
        assert will_run <= own.keys(), (schedule, "announced, and did not run", sorted(will_run - own.keys()))
        called = {at for at, run in own.items() if run.state.value not in LEFT_OUT}
        assert called <= will_run, (schedule, "ran unannounced", sorted(called - will_run))
        for at in will_run:
            assert own[at].state.value not in LEFT_OUT, (schedule, own[at])
        for at, item in items.items():
            if item["state"] == "SKIPPED":
                after = explain(history, schedule, at)
                assert (after["state"], after["reason"]) == ("SKIPPED", item["reason"]), (at, item, after)


def _check_announced(history: History, schedule: str, items: dict[str, dict[str, Any]]) -> None:
    for at in sorted(items)[:AHEAD]:
        body = explain(history, schedule, at)
        assert (body["state"], body["reason"]) == (items[at]["state"], items[at]["reason"]), (at, items[at], body)
        assert body["occurs"] is (body["state"] == "SCHEDULED"), (at, body)
    shown = history.api.get(f"{history.job}/schedules/{schedule}").json
    runs = [at for at in sorted(items) if items[at]["state"] == "SCHEDULED"]
    if runs and shown["held"] is None:
        assert shown["nextRunAt"] is not None, runs
        assert shown["nextRunAt"] <= runs[0], (shown["nextRunAt"], runs[0])
