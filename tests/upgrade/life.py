"""A life of the whole service, in whose middle everything is stored that a version writes, and how it must go on.

The jobs below are due before, at and after the middle. The rest, made by `furnish`, is there to be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sweephand.domain.instants import text
from tests.contract.native.api import Api
from tests.contract.native.everything import furnish
from tests.support.endpoint import ACCEPTED, BUSY, OK
from tests.support.stage import TENANT

BASE = "https://example.org/"
MINUTE = timedelta(minutes=1)
BEFORE, OUTAGE, AFTER = 30 * MINUTE, 20 * MINUTE, 90 * MINUTE
EACH_MINUTE: Mapping[str, Any] = {"every": "PT1M", "align": "epoch"}
ALL_AT_ONCE: Mapping[str, Any] = {"misfire": {"type": "all", "ratePerMinute": 600}}
ONE_BY_ONE: Mapping[str, Any] = {"misfire": {"type": "all", "ratePerMinute": 6}}
PERIODS: Mapping[str, timedelta] = {"minute": MINUTE, "missed": MINUTE, "secret": 5 * MINUTE, "alone": MINUTE}
"""Recurring jobs, each of whose occurrences must be called exactly once."""
REQUEST_KEY = "recorded-request"


def live(api: Api) -> dict[str, Any]:
    """Lives until the middle, in which much is under way. Returns what a caller holds then."""
    stage = api.stage
    furnish(api, TENANT)
    assert api("POST", "/v1/flow-keys", {"name": "narrow", "parallelism": 1}).status == 201
    _create(api, "minute", {**EACH_MINUTE, "policies": ALL_AT_ONCE})
    _create(api, "missed", {**EACH_MINUTE, "policies": ONE_BY_ONE})
    secret = {"authentication": {"type": "bearer", "token": "canary-upgrade"}}
    _create(api, "secret", {"cron": "*/5 * * * *", "policies": ALL_AT_ONCE}, **secret)
    _create(api, "alone", {**EACH_MINUTE, "policies": {**ALL_AT_ONCE, "overlap": "skip"}})
    middle = stage.clock.now() + BEFORE + OUTAGE
    _create(api, "later", {"at": text(middle + 30 * MINUTE)})
    paused = _create(api, "paused", EACH_MINUTE)
    workdays = {"name": "workdays", "weekly": [{"days": ["SAT", "SUN"]}]}
    assert api("POST", "/v1/calendars", workdays).status == 201
    _create(api, "calendar", {"cron": "0 9 * * *", "calendars": [{"name": "workdays"}]})
    resumes = text(middle + 20 * MINUTE)
    assert api("POST", f"/v1/jobs/{paused}/pause", {"until": resumes}).status == 200
    stage.run(BEFORE.total_seconds())
    stage.audit()
    assert api("POST", "/v1/collections/spare/disable").status == 200
    began = {"minute", "missed", "secret", "alone"} <= {name for name, _ in calls(api)}
    assert began, "an occurrence of each recurring job was called before the outage"

    stage.pass_time(OUTAGE.total_seconds())
    _started(api, "again", BUSY, retry={"type": "fixed", "delaySeconds": 300, "maxRetries": 3})
    held: dict[str, Any] = {"outcome": {"on202": "wait", "callbackTimeoutSeconds": 7_200}}
    waits = _started(api, "narrow", ACCEPTED, policies={"flowKey": "narrow", "callbackToken": True}, **held)
    slot: dict[str, Any] = {"schedules": [{"name": "slot", "at": resumes, "policies": {"overlap": "skip"}}]}
    _started(api, "slot", ACCEPTED, **slot, **held)
    _started(api, "next", OK, policies={"flowKey": "narrow"})
    stage.run(70)
    gone = _create(api, "gone", EACH_MINUTE)
    assert api("DELETE", f"/v1/jobs/{gone}").status == 204
    once = api("POST", "/v1/jobs", {**job("once"), "schedules": []}, headers={"idempotency-key": REQUEST_KEY})
    cursor = api("GET", "/v1/jobs", query="limit=2").json["nextCursor"]
    (token,) = {each.call.callback_token for each in stage.endpoint.received if each.run_id == waits}
    return {"waits": waits, "token": token, "once": once.id, "cursor": cursor, "resumes": resumes}


def calls(api: Api) -> Iterator[tuple[str, datetime]]:
    """Yields the job's name and the planned instant of each call so far."""
    for received in api.stage.endpoint.received:
        if received.at < received.call.planned_at:
            raise AssertionError(f"{received.params['url']} was called early")
        yield str(received.params["url"]).removeprefix(BASE), received.call.planned_at


def due(period: timedelta, since: datetime, until: datetime) -> set[datetime]:
    """Returns the instants of a period that is aligned to the epoch, after `since`, up to `until`."""
    first = since - (since - datetime.fromtimestamp(0, since.tzinfo)) % period + period
    return {first + number * period for number in range(int((until - first) / period) + 1)}


def repeated(all_calls: Iterable[tuple[str, datetime]]) -> set[tuple[str, datetime]]:
    """Returns calls of recurring jobs that were made more than once."""
    return {call for call, count in Counter(all_calls).items() if count > 1 and call[0] in PERIODS}


def job(name: str, policies: Mapping[str, Any] | None = None, **action: Any) -> dict[str, Any]:
    job = {"name": name, "action": {"type": "http", "url": BASE + name, **action}}
    return job | ({"policies": policies} if policies else {})


def _create(api: Api, name: str, schedule: Mapping[str, Any], **action: Any) -> str:
    return str(api.create({**job(name, **action), "schedules": [{"name": name, **schedule}]})["id"])


def _started(api: Api, name: str, first: Any, schedules: Sequence[Mapping[str, Any]] = (), **members: Any) -> str:
    """Creates a job and starts it by hand. `first` answers its first attempt. Returns the run."""
    made = api.create({**job(name, **members), "schedules": list(schedules)})
    of = {"scheduleId": made["schedules"][0]["id"]} if schedules else None
    run: str = api("POST", f"/v1/jobs/{made['id']}/run", of).json["runId"]
    api.stage.endpoint.answer = lambda call: first if call.run_id == run else OK
    api.stage.deliver_all()
    api.stage.endpoint.answer = OK
    return run
