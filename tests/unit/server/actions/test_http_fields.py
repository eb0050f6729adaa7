from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.domain.job import ActionSpec, Payload
from sweephand.formats.strict_json import loads
from sweephand.server import actions
from sweephand.server.actions.auth import authentication as auth
from sweephand.server.actions.auth.authentication import TYPES
from sweephand.server.actions.http import Http, OutcomeRules
from sweephand.server.security.guard import GuardSettings, networks
from tests.unit.json_values import ANY_JSON, TEXTS

check_payload, from_json, kept_secrets, parse, to_json = (
    Http.check_payload,
    Http.from_json,
    Http.kept_secrets,
    Http.parse,
    Http.to_json,
)

OAUTH = {"type": "oauth2", "tokenUrl": "https://example.org/token", "clientId": "c", "secret": "s", "scope": "a"}
STRICT = GuardSettings()
LOCAL = GuardSettings(private=networks("127.0.0.0/8"), plain_http=True)
URL = "https://example.org/run"


def parsed(fields: object, guard: GuardSettings = STRICT) -> Http:
    return parse(fields, field="action", guard=guard)


def http(**members: Any) -> dict[str, Any]:
    return {"type": "http", "url": URL, **members}


def refusal(fields: object, guard: GuardSettings = STRICT) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        parsed(fields, guard)
    return caught.value


def test_the_defaults_are_those_of_the_reference() -> None:
    assert to_json(parsed(http())) == {
        "type": "http",
        "method": "POST",
        "url": URL,
        "headers": {},
        "authentication": {"type": "none"},
        "outcome": {
            "answerTimeoutSeconds": 15,
            "successStatuses": ["2xx"],
            "on202": None,
            "onNoAnswer": "fail",
            "callbackTimeoutSeconds": None,
        },
    }


def test_a_full_action() -> None:
    fields = loads(
        b"""{"type": "http", "method": "PUT", "url": "https://example.org/run",
        "headers": {"X-A": "b", "authorization": "Key abc"},
        "payload": {"r": 1.10, "s": null}, "authentication": {"type": "none"},
        "outcome": {"answerTimeoutSeconds": 60, "successStatuses": ["2xx", "304", "400-404"], "on202": "wait",
                    "onNoAnswer": "wait", "callbackTimeoutSeconds": 604800}, "retry": {"type": "none"}}"""
    )

    made = parsed(fields)

    assert made.method == "PUT"
    assert made.headers == (("X-A", "b"), ("authorization", "***"))
    assert made.payload == Payload('{"r":1.10,"s":null}', is_json=True)
    assert made.secrets == {"headers.Authorization": "Key abc"}
    assert made.outcome == OutcomeRules(60, ("2xx", "304", "400-404"), "wait", "wait", 604_800)


def test_null_is_absent() -> None:
    nothing = dict.fromkeys(["method", "headers", "payload", "body", "authentication", "outcome", "retry"])

    assert parsed(http(**nothing)) == parsed(http())


@pytest.mark.parametrize(
    ("method", "members", "payload"),
    [
        ("POST", {"payload": [1, "a", None]}, Payload('[1,"a",null]', is_json=True)),
        ("POST", {"payload": "text"}, Payload('"text"', is_json=True)),
        ("POST", {"payload": False}, Payload("false", is_json=True)),
        ("POST", {"body": "a\r\nb"}, Payload("a\r\nb", is_json=False)),
        ("POST", {"body": ""}, Payload("", is_json=False)),
        ("GET", {"payload": {"a": 1}}, Payload('{"a":1}', is_json=True)),
        ("POST", {}, None),
    ],
)
def test_payloads(method: str, members: dict[str, Any], payload: Payload | None) -> None:
    assert parsed(http(method=method, **members)).payload == payload


def test_no_secret_is_in_what_is_stored_or_printed() -> None:
    for authentication in (
        {"type": "basic", "username": "u", "password": "s3cret"},
        {"type": "bearer", "token": "s3cret"},
        {"type": "apiKey", "header": "X-Api-Key", "value": "s3cret"},
        {"type": "oauth2", "tokenUrl": "https://example.org/token", "clientId": "c", "secret": "s3cret"},
    ):
        made = parsed(http(authentication=authentication))
        assert list(made.secrets.values()) == ["s3cret"]
        assert "s3cret" not in json.dumps(to_json(made)) + repr(made)
        assert to_json(made)["authentication"]["type"] == authentication["type"]
    header = parsed(http(headers={"Authorization": "s3cret"}))
    assert "s3cret" not in json.dumps(to_json(header)) + repr(header)


