"""The log line of each request: who, from where, and whom a refused one claimed to be; never a secret."""

from __future__ import annotations

import base64

import jwt
import pytest

from tests.contract.calls import CANARY, basic, event
from tests.contract.native.api import JOB
from tests.contract.native.test_tenancy import FORM, issue, token

SOURCE, AGENT = "203.0.113.7", "curl/8.0"
KEY = b"k" * 32


def line(api):
    (*_, last) = [members for _, message, members in api.stage.journal.lines if message == "request"]
    return last


def sent(api, method, path, headers, agent=AGENT):
    asked = event(method, path, headers=headers)
    asked["requestContext"]["http"] |= {"sourceIp": SOURCE, "userAgent": agent}
    return api.send(asked)


@pytest.mark.parametrize("by", ["credential", "token"])
def test_a_request_line_names_the_caller_and_its_address(api, by):
    header, made = issue(api, ["jobs:read"])
    if by == "token":
        header = "Bearer " + token(api, caller=None, headers={"authorization": header}).json["access_token"]

    reply = sent(api, "GET", "/v1/jobs", {"authorization": header})

    said = line(api)
    assert (said["actor"], said["tenant"], said["claimed"]) == (made["clientId"], "acme", None)
    assert (said["source"], said["agent"], said["request"]) == (SOURCE, AGENT, reply.headers["x-request-id"])


def test_the_line_of_a_refusal_names_the_caller_too(api):
    header, made = issue(api, ["jobs:read"])

    reply = api("POST", "/v1/jobs", JOB, caller=None, headers={"authorization": header})

    assert (reply.status, line(api)["actor"]) == (403, made["clientId"])


def opaque(text):
    return base64.b64encode(text.encode()).decode()


def bearer(**claims):
    return f"Bearer {jwt.encode(claims, KEY)}"


@pytest.mark.parametrize(
    ("authorization", "claimed"),
    [
        (None, None),
        ("", None),
        (basic("acme.nobody", f"{CANARY}-secret"), "acme.nobody"),
        (basic("provider.admin", f"{CANARY}-secret"), "provider.admin"),
        (basic(f"{CANARY}-secret", "acme.nobody"), None),
        (f"Basic {opaque(CANARY)}", None),
        (f"Bearer {CANARY}", None),
        (f"Bearer {CANARY}.{CANARY}.{CANARY}", None),
        (bearer(sub="x7", tenant="acme", gen=1), "acme.x7"),
        (bearer(sub="admin", gen=1), "provider.admin"),
        (bearer(sub=f"{CANARY} {CANARY}"), None),
        (bearer(iss="https://idp.example", sub="joe"), "https://idp.example joe"),
        (bearer(iss="https://idp.example", sub="j" * 900), "https://idp.example " + "j" * 280),
        (bearer(iss="https://idp.example"), None),
    ],
)
def test_the_line_of_a_401_names_the_claimed_caller_and_never_a_secret(api, authorization, claimed):
    reply = sent(api, "GET", "/v1/jobs", {} if authorization is None else {"authorization": authorization})

    said = line(api)
    assert reply.status == 401
    assert (said["status"], said["actor"], said["claimed"], said["source"]) == (401, None, claimed, SOURCE)
    assert CANARY not in api.log()


@pytest.mark.parametrize(("named", "claimed"), [("acme.nobody", "acme.nobody"), (f"{CANARY}-secret", None)])
def test_a_token_request_is_logged_under_the_client_id_it_claims(api, named, claimed):
    form = f"grant_type=client_credentials&client_id={named}&client_secret={CANARY}-secret"

    assert api("POST", "/oauth/token", caller=None, headers=FORM, raw=form).status == 401
    assert line(api)["claimed"] == claimed
    assert CANARY not in api.log()


@pytest.mark.parametrize("agent", ["x" * 5_000, "a\nb", "", None])
def test_a_long_user_agent_is_cut_and_a_missing_one_accepted(api, agent):
    sent(api, "GET", "/v1/health", {}, agent)

    assert len(line(api)["agent"] or "") <= 200


def test_the_target_of_a_run_is_named_as_a_target(api):
    job = api.create(JOB | {"policies": {"callbackToken": True}}, schedules=[])
    run = api("POST", f"/v1/jobs/{job['id']}/run").json["runId"]
    api.stage.deliver_all()
    sent_token = api.stage.endpoint.received[-1].call.callback_token

    headers = {"sweephand-callback-token": sent_token}
    api("PUT", f"/v1/runs/{run}/result", {"success": True}, caller=None, headers=headers)

    assert (line(api)["actor"], line(api)["tenant"]) == ("acme.target", "acme")
