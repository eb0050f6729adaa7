"""Fifty-one mistakes that a newcomer made, and what each is told: what is wrong, the value, what to write instead."""

from __future__ import annotations

from uuid import UUID

import pytest

from sweephand.base.errors import MOST_SHOWN
from sweephand.server.security.caller import TENANT_SCOPES
from tests.contract.calls import basic
from tests.contract.native.api import JOB

URL = "https://example.org/run"
GRANT = "grant_type=client_credentials"
RUN = "01a400f6-36fa-71e9-9550-323b38da5e82_01a400f6-36fa-71e9-9550-323b38da5e82"


def action(**members):
    return {**JOB, "action": {"type": "http", "url": URL, **members}}


def schedule(**members):
    return {**JOB, "schedules": [members]}


BODIES = [
    # (what, body, field, what the reason holds)
    ("minute 61", schedule(cron="61 * * * *"), "schedules[0].cron", ["minute must be 0 to 59", '"61"']),
    ("a weekday in another language", schedule(cron="0 9 * * mo"), "schedules[0].cron", ["mo", "mon"]),
    ("a number as duration", schedule(every=5), "schedules[0].every", ["must be a duration", "not 5"]),
    (
        "seconds since 1970",
        schedule(at=1_800_000_000),
        "schedules[0].at",
        ["must be an RFC 3339 instant", "not 1800000000"],
    ),
    ("a URL without scheme", action(url="example.org/run?key=1"), "action.url", ["https://", 'not "example.org"']),
    ("another scheme", action(url="ftp://example.org/"), "action.url", ['not "ftp://"']),
    ("a hundred retries", action(retry={"type": "fixed", "maxRetries": 100}), "action.retry.maxRetries", ["49", "100"]),
    ("align of a cron", schedule(cron="0 9 * * *", align="clock"), "schedules[0].align", ["every"]),
    (
        "six fields of cron",
        schedule(cron="0 0 9 * * *"),
        "schedules[0].cron",
        ['not 6 as in "0 0 9 * * *"', 'write "cron": "0 9 * * *"'],
    ),
    ("half a second", schedule(every="PT0.5S"), "schedules[0].every", ["second"]),
    ("five minutes in short", schedule(every="5 min"), "schedules[0].every", ["minutes"]),
    (
        "an instant of the past",
        schedule(at="2020-01-01T00:00:00Z"),
        "schedules[0].at",
        ["2020-01-01T00:00:00Z is more than 60 seconds in the past", '"policies": {"onPastStart": "run_now"}'],
    ),
    ("words in at", schedule(at="tomorrow 9am"), "schedules[0].at", ['"time": "tomorrow 9am"']),
    (
        "two notations",
        schedule(cron="0 9 * * *", every="PT1H"),
        "schedules[0].cron",
        ["only one of", "every", "leave out the others"],
    ),
    ("a private address", action(url="http://10.0.0.1/run"), "action.url", ["http"]),
    (
        "a private address by https",
        action(url="https://10.0.0.1/run"),
        "action.url",
        ["10.0.0.1 is not public", "provider"],
    ),
    ("the address of metadata", action(url="https://169.254.169.254/"), "action.url", ["169.254.169.254 ", "never"]),
    ("a user in the URL", action(url="https://me:secret@example.org/"), "action.url", ['{"type": "basic"']),
    (
        "a header of the service",
        action(headers={"Sweephand-Run-Id": "x"}),
        "action.headers.Sweephand-Run-Id",
        ["service"],
    ),
    ("a kind of action", action(type="htpp"), "action.type", ['"htpp"', '"http"']),
    ("a collection that is not there", {**JOB, "collection": "custmers"}, "collection", ['"custmers"', "create it"]),
    ("a method in small letters", action(method="post"), "action.method", ['"post"', '"POST"']),
    ("schedule", {**JOB, "schedule": []}, "schedule", ["`schedules`"]),
    ("max_retries", action(retry={"type": "fixed", "max_retries": 3}), "action.retry.max_retries", ["`maxRetries`"]),
    ("timeoutSeconds", action(timeoutSeconds=5), "action.timeoutSeconds", ["`outcome.answerTimeoutSeconds`"]),
    (
        "timeoutSeconds where it belongs",
        action(outcome={"timeoutSeconds": 5}),
        "action.outcome.timeoutSeconds",
        ["`answerTimeoutSeconds`"],
    ),
    (
        "a text of Quartz",
        schedule(cron="0 0 12 ? * MON-FRI"),
        "schedules[0].cron",
        ['"eventBridge": "cron(0 12 ? * MON-FRI *)"'],
    ),
    ("a workday near the 15th", schedule(cron="0 9 15W * *"), "schedules[0].cron", ["eventBridge"]),
    (
        "a zone that is not there",
        schedule(cron="0 9 * * *", timezone="Mars/Base"),
        "schedules[0].timezone",
        ['"Mars/Base"', "IANA"],
    ),
    (
        "a zone of Windows",
        schedule(cron="0 9 * * *", timezone="W. Europe Standard Time"),
        "schedules[0].timezone",
        ['"Europe/Berlin"'],
    ),
    (
        "an offset as zone",
        schedule(cron="0 9 * * *", timezone="+02:00"),
        "schedules[0].timezone",
        ["Etc/GMT-2", "place"],
    ),
    (
        "a zone in small letters",
        schedule(cron="0 9 * * *", timezone="europe/berlin"),
        "schedules[0].timezone",
        ['"Europe/Berlin"'],
    ),
    ("no notation", schedule(name="x"), "schedules[0].at", ["one of", "cron", '"every": "PT1H"']),
    (
        "cron in every",
        schedule(every="*/5 * * * *"),
        "schedules[0].every",
        ["must be a duration", '"cron": "*/5 * * * *"'],
    ),
    ("a duration without a unit", schedule(every="PT5"), "schedules[0].every", ['one of H, M, S after "PT5"']),
    ("a frequency misspelt", schedule(rrule="FREQ=DALY"), "schedules[0].rrule", ["DAILY", 'not "DALY"']),
    ("calendars by mode", schedule(every="PT1H", calendars={}), "schedules[0].calendars", ['[{"name": "holidays"}]']),
    ("no action", {"name": "x"}, "action", ["is required", '"type": "http"']),
    (
        "a retry without type",
        action(retry={"maxRetries": 3}),
        "action.retry.maxRetries",
        ['write "type": "fixed"', '"exponential"'],
    ),
    ("a host header", action(headers={"Host": "x"}), "action.headers.Host", ["Host is set by"]),
    ("a day that L begins", schedule(cron="0 9 1-L * *"), "schedules[0].cron", ['"L"', "L (the last day)", "LW"]),
    ("letters turned round", schedule(cron="0 9 WL * *"), "schedules[0].cron", ['"WL"', "LW (the last weekday)"]),
    (
        "a rate of nothing",
        schedule(eventBridge="rate(0 minutes)"),
        "schedules[0].eventBridge",
        ["must be 1 second to 36,500 days, not 0 seconds"],
    ),
    ("a year as instant", schedule(at="1234"), "schedules[0].at", ["RFC 3339", '"1234"']),
    ("a number as instant", schedule(at=1234), "schedules[0].at", ["RFC 3339", "1234"]),
    ("words that are none", schedule(time="someday"), "schedules[0].time", ['"someday"', "tomorrow at 4pm"]),
    ("an end in words", schedule(every="PT1H", endTime="soon"), "schedules[0].endTime", ['"soon"']),
    (
        "a count as string",
        schedule(every="PT1H", count="5"),
        "schedules[0].count",
        ["must be a whole number from 1 to", 'not "5"'],
    ),
    ("a count of nothing", schedule(every="PT1H", count=0), "schedules[0].count", ["1 to", "0"]),
    ("align misspelt", schedule(every="PT1H", align="clok"), "schedules[0].align", ['"clok"', '"clock"']),
    ("url beside action", {**JOB, "url": URL}, "url", ["`action.url`"]),
    ("cron beside schedules", {**JOB, "cron": "0 9 * * *"}, "cron", ["`schedules[].cron`"]),
]


