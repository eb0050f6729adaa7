"""Announced occurrences happen: changes next to due instants, through both facades, with executors away and deaths.

A history makes a job and changes it at random moments, 0 to 10 s before an instant, on the second and between two.
After each change the list of occurrences says what will come in the next seconds. In the end the announcements, the
calls that the target received and the ledger agree, but for what a later request took back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random  # noqa: TID251 - as with sources.Chance, a seed gives the same each time
from typing import Any

import pytest

from sweephand.domain.run import Run, State
from tests.contract.calls import Reply
from tests.contract.sap.api import Sap, sap
from tests.faults.at_calls import Faults
from tests.support.examples import scaled
from tests.support.stage import TENANT
from tests.support.taps import Crash

SECOND = timedelta(seconds=1)
LAST = datetime.max.replace(tzinfo=UTC)
WINDOW = timedelta(seconds=15)
"""So far each look goes, or up to the next change."""
TICK_S = 60
NOTICED = timedelta(seconds=2)
"""How long a process remembers whether a collection is enabled."""
HISTORIES_OF_A_STAGE = 20
HISTORIES, HISTORIES_AT_LENGTH = 60, 10_000
CRASHES = ["crash-before", "crash-after"]

NATIVE_TIMINGS: list[dict[str, Any]] = [
    {"every": "PT1S", "align": "epoch"},
    {"every": "PT2S", "align": "epoch"},
    {"every": "PT5S"},
    {"every": "PT7S", "align": "start"},
    {"every": "PT7S", "align": "actual_start"},
    {"every": "PT20S", "align": "epoch", "count": 9},
    {"every": "PT3S", "align": "epoch", "count": 5},
    {"cron": "* * * * *"},
    {"cron": "*/2 * * * *", "jitterSeconds": 20},
    {"cron": "* * * * *", "calendars": [{"name": "odd"}]},
    {"at": 3},
    {"at": 8},
]
"""`at`: seconds from now."""
CALENDAR_TIMINGS: list[dict[str, Any]] = [
    {"every": "PT1S", "align": "epoch", "calendars": [{"name": "odd"}]},
    {"every": "PT2S", "align": "epoch", "count": 6, "calendars": [{"name": "odd"}]},
    {"cron": "* * * * *", "calendars": [{"name": "odd"}]},
]
SAP_TIMINGS: list[dict[str, Any]] = [
    {"repeatInterval": "7 seconds"},
    {"repeatInterval": "20 seconds"},
    {"cron": "* * * * * */5 0"},
    {"cron": "* * * * * * */10"},
    {"time": 4},
]
MEMBERS = ("every", "align", "cron", "at", "count", "jitterSeconds", "calendars")
SAP_MEMBERS = ("repeatInterval", "cron", "time")


@dataclass(frozen=True)
class Look:
    """Instants that were named after so many requests. until: the end of what was asked for; None: single instants.

    whole: nothing else will run; not so while an executor has still to notice that its collection is disabled, to let
    go what was held, to end a pause, or to make the schedule follow its calendar.
    """

    at: datetime
    requests: int
    named: frozenset[datetime]
    until: datetime | None = None
    whole: bool = False


@dataclass
class History:
    """One job. off: from when to when its occurrences are not to run, both as its caller knows them.

    unsure: from when on something may have happened of which the caller got no answer, until the next look.
    """

    api: Sap
    chance: Random
    number: int
    sap: bool = False
    job: str = ""
    schedule: str = ""
    sap_place: str = ""
    looks: list[Look] = field(default_factory=list)
    asked: list[datetime] = field(default_factory=list)
    resumes: list[datetime] = field(default_factory=list)
    off: list[tuple[datetime, datetime]] = field(default_factory=list)
    off_since: dict[str, datetime] = field(default_factory=dict)
    away: bool = False
    log: list[str] = field(default_factory=list)

    # Time

    @property
    def now(self) -> datetime:
        return self.api.stage.clock.now()

    def go(self, seconds: float) -> None:
        """Moves the clock, with executors or without."""
        stage = self.api.stage
        if not self.away:
            stage.run(seconds)
            return
        end = self.now + timedelta(seconds=seconds)
        while stage._next_tick is not None and stage._next_tick <= end:
            stage.clock.move_to(stage._next_tick)
            stage._next_tick += timedelta(seconds=TICK_S)
            stage.tick()
        stage.clock.move_to(end)

    def go_near(self) -> None:
        """Moves the clock to a moment next to an instant that is ahead: on the second as often as between two."""
        ahead = [each for look in self.looks[-1:] for each in look.named if each > self.now]
        whole = self.now.replace(microsecond=0) + SECOND * self.chance.choice([1, 3, 12, 30, 75])
        target = self.chance.choice(ahead) if ahead and self.chance.random() < 0.5 else whole
        if self.chance.random() < 0.5:
            target = target.replace(second=0) + timedelta(minutes=1)
        distance = self.chance.randrange(41) / 4 if self.chance.random() < 0.7 else self.chance.random() * 10
        seconds = (target - timedelta(seconds=distance) - self.now).total_seconds()
        self.go(max(0.0, round(seconds, 3)))

    # Requests

    def begin(self) -> None:
        self.sap = self.chance.random() < 0.35
        if self.sap:
            made = self.api.create(self.sap_timing(), name=f"job{self.number}")
            self.job = self.native("GET", "/v1/jobs", query={"name": f"job{self.number}", "collection": "sap"}).json[
                "items"
            ][0]["id"]
            self.sap_place = f"/jobs/{made['_id']}/schedules/{made['schedules'][0]['scheduleId']}"
        else:
            self.native("POST", "/v1/collections", {"name": self.collection})
            body = {"action": ACTION, "collection": self.collection, "schedules": [self.timing()]}
            self.job = self.native("POST", "/v1/jobs", body).id
        (there,) = self.native("GET", f"/v1/jobs/{self.job}/schedules").json["items"]
        self.schedule = there["id"]
        self.looked()

    @property
    def collection(self) -> str:
        return "sap" if self.sap else f"c{self.number}"

    def native(self, method: str, path: str, body: object = None, **more: Any) -> Reply:
        return self.api.native(method, path, body, **more)

    def timing(self) -> dict[str, Any]:
        chosen = dict(self.chance.choice(NATIVE_TIMINGS))
        if "at" in chosen:
            chosen["at"] = f"{self.now + timedelta(seconds=chosen['at']):%Y-%m-%dT%H:%M:%SZ}"
        return chosen

    def sap_timing(self) -> dict[str, Any]:
        chosen = dict(self.chance.choice(SAP_TIMINGS))
        if "time" in chosen:
            chosen["time"] = f"{self.now + timedelta(seconds=chosen['time']):%Y-%m-%dT%H:%M:%SZ}"
        return chosen

    def requests(self) -> list[tuple[str, Callable[[], Reply]]]:
        """Returns each request with a name: off-X and on-X are a pair."""
        job, schedule = f"/v1/jobs/{self.job}", f"/v1/jobs/{self.job}/schedules/{self.schedule}"
        collection = f"/v1/collections/{self.collection}"
        found: list[tuple[str, Callable[[], Reply]]] = [
            ("off-job-pause", lambda: self.native("POST", f"{job}/pause", {})),
            ("off-job-pause-until", self.pause_until),
            ("on-job-pause", lambda: self.native("POST", f"{job}/resume")),
            ("off-job", lambda: self.native("POST", f"{job}/deactivate")),
            ("on-job", lambda: self.native("POST", f"{job}/activate")),
            ("off-schedule", lambda: self.native("POST", f"{schedule}/deactivate")),
            ("on-schedule", lambda: self.native("POST", f"{schedule}/activate")),
            ("off-collection", lambda: self.native("POST", f"{collection}/disable")),
            ("on-collection", lambda: self.native("POST", f"{collection}/enable")),
            ("off-tenant", lambda: self.native("POST", f"/v1/tenants/{TENANT}/disable", caller="provider")),
            ("on-tenant", lambda: self.native("POST", f"/v1/tenants/{TENANT}/enable", caller="provider")),
            ("policies", lambda: self.native("PATCH", job, {"policies": {"misfire": {"type": "sap"}}})),
            ("description", lambda: self.native("PATCH", job, {"description": f"{self.now}"})),
        ]
        if self.sap:
            place = self.sap_place
            found += [
                ("timing", lambda: self.api("PUT", place, self.sap_timing())),
                ("timing", lambda: self.api("PUT", place, self.sap_timing())),
                ("off-schedule", lambda: self.api("PUT", place, {"active": False})),
                ("on-schedule", lambda: self.api("PUT", place, {"active": True})),
                ("off-job", lambda: self.api("PUT", place.partition("/schedules")[0], {"active": False})),
                ("on-job", lambda: self.api("PUT", place.partition("/schedules")[0], {"active": True})),
            ]
        else:
            found += [("timing", lambda: self.native("PATCH", schedule, self.patch()))] * 3
            found += [
                ("timing", lambda: self.native("PUT", job, self.replacement())),
                ("timing", lambda: self.native("PUT", schedule, self.timing())),
                ("timing", self.another_calendar),
            ]
        return found

    def patch(self) -> dict[str, Any]:
        return dict.fromkeys(MEMBERS) | self.timing()

    def replacement(self) -> dict[str, Any]:
        schedules = [{"id": self.schedule, **self.timing()}]
        return {"action": ACTION, "collection": self.collection, "schedules": schedules}

    def pause_until(self) -> Reply:
        until = (self.now + timedelta(seconds=self.chance.choice([2, 4, 9, 30]))).replace(microsecond=0)
        self.resumes.append(until)
        return self.native("POST", f"/v1/jobs/{self.job}/pause", {"until": f"{until:%Y-%m-%dT%H:%M:%SZ}"})

    def another_calendar(self) -> Reply:
        """Changes the calendar. Its jobs follow by a message, at some moment."""
        dates = self.chance.choice([[], ["12-24"], ["03-01"]])
        return self.native("PUT", "/v1/calendars/odd", {"dates": dates})

    def change(self) -> None:
        name, request = self.chance.choice(self.requests())
        crash = self.chance.random() < 0.15
        self.away = self.chance.random() < 0.3
        began = self.now
        self.asked.append(began)
        faults = Faults([(self.chance.randrange(12), self.chance.choice(CRASHES))]) if crash else None
        reply = self.dying(request, faults)
        answered = reply is not None
        worked = reply is not None and reply.status < 300
        self.log.append(f"{began:%H:%M:%S.%f} {name} {'away' if self.away else ''} {shown(reply)}")
        self.note(name, began, answered=answered, worked=worked)
        if worked:
            assert reply is not None
            self.read(reply)
        self.looked()

    def dying(self, request: Callable[[], Reply], faults: Faults | None) -> Reply | None:
        """Returns the answer, or None if the function died first."""
        taps = self.api.stage.taps
        usual = taps.fault
        taps.fault = faults or usual
        try:
            return request()
        except Crash:
            return None
        finally:
            taps.fault = usual

    def note(self, name: str, began: datetime, *, answered: bool, worked: bool) -> None:
        """Notes when it is known to be off. After a request that died nothing is known: no interval holds any more."""
        kind, _, what = name.partition("-")
        if kind == "off" and worked and what != "job-pause-until":
            self.off_since.setdefault(what, self.now)
        elif kind == "on" or what == "job-pause-until" or not answered:
            since = self.off_since.pop(what, None)
            if since is not None and what != "job-pause-until":
                self.off.append((since + (NOTICED if what in {"collection", "tenant"} else 0 * SECOND), began))

    def read(self, reply: Reply) -> None:
        """Instants that the answer names."""
        for body in every_object(reply.json):
            for name in ("nextRunAt", "nextRuns"):
                for each in [body[name]] if isinstance(body.get(name), str) else body.get(name) or []:
                    self.looks.append(Look(self.now, len(self.asked), frozenset({instant_of(each)})))

    def looked(self) -> None:
        """Collects all answers about what will come, and checks that they agree."""
        more: dict[str, Any] = {"caller": "provider", "headers": {"Sweephand-Tenant": TENANT}}
        until = (self.now + WINDOW).replace(microsecond=0)
        span = {"from": f"{self.now:%Y-%m-%dT%H:%M:%S.%fZ}"[:-4] + "Z", "until": f"{until:%Y-%m-%dT%H:%M:%SZ}"}
        reply = self.native("GET", f"/v1/jobs/{self.job}/occurrences", query={**span, "limit": 100}, **more)
        listed = [each for each in reply.json["items"] if each["state"] == "SCHEDULED"]
        named = frozenset(at for each in listed if (at := instant_of(each["plannedAt"])) > self.now)
        there = self.native("GET", f"/v1/jobs/{self.job}/schedules/{self.schedule}", **more)
        self.read(there)
        nexts = [instant_of(each) for each in there.json["nextRuns"]]
        assert [each for each in nexts if each <= until] == sorted(named)[: len(nexts)], (
            nexts,
            sorted(named),
            self.log,
        )
        for second in self.chance.sample(range(1, 12), 4):
            at = self.now.replace(microsecond=0) + second * SECOND
            place = f"/v1/jobs/{self.job}/schedules/{self.schedule}/explain"
            said = self.native("GET", place, query={"at": f"{at:%Y-%m-%dT%H:%M:%SZ}"}, **more).json
            codes = {each["code"] for each in said["reasons"]}
            assert not ({"CHANGED_SINCE", "MATCHES"} <= codes), said
            assert not ("CHANGED_SINCE" in codes and said["occurs"]), said
            assert said["occurs"] is (at in named), (at, said, sorted(named), self.log)
        ends_late = there.json["state"] == "PAUSED" and self.resumes
        held = there.json["held"] is not None or (there.json["state"] == "ACTIVE" and not nexts)
        self.looks.append(Look(self.now, len(self.asked), named, until, not (ends_late or held or self.follows)))

    @property
    def follows(self) -> bool:
        """Has its schedule perhaps still to follow a change of the calendar? Follows the calendar. Runs until then are
        not named.
        """
        calendar = self.native("GET", "/v1/calendars/odd", caller="provider", headers={"Sweephand-Tenant": TENANT})
        return bool(calendar.json["replanning"])

    # In the end

    def finish(self) -> None:
        self.asked.append(self.now)
        self.native("POST", f"/v1/tenants/{TENANT}/enable", caller="provider")
        self.native("POST", f"/v1/collections/{self.collection}/enable")
        self.asked.append(self.now)
        self.native("POST", f"/v1/jobs/{self.job}/deactivate")
        self.away = False
        self.go(400)

    def check(self) -> None:
        stage = self.api.stage
        runs = stage.runs(self.schedule)
        rows = {run.planned_at: run for run in runs if run.range_count is None}
        lines = [run for run in runs if run.range_count is not None]
        calls = [each for each in stage.endpoint.received if each.call.schedule_id == self.schedule]
        known = "\n".join([*self.log, *(f"{at} {run.state} {run.reason}" for at, run in rows.items())])
        assert all(count == 1 for count in Counter(each.run_id for each in calls).values()), f"twice\n{known}"
        assert all(each.at >= each.call.planned_at for each in calls), "early"
        called = {each.call.planned_at for each in calls}
        assert called == {at for at, run in rows.items() if run.state is State.SUCCESS}, known
        for look in self.looks:
            # A later request may take back what lies after it.
            resumes = (each for each in self.resumes if each > look.at)
            until = min([look.until or LAST, *self.asked[look.requests :], *resumes])
            named = {each for each in look.named if look.at < each < until}
            recorded = {each for each in rows if look.at < each < until}
            ran = {each for each in recorded if rows[each].state is State.SUCCESS}
            said = f"from {look.at} to {until}: {texts(named)} named, {texts(recorded)} recorded, {texts(ran)} ran"
            assert ran <= named or not look.whole, f"{said}\n{known}"
            assert named == {each for each in named if each in recorded or covered(lines, each)}, f"{said}\n{known}"
        for since, until in self.off:
            wrong = [each for each in calls if since < each.call.planned_at < until <= each.at]
            assert not wrong, f"{wrong[0].call.planned_at} fell due while it was off from {since} to {until}\n{known}"


ACTION = {"type": "http", "url": "https://example.org/run"}


def covered(lines: list[Run], instant: datetime) -> bool:
    return any(line.planned_at <= instant <= (line.range_until or line.planned_at) for line in lines)


def shown(reply: Reply | None) -> str:
    if reply is None:
        return "died"
    chosen = ("state", "active", "every", "cron", "at", "nextRunAt", "nextRuns", "detail", "message")
    return f"{reply.status} { {name: reply.json[name] for name in chosen if name in reply.json} }"


def texts(instants: set[datetime]) -> str:
    return " ".join(f"{each:%H:%M:%S}" for each in sorted(instants)) or "nothing"


def every_object(found: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(found, dict):
        yield found
        for each in found.values():
            yield from every_object(each)
    elif isinstance(found, list):
        for each in found:
            yield from every_object(each)


def instant_of(text: str) -> datetime:
    """Returns an instant as the native API or SAP's shows it."""
    return datetime.fromisoformat(text.replace(" ", "T").removesuffix("Z")).replace(tzinfo=UTC)