@pytest.mark.parametrize(
    ("members", "field", "code"),
    [
        ({"url": None}, "url", "INVALID_FIELD"),
        ({"url": 1}, "url", "INVALID_FIELD"),
        ({"url": "http://example.org/"}, "url", "INVALID_FIELD"),
        ({"url": "https://127.0.0.1/"}, "url", "INVALID_FIELD"),
        ({"url": "https://u:p@example.org/"}, "url", "INVALID_FIELD"),
        ({"method": "post"}, "method", "INVALID_FIELD"),
        ({"method": "TRACE"}, "method", "INVALID_FIELD"),
        ({"method": "CONNECT"}, "method", "INVALID_FIELD"),
        ({"method": ["GET"]}, "method", "INVALID_FIELD"),
        ({"colour": 1}, "colour", "UNKNOWN_MEMBER"),
        ({"headers": []}, "headers", "INVALID_FIELD"),
        ({"headers": {"X-A": 1}}, "headers.X-A", "INVALID_FIELD"),
        ({"headers": {"X-A": None}}, "headers.X-A", "INVALID_FIELD"),
        ({"headers": {"X-A": "a\r\nX-B: c"}}, "headers.X-A", "INVALID_FIELD"),
        ({"headers": {"X-A": "a\x00"}}, "headers.X-A", "INVALID_FIELD"),
        ({"headers": {"X-A": "\u00e4"}}, "headers.X-A", "INVALID_FIELD"),
        ({"headers": {"X-A": " a"}}, "headers.X-A", "INVALID_FIELD"),
        ({"headers": {"X-A": "a\t"}}, "headers.X-A", "INVALID_FIELD"),
        ({"headers": {"": "a"}}, "headers.", "INVALID_FIELD"),
        ({"headers": {"X A": "a"}}, "headers.X A", "INVALID_FIELD"),
        ({"headers": {"X:A": "a"}}, "headers.X:A", "INVALID_FIELD"),
        ({"headers": {"X-\u00c4": "a"}}, "headers.X-\u00c4", "INVALID_FIELD"),
        ({"headers": {"X-A": "a", "x-a": "b"}}, "headers.x-a", "INVALID_FIELD"),
        ({"headers": {f"X-{number}": "a" for number in range(51)}}, "headers", "INVALID_FIELD"),
        ({"headers": {"X-A": "a" * 8_190}}, "headers", "INVALID_FIELD"),
        ({"headers": {"Authorization": "a" * 4_097}}, "headers.Authorization", "INVALID_FIELD"),
        ({"payload": 1, "body": "x"}, "body", "INVALID_FIELD"),
        ({"body": 1}, "body", "INVALID_FIELD"),
        ({"body": "x" * 65_537}, "body", "INVALID_FIELD"),
        ({"body": "\u20ac" * 30_000}, "body", "INVALID_FIELD"),
        ({"body": "\ud800"}, "body", "INVALID_FIELD"),
        ({"payload": "x" * 65_535}, "payload", "INVALID_FIELD"),
        ({"payload": {"a": "\ud800"}}, "payload", "INVALID_FIELD"),
        ({"method": "GET", "payload": [1]}, "payload", "INVALID_FIELD"),
        ({"method": "GET", "body": "{}"}, "body", "INVALID_FIELD"),
        ({"method": "DELETE", "payload": "a"}, "payload", "INVALID_FIELD"),
        ({"authentication": "none"}, "authentication", "INVALID_FIELD"),
        ({"authentication": {}}, "authentication.type", "INVALID_FIELD"),
        ({"authentication": {"type": "digest"}}, "authentication.type", "INVALID_FIELD"),
        ({"authentication": {"type": {}}}, "authentication.type", "INVALID_FIELD"),
        ({"authentication": {"type": "none", "token": "x"}}, "authentication.token", "UNKNOWN_MEMBER"),
        ({"authentication": {"type": "basic", "password": "x"}}, "authentication.username", "INVALID_FIELD"),
        (
            {"authentication": {"type": "basic", "username": "a:b", "password": "x"}},
            "authentication.username",
            "INVALID_FIELD",
        ),
        (
            {"authentication": {"type": "basic", "username": "a", "password": "x\n"}},
            "authentication.password",
            "INVALID_FIELD",
        ),
        (
            {"authentication": {"type": "basic", "username": "a", "password": 1}},
            "authentication.password",
            "INVALID_FIELD",
        ),
        (
            {"authentication": {"type": "basic", "username": "a", "password": "\u20ac" * 2_000}},
            "authentication.password",
            "INVALID_FIELD",
        ),
        ({"authentication": {"type": "bearer", "token": ""}}, "authentication.token", "INVALID_FIELD"),
        ({"authentication": {"type": "bearer", "token": "a b"}}, "authentication.token", "INVALID_FIELD"),
        ({"authentication": {"type": "bearer", "token": "\u00e4"}}, "authentication.token", "INVALID_FIELD"),
        (
            {
                "authentication": {"type": "apiKey", "header": "X-Api-Key", "value": "a"},
                "headers": {"X-API-KEY": "b"},
            },
            "headers.X-Api-Key",
            "INVALID_FIELD",
        ),
        *(
            ({"authentication": {"type": "apiKey", "value": "a", **member}}, f"authentication.{name}", "INVALID_FIELD")
            for member, name in (
                ({}, "header"),
                ({"header": "Host"}, "header"),
                ({"header": "a b"}, "header"),
                ({"header": "webhook-id"}, "header"),
                ({"header": "X-A", "value": ""}, "value"),
                ({"header": "X-A", "value": "a\r\nX-B: c"}, "value"),
                ({"header": "X-A", "value": "\u00e4"}, "value"),
            )
        ),
        *(
            ({"authentication": {**OAUTH, **member}}, f"authentication.{name}", "INVALID_FIELD")
            for member, name in (
                ({"tokenUrl": None}, "tokenUrl"),
                ({"tokenUrl": "http://example.org/"}, "tokenUrl"),
                ({"tokenUrl": "https://127.0.0.1/"}, "tokenUrl"),
                ({"tokenUrl": 1}, "tokenUrl"),
                ({"clientId": None}, "clientId"),
                ({"clientId": "\u00e4"}, "clientId"),
                ({"secret": ""}, "secret"),
                ({"scope": "a\n"}, "scope"),
                ({"credentialsIn": "query"}, "credentialsIn"),
            )
        ),
        (
            {"authentication": {"type": "bearer", "token": "a"}, "headers": {"AUTHORIZATION": "b"}},
            "headers.Authorization",
            "INVALID_FIELD",
        ),
        ({"outcome": []}, "outcome", "INVALID_FIELD"),
        ({"outcome": {"on404": 1}}, "outcome.on404", "UNKNOWN_MEMBER"),
        ({"outcome": {"answerTimeoutSeconds": 0}}, "outcome.answerTimeoutSeconds", "INVALID_FIELD"),
        ({"outcome": {"answerTimeoutSeconds": 61}}, "outcome.answerTimeoutSeconds", "INVALID_FIELD"),
        ({"outcome": {"answerTimeoutSeconds": True}}, "outcome.answerTimeoutSeconds", "INVALID_FIELD"),
        ({"outcome": {"callbackTimeoutSeconds": 604_801}}, "outcome.callbackTimeoutSeconds", "INVALID_FIELD"),
        ({"outcome": {"on202": "ignore"}}, "outcome.on202", "INVALID_FIELD"),
        ({"outcome": {"onNoAnswer": "retry"}}, "outcome.onNoAnswer", "INVALID_FIELD"),
        ({"outcome": {"successStatuses": []}}, "outcome.successStatuses", "INVALID_FIELD"),
        ({"outcome": {"successStatuses": "2xx"}}, "outcome.successStatuses", "INVALID_FIELD"),
        ({"outcome": {"successStatuses": ["2xx"] * 21}}, "outcome.successStatuses", "INVALID_FIELD"),
        *(
            ({"outcome": {"successStatuses": ["2xx", wrong]}}, "outcome.successStatuses[1]", "INVALID_FIELD")
            for wrong in (
                204,
                None,
                "",
                "2XX",
                "6xx",
                "99",
                "600",
                "299-200",
                "2xx-3xx",
                "200 ",
                "\u0662\u0660\u0660",
                "20",
            )
        ),
    ],
)
def test_a_broken_rule_is_named_by_its_path(members: dict[str, Any], field: str, code: str) -> None:
    refused = refusal(http(**members))

    assert (refused.field, refused.code) == (f"action.{field}", code)
    assert refused.reason


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Host",
            "content-length",
            "Transfer-Encoding",
            "CONNECTION",
            "Keep-Alive",
            "TE",
            "Trailer",
            "Upgrade",
            "Expect",
        ),
        *(
            "Proxy-Authorization",
            "proxy-connection",
            "Sweephand-Run-Id",
            "sweephand-x",
            "webhook-id",
            "Webhook-Signature",
        ),
        "HTTP2-Settings",
    ],
)
def test_headers_of_the_connection_and_of_the_service_are_refused(name: str) -> None:
    refused = refusal(http(headers={name: "x"}))

    assert (refused.field, refused.code) == (f"action.headers.{name}", "INVALID_FIELD")