@pytest.mark.parametrize(("body", "field", "holds"), [each[1:] for each in BODIES], ids=[each[0] for each in BODIES])
def test_a_mistake_in_a_body_is_explained_with_its_path_and_its_fix(shared, body, field, holds):
    reply = shared("POST", "/v1/jobs", body)

    assert reply.status == 422, reply.text
    reasons = {each["field"]: each["reason"] for each in reply.json["errors"]}
    assert [*reasons] == [field]
    for piece in holds:
        assert piece in reasons[field], reasons[field]


@pytest.mark.parametrize(
    ("path", "field", "holds"),
    [
        ("/v1/jobs?page=2", "page", ["`cursor`", "`limit`"]),
        ("/v1/jobs?stat=ACTIVE", "stat", ["`state`"]),
        ("/v1/jobs?state=RUNING", "state", ["RUNING", "ACTIVE", "PAUSED"]),
        ("/v1/runs?state=SUCESS", "state", ["SUCESS", '"SUCCESS"']),
        ("/v1/jobs?limit=1000", "limit", ["200", "1000"]),
        ("/v1/runs?from=yesterday", "from", ["RFC 3339", '"yesterday"']),
        ("/v1/runs?until=5", "until", ["RFC 3339", '"5"']),
        ("/v1/runs?jobId=nightly", "jobId", ["id", '"nightly"', "GET /v1/jobs?name=nightly"]),
        ("/v1/jobs?collection=custmers", "collection", ['"custmers"']),
        ("/v1/runs?scheduleId=x", "scheduleId", ["id", '"x"']),
    ],
)
def test_a_mistake_in_a_query_is_explained_with_its_fix(shared, path, field, holds):
    where, _, query = path.partition("?")
    reply = shared.get(where, query=query)

    assert (reply.status, reply.fields) == (400, [field]), reply.text
    for piece in holds:
        assert piece in reply.json["errors"][0]["reason"], reply.text


