"""Every hint of a refusal, applied word for word, is accepted; nothing is suggested that the request cannot have."""

from __future__ import annotations

import copy
import json
import re

import pytest

from tests.contract.native.api import JOB

NEW_YORK = {"timezone": "America/New_York"}
GAP, TWICE = "2027-03-14T02:30:00", "2027-11-07T01:30:00"
WRONG = {
    **{f"{name} in a gap": {name: GAP, **NEW_YORK} for name in ("at", "time")},
    **{f"{name} read twice": {name: TWICE, **NEW_YORK} for name in ("at", "time")},
    **{f"{name} skipped": {name: GAP, **NEW_YORK, "dstGap": "skip"} for name in ("at", "time")},
    **{f"{name} both": {name: TWICE, **NEW_YORK, "dstOverlap": "both"} for name in ("at", "time")},
    "start in a gap": {"cron": "0 9 * * *", "startTime": GAP, **NEW_YORK},
    "end read twice": {"cron": "0 9 * * *", "endTime": TWICE, **NEW_YORK},
    "interval from a gap": {"every": f"R5/{GAP}/P1D", **NEW_YORK},
    "Quartz": {"cron": "0 0 9 * * ?"},
    "Quartz with a year": {"cron": "0 0 9 ? * MON 2028"},
    "nearest weekday": {"cron": "0 9 15W * *", **NEW_YORK},
    "AWS in cron": {"cron": "cron(0 9 ? * MON *)"},
    "rate in every": {"every": "rate(5 minutes)"},
    "mins": {"every": "5 mins"},
    "cron in every": {"every": "*/5 * * * *"},
    "cron in eventBridge": {"eventBridge": "0 9 * * *"},
    "seven fields in cron": {"cron": "* * * * 10 30 0"},
    "rule in every": {"every": "FREQ=DAILY"},
    "instant in every": {"every": "2027-04-01T09:00:00Z"},
    "instant in cron": {"cron": "2027-04-01T09:00:00", **NEW_YORK},
    "instant in a gap in cron": {"cron": GAP, **NEW_YORK},
    "duration in at": {"at": "PT1H"},
    "words in at": {"at": "tomorrow at 9am"},
    "time of day in cron": {"cron": "09:00"},
    "city": {"cron": "0 9 * * *", "timezone": "Berlin"},
    "Windows": {"cron": "0 9 * * *", "timezone": "W. Europe Standard Time"},
    "misspelled": {"cron": "0 9 * * *", "timezone": "Europe/Berlni"},
    "offset": {"cron": "0 9 * * *", "timezone": "GMT+2"},
    "member": {"cron": "0 9 * * *", "timzone": "UTC"},
    "other name": {"cron": "0 9 * * *", "tz": "UTC"},
    "expression": {"expression": "0 9 * * *"},
}
MEANS_NOTHING_ELSE = {
    "duration in at",
    "instant in a gap in cron",
    "at both",
    "time both",
    "at skipped",
    "time skipped",
}
"""Mistakes for which another notation would be refused too, or would mean something else."""