def test_limits_are_inclusive() -> None:
    assert len(parsed(http(headers={f"X-{number}": "" for number in range(50)})).headers) == 50
    assert parsed(http(headers={"X-A": "a" * (8_192 - 3 - 4)}))
    assert parsed(http(body="x" * 65_536)).payload
    assert parsed(http(payload="x" * 65_534)).payload
    assert parsed(http(authentication={"type": "bearer", "token": "x" * 4_096})).secrets
    assert parsed(http(authentication={"type": "basic", "username": "", "password": ""})).secrets == {
        "authentication.password": ""
    }


def test_credentials_for_a_public_address_over_plain_http_are_refused_on_input() -> None:
    bearer = {"type": "bearer", "token": "t"}

    assert refusal(http(url="http://8.8.8.8/", authentication=bearer), LOCAL).field == "action.url"
    assert refusal(http(url="http://8.8.8.8/", headers={"Authorization": "t"}), LOCAL).field == "action.url"
    assert parsed(http(url="http://127.0.0.1/", authentication=bearer), LOCAL)
    assert parsed(http(url="http://8.8.8.8/"), LOCAL)


def test_a_schedules_payload_is_validated_by_the_actions_method() -> None:
    get, post = parsed(http(method="GET")), parsed(http())
    text = Payload("hello", is_json=False)

    check_payload(post, text, "schedules[0].payload")
    check_payload(get, Payload('{"a":1}', is_json=True), "schedules[0].payload")
    actions.check_payload("http", to_json(get), None, "schedules[0].payload")
    with pytest.raises(InvalidRequest) as caught:
        check_payload(get, text, "schedules[0].payload")
    assert caught.value.field == "schedules[0].payload"
    with pytest.raises(InvalidRequest):
        actions.check_payload("http", to_json(get), text, "schedules[0].payload")