def test_broken_json_is_reported_with_its_position(shared):
    reply = shared("POST", "/v1/jobs", raw='{"name": "x",}', headers={"content-type": "application/json"})

    assert (reply.status, reply.code) == (400, "INVALID_JSON")
    assert reply.json["errors"][0]["position"] == 13
    assert reply.json["detail"].startswith("not JSON at line 1, column 14: ")


def test_a_refusal_of_a_large_body_states_both_sizes(shared):
    reply = shared("POST", "/v1/jobs", raw=" " * 300_000, headers={"content-type": "application/json"})

    assert (reply.status, reply.json["detail"]) == (413, "the body has 300,000 bytes; the maximum is 262,144")


def test_a_wrong_content_type_is_refused_with_the_right_one(shared):
    reply = shared("POST", "/v1/jobs", raw="a=b", headers={"content-type": "text/plain"})

    assert (reply.status, reply.code) == (415, "NOT_JSON")
    assert "application/json" in reply.json["detail"]
    assert "text/plain" in reply.json["detail"]


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "br", "deflate, gzip", "x"])
def test_a_compressed_body_is_refused_with_the_fix(shared, coding):
    headers = {"content-type": "application/json", "content-encoding": coding}

    for raw in ("{}", b"\x1f\x8b\x08\x00", "\x1f\ufffd\x08\x00"):  # the last one as a decoding gateway passes it on
        reply = shared("POST", "/v1/jobs", raw=raw, headers=headers)
        assert (reply.status, reply.code) == (415, "NOT_JSON")
        assert "without compression" in reply.json["detail"]


def test_the_encoding_identity_is_accepted(shared):
    headers = {"content-type": "application/json", "content-encoding": "identity"}

    assert shared("POST", "/v1/schedules:preview", raw='{"every": "PT1H"}', headers=headers).status == 200


def test_a_missing_scope_is_named(shared):
    issued = shared("POST", "/v1/credentials", {"scopes": ["jobs:read"]}).json
    shared.credentials["reader"] = basic(issued["clientId"], issued["secret"])

    reply = shared("POST", "/v1/jobs", JOB, caller="reader")

    assert (reply.status, reply.code) == (403, "SCOPE_MISSING")
    assert reply.json["detail"] == "this needs the scope jobs:write, which this credential or token does not have"


def test_a_deletion_without_a_filter_lists_the_filters(shared):
    reply = shared("DELETE", "/v1/jobs")

    assert (reply.status, reply.code) == (400, "INVALID_QUERY")
    assert "`collection`" in reply.json["detail"]
    assert "DELETE /v1/jobs?tag=nightly" in reply.json["detail"]


def test_a_deletion_without_a_count_says_how_to_get_it(shared):
    reply = shared("DELETE", "/v1/jobs", query="tag=x")

    assert (reply.status, reply.fields) == (400, ["expectedCount"])
    assert "dryRun=true" in reply.json["detail"]