def suggested(body, error):
    """Yields the body as each suggestion of a refusal would make it."""
    field, reason = error["field"], error["reason"]
    for member, value in re.findall(r'"(\w+)": ("(?:[^"\\]|\\.)*")', reason):
        rest = body if member.startswith("dst") else {name: each for name, each in body.items() if name != field}
        yield {**rest, member: json.loads(value)}
    if "write one of these instants" in reason:
        for instant in re.findall(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", reason):
            yield {**body, field: body[field].replace(GAP, instant).replace(TWICE, instant)}
    for value in re.findall(r'(?:did you mean|or write) "([^"]+)"', reason):
        yield {**body, field: value}
    for member in re.findall(r"did you mean `(\w+)`", reason):
        yield {(member if name == field else name): value for name, value in body.items()}


@pytest.mark.parametrize("name", WRONG)
def test_every_suggestion_for_a_schedule_is_accepted(shared, name):
    body = WRONG[name]
    reply = shared("POST", "/v1/schedules:preview", body)

    assert reply.status == 422
    bodies = [each for error in reply.json["errors"] for each in suggested(body, error)]
    assert bool(bodies) == (name not in MEANS_NOTHING_ELSE), reply.text
    for each in bodies:
        assert shared("POST", "/v1/schedules:preview", each).status == 200, (each, reply.text)


def test_a_time_in_a_gap_or_read_twice_names_the_rules_that_decide(shared):
    gap = shared("POST", "/v1/schedules:preview", WRONG["at in a gap"]).json["detail"]
    twice = shared("POST", "/v1/schedules:preview", WRONG["at read twice"]).json["detail"]

    assert gap.endswith('write one of these instants, "dstGap": "next_valid" or "dstGap": "shift"')
    assert twice.endswith('write one of these instants, "dstOverlap": "first" or "dstOverlap": "second"')


@pytest.mark.parametrize(
    ("value", "meant"),
    [("5 mins", "5 minutes"), ("0 0 9 * * ?", "0 9 * * ?"), ("2027-04-01T09:00:00", "2027-04-01T09:00:00")],
)
def test_a_suggested_notation_means_the_same_in_the_same_zone(shared, value, meant):
    body = {"every": value, **NEW_YORK}
    (error, *_) = shared("POST", "/v1/schedules:preview", body).json["errors"]
    (better, *_) = suggested(body, error)

    first = shared("POST", "/v1/schedules:preview", better).json["items"][0]

    assert meant.split(" ?")[0] in json.dumps(better) or "eventBridge" in better
    assert "T09:00" in first["localTime"] or "minutes" in meant


HTTP = {"type": "http", "url": "https://example.org/"}
PLACED = {
    "url": ("https://example.org/", "action.url"),
    "maxRetries": (3, "action.retry.maxRetries"),
    "cron": ("0 9 * * *", "schedules[].cron"),
    "overlap": ("skip", "policies.overlap"),
    "maxLatenessSeconds": (60, "policies.misfire.maxLatenessSeconds"),
    "answerTimeoutSeconds": (10, "action.outcome.answerTimeoutSeconds"),
}
KINDS = {"action": HTTP, "retry": {"type": "fixed", "maxRetries": 1}, "misfire": {"type": "latest"}}


@pytest.mark.parametrize("name", PLACED)
def test_a_member_one_level_too_high_is_accepted_where_the_hint_says(shared, name):
    value, place = PLACED[name]
    body = {"action": HTTP, "schedules": [{"name": "daily", "cron": "0 3 * * *"}]}
    reply = shared("POST", "/v1/jobs", {**body, name: value})
    assert f"did you mean `{place}`?" in reply.json["detail"]

    better = copy.deepcopy(body)
    *owners, member = place.removeprefix("schedules[].").split(".")
    owner = better["schedules"][0] if place.startswith("schedules") else better
    for step in owners:
        owner = owner.setdefault(step, copy.deepcopy(KINDS.get(step, {})))
    owner[member] = value

    assert shared("POST", "/v1/jobs", better).status == 201


@pytest.mark.parametrize(
    ("method", "path", "body", "field", "known"),
    [
        (
            "POST",
            "/v1/jobs",
            {**JOB, "action": {**HTTP, "retry": {"type": "fixed", "rules": []}}},
            "action.retry.rules",
            1,
        ),
        ("POST", "/v1/jobs/{job}/run", {"delaySeconds": 5}, "delaySeconds", 1),
        ("POST", "/v1/jobs/{job}/run", {"at": "2028-01-01T00:00:00Z"}, "at", 1),
        ("POST", "/v1/jobs/{job}/pause", {"cron": "0 9 * * *"}, "cron", 1),
        ("POST", "/v1/schedules:preview", {"url": "https://example.org/"}, "url", 1),
        ("POST", "/v1/collections", {"name": "c", "cron": "0 9 * * *"}, "cron", 1),
        ("POST", "/v1/jobs", {**JOB, "action": {**HTTP, "cron": "0 9 * * *"}}, "action.cron", 1),
        ("POST", "/v1/jobs", {**JOB, "schedules": [{"cron": "0 9 * * *", "url": "x"}]}, "schedules[0].url", 1),
        ("POST", "/v1/jobs/{job}/activate", {"at": "2028-01-01T00:00:00Z"}, "at", 0),
    ],
)
def test_a_member_of_another_object_is_not_suggested(shared, method, path, body, field, known):
    job = shared.create()
    reply = shared(method, path.format(job=job["id"]), body)

    (reason,) = [each["reason"] for each in reply.json["errors"] if each["field"] == field]
    assert "did you mean" not in reason
    assert reason.startswith(
        "is not a known member; known are " if known else "is not a known member: this object takes"
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("attempts", "`maxRetries` (one less than the number of attempts)"),
        ("max_attempts", "`maxRetries` (one less than the number of attempts)"),
        ("backoff", "`delaySeconds`"),
    ],
)
def test_a_hint_says_how_the_value_differs(shared, name, hint):
    body = {**JOB, "action": {**HTTP, "retry": {"type": "fixed", name: 3}}}

    reply = shared("POST", "/v1/jobs", body)

    assert f"did you mean {hint}?" in reply.json["detail"]
