"""No request brings a fault: whatever comes, the answer is one that SAP's clients know (`api` refuses every 5xx)."""

from __future__ import annotations

import base64
import json
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sweephand.base.json_text import Number
from sweephand.server.facades.sap.routes import TABLE
from tests.contract.calls import event
from tests.contract.sap.api import JOB
from tests.support.examples import scaled

FINITE = {"allow_nan": False, "allow_infinity": False}
"""JSON has no others."""
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(**FINITE) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=6,
)
MEMBERS = [
    *("name", "action", "active", "httpMethod", "startTime", "endTime", "ansConfig", "calmConfig", "user", "password"),
    *("schedules", "cron", "time", "repeatAt", "repeatInterval", "data", "description", "success", "message"),
    *("activationStatus", "ASYNC_EXEC_TIMEOUT", "jobType", "resourceId"),
]
PLAUSIBLE = st.sampled_from(
    [
        *("now", "tomorrow at 4pm", "2027-03-01", "1 hour", "0 minutes", "4.40pm", "* * * * * * 0", "* * 30 2 * * *"),
        *(
            {"date": "1", "format": "Q"},
            {"date": 1},
            {"enabled": True},
            {"onError": True},
            [[]],
            "9" * 30,
            -1,
            Number("1e400"),
        ),
        *("\x00", "\ud800", "POST", "CF_TASK", "https://x.org/\u0130", "http://127.0.0.1", "x" * 2_000),
    ]
)
WHEN = st.sampled_from(
    [{"repeatInterval": "2 hours"}, {"cron": "* * * * 10:12 */30 0"}, {"time": "in 2 hours"}, {"repeatAt": "18.40"}]
)
SCHEDULE = st.builds(
    lambda when, rest: {"active": True, **when, **rest},
    WHEN | st.just({}),
    st.dictionaries(st.sampled_from(MEMBERS), JUNK | PLAUSIBLE, max_size=2),
)
NAME = st.text(string.ascii_letters + "-_", min_size=1, max_size=12)
BODY = st.one_of(
    st.dictionaries(st.sampled_from(MEMBERS), JUNK | PLAUSIBLE, max_size=5),
    SCHEDULE,
    st.builds(lambda name, some: {**JOB, "name": name, "schedules": some}, NAME, st.lists(SCHEDULE, max_size=2)),
    st.fixed_dictionaries({}, optional={"success": st.booleans(), "activationStatus": st.booleans(), "message": JUNK}),
    JUNK,
)
QUERY = st.dictionaries(
    st.sampled_from(
        [
            *("page_size", "offset", "filter", "jobType", "tenantId", "sort_by", "sort_order", "q", "jobId", "name"),
            *("next", "prev", "scheduleId", "displaySchedules", "displayLogs", "color"),
        ]
    ),
    st.text(string.printable, max_size=12)
    | st.sampled_from(
        [
            *(
                "undefined",
                "true",
                "1",
                "100",
                "999999999",
                "active:true",
                "startTime:>=2027-01-01",
                "x startTime:<1-1-1",
            ),
            *("contains(name, 'o''r')", "name eq 'x' or", "ASC", "_id", "acme", "globex", "CF_TASK", "\u0130\u212a"),
        ]
    ),
    max_size=4,
)
PART = st.text(string.ascii_letters + string.digits + "-_.%' \u0661\u0130", min_size=1, max_size=12)
HEADERS = st.dictionaries(
    st.sampled_from(
        ["authorization", "content-type", "accept", "x-sap-scheduler-instance-id", "host", "content-length"]
    ),
    st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=20)
    | st.sampled_from(["Basic", "Basic Og==", "bearer a.b.c", "Bearer e30.e30.e30", "text/plain", "application/json;"]),
    max_size=2,
)
EACH = settings(max_examples=scaled(250), deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture
def there(api):
    """Returns existing values for a path: a job with two schedules, and a run of the first; made anew once gone."""
    found: dict[str, str] = {}

    def look():
        if not found or api.get(f"/jobs/{found['{job}']}/schedules/{found['{schedule}']}").status == 404:
            schedules = {"repeatInterval": "1 minute"}, {"cron": "* * * * * 0 0", "active": False}
            made = api.create(*schedules, name=f"there-{api.answers}")
            api.stage.run(70)
            schedule = made["schedules"][0]["scheduleId"]
            run = api.get(f"/jobs/{made['_id']}/schedules/{schedule}/runs").json["results"][-1]["runId"]
            found.update({"{job}": str(made["_id"]), "{schedule}": schedule, "{run}": run})
        return found

    return look


def below(path, paths, other):
    """Returns the route's path with existing values, or with other strings in their place."""
    for name, right in paths.items():
        text = other.get(name, right)
        path = path.replace(name, text.replace("%", "%25").replace(" ", "%20"))
    return path.removeprefix("/scheduler")


@EACH
@given(
    route=st.sampled_from(TABLE),
    body=BODY,
    query=QUERY,
    other=st.dictionaries(st.sampled_from(["{job}", "{schedule}", "{run}"]), PART, max_size=2),
    caller=st.sampled_from(["acme", "globex", "provider"]),
)
def test_no_request_causes_a_server_error(api, there, route, body, query, other, caller):
    method, path, *_ = route
    api(method, below(path, there(), other), body if method in {"POST", "PUT"} else None, query=query, caller=caller)


@EACH
@given(
    route=st.sampled_from(TABLE),
    raw=st.binary(max_size=40) | st.sampled_from([b"", b"{", b"[" * 5_000, b'{"name": 1, "name": 2}', b"\xff", b"NaN"]),
    headers=HEADERS,
    query=st.text(string.printable, max_size=20),
    encoded=st.booleans(),
)
def test_no_bytes_or_headers_cause_a_server_error(api, there, route, raw, headers, query, encoded):
    method, path, *_ = route
    sent = {"authorization": api.credentials["acme"], "content-type": "application/json", **headers}
    request = event(method, f"/scheduler{below(path, there(), {})}", query, sent, raw)
    if not encoded:
        request = {**request, "isBase64Encoded": False, "body": raw.decode("latin-1")}

    reply = api.send(request)

    assert reply.status in {200, 201, 400, 401, 404, 413}


def test_a_body_encoded_by_the_gateway_is_read(api):
    body = base64.b64encode(json.dumps({**JOB, "schedules": []}).encode()).decode()
    request = event("POST", "/scheduler/jobs", "", {"authorization": api.credentials["acme"]}, "{}")

    assert api.send({**request, "body": body, "isBase64Encoded": True}).status == 201