def test_an_etag_without_quotes_is_refused_with_an_example(shared):
    made = shared.create()

    reply = shared("PATCH", f"/v1/jobs/{made['id']}", {"description": "x"}, headers={"if-match": "1"})

    assert (reply.status, reply.fields) == (400, ["If-Match"])
    assert reply.json["errors"][0]["reason"] == 'must be one ETag in double quotes, such as "3"'


@pytest.mark.parametrize("what", ["job", "collection", "flow key"])
def test_a_stale_etag_is_refused_with_the_current_revision_and_advice(shared, what):
    if what == "job":
        place = f"/v1/jobs/{shared.create()['id']}"
    else:
        place = f"/v1/{what.replace(' ', '-')}s/stale"
        more = {"parallelism": 1} if what == "flow key" else {}
        shared("POST", place.rpartition("/")[0], {"name": "stale", **more})

    for method in ("PATCH", "DELETE"):
        reply = shared(method, place, {} if method == "PATCH" else None, headers={"if-match": '"99"'})
        assert (reply.status, reply.code) == (412, "REVISION_MISMATCH")
        assert reply.json["detail"] == f"the {what} is at revision 1, not at that of If-Match: read it again first"


def test_a_refusal_of_a_taken_name_repeats_the_name(shared):
    shared.create(name="nightly")

    reply = shared("POST", "/v1/jobs", {**JOB, "name": "nightly"})

    assert (reply.status, reply.code) == (409, "NAME_TAKEN")
    assert '"nightly"' in reply.json["detail"]
    assert "choose another name" in reply.json["detail"]


@pytest.mark.parametrize(
    ("path", "body", "other"),
    [
        ("collections", {}, {"quota": {"maxJobs": 5}}),
        ("flow-keys", {"parallelism": 1}, {"parallelism": 2}),
        ("calendars", {"dates": ["2027-01-01"]}, {"dates": []}),
    ],
)
def test_every_refusal_of_a_taken_name_repeats_the_name(shared, path, body, other):
    assert shared("POST", f"/v1/{path}", {"name": "twice", **body}).status == 201

    reply = shared("POST", f"/v1/{path}", {"name": "twice", **other})

    assert (reply.status, reply.code) == (409, "NAME_TAKEN")
    assert reply.json["detail"].endswith('with the name "twice" already: choose another name')


def test_a_provider_that_names_no_tenant_is_pointed_to_the_header(shared):
    reply = shared.get("/v1/jobs", caller="provider")

    assert (reply.status, reply.fields) == (400, ["Sweephand-Tenant"])
    assert "Sweephand-Tenant: acme" in reply.json["detail"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/jobs"),
        ("GET", "/v1/runs"),
        ("GET", "/v1/runs:export"),
        ("GET", "/v1/errors"),
        ("GET", "/v1/collections"),
        ("GET", "/v1/calendars"),
        ("GET", "/v1/flow-keys"),
        ("GET", "/v1/operations"),
        ("GET", "/v1/credentials"),
        ("GET", "/v1/error-redirects"),
        ("POST", "/v1/jobs"),
        ("POST", "/v1/schedules:preview"),
        ("DELETE", "/v1/jobs"),
    ],
)
def test_a_missing_tenant_is_not_found_on_any_path(shared, method, path):
    body = {"every": "PT1H"} if method == "POST" else None

    reply = shared(method, path, body, caller="provider", headers={"sweephand-tenant": "typo-tenant"})

    assert (reply.status, reply.code) == (404, "NOT_FOUND")
    assert reply.json["detail"] == "no such tenant: typo-tenant"


def test_a_tenant_header_without_effect_is_refused(shared):
    reply = shared.get("/v1/tenants/acme", caller="provider", headers={"sweephand-tenant": "globex"})

    assert (reply.status, reply.fields) == (400, ["Sweephand-Tenant"])
    assert "leave it out" in reply.json["detail"]


def test_a_refusal_by_the_shortest_interval_states_both_intervals(shared):
    shared("POST", "/v1/collections", {"name": "slow", "quota": {"minIntervalSeconds": 60}})

    reply = shared("POST", "/v1/jobs", {**schedule(every="PT10S"), "collection": "slow"})

    assert (reply.status, reply.code) == (409, "QUOTA_EXCEEDED")
    assert "every 60 seconds" in reply.json["detail"]


