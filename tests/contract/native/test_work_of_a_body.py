"""No body costs more work than its first mistakes, whoever sends it. Work is counted in calls, not in seconds."""

from __future__ import annotations

import json
from itertools import islice, product

import pytest

from tests.contract.native import everything
from tests.contract.native.api import JOB
from tests.contract.native.everything import furnish, send, title
from tests.support.work import OURS, few_calls

ROUTES = everything.with_body()
MOST = 60_000
"""Function calls, of Python and of C, in a whole request: some 10 ms."""
HTTP = {"type": "http", "url": "https://example.org/run"}
DAILY = {"name": "daily", "cron": "0 3 * * *"}


def unknown(count):
    """Returns members of three letters, as close to known names as chance has it."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return {"".join(each): 1 for each in islice(product(letters, repeat=4), count)}


@pytest.fixture(scope="module")
def things(shared):
    return furnish(shared, "acme")


@pytest.mark.sampled(7)
@pytest.mark.parametrize("route", ROUTES, ids=title)
def test_thousands_of_unknown_members_cost_little_on_every_route(shared, things, route):
    text = json.dumps(unknown(17_576))
    send(shared, route, things, body={"unknown": 1})  # imports what a refusal needs
    most = MOST if route.method != "PATCH" else 4 * MOST  # a merge patch visits each member

    with few_calls(most, OURS):
        reply = send(shared, route, things, body=None, raw=text)

    assert reply.status in {400, 404, 409, 422}, reply.text
    if reply.code == "UNKNOWN_MEMBER":
        assert len(reply.fields) == 50
        assert "at least 50 more: errors lists the first 50" in reply.json["detail"]


BODIES = {
    "120,000 unknown members": ("PUT", "/v1/job-sets/s", unknown(120_000)),
    "10,000 scopes": ("POST", "/v1/credentials", {"name": "x", "scopes": [f"jobs:rea{n}" for n in range(10_000)]}),
    "1,000 nested objects": ("POST", "/v1/jobs", {**JOB, "schedules": [{**DAILY, **unknown(20)}] * 1_000}),
    "1,000 wrong zones": (
        "POST",
        "/v1/jobs",
        {**JOB, "schedules": [{"cron": "0 3 * * *", "timezone": f"Europa/Berlim{n}"} for n in range(1_000)]},
    ),
    "1,000 wrong crons": (
        "POST",
        "/v1/jobs",
        {**JOB, "schedules": [{"cron": f"0 {n} 25 * * * *"} for n in range(1_000)]},
    ),
    "one long name": ("POST", "/v1/jobs", {"n" * 250_000: 1, **JOB}),
    "long names": ("POST", "/v1/jobs", {**JOB, **{f"{n}{'n' * 4_000}": 1 for n in range(60)}}),
    "headers": ("POST", "/v1/jobs", {"action": {**HTTP, "headers": {f"a b{n}": "\x00" for n in range(10_000)}}}),
    "statuses": (
        "POST",
        "/v1/jobs",
        {"action": {**HTTP, "outcome": {"successStatuses": [f"x{n}" for n in range(20_000)]}}},
    ),
    "dates": ("POST", "/v1/calendars", {"name": "c", "dates": [f"x{n}" for n in range(20_000)]}),
    "ranges": ("POST", "/v1/calendars", {"name": "c", "ranges": [unknown(20)] * 900}),
    "weekdays": ("POST", "/v1/calendars", {"name": "c", "weekly": [{"days": ["MOX"] * 1_000}] * 10}),
    "calendars": (
        "POST",
        "/v1/schedules:preview",
        {"cron": "0 3 * * *", "calendars": [{"name": f"x{n}"} for n in range(5_000)]},
    ),
    "recurrence": (
        "POST",
        "/v1/schedules:preview",
        {"recurrence": {"frequency": "week", "schedule": {"weekDays": [f"Munday{n}" for n in range(10_000)]}}},
    ),
    "500 jobs of a set": (
        "PUT",
        "/v1/job-sets/s",
        {"jobs": [{"key": f"k{n}", **JOB, **unknown(20)} for n in range(500)]},
    ),
    "1,000 jobs of a set with wrong crons": (
        "PUT",
        "/v1/job-sets/s",
        {"jobs": [{"key": f"k{n}", **JOB, "schedules": [{"cron": f"0 {n} 25 * *"}]} for n in range(60, 1_060)]},
    ),
    "1,000 keys of a set": ("PUT", "/v1/job-sets/s", {"jobs": [{"key": "a", **JOB}] * 1_000}),
}
OF_MANY_JOBS = {
    "500 jobs of a set",
    "1,000 jobs of a set with wrong crons",
    "1,000 keys of a set",
    "1,000 wrong crons",
    "1,000 nested objects",
    "1,000 wrong zones",
}
"""Bodies with many sound parts, each of which is read before the mistakes are known."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BODIES)
def test_many_mistakes_cost_no_more_than_those_that_are_shown(shared, name):
    method, path, body = BODIES[name]
    text = json.dumps(body)
    shared(method, path, {"unknown": 1})

    with few_calls(MOST if name not in OF_MANY_JOBS else 8 * MOST, OURS):
        reply = shared(method, path, raw=text)

    assert (reply.status, len(reply.fields) <= 50) == (422, True), reply.text
    assert len(reply.text) < 30_000


