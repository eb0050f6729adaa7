"""One call: what is sent, when it is tried again, and what is raised."""

from __future__ import annotations

import asyncio
import base64
from datetime import date, time, timedelta
from email.utils import format_datetime

import pytest

from sweephand import __version__
from sweephand.sdk import (
    ApiError,
    ConfigError,
    InvalidArgument,
    Retries,
    Sweephand,
    SweephandError,
    TransportError,
    http,
)
from sweephand.sdk.api_errors import BY_CODE, InvalidField, NotFound, RateLimited, TooManyDeletes, Unavailable
from sweephand.sdk.transport.config import access
from sweephand.server.facades.native.problems import STATUS
from tests.unit.sdk.scripted import URL, async_client, client, problem, reply

JOB = {"id": "j-1", "name": "nightly", "revision": 3}
LOST = TransportError("lost")
UNREACHED = TransportError("refused", sent=False)


def test_a_call_names_its_caller_and_the_version_and_quotes_the_path():
    sh, script = client(reply(JOB))

    sh.jobs.get("a b?c")

    (sent,) = script.sent
    assert sent.url == f"{URL}/v1/jobs/a%20b%3Fc"
    assert sent.headers["Authorization"] == "Basic " + base64.b64encode(b"me:s3cret").decode()
    assert sent.headers["User-Agent"].startswith(f"sweephand-python/{__version__}")
    assert "Idempotency-Key" not in sent.headers
    assert "Sweephand-Tenant" not in sent.headers


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_leads_to_another_resource_is_not_sent(name):
    sh, script = client(*[reply(None, 204)] * 4)

    for call in (
        lambda: sh.jobs.delete(name),
        lambda: sh.schedules.delete("j-1", name),
        lambda: sh.job_sets.delete(name),
        lambda: sh.operations.wait(name),
    ):
        with pytest.raises(InvalidArgument, match=r"id or name must not be '\.+': in a path"):
            call()

    assert script.sent == []


def test_a_name_with_a_slash_is_not_sent_and_says_how_a_job_is_found():
    """The gateway hands `%2F` over as a slash: `id/schedules/id` would delete a schedule."""
    sh, script = client(*[reply(None, 204)] * 3)

    with pytest.raises(InvalidArgument) as refused:
        sh.jobs.get("app/task")
    assert str(refused.value) == (
        "id or name must not contain a slash, but it is 'app/task'; "
        "sh.jobs.list(name='app/task').first() finds a job by its name"
    )
    with pytest.raises(InvalidArgument, match="must not contain a slash"):
        sh.jobs.delete("j-1/schedules/s-1")
    with pytest.raises(InvalidArgument, match=r"contain a slash, but it is 'a/b'\Z"):
        sh.collections.get("a/b")
    assert script.sent == []


def test_a_body_has_the_names_of_the_api_and_only_the_members_that_are_given():
    sh, script = client(reply(JOB, 201))

    sh.jobs.create(
        "nightly", http.post("https://example.org/run", payload={"snake_case": 1}), resource_id="r-7", tags=["a"]
    )

    assert script.sent[0].json == {
        "name": "nightly",
        "resourceId": "r-7",
        "tags": ["a"],
        "action": {"type": "http", "method": "POST", "url": "https://example.org/run", "payload": {"snake_case": 1}},
    }


def test_none_in_a_patch_removes_a_member_and_a_revision_makes_it_conditional():
    sh, script = client(reply(JOB), reply(JOB), reply(JOB))

    job = sh.jobs.patch("j-1", description=None, if_match=3)
    sh.jobs.patch(job, active=False, if_match=job)
    sh.jobs.patch(job, active=False, if_match="*")

    assert script.sent[0].json == {"description": None}
    assert [sent.headers["If-Match"] for sent in script.sent] == ['"3"', '"3"', "*"]
    assert script.sent[1].path == "/v1/jobs/j-1"


def test_the_tenant_is_sent_only_with_calls_that_act_for_one():
    sh, script = client(reply(JOB), reply({"tenant": "acme"}), tenant="acme")

    sh.jobs.get("j-1")
    sh.tenants.get("acme")

    assert script.sent[0].headers["Sweephand-Tenant"] == "acme"
    assert "Sweephand-Tenant" not in script.sent[1].headers


@pytest.mark.parametrize(
    "failure", [LOST, UNREACHED, *(problem("UNAVAILABLE", status) for status in (429, 500, 502, 503, 504))]
)
def test_a_call_with_a_key_is_retried_with_the_same_key_and_body(failure):
    sh, script = client(failure, failure, failure, reply(JOB, 201))

    job = sh.jobs.create("nightly", http.post("https://example.org/run"))

    assert job.id == "j-1"
    assert len(script.sent) == 4
    assert len({sent.headers["Idempotency-Key"] for sent in script.sent}) == 1
    assert len({sent.content for sent in script.sent}) == 1
    assert script.clock.slept_s > 0


