"""Every member of every body in every wrong way: a 4xx with field and reason, and nothing written.

That a refusal has written nothing is checked with every answer (api.py).
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweephand.base.json_text import Number, dumps
from sweephand.server.facades.native.jobs.job_sets import LARGEST_LIST
from tests.contract.native import everything
from tests.contract.native.everything import at, body_of, furnish, places, replaced, send, title
from tests.support.examples import scaled
from tests.unit.json_values import ANY_JSON

ROUTES = everything.with_body()
WHOLE = {"POST /v1/jobs", "POST /v1/collections", "POST /v1/schedules:preview"}
by_route = pytest.mark.parametrize("route", ROUTES, ids=title)
FEW = {
    "null": None,
    "true": True,
    "-1": -1,
    "1.5": Number("1.5"),
    "empty": "",
    "list": [],
    "nested": {"a": [{"b": [None]}]},
    "NUL": "\x00",
}
OF_LEAVES = {
    "0": 0,
    "10**30": 10**30,
    "long": "x" * 70_000,
    "object": {},
    "line": "a\r\nb",
    "key": "a#b%23c ' OR 1=1 -- {{7*7}} %s",
    "unicode digits": "\u0663\u0664",
}


def wrong(route, path, value):
    """Values to put in the place of `value`. Inside members that all routes read alike, one route tries them all."""
    if title(route) in WHOLE:
        return (FEW | OF_LEAVES if not isinstance(value, dict | list) else FEW).items()
    return (FEW if len(path) < 2 else {"-1": -1, "nested": FEW["nested"]}).items()


@pytest.fixture(scope="module")
def things(shared):
    """A job with all there is but schedules: what is not asked for need not be read with every request."""
    there = furnish(shared, "acme")
    names = dict(there.names)
    names["job"] = shared.create(everything.job() | {"name": "another", "schedules": []})["id"]
    names["schedule"] = shared("POST", f"/v1/jobs/{names['job']}/schedules", everything.SCHEDULE).id
    return everything.Things(names)


@pytest.mark.sampled(4)
@by_route
def test_every_member_accepts_or_refuses_every_type_by_name(shared, things, route):
    body = body_of(route)
    for path in places(body):
        for name, value in wrong(route, path, at(body, path)):
            reply = send(shared, route, things, body=replaced(body, path, value))
            assert reply.status < 500, (path, name)
            if reply.status == 422:
                first = reply.fields[0].partition(".")[0].partition("[")[0]
                assert first in ({str(path[0])} if len(path) > 1 else {*body, "body"} | NEEDED), (
                    path,
                    name,
                    reply.text,
                )
            if reply.status == 201:
                shared("DELETE", reply.headers["location"])
    if title(route) == "POST /v1/tenants/{tenant}/disable":
        assert shared("POST", "/v1/tenants/acme/enable", caller="provider").status == 200


NEEDED = {"a", "action", "at", "cron", "name", "success"}
"""Fields that a refusal may name although the body as it was did not: strangers, and what is missing."""


# Texts that are no JSON, or none of ours

LARGEST = 262_144
TEXTS = {
    "nothing but blanks": "  \n",
    "half": '{"name": ',
    "trailing": '{"name": "x"} {}',
    "comma": '{"name": "x",}',
    "quotes": "{'name': 'x'}",
    "no quotes": "{name: 1}",
    "comment": '{"name": "x" /* y */}',
    "NaN": '{"count": NaN}',
    "Infinity": '{"count": -Infinity}',
    "1e400": '{"count": 1e400}',
    "-1e400": '{"action": {"payload": [-1e400]}}',
    "4,301 digits": '{"count": ' + "9" * 4_301 + "}",
    "long fraction": '{"count": 0.' + "9" * 5_000 + "}",
    "octal": '{"count": 010}',
    "hex": '{"count": 0x10}',
    "plus": '{"count": +1}',
    "unicode digits": '{"count": \u0661}',
    "duplicate": '{"name": "a", "name": "a"}',
    "duplicate inside": '{"action": {"payload": {"a": 1, "b": {"c": 1, "c": 2}}}}',
    "duplicate by escape": '{"name": "a", "n\\u0061me": "b"}',
    "lone high surrogate": '{"name": "\\ud800"}',
    "lone low surrogate": '{"name": "\\udc00x"}',
    "reversed pair": '{"name": "\\udc00\\ud800"}',
    "surrogate as a name": '{"\\ud800": 1}',
    "raw surrogate": '{"name": "\ud800"}',
    "raw surrogate bytes": b'{"name": "\xed\xa0\x80"}',
    "control character": '{"name": "a\nb"}',
    "raw NUL": '{"name": "\x00"}',
    "bad escape": '{"name": "\\x41"}',
    "half escape": '{"name": "\\u12"}',
    "no UTF-8": b'{"name": "\xff"}',
    "overlong": b'{"name": "\xc0\xaf"}',
    "UTF-16": '{"name": "x"}'.encode("utf-16"),
    "byte order mark": '\ufeff{"name": "x"}',
    "deep list": "[" * 400 + "]" * 400,
    "deep object": '{"a":' * 400 + "1" + "}" * 400,
    "deep payload": '{"action": {"payload": ' + "[" * 400 + "]" * 400 + "}}",
    "very deep": "[" * 200_000,
    "open": '{"a":' * 40_000,
    "33 levels": "[" * 33 + "]" * 33,
    "binary": bytes(range(256)),
    "form": "name=x&action=y",
    "XML": "<job/>",
    "pickle": b"\x80\x04\x95",
}
CANNOT_BE_READ = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


@pytest.mark.sampled(3)
@CANNOT_BE_READ
def test_every_route_refuses_invalid_json(shared, things, text):
    with shared.unchanged():
        for route in ROUTES:
            reply = send(shared, route, things, body=None, raw=text)
            assert (reply.status, reply.code, reply.fields) == (400, "INVALID_JSON", ["body"]), title(route)


@by_route
def test_a_body_over_256_kib_is_too_large_whatever_its_content(shared, things, route):
    largest = LARGEST_LIST if title(route) == "PUT /v1/job-sets/{job_set}" else LARGEST
    with shared.unchanged():
        for text in (
            "x" * (largest + 1),
            b"\xff" * (4 * largest),
            '{"a": "' + "\u00e9" * (largest // 2) + '"}',
            "[" * (2 * largest),
        ):
            reply = send(shared, route, things, body=None, raw=text)
            assert (reply.status, reply.code) == (413, "TOO_LARGE")


def test_a_body_of_exactly_256_kib_is_read(shared):
    body = dumps({"stranger": ""})
    whole = body[:-2] + "x" * (LARGEST - len(body)) + '"}'
    assert len(whole) == LARGEST

    reply = shared("POST", "/v1/jobs", raw=whole)

    assert (reply.status, reply.fields) == (422, ["stranger", "action"])


@pytest.mark.sampled(3)
@by_route
def test_an_unknown_member_is_refused_at_every_level_with_its_path(shared, things, route):
    body = body_of(route)
    free = {"payload", "headers"}
    with shared.unchanged():
        for path in places(body):
            if isinstance(at(body, path), dict) and not free & set(path):
                for name in ("stranger", "", "__proto__", "Name", "x" * 70_000, "a.b[0]", "\x00", "\U0001f600"):
                    wrong = replaced(body, path, {name: 1} | at(body, path))
                    reply = send(shared, route, things, body=wrong)
                    assert (reply.status, reply.code) == (422, "UNKNOWN_MEMBER"), (path, name)
                    field = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
                    assert reply.fields[0].startswith(field.lstrip(".") or reply.fields[0])
                    assert name[:100] in reply.fields[0] or not name


@by_route
def test_a_body_that_is_not_an_object_is_refused(shared, things, route):
    with shared.unchanged():
        for value in (None, True, 0, "x", [], [{}], Number("1.5")):
            raw = dumps(value)
            reply = send(shared, route, things, body=None, raw=raw)
            assert (reply.status, reply.fields) == (422, ["body"]), raw


# Bodies that only look right

JOBS = {
    "no action": ({"action": None}, "action"),
    "an unknown kind": ({"action": {"type": "ftp", "url": "https://x.org"}}, "action.type"),
    "no such application": ({"action": {"type": "queue", "application": "x", "task": "y"}}, "action.application"),
    "no address": ({"action": {"type": "http"}}, "action.url"),
    "user info": ({"action": {"type": "http", "url": "https://a:canary@x.org/"}}, "action.url"),
    "plain http": ({"action": {"type": "http", "url": "http://x.org/"}}, "action.url"),
    "loopback": ({"action": {"type": "http", "url": "https://127.0.0.1/"}}, "action.url"),
    "loopback by number": ({"action": {"type": "http", "url": "https://2130706433/"}}, "action.url"),
    "metadata": ({"action": {"type": "http", "url": "https://169.254.169.254/"}}, "action.url"),
    "mapped": ({"action": {"type": "http", "url": "https://[::ffff:127.0.0.1]/"}}, "action.url"),
    "file": ({"action": {"type": "http", "url": "file:///etc/passwd"}}, "action.url"),
    "gopher": ({"action": {"type": "http", "url": "gopher://x.org/"}}, "action.url"),
    "split address": ({"action": {"type": "http", "url": "https://x.org/\r\nHost: y"}}, "action.url"),
    "long address": ({"action": {"type": "http", "url": "https://x.org/" + "x" * 2_048}}, "action.url"),
    "split header": (
        {"action": {"type": "http", "url": "https://x.org/", "headers": {"X": "a\r\nY: b"}}},
        "action.headers.X",
    ),
    "split name": (
        {"action": {"type": "http", "url": "https://x.org/", "headers": {"X\r\nY": "b"}}},
        "action.headers.X\r\nY",
    ),
    "own header": (
        {"action": {"type": "http", "url": "https://x.org/", "headers": {"sweephand-run-id": "x"}}},
        "action.headers.sweephand-run-id",
    ),
    "hop header": (
        {"action": {"type": "http", "url": "https://x.org/", "headers": {"Host": "y"}}},
        "action.headers.Host",
    ),
    "51 headers": (
        {"action": {"type": "http", "url": "https://x.org/", "headers": {f"x{n}": "" for n in range(51)}}},
        "action.headers",
    ),
    "two bodies": ({"action": {"type": "http", "url": "https://x.org/", "payload": 1, "body": "x"}}, "action.body"),
    "a text for a query": (
        {"action": {"type": "http", "url": "https://x.org/", "method": "GET", "body": "x"}},
        "action.body",
    ),
    "a large payload": (
        {"action": {"type": "http", "url": "https://x.org/", "payload": "x" * 65_535}},
        "action.payload",
    ),
    "no password": (
        {"action": {"type": "http", "url": "https://x.org/", "authentication": {"type": "basic", "username": "a"}}},
        "action.authentication.password",
    ),
    "a colon": (
        {
            "action": {
                "type": "http",
                "url": "https://x.org/",
                "authentication": {"type": "basic", "username": "a:b", "password": "canary"},
            }
        },
        "action.authentication.username",
    ),
    "too many attempts": (
        {"action": {"type": "http", "url": "https://x.org/", "retry": {"type": "fixed", "maxRetries": 50}}},
        "action.retry.maxRetries",
    ),
    "a long wait": (
        {
            "action": {
                "type": "http",
                "url": "https://x.org/",
                "retry": {"type": "fixed", "delaySeconds": 548 * 86_400 + 1},
            }
        },
        "action.retry.delaySeconds",
    ),
    "a status": (
        {"action": {"type": "http", "url": "https://x.org/", "outcome": {"successStatuses": ["2xx", "600"]}}},
        "action.outcome.successStatuses[1]",
    ),
    "21 statuses": (
        {"action": {"type": "http", "url": "https://x.org/", "outcome": {"successStatuses": ["2xx"] * 21}}},
        "action.outcome.successStatuses",
    ),
    "61 seconds": (
        {"action": {"type": "http", "url": "https://x.org/", "outcome": {"answerTimeoutSeconds": 61}}},
        "action.outcome.answerTimeoutSeconds",
    ),
    "an overlap that is none": ({"policies": {"overlap": "queue"}}, "policies.overlap"),
    "11 tags": ({"tags": [str(n) for n in range(11)]}, "tags"),
    "a tag twice": ({"tags": ["a", "b", "a"]}, "tags[2]"),
    "a tag with a line end": ({"tags": ["a", "a\nb"]}, "tags[1]"),
    "an empty tag": ({"tags": [""]}, "tags[0]"),
    "a long tag": ({"tags": ["x" * 129]}, "tags[0]"),
    "a turned name": ({"name": "a\u202eb"}, "name"),
    "a blank name": ({"name": " a"}, "name"),
    "a long name": ({"name": "x" * 129}, "name"),
    "a long description": ({"description": "x" * 1_001}, "description"),
    "a resource with NUL": ({"resourceId": "a\x00"}, "resourceId"),
    "a long resource": ({"resourceId": "x" * 257}, "resourceId"),
    "an end before the start": (
        {"startTime": "2027-04-02T00:00:00Z", "endTime": "2027-04-01T00:00:00Z"},
        "endTime",
    ),
    "a window in the past": (
        {"startTime": None, "endTime": "2027-01-01T00:00:00Z", "schedules": [{"cron": "* * * * *"}]},
        "schedules[0]",
    ),
    "forged members": ({"id": "x"}, "id"),
    "forged state": ({"state": "ACTIVE"}, "state"),
    "41 schedules": ({"schedules": [{"every": "PT1H"}] * 41}, "schedules"),
    "two names": ({"schedules": [{"name": "a", "every": "PT1H"}, {"name": "a", "every": "PT2H"}]}, "schedules[1].name"),
}
TIMINGS = {
    "nothing": ({}, "at"),
    "two": ({"at": "2027-04-01T00:00:00Z", "cron": "* * * * *"}, "cron"),
    "30 February": ({"at": "2027-02-30T00:00:00Z"}, "at"),
    "29 February": ({"at": "2027-02-29T00:00:00Z"}, "at"),
    "24 o'clock": ({"at": "2027-04-01T24:00:00Z"}, "at"),
    "a leap second": ({"at": "2027-04-01T23:59:60Z"}, "at"),
    "the past": ({"at": "2027-03-01T11:58:00Z"}, "at"),
    "long ago": ({"at": "1969-12-31T23:59:59Z"}, "at"),
    "far away": ({"at": "2200-01-01T00:00:00Z"}, "at"),
    "an edge": ({"at": "9999-12-31T23:59:59-14:00"}, "at"),
    "an offset": ({"at": "2027-04-01T00:00:00+25:00"}, "at"),
    "a date alone": ({"at": "2027-04-01"}, "at"),
    "a blank": ({"at": "2027-04-01 00:00:00Z"}, "at"),
    "full-width digits": ({"at": "\uff12\uff10\uff12\uff17-04-01T00:00:00Z"}, "at"),
    "a number": ({"at": 1_806_000_000}, "at"),
    "seventy nines": ({"at": "9" * 70}, "at"),
    "50,000 characters": ({"at": "2" * 50_000}, "at"),
    "a gap": ({"at": "2027-03-28T02:30:00", "timezone": "Europe/Berlin"}, "at"),
    "an overlap": ({"at": "2027-10-31T02:30:00", "timezone": "Europe/Berlin"}, "at"),
    "no fire": ({"cron": "0 0 30 2 *"}, "cron"),
    "four fields": ({"cron": "* * * *"}, "cron"),
    "six fields": ({"cron": "* * * * * *"}, "cron"),
    "random": ({"cron": "R R R R R"}, "cron"),
    "zero steps": ({"cron": "*/0 * * * *"}, "cron"),
    "61 minutes": ({"cron": "61 * * * *"}, "cron"),
    "backwards": ({"cron": "5-1 * * * *"}, "cron"),
    "long cron": ({"cron": ",".join("0" * 5_000) + " * * * *"}, "cron"),
    "nothing at all": ({"every": ""}, "every"),
    "no time": ({"every": "PT0S"}, "every"),
    "less than none": ({"every": "-PT1S"}, "every"),
    "half a second": ({"every": "PT0.5S"}, "every"),
    "more than a hundred years": ({"every": "P36501D"}, "every"),
    "long every": ({"every": "P" + "1" * 50_000 + "D"}, "every"),
    "an unknown zone": ({"cron": "* * * * *", "timezone": "Europe/Atlantis"}, "timezone"),
    "a path": ({"cron": "* * * * *", "timezone": "../../../etc/passwd"}, "timezone"),
    "a file of the zone data": ({"cron": "* * * * *", "timezone": "tzdata.zi"}, "timezone"),
    "the machine's zone": ({"cron": "* * * * *", "timezone": "localtime"}, "timezone"),
    "an empty zone": ({"cron": "* * * * *", "timezone": ""}, "timezone"),
    "align without every": ({"cron": "* * * * *", "align": "clock"}, "align"),
    "a rule": ({"cron": "* * * * *", "dstGap": "maybe"}, "dstGap"),
    "no count": ({"cron": "* * * * *", "count": 0}, "count"),
    "a large count": ({"cron": "* * * * *", "count": 2**31}, "count"),
    "a count as text": ({"cron": "* * * * *", "count": "1"}, "count"),
    "a long jitter": ({"cron": "* * * * *", "jitterSeconds": 86_401}, "jitterSeconds"),
    "backwards window": (
        {"cron": "* * * * *", "startTime": "2027-04-02T00:00:00Z", "endTime": "2027-04-01T00:00:00Z"},
        "endTime",
    ),
    "past window": ({"cron": "* * * * *", "endTime": "2027-02-01T00:00:00Z"}, None),
    "a rhythm as text": ({"recurrence": "daily"}, "recurrence"),
    "a rhythm of nothing": ({"recurrence": {}}, "recurrence.frequency"),
    "a rhythm of seconds": ({"recurrence": {"frequency": "second"}}, "recurrence.frequency"),
    "a long rhythm": ({"recurrence": {"frequency": "week", "interval": 79}}, "recurrence.interval"),
    "hour 24": ({"recurrence": {"frequency": "day", "schedule": {"hours": [0, 24]}}}, "recurrence.schedule.hours[1]"),
    "50,000 minutes": (
        {"recurrence": {"frequency": "day", "schedule": {"minutes": [0] * 50_000}}},
        "recurrence.schedule.minutes",
    ),
    "a stranger within": ({"recurrence": {"frequency": "day", "every": 2}}, "recurrence.every"),
    "an end within": ({"recurrence": {"frequency": "day", "endTime": "2099-01-01"}}, "recurrence.endTime"),
    "30 February each year": (
        {
            "recurrence": {"frequency": "month", "interval": 12, "schedule": {"monthDays": [30]}},
            "startTime": "2028-02-01T00:00:00Z",
        },
        "recurrence",
    ),
    "a rule of parts that do not go together": ({"rrule": "FREQ=WEEKLY;BYMONTHDAY=1"}, "rrule"),
}


@pytest.mark.parametrize("name", JOBS)
def test_a_job_that_breaks_a_rule_is_refused_by_its_path(shared, name):
    members, field = JOBS[name]

    with shared.unchanged():
        reply = shared("POST", "/v1/jobs", {**everything.job(), **members})

    assert (reply.status, reply.fields) == (422, [field])


@pytest.mark.parametrize("name", TIMINGS)
def test_a_timing_that_breaks_a_rule_is_refused_by_its_path_wherever_it_stands(shared, things, name):
    timing, field = TIMINGS[name]
    place = f"/v1/jobs/{things.names['job']}/schedules"

    with shared.unchanged():
        created = shared("POST", "/v1/jobs", {**everything.job(), "schedules": [{"every": "PT1H"}, timing]})
        added = shared("POST", place, timing)
        put = shared("PUT", f"{place}/{things.names['schedule']}", timing)

    assert {each.status for each in (created, added, put)} == {422} or name == "past window"
    assert created.status == added.status == 422
    if field is not None:
        assert [each.fields[0] for each in (created, added, put)] == [f"schedules[1].{field}", field, field]


# Whatever else


@settings(max_examples=scaled(60))
@given(data=st.data())
def test_any_json_value_anywhere_is_accepted_or_refused(shared, things, data):
    route = data.draw(st.sampled_from(ROUTES), label="route")
    body = body_of(route)
    path = data.draw(st.sampled_from(list(places(body))), label="path")
    value = data.draw(ANY_JSON, label="value")

    reply = send(shared, route, things, body=replaced(body, path, value))

    assert reply.status < 500
    if reply.status == 201:
        shared("DELETE", reply.headers["location"])