@pytest.mark.parametrize(
    ("statuses", "yes", "no"),
    [
        (("2xx",), (200, 299), (199, 300)),
        (("204",), (204,), (200, 205)),
        (("200-204", "4xx"), (200, 204, 400), (205, 500)),
    ],
)
def test_statuses_match(statuses: tuple[str, ...], yes: tuple[int, ...], no: tuple[int, ...]) -> None:
    rules = OutcomeRules(success_statuses=statuses)

    assert all(rules.is_success(code) for code in yes)
    assert not any(rules.is_success(code) for code in no)


# ---- Whatever comes --------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(
    [
        "type",
        "method",
        "url",
        "headers",
        "payload",
        "body",
        "authentication",
        "outcome",
        "retry",
        "username",
        "password",
        "token",
        "header",
        "value",
        "tokenUrl",
        "clientId",
        "secret",
        "pem",
        "pfx",
    ]
)
NEAR_MISSES = st.fixed_dictionaries(
    {"url": st.just(URL) | ANY_JSON},
    optional={
        "type": st.just("http") | ANY_JSON,
        "method": st.sampled_from(["GET", "POST", "HEAD"]) | ANY_JSON,
        "headers": st.dictionaries(TEXTS | st.sampled_from(["X-A", "Authorization"]), TEXTS, max_size=3) | ANY_JSON,
        "payload": ANY_JSON,
        "body": TEXTS,
        "authentication": st.fixed_dictionaries(
            {"type": st.sampled_from(["none", *TYPES]) | ANY_JSON},
            optional={"username": TEXTS, "tokenUrl": TEXTS | st.just(URL), "clientId": TEXTS}
            | dict.fromkeys(
                ["password", "token", "header", "value", "secret", "scope", "pem", "pfx", "certificate"], ANY_JSON
            ),
        )
        | ANY_JSON,
        "outcome": st.dictionaries(
            st.sampled_from(["answerTimeoutSeconds", "successStatuses", "on202", "onNoAnswer"]), ANY_JSON, max_size=3
        )
        | ANY_JSON,
        "retry": ANY_JSON,
    },
)