def test_each_call_has_its_own_key_and_a_caller_can_provide_one():
    sh, script = client(*[reply({"runId": "x", "started": True}, 202)] * 3)

    sh.jobs.run("j-1")
    sh.jobs.run("j-1")
    sh.jobs.run("j-1", idempotency_key="mine")

    first, second, third = (sent.headers["Idempotency-Key"] for sent in script.sent)
    assert first != second
    assert third == "mine"


def test_a_call_is_tried_at_most_four_times_without_a_final_sleep():
    sh, script = client(*[LOST] * 9, retries=Retries(base_s=1.0))

    with pytest.raises(TransportError, match="lost"):
        sh.jobs.get("j-1")

    assert len(script.sent) == 4
    assert 0 < script.clock.slept_s <= 1 + 2 + 4


def test_the_wait_is_random_between_zero_and_a_doubling_limit():
    class Greatest:
        def uniform(self, low, high):
            assert low == 0
            return high

    retries = Retries(base_s=1.0, longest_s=3.0)

    assert [retries.wait_s(tried, None, Greatest()) for tried in (1, 2, 3, 4)] == [1, 2, 3, 3]


@pytest.mark.parametrize("written", ["7", "date"])
def test_retry_after_overrides_the_random_wait(written):
    sh, script = client(lambda _: reply({"message": "Too Many Requests"}, 429, retry_after=after), reply(JOB))
    at = script.clock.now().replace(microsecond=0) + timedelta(seconds=7)
    after = written if written == "7" else format_datetime(at, usegmt=True)

    sh.jobs.get("j-1")

    assert script.clock.slept_s == pytest.approx(7, abs=0.3)


def test_a_429_of_the_gateway_is_a_rate_limit_without_a_problem_document():
    sh, _ = client(*[reply({"message": "Too Many Requests"}, 429, x_request_id="g-1")] * 4)

    with pytest.raises(RateLimited, match="429 RATE_LIMITED: Too Many Requests") as refused:
        sh.jobs.get("j-1")

    assert (refused.value.tries, refused.value.request_id, refused.value.root_code) == (4, "g-1", 9)


def test_a_wait_beyond_the_deadline_is_not_begun():
    sh, script = client(reply({}, 503, retry_after="30"), reply(JOB), retries=Retries(deadline_s=20))

    with pytest.raises(Unavailable) as refused:
        sh.jobs.get("j-1")

    assert refused.value.retry_after_s == 30
    assert (len(script.sent), script.clock.slept_s) == (1, 0)


def test_all_tries_together_keep_the_deadline():
    sh, script = client(*[LOST] * 9, takes_s=8, retries=Retries(tries=9, deadline_s=20, timeout_s=10))

    with pytest.raises(TransportError):
        sh.jobs.get("j-1")

    assert len(script.sent) == 3
    assert script.sent[0].timeout_s == 10
    assert script.sent[2].timeout_s < 4


def test_a_create_without_a_key_is_retried_only_if_it_was_certainly_not_done():
    sh, script = client(UNREACHED, reply({"message": "Too Many Requests"}, 429), LOST, reply({}, 201))

    with pytest.raises(TransportError, match="lost"):
        sh.call("POST", "/v1/things", body={"name": "ci"})

    assert len(script.sent) == 3
    sh, script = client(problem("UNAVAILABLE", 503), reply({}, 201))
    with pytest.raises(Unavailable):
        sh.call("POST", "/v1/things", body={"name": "ci"})
    assert len(script.sent) == 1


def test_a_bulk_delete_is_not_repeated_after_a_lost_answer():
    sh, script = client(UNREACHED, LOST, reply({"count": 2, "deleted": 2, "operation": None}))

    with pytest.raises(TransportError, match="lost"):
        sh.jobs.delete_matching(tag="a", expected_count=2)

    assert len(script.sent) == 2
    sh, script = client(LOST, reply({"count": 2, "deleted": 0, "operation": None}))
    assert sh.jobs.delete_matching(tag="a", dry_run=True).count == 2


def test_a_refusal_names_the_parameters_as_python_does():
    detail = "deletes 12 of 12 jobs: to allow it, use allowDeletes=12"
    sh, _ = client(problem("TOO_MANY_DELETES", 409, detail), problem("TOO_MANY_DELETES", 409, detail))

    with pytest.raises(TooManyDeletes) as refused:
        sh.job_sets.put("a", jobs=[])
    assert "use allow_deletes=12 (" in str(refused.value)
    assert refused.value.detail == detail
    with pytest.raises(TooManyDeletes, match="allowDeletes=12"):  # Python has no parameter of this name here
        sh.call("PUT", "/v1/job-sets/a")