def test_200_000_members_are_refused_before_they_are_read(shared):
    """Making an object of so many different names takes over 100 ms."""
    text = json.dumps(unknown(200_000))

    with few_calls(1_000, ("strict_json.py",)):
        reply = shared("PUT", "/v1/job-sets/s", raw=text)

    assert (reply.status, reply.code) == (413, "TOO_LARGE")
    assert "250,000 values and names of members" in reply.json["detail"]


def test_a_callback_token_buys_no_more_work_than_a_credential(api):
    schedules = [{"name": "once", "at": "2027-03-01T12:00:10Z"}]
    api.create({"action": HTTP, "schedules": schedules, "policies": {"callbackToken": True}})
    api.stage.run(30)
    received = api.stage.endpoint.received[-1]
    path, headers = f"/v1/runs/{received.run_id}/result", {"Sweephand-Callback-Token": received.call.callback_token}
    text = json.dumps(unknown(17_576))
    api("PUT", path, {"unknown": 1}, caller=None, headers=headers)

    with few_calls(MOST, OURS):
        reply = api("PUT", path, raw=text, caller=None, headers=headers)

    assert (reply.status, len(reply.fields)) == (422, 50)


LONG = 4_000
TEXTS = {
    "commas": "1," * LONG,
    "blanks": " " * LONG,
    "letters": "a" * LONG,
    "digits": "9" * LONG,
    "duration": "P" + "1D" * LONG,
    "stars": "* " * LONG,
    "rule": "FREQ=DAILY;" * LONG,
    "weekdays": "FREQ=DAILY;BYDAY=" + "MO," * LONG,
    "seconds": "FREQ=SECONDLY;BYSECOND=" + "1," * LONG,
    "dates": "2027-01-01T" * LONG,
    "brackets": "cron(" * LONG,
    "slashes": "/" * LONG,
    "ranges": "1-" * LONG,
    "points": "." * LONG,
    "lines": "RDATE:20270101T000000Z\n" * LONG,
    "words": "every " * LONG,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_string_keeps_a_parser_busy(shared, text):
    for notation in ("cron", "every", "rrule", "at", "time", "sapCron", "eventBridge", "repeatAt", "recurrence"):
        for length in (1_000, len(text)):
            with few_calls(4 * MOST, OURS):
                reply = shared("POST", "/v1/schedules:preview", {notation: text[:length]})

            assert reply.status in {200, 422}, (notation, reply.text)


QUERIES = ("a," * 3_900, "9" * 7_900, "A" * 1_000, "2027-01-01T" * 700, " " * 7_000)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/runs", "/v1/errors", "/v1/calendars", "/v1/timeline", "/v1/load"])
def test_no_query_keeps_a_list_busy(shared, path):
    names = ("state", "sort", "include", "cursor", "from", "until", "tag", "name", "jobId", "limit", "groupBy", "at")
    shared("GET", path, query={"unknown": "1"})
    for query in [{name: value} for name in names for value in QUERIES] + [{f"a{n}": "1" for n in range(1_000)}]:
        with few_calls(2 * MOST, OURS):
            reply = shared("GET", path, query=query)

        assert reply.status in {200, 400, 404, 422}, (query, reply.text)


def test_a_path_is_bounded(shared):
    with few_calls(MOST, OURS):
        reply = shared("GET", "/v1/" + "a/" * 100_000)

    assert (reply.status, reply.code) == (400, "INVALID_QUERY")


NIGHT = {
    "name": "night",
    "weekly": [{"days": ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"], "from": "18:00", "to": "08:00"}],
}
SHOP = {"name": "shop", "weekly": [{"days": ["SAT", "SUN", "TUE"], "from": "09:00", "to": "17:30"}]}
HARD = {
    "cron": "0 * * * *",
    "calendars": [{"name": "night", "mode": "exclude", "roll": "next"}, {"name": "shop", "mode": "include"}],
}


@pytest.mark.parametrize("count", [10, 1_000, 100_000, None])
def test_no_list_of_occurrences_counts_for_long(api, count):
    """A count is used up by all occurrences before the list begins, here those of 170 years."""
    for calendar in (NIGHT, SHOP):
        assert api("POST", "/v1/calendars", calendar).status == 201
    counted = {} if count is None else {"count": count}
    body = {"action": HTTP, "schedules": [{**HARD, **counted, "name": f"hard {n}"} for n in range(40)]}
    job = api("POST", "/v1/jobs", body).json
    far = {"from": "2199-01-01T00:00:00Z", "limit": "100"}
    api.get(f"/v1/jobs/{job['id']}/occurrences", query={"limit": "1"})

    with few_calls(20 * MOST, OURS):
        reply = api("GET", f"/v1/jobs/{job['id']}/occurrences", query=far)
    with few_calls(5 * MOST, OURS):
        one = api("GET", f"/v1/jobs/{job['id']}/occurrences", query={**far, "scheduleId": job["schedules"][0]["id"]})

    assert reply.status in {200, 400}, reply.text
    assert one.status == (400 if count == 100_000 else 200), "too many to count up to there, so nothing is said of them"
    assert bool(one.json.get("items")) == (count is None), "occurrences after the last are not announced"