def test_a_refusal_by_the_job_quota_states_the_quota(shared):
    shared("POST", "/v1/collections", {"name": "one", "quota": {"maxJobs": 1}})
    shared.create(collection="one")

    reply = shared("POST", "/v1/jobs", {**JOB, "collection": "one"})

    assert (reply.status, reply.code) == (409, "QUOTA_EXCEEDED")
    assert "1 job" in reply.json["detail"]
    assert "maxJobs" in reply.json["detail"]


def test_a_refused_secret_gets_a_list_of_possible_causes(shared):
    reply = shared.get("/v1/jobs", caller=None, headers={"authorization": basic("acme.x", "wrong")})

    assert reply.status == 401
    for piece in ("Basic", "Bearer", "wrong", "expired"):
        assert piece in reply.json["detail"]
    assert "missing" not in reply.json["detail"]


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (None, "the header Authorization is missing: send "),
        ("ApiKey abc", "the header Authorization cannot be read: send "),
        ("Basic %%%", "the header Authorization cannot be read: send "),
        ("Basic bm8gY29sb24=", "the header Authorization cannot be read: send "),
        ("Bearer abc", "the token is not one of this service, or it has expired: get another by POST /oauth/token"),
    ],
)
def test_an_authorization_of_another_scheme_is_named_as_such(shared, header, said):
    headers = {} if header is None else {"authorization": header}

    reply = shared.get("/v1/jobs", caller=None, headers=headers)

    assert reply.status == 401
    assert reply.json["detail"].startswith(said)


@pytest.mark.parametrize(
    ("method", "path", "detail"),
    [
        ("PATCH", "/v1/jobs", "this path does not take PATCH: it takes DELETE, GET, HEAD, POST, PUT"),
        ("GET", "/v1/job", "no such path: /v1/job; did you mean /v1/jobs?"),
        ("GET", "/v1/jobs/", "no such path: /v1/jobs/; did you mean /v1/jobs?"),
        (
            *("POST", "/v1/jobs/x/runs"),
            (
                "no such path: /v1/jobs/x/runs; did you mean /v1/jobs/x/run? "
                "Paths name ids; GET /v1/jobs?name=x%2Fruns finds a job by its name"
            ),
        ),
        (
            *("GET", "/v1/jobs/a/b c/d"),
            "no such path: /v1/jobs/a/b c/d: paths name ids; GET /v1/jobs?name=a%2Fb%20c%2Fd finds a job by its name",
        ),
        (
            *("POST", f"/v1/jobs/{UUID(int=1)}/runs"),
            f"no such path: /v1/jobs/{UUID(int=1)}/runs; did you mean /v1/jobs/{UUID(int=1)}/run?",
        ),
        ("GET", "/v1/nothing/like/it", "no such path: /v1/nothing/like/it"),
        ("GET", "/v1/runs/abc", 'no such run: "abc" is not the id of a run'),
        ("GET", "/v1/operations/abc", 'no such operation: "abc" is not the id of an operation'),
    ],
)
def test_a_refusal_of_an_unknown_path_suggests_a_similar_one(shared, method, path, detail):
    assert shared(method, path).json["detail"] == detail


def test_a_refusal_of_a_pause_end_in_words_repeats_it(shared):
    reply = shared("POST", f"/v1/jobs/{shared.create()['id']}/pause", {"until": "tomorrow"})

    assert (reply.status, reply.fields) == (422, ["until"])
    assert reply.json["errors"][0]["reason"].endswith(', not "tomorrow"')


def test_a_tenant_without_a_name_is_refused_with_the_required_member(shared):
    reply = shared("POST", "/v1/tenants", {"description": "x"}, caller="provider")

    assert (reply.status, reply.fields) == (422, ["tenant"])


def test_a_refusal_of_a_wrong_deletion_count_states_both_counts(shared):
    reply = shared("DELETE", "/v1/jobs", query="tag=nobody-has-it&expectedCount=3")

    assert (reply.status, reply.code) == (412, "COUNT_MISMATCH")
    assert reply.json["detail"] == "expectedCount is 3, but the filters find 0 jobs"


def test_a_refusal_of_an_unknown_time_zone_suggests_a_similar_one(shared):
    reply = shared("POST", "/v1/collections", {"name": "zoned", "defaults": {"timezone": "europe/berlin"}})

    assert (reply.status, reply.fields) == (422, ["defaults.timezone"])
    assert 'not "europe/berlin"; did you mean "Europe/Berlin"?' in reply.json["errors"][0]["reason"]