def test_a_refusal_repeats_a_field_that_is_not_a_parameter_unchanged():
    reason = "send dryRun=true, not GET /v1/jobs?dryRun=true, colourName=true"
    sh, _ = client(problem("INVALID_QUERY", 400, reason))

    with pytest.raises(ApiError, match=r"send dry_run=True, not GET /v1/jobs\?dryRun=true, colourName=true"):
        sh.jobs.delete_matching(tag="a")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 422])
def test_a_permanent_refusal_is_not_retried(status):
    sh, script = client(problem("NOT_FOUND", status))

    with pytest.raises(ApiError):
        sh.jobs.get("j-1")

    assert len(script.sent) == 1


def test_an_error_names_the_field_the_value_the_request_and_the_documentation():
    errors = [
        {"field": "schedules[0].cron", "reason": 'not an hour: "25"', "position": 2},
        {"field": "name", "reason": "is empty"},
    ]
    sh, _ = client(problem("INVALID_FIELD", 422, 'schedules[0].cron: not an hour: "25" (and 1 more)', errors=errors))

    with pytest.raises(InvalidField) as refused:
        sh.jobs.create(None, http.post("https://example.org"))

    error = refused.value
    assert (error.code, error.status, error.request_id, error.root_code) == ("INVALID_FIELD", 422, "r-1", 300)
    assert error.errors[0] == ("schedules[0].cron", 'not an hour: "25"', 2)
    assert error.help == f"{URL}/problems/invalid-field"
    assert str(error) == (
        'POST /v1/jobs: 422 INVALID_FIELD: schedules[0].cron: not an hour: "25"; name: is empty '
        f"(request r-1, see {URL}/problems/invalid-field)"
    )
    assert isinstance(error, SweephandError)


def test_a_code_of_a_later_version_is_an_api_error():
    sh, _ = client(problem("QUITE_NEW", 409))

    with pytest.raises(ApiError) as refused:
        sh.jobs.get("j-1")

    assert type(refused.value) is ApiError
    assert refused.value.code == "QUITE_NEW"


@pytest.mark.parametrize(
    ("method", "status", "number"),
    [
        ("get", 404, 2),
        ("get", 409, 3),
        ("get", 422, 300),
        ("get", 413, 10),
        ("get", 401, 16),
        ("get", 403, 1002),
        ("put", 403, 1003),
        ("delete", 403, 1004),
        ("create", 403, 1000),
        ("get", 500, 1),
        ("get", 412, 0),
    ],
)
def test_the_error_numbers_are_those_of_root(method, status, number):
    sh, _ = client(*[problem("INTERNAL", status)] * 4)
    calls = {
        "get": lambda: sh.jobs.get("j"),
        "put": lambda: sh.jobs.put("j", action={}),
        "delete": lambda: sh.jobs.delete("j"),
        "create": lambda: sh.jobs.create(None, {}),
    }

    with pytest.raises(ApiError) as refused:
        calls[method]()

    assert refused.value.root_code == number


def test_a_timeout_raises_the_timeout_error_of_root():
    assert TransportError("late", timed_out=True).root_code == 12
    assert LOST.root_code == 1


def test_each_code_of_the_closed_table_has_a_class():
    assert BY_CODE.keys() == STATUS.keys()
    assert all(kind.code == code for code, kind in BY_CODE.items())
    assert NotFound.code == "NOT_FOUND"


@pytest.mark.parametrize(
    ("status", "content", "shown"),
    [
        (200, b"<html>", "200, text/html"),
        (404, b'{"message": "Not Found"}', "404, text/html"),
        (404, b"", "404, text/html"),
        (401, b"<html>Log in", "401, text/html"),
    ],
)
def test_an_answer_of_another_server_names_the_address(status, content, shown):
    sh, script = client(reply(None, status)._replace(content=content, headers={"content-type": "text/html"}))

    with pytest.raises(TransportError) as failed:
        sh.jobs.get("j-1")

    assert str(failed.value) == (
        f"{URL} does not answer as a stack does (GET /v1/jobs/j-1: {shown}); "
        "use the address in the stack's output ApiUrl"
    )
    assert len(script.sent) == 1


def test_a_page_of_a_proxy_is_not_shown():
    sh, _ = client(*[reply(None, 502)._replace(content=b"<html>Bad Gateway")] * 4)

    with pytest.raises(Unavailable, match="a page from something in front of the service, not JSON"):
        sh.jobs.get("j-1")


def test_the_reason_of_oauth_is_shown():
    sh, _ = client(reply({"error": "invalid_client", "error_description": "it is deleted"}, 401))

    with pytest.raises(ApiError) as refused:
        sh.call("POST", "/oauth/token")

    assert (refused.value.status, refused.value.detail) == (401, "it is deleted")


def test_a_redirect_is_not_followed():
    sh, script = client(reply(None, 301, location="https://elsewhere.example"))

    with pytest.raises(TransportError, match=r"leads to https://elsewhere.example"):
        sh.jobs.get("j-1")

    assert len(script.sent) == 1