@contextmanager
def place(seed: int) -> Iterator[Sap]:
    with sap(seed=seed, shards=1) as api:
        api.native("POST", "/v1/calendars", {"name": "odd", "dates": ["12-24"]})
        yield api


def histories(first: int, count: int, kind: type[History] = History) -> None:
    """Plays the histories. A failure names its history: `histories(seed, 1)` plays it alone, on a stage of its own."""
    for seed in range(first, first + count, HISTORIES_OF_A_STAGE):
        with place(seed) as api:
            for number in range(seed, min(seed + HISTORIES_OF_A_STAGE, first + count)):
                played(kind(api, Random(number), number))


def played(history: History) -> None:
    begin_s, tick_in_s = (history.chance.randrange(1_000 * most_s) / 1_000 for most_s in (70, TICK_S))
    history.api.stage.run(begin_s, tick_in_s=tick_in_s)
    try:
        history.begin()
        for _ in range(history.chance.randrange(1, 5)):
            history.go_near()
            history.change()
        history.go(history.chance.choice([0, 5, 20, 70]))
        history.finish()
        history.check()
    except AssertionError as failed:
        raise AssertionError(f"history {history.number}: {failed}\n" + "\n".join(history.log)) from failed


@dataclass
class WithCalendar(History):
    """One job of the native API, by a calendar that is changed for seconds around its occurrences."""

    def begin(self) -> None:
        self.native("POST", "/v1/collections", {"name": self.collection})
        body = {"action": ACTION, "collection": self.collection, "schedules": [self.timing()]}
        self.job = self.native("POST", "/v1/jobs", body).id
        (there,) = self.native("GET", f"/v1/jobs/{self.job}/schedules").json["items"]
        self.schedule = there["id"]
        self.looked()

    def timing(self) -> dict[str, Any]:
        return dict(self.chance.choice(CALENDAR_TIMINGS))

    def requests(self) -> list[tuple[str, Callable[[], Reply]]]:
        return [("calendar", self.another_calendar)] * 6 + super().requests()

    def another_calendar(self) -> Reply:
        begin, end = sorted(self.chance.sample(range(20), 2))
        whole = self.now.replace(microsecond=0)
        first, last = (f"{whole + each * SECOND:%Y-%m-%dT%H:%M:%SZ}" for each in (begin, end))
        return self.native("PUT", "/v1/calendars/odd", {"ranges": [{"from": first, "to": last}]})


@pytest.mark.scaled
def test_occurrences_announced_under_a_changing_calendar_take_place() -> None:
    """The same histories each time."""
    histories(0, scaled(HISTORIES), WithCalendar)


@pytest.mark.scaled
def test_announced_occurrences_take_place() -> None:
    """The same histories each time."""
    histories(0, scaled(HISTORIES))


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, HISTORIES_AT_LENGTH, 500))
def test_announced_occurrences_take_place_in_long_histories(first: int) -> None:
    histories(1_000 + first, 500)