def test_a_body_in_addition_to_a_payload_is_refused(shared):
    reply = shared("POST", f"/v1/jobs/{shared.create()['id']}/run", {"payload": 1, "body": "x"})

    assert (reply.status, reply.fields) == (422, ["body"])
    assert "in addition to `payload`" in reply.json["errors"][0]["reason"]


@pytest.mark.parametrize("member", ["queueUrl", "functionArn", "topicArn", "queue"])
def test_a_target_address_under_a_wrong_member_name_is_refused_with_the_right_one(shared, member):
    reply = shared("POST", "/v1/jobs", {"action": {"type": "sqs", member: "x"}})

    reasons = {each["field"]: each["reason"] for each in reply.json["errors"]}
    assert "`targetArn`" in reasons[f"action.{member}"]


def test_a_wrong_callback_token_is_refused_as_such(shared):
    headers = {"sweephand-callback-token": "t" * 43}

    reply = shared("PUT", f"/v1/runs/{RUN}/result", {"success": True}, caller=None, headers=headers)

    assert reply.status == 401
    assert "Sweephand-Callback-Token" in reply.json["detail"]
    assert "this run" in reply.json["detail"]


def test_a_job_requested_by_name_is_pointed_to_the_filter(shared):
    reply = shared.get("/v1/jobs/nightly-report")

    assert (reply.status, reply.code) == (404, "NOT_FOUND")
    assert "?name=nightly-report" in reply.json["detail"]


def test_a_patch_with_another_notation_explains_how_to_remove_the_old_one(shared):
    made = shared.create({**JOB, "schedules": [{"every": "PT1H"}]})
    place = f"/v1/jobs/{made['id']}/schedules/{made['schedules'][0]['id']}"

    reply = shared("PATCH", place, {"cron": "0 9 * * *"})

    assert reply.status == 422
    assert '"every": null' in reply.json["errors"][0]["reason"]
    assert shared("PATCH", place, {"cron": "0 9 * * *", "every": None}).status == 200


def test_oauth_errors_say_what_is_wrong(shared):
    form = {"content-type": "application/x-www-form-urlencoded"}
    wrong = shared("POST", "/oauth/token", caller=None, raw=f"{GRANT}&client_id=acme.x&client_secret=y", headers=form)
    grant = shared("POST", "/oauth/token", caller=None, raw="grant_type=password", headers=form)

    assert wrong.json["error"] == "invalid_client"
    assert "secret is wrong" in wrong.json["error_description"]
    assert grant.json["error_description"] == 'grant_type must be client_credentials, not "password"'
    none = shared("POST", "/oauth/token", caller=None, raw="client_id=acme.x", headers=form)
    assert none.json["error_description"] == "grant_type is missing: it must be client_credentials"


def test_a_client_that_authenticates_in_two_ways_is_refused(shared):
    issued = shared("POST", "/v1/credentials", {"scopes": sorted(TENANT_SCOPES)}).json
    one, two = shared("POST", "/v1/credentials", {}).json, {"content-type": "application/x-www-form-urlencoded"}
    headers = {**two, "authorization": basic(issued["clientId"], issued["secret"])}

    def asked(form):
        return shared("POST", "/oauth/token", caller=None, raw=form, headers=headers)

    same, other = f"{GRANT}&client_id={issued['clientId']}", f"{GRANT}&client_id={one['clientId']}"
    assert asked(same).status == 200
    for form in (other, f"{same}&client_secret={issued['secret']}", f"{other}&client_secret={one['secret']}"):
        reply = asked(form)
        assert (reply.status, reply.json["error"]) == (400, "invalid_request")
        assert "one way" in reply.json["error_description"]


def test_a_time_zone_abbreviation_is_accepted_with_a_warning(shared):
    reply = shared("POST", "/v1/schedules:preview", {"cron": "0 9 * * *", "timezone": "EST"})

    (warning,) = [each for each in reply.json["warnings"] if each["code"] == "FIXED_OFFSET"]
    assert "EST is UTC-5 all year" in warning["message"]
    assert "America/New_York" in warning["message"]


# All at once