def test_asyncio_works_the_same_way():
    async def main():
        sh, script = async_client(LOST, reply(JOB, 201))
        async with sh:
            job = await sh.jobs.create("nightly", http.post("https://example.org/run"))
        return job, script

    job, script = asyncio.run(main())

    assert job.name == "nightly"
    assert len(script.sent) == 2
    assert script.closed
    assert script.clock.slept_s > 0


@pytest.mark.parametrize("wrong", ["ä", "a\nb"])
def test_values_that_no_header_can_hold_are_not_sent(wrong):
    sh, script = client(reply(JOB))

    with pytest.raises(InvalidArgument, match="idempotency_key must be printable ASCII"):
        sh.jobs.run("j-1", idempotency_key=wrong)
    with pytest.raises(InvalidArgument, match="if_match must be printable ASCII"):
        sh.jobs.patch("j-1", active=False, if_match=wrong)
    with pytest.raises(InvalidArgument, match="tenant must be printable ASCII"):
        client(tenant=wrong)

    assert script.sent == []


def test_values_that_json_cannot_hold_are_not_sent():
    sh, script = client(reply(JOB))
    deep: list = []
    for _ in range(100_000):
        deep = [deep]

    for wrong in ("\ud800", float("nan"), object(), timedelta(milliseconds=1), deep):
        with pytest.raises(InvalidArgument, match="body cannot be sent as JSON: "):
            sh.jobs.run("j-1", payload=wrong)
    with pytest.raises(InvalidArgument, match="id or name must be Unicode"):
        sh.jobs.get("\ud800")
    with pytest.raises(InvalidArgument, match="query must be Unicode"):
        sh.jobs.delete_matching(tag="\ud800", dry_run=True)

    assert script.sent == []


def test_dates_and_times_are_sent_as_they_are_written():
    sh, script = client(reply({"runId": "x", "started": True}, 202))

    sh.jobs.run("j-1", payload=[date(2027, 4, 1), time(7, 30)])

    assert script.sent[0].json == {"payload": ["2027-04-01", "07:30:00"]}


def test_at_least_one_try_is_needed():
    with pytest.raises(InvalidArgument, match="tries must be at least 1, not 0"):
        Retries(tries=0)


# The address and the credential


ENVIRONMENT = {"SWEEPHAND_URL": "https://from.env/", "SWEEPHAND_CLIENT_ID": "env", "SWEEPHAND_SECRET": "hidden"}


def test_arguments_come_before_the_environment():
    assert access(None, None, None, ENVIRONMENT) == access("https://from.env/v1", "env", "hidden", {})
    assert access("http://localhost:8080/v1/", "me", "mine", ENVIRONMENT).url == "http://localhost:8080"
    assert access(None, "me", "mine", ENVIRONMENT).client_id == "me"


@pytest.mark.parametrize(
    ("given", "environment", "reason"),
    [
        ((None, None, None), {}, "the credential is missing; give client_id= and secret=, or set SWEEPHAND_CLIENT_ID"),
        ((None, "me", None), ENVIRONMENT, "client_id= and secret= must be given together: only the client id is set"),
        ((None, None, None), {"SWEEPHAND_SECRET": "x"}, "SWEEPHAND_CLIENT_ID and SWEEPHAND_SECRET must be given"),
        ((None, "me", "mine"), {}, "the address is missing: give url= or set SWEEPHAND_URL"),
        (("localhost:8080", "me", "mine"), {}, "must begin with https:// or http://"),
        (("https://[::1", "me", "mine"), {}, r"the address 'https://\[::1' cannot be read: Invalid IPv6 URL"),
        (("https://host:x", "me", "mine"), {}, "the address 'https://host:x' cannot be read: Port"),
        (("https://u:p@host", "me", "mine"), {}, "must have no credential"),
    ],
)
def test_a_missing_setting_is_reported_in_one_sentence(given, environment, reason):
    with pytest.raises(ConfigError, match=reason):
        access(*given, environment)


def test_the_secret_is_not_shown():
    assert "hidden" not in repr(access(None, None, None, ENVIRONMENT))


def test_a_local_stack_is_read_only_from_the_file_that_is_named(tmp_path):
    file = tmp_path / "stack.json"
    with pytest.raises(ConfigError, match="there is no running local stack"):
        Sweephand.local(file)
    file.write_text(
        '{"baseUrl": "http://127.0.0.1:8080", "tenants": [{"tenant": "acme", "clientId": "c", "secret": "s"}]}'
    )

    with Sweephand.local(file) as sh:
        assert sh._caller._access.client_id == "c"
    with pytest.raises(ConfigError, match="does not name the tenant 'other'"):
        Sweephand.local(file, tenant="other")