@given(ANY_JSON | st.dictionaries(NAMES, ANY_JSON) | NEAR_MISSES)
def test_any_json_raises_only_invalid_request(value: object) -> None:
    try:
        json.dumps(actions.draft(value, field="action", guard=STRICT).params)
        refused = None
    except InvalidRequest as caught:
        refused = caught
    if refused is not None:
        assert (refused.field or "").startswith("action")
        assert refused.code in {"INVALID_FIELD", "UNKNOWN_MEMBER"}
        assert len(refused.reason) < 300


@given(NEAR_MISSES)
def test_a_stored_action_reads_back_as_the_same_action(fields: dict[str, Any]) -> None:
    try:
        made = parsed(fields)
    except InvalidRequest:
        return

    stored = json.loads(json.dumps(to_json(made)))

    assert to_json(from_json(stored)) == to_json(made)
    assert from_json(stored).secret_fields == made.secret_fields
    assert from_json(stored).outcome == made.outcome


# ---- The kind --------------------------------------------------------------------------------------------------------

KINDS = ", ".join(actions.KINDS)


@pytest.mark.parametrize(
    ("value", "field", "reason"),
    [
        (None, "action", "must be an object, not null"),
        ({}, "action.type", f"is required: one of {KINDS}"),
        ({"type": 1}, "action.type", "must be a string, not a number"),
        ({"type": "pigeon"}, "action.type", f'must be one of {KINDS}, not "pigeon"'),
        ({"type": "azure_queue"}, "action.type", f'must be one of {KINDS}, not "azure_queue"'),
        ({"type": "HTTP"}, "action.type", f'must be one of {KINDS}, not "HTTP" (did you mean "http"?)'),
        (
            {"type": "http", "url": URL, "retry": {"type": "fixed", "maxRetries": 50}},
            "action.retry.maxRetries",
            "must be a whole number from 0 to 49, not 50",
        ),
    ],
)
def test_the_kind_must_be_a_known_one(value: object, field: str, reason: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        actions.draft(value, field="action", guard=STRICT)

    assert (caught.value.field, caught.value.reason) == (field, reason)


@pytest.mark.parametrize("member", ["authentication", "headers"])
def test_a_secret_where_an_object_is_expected_is_not_repeated(member: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        actions.draft(http(**{member: "Bearer s3cret"}), field="action", guard=STRICT)

    assert (caught.value.field, caught.value.reason) == (f"action.{member}", "must be an object, not a string")


@pytest.mark.parametrize("kind", TYPES)
def test_an_error_of_an_authentication_member_does_not_repeat_its_value(kind: str) -> None:
    members = auth.request_members(kind)[0]
    said: list[str] = []
    for wrong in ("s3cret\nvalue", "Bearer s3cret ", ["s3cret"], {"a": "s3cret"}):
        for name in members:
            try:
                actions.draft(http(authentication={"type": kind, name: wrong}), field="action", guard=STRICT)
            except InvalidRequest as refused:
                said += [f"{each.field}: {each.reason}" for each in refused.all]

    assert len(said) >= 4
    assert not [each for each in said if "s3cret" in each]


# ---- Keeping secrets -------------------------------------------------------------------------------------------------

BASIC = {"type": "basic", "username": "u", "password": "p"}
BEARER = {"type": "bearer", "token": "t"}
API_KEY = {"type": "apiKey", "header": "X-Api-Key", "value": "v"}


def without(authentication: dict[str, str], member: str, **changes: str) -> dict[str, str]:
    return {name: value for name, value in {**authentication, **changes}.items() if name != member}


def kept(new: dict[str, Any], old: dict[str, Any] | None) -> frozenset[str]:
    return kept_secrets(parsed(new), None if old is None else parsed(old), field="action", guard=STRICT)


@pytest.mark.parametrize("absent", [{}, {"password": "***"}, {"password": None}])
def test_an_absent_or_masked_secret_keeps_the_stored_one(absent: dict[str, Any]) -> None:
    same = {"type": "basic", "username": "u", **absent}

    assert kept(http(authentication=same), http(authentication=BASIC)) == {"authentication.password"}
    assert kept(http(authentication=same, url=URL + "/other?x", method="GET"), http(authentication=BASIC)) == {
        "authentication.password"
    }


def test_a_given_secret_needs_nothing_stored() -> None:
    assert kept(http(authentication=BASIC), None) == frozenset()
    assert kept(http(), http(authentication=BASIC)) == frozenset()
    assert kept(http(authentication=BASIC, url="https://other.example/"), http(authentication=BASIC)) == frozenset()


@pytest.mark.parametrize(
    ("new", "old", "field"),
    [
        (http(authentication={"type": "basic", "username": "u"}), None, "authentication.password"),
        (http(authentication={"type": "bearer", "token": "***"}), None, "authentication.token"),
        (http(headers={"Authorization": "***"}), None, "headers.Authorization"),
        (http(authentication={"type": "bearer"}), http(authentication=BASIC), "authentication.token"),
        (
            http(authentication={"type": "basic", "username": "v"}),
            http(authentication=BASIC),
            "authentication.password",
        ),
        *(
            (
                http(authentication=without(full, secret, **change)),
                http(authentication=full),
                f"authentication.{secret}",
            )
            for full, secret, change in (
                (API_KEY, "value", {"header": "X-Other"}),
                (OAUTH, "secret", {"tokenUrl": "https://evil.example/token"}),
                (OAUTH, "secret", {"tokenUrl": "https://example.org/other"}),
                (OAUTH, "secret", {"clientId": "other"}),
            )
        ),
        (
            http(authentication=without(OAUTH, "secret"), url="https://evil.example/"),
            http(authentication=OAUTH),
            "authentication.secret",
        ),
        *(
            (
                {**http(authentication={"type": "bearer"}), "url": url},
                http(authentication=BEARER),
                "authentication.token",
            )
            for url in ("https://evil.example/run", "https://example.org:444/run", "https://sub.example.org/run")
        ),
        (
            http(headers={"authorization": "***"}, url="https://evil.example/"),
            http(headers={"Authorization": "x"}),
            "headers.Authorization",
        ),
    ],
)
def test_a_secret_does_not_go_to_another_destination_or_identity(
    new: dict[str, Any], old: dict[str, Any] | None, field: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        kept(new, old)

    assert (caught.value.field, caught.value.code) == (f"action.{field}", "INVALID_FIELD")


def test_a_changed_scope_keeps_the_secret() -> None:
    other = without(OAUTH, "secret", scope="b", audience="c", resource="d", credentialsIn="body")

    assert kept(http(authentication=other), http(authentication=OAUTH)) == {"authentication.secret"}


def test_from_https_to_http_is_another_destination() -> None:
    new = parse(http(url="http://localhost:443/", authentication={"type": "bearer"}), field="a", guard=LOCAL)
    old = parse(http(url="https://localhost/", authentication=BEARER), field="a", guard=LOCAL)

    with pytest.raises(InvalidRequest):
        kept_secrets(new, old, field="a", guard=LOCAL)


def test_a_change_through_the_registry_keeps_the_secret() -> None:
    first = actions.draft(http(authentication=BASIC), field="action", guard=STRICT)
    stored = ActionSpec(first.kind, first.params, first.retry)

    again = actions.draft(dict(first.params), field="action", guard=STRICT, stored=stored)

    assert again.params == first.params
    assert (again.secrets, again.kept) == ({}, {"authentication.password"})
    assert first.secrets == {"authentication.password": "p"}