def test_all_mistakes_of_a_body_are_reported_at_once(shared):
    body = {
        "nmae": "x",
        "active": "yes",
        "tags": ["a", "a", 5],
        "action": {
            "type": "http",
            "url": "ftp://x",
            "method": "post",
            "retry": {"maxRetries": 3},
            "outcome": {"answerTimeoutSeconds": 100},
            "headers": {"Host": "x"},
        },
        "policies": {"overlap": "no", "misfire": {"type": "latest", "ratePerMinute": 5}},
        "schedules": [
            {"cron": "61 * * * *", "timezone": "europe/berlin"},
            {"evry": "PT1H"},
            {"every": "PT1H", "count": 0},
        ],
    }

    reply = shared("POST", "/v1/jobs", body)

    assert reply.status == 422
    assert set(reply.fields) == {
        *("nmae", "active", "tags[1]", "tags[2]", "action.url", "action.method", "action.retry.maxRetries"),
        *("action.outcome.answerTimeoutSeconds", "action.headers.Host", "policies.overlap"),
        *("policies.misfire.ratePerMinute", "schedules[0].cron", "schedules[0].timezone", "schedules[1].evry"),
        "schedules[2].count",
    }
    assert reply.json["detail"].endswith(f"(and {len(reply.fields) - 1} more: see errors)")


@pytest.mark.parametrize(
    ("path", "body", "fields"),
    [
        ("/v1/collections", {"name": "-", "quota": {"maxJobs": 0}, "retention": {"runDays": 1}, "events": "x"}, 4),
        ("/v1/flow-keys", {"name": "-", "rate": {"limit": 0}, "parallelism": 0, "circuit": {"failures": 0}}, 5),
        ("/v1/credentials", {"name": " x", "scopes": ["a", "b"], "c": 1}, 4),
        ("/v1/schedules:preview", {"cron": "x", "timezone": "x", "limit": 0, "count": 0}, 4),
    ],
)
def test_every_type_of_body_has_all_its_mistakes_reported(shared, path, body, fields):
    reply = shared("POST", path, body)

    assert reply.status == 422
    assert len(reply.fields) == fields, reply.text


def test_a_body_full_of_mistakes_gets_an_answer_of_bounded_size(shared):
    body = {**JOB, **{f"m{n}": n for n in range(500)}, "schedules": [{"cron": "61 * * * *"}] * 400}

    reply = shared("POST", "/v1/jobs", body)

    assert reply.status == 422
    assert len(reply.fields) == MOST_SHOWN
    assert reply.json["detail"].endswith(f"more: errors lists the first {MOST_SHOWN})")
    assert len(reply.text) < 20_000


def test_every_mistake_in_a_body_is_reported_with_its_value_and_its_fix(shared):
    body = {**JOB, "schedules": [{"every": f"{n} mins", "align": f"clok{n}"} for n in range(1, 21)]}

    reply = shared("POST", "/v1/jobs", body)

    reasons = {each["field"]: each["reason"] for each in reply.json["errors"]}
    for n in range(1, 21):
        assert f'write "every": "{n} minutes"' in reasons[f"schedules[{n - 1}].every"]
        assert f'"clok{n}"' in reasons[f"schedules[{n - 1}].align"]


SECRET = "canary-must-not-be-repeated"


@pytest.mark.parametrize(
    "authentication",
    [
        {"type": "basic", "username": "me", "password": SECRET + "\x00"},
        {"type": "bearer", "token": f"{SECRET} "},
        {"type": "apiKey", "header": "X-Key", "value": f"{SECRET}\n"},
        {"type": "oauth2", "tokenUrl": "x", "clientId": "me", "secret": f"{SECRET}\u00e9"},
        {"type": "bearer", "token": [SECRET]},
    ],
)
def test_a_refusal_repeats_no_secret(shared, authentication):
    reply = shared("POST", "/v1/jobs", action(authentication=authentication))

    assert reply.status == 422
    assert SECRET not in reply.text


# The same body in another order


def test_a_body_with_reordered_members_counts_as_equal_for_its_key(shared):
    headers = {"idempotency-key": "one", "content-type": "application/json"}
    one = '{"action": {"type": "http", "url": "https://example.org/"}, "tags": ["a", "b"]}'
    same = '{ "tags" : ["a","b"], "action": {"url": "https://example.org/", "type": "http"} }'
    other = '{"action": {"type": "http", "url": "https://example.org/"}, "tags": ["b", "a"]}'

    first, again, third = (shared("POST", "/v1/jobs", raw=raw, headers=headers) for raw in (one, same, other))

    assert (first.status, again.status, again.id) == (201, 201, first.id)
    assert (third.status, third.code) == (422, "KEY_REUSED")
