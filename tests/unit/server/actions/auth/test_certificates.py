from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from sweephand.base.errors import InvalidRequest
from sweephand.domain.job import ActionSpec
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.server import actions
from sweephand.server.actions.auth import client_tls
from sweephand.server.actions.http import Http
from sweephand.server.security.guard import Outbound
from sweephand.testing.sources import VirtualClock
from tests.unit.endpoints import Authority, Script, answering, listening
from tests.unit.server.actions.test_http import CALL, LOCAL

kept_secrets, parse, perform = Http.kept_secrets, Http.parse, Http.perform

PASSWORD = b"of the file"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("other"))


def pem(key: Any, *certificates: x509.Certificate, password: bytes | None = None) -> str:
    lock: KeySerializationEncryption = BestAvailableEncryption(password) if password else NoEncryption()
    parts = [each.public_bytes(Encoding.PEM) for each in certificates]
    return b"".join([*parts, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock)]).decode()


def pfx(key: Any, certificate: x509.Certificate | None, password: bytes | None = PASSWORD, others: Any = None) -> str:
    lock: KeySerializationEncryption = BestAvailableEncryption(password) if password else NoEncryption()
    return base64.b64encode(pkcs12.serialize_key_and_certificates(b"x", key, certificate, others, lock)).decode()


def http(url: str = "https://example.org/", **authentication: Any) -> dict[str, Any]:
    return {"type": "http", "url": url, "authentication": {"type": "clientCertificate", **authentication}}


def parsed(fields: dict[str, Any]) -> Http:
    return parse(fields, field="action", guard=LOCAL)


def called(made: Http, script: Script, authority: Authority, clients_of: Authority) -> Outcome:
    server = authority.server("127.0.0.1", clients_of=clients_of)
    with listening(script, tls=server) as endpoint:
        there = replace(made, url=endpoint.url(scheme="https"))
        return perform(there, replace(CALL, secrets=made.secrets), Outbound(LOCAL, authorities=authority.pem))


# ---- What is read ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65_537, 2_048)])
def test_pkcs12_and_pem_become_one_pem_without_a_password(authority: Authority, kind: Any) -> None:
    key, certificate = authority.client("me", key=kind)
    _, between = authority.client("between")

    made = [
        parsed(http(pfx=pfx(key, certificate, others=[between]), password=PASSWORD.decode())),
        parsed(http(pfx=pfx(key, certificate, None, others=[between]), password="")),
        parsed(http(pem=pem(key, certificate, between))),
        parsed(http(pem=pem(key, between, certificate, password=PASSWORD), password=PASSWORD.decode())),
    ]

    for each in made:
        (stored,) = each.secrets.values()
        assert load_pem_private_key(stored.encode(), None).private_numbers() == key.private_numbers()
        assert x509.load_pem_x509_certificates(stored.encode()) == [certificate, between]
        assert each.secret_fields == {"authentication.pem"}


@pytest.mark.parametrize("kind", [ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65_537, 2_048)])
@pytest.mark.parametrize("password", [PASSWORD, None])
def test_a_key_in_the_traditional_form_of_openssl_is_read(
    authority: Authority, kind: Any, password: bytes | None
) -> None:
    """With a password it has headers: Proc-Type, DEK-Info."""
    key, certificate = authority.client("me", key=kind)
    lock: KeySerializationEncryption = BestAvailableEncryption(password) if password else NoEncryption()
    written = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, lock)
    assert (b"Proc-Type: 4,ENCRYPTED" in written) is (password is not None)
    text = (written + certificate.public_bytes(Encoding.PEM)).decode()

    made = parsed(http(pem=text, **({"password": password.decode()} if password else {})))

    (stored,) = made.secrets.values()
    assert load_pem_private_key(stored.encode(), None).private_numbers() == key.private_numbers()


def test_answers_show_the_certificate_but_not_the_key(authority: Authority) -> None:
    key, certificate = authority.client("me")

    draft = actions.draft(http(pfx=pfx(key, certificate), password=PASSWORD.decode()), field="action", guard=LOCAL)

    shown = draft.params["authentication"]
    assert shown == {
        "type": "clientCertificate",
        "pem": "***",
        "certificate": {
            "subject": "CN=me",
            "notBefore": certificate.not_valid_before_utc.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "notAfter": certificate.not_valid_after_utc.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "thumbprint": shown["certificate"]["thumbprint"],
        },
    }
    assert len(shown["certificate"]["thumbprint"]) == 40
    secret = draft.secrets["authentication.pem"]
    assert secret not in json.dumps(draft.params) + repr(draft.params)
    assert PASSWORD.decode() not in secret


def test_a_large_key_with_its_chain_fits(authority: Authority) -> None:
    key, certificate = authority.client("me", key=rsa.generate_private_key(65_537, 4_096))
    others = [authority.client(f"between {n}")[1] for n in range(8)]

    made = parsed(http(pem=pem(key, certificate, *others)))

    assert len(made.secrets["authentication.pem"]) > 2 * 4_096


@pytest.mark.parametrize(
    ("case", "field", "words"),
    [
        ("wrong password", "pfx", "right password"),
        ("no password", "pfx", "right password"),
        ("not Base64", "pfx", "Base64"),
        ("not PKCS#12", "pfx", "right password"),
        ("no certificate in it", "pfx", "private key and its certificate"),
        ("no key in the PEM", "pem", "private key"),
        ("no certificate in the PEM", "pem", "certificate"),
        ("a key that is none", "pem", "private key"),
        ("a locked key", "pem", "right password"),
        ("somebody else's certificate", "pem", "no certificate of its private key"),
        ("a long chain", "pem", "more than 16,384"),
        ("both", "pem", "in addition to `pfx`"),
        ("a password alone", "password", "without pfx"),
        ("a number", "pfx", "must be a string, not a number"),
        ("nothing", "pem", "is required"),
    ],
)
def test_an_unusable_certificate_is_refused_at_its_field(
    authority: Authority, case: str, field: str, words: str
) -> None:
    key, certificate = authority.client("me")
    _, strange = authority.client("you")
    given: dict[str, dict[str, Any]] = {
        "wrong password": {"pfx": pfx(key, certificate), "password": "x"},
        "no password": {"pfx": pfx(key, certificate)},
        "not Base64": {"pfx": "!!!"},
        "not PKCS#12": {"pfx": "AAAA"},
        "no certificate in it": {"pfx": pfx(key, None), "password": PASSWORD.decode()},
        "no key in the PEM": {"pem": certificate.public_bytes(Encoding.PEM).decode()},
        "no certificate in the PEM": {"pem": pem(key)},
        "a key that is none": {"pem": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"},
        "a locked key": {"pem": pem(key, certificate, password=PASSWORD)},
        "somebody else's certificate": {"pem": pem(key, strange)},
        "a long chain": {"pem": pem(key, certificate, *[strange] * 30)},
        "both": {"pem": pem(key, certificate), "pfx": pfx(key, certificate)},
        "a password alone": {"password": "x"},
        "a number": {"pfx": 1},
        "nothing": {},
    }

    with pytest.raises(InvalidRequest) as caught:
        actions.draft(http(**given[case]), field="action", guard=LOCAL)

    assert caught.value.field == f"action.authentication.{field}"
    assert words in caught.value.reason


def test_a_certificate_is_refused_with_plain_http(authority: Authority) -> None:
    fields = http("http://127.0.0.1/", pem=pem(*authority.client("me")))

    with pytest.raises(InvalidRequest, match="sent only over TLS") as caught:
        actions.draft(fields, field="action", guard=LOCAL)

    assert caught.value.field == "action.url"


# ---- Keeping it ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [{}, {"pem": "***"}, {"pfx": "***", "password": "***"}])
def test_a_change_keeps_the_key_and_what_is_shown_of_it(authority: Authority, again: dict[str, str]) -> None:
    first = actions.draft(http(pem=pem(*authority.client("me"))), field="action", guard=LOCAL)
    stored = ActionSpec(first.kind, first.params, first.retry)

    sent_back = {**dict(first.params), "authentication": {**first.params["authentication"], **again}}
    for fields in (sent_back, http(**again)):
        second = actions.draft(fields, field="action", guard=LOCAL, stored=stored)

        assert (second.secrets, second.kept) == ({}, {"authentication.pem"})
        assert second.params["authentication"] == first.params["authentication"]


def test_another_certificate_is_shown_as_itself(authority: Authority) -> None:
    first = actions.draft(http(pem=pem(*authority.client("me"))), field="action", guard=LOCAL)
    stored = ActionSpec(first.kind, first.params, first.retry)
    echo = first.params["authentication"]["certificate"]

    second = actions.draft(
        http(pem=pem(*authority.client("you")), certificate=echo), field="action", guard=LOCAL, stored=stored
    )

    assert second.kept == frozenset()
    assert second.params["authentication"]["certificate"]["subject"] == "CN=you"


def test_the_key_does_not_go_to_another_destination(authority: Authority) -> None:
    old = parsed(http(pem=pem(*authority.client("me"))))

    with pytest.raises(InvalidRequest) as caught:
        kept_secrets(parsed(http("https://evil.example/")), old, field="action", guard=LOCAL)

    assert caught.value.field == "action.authentication.pem"


# ---- What the target sees --------------------------------------------------------------------------------------------


def test_the_target_sees_the_clients_certificate(authority: Authority, other: Authority) -> None:
    seen: list[Any] = []

    def script(connection: Any, over: Any) -> None:
        seen.append(connection.getpeercert()["subject"])
        answering(OK)(connection, over)

    key, certificate = other.client("me")

    outcome = called(parsed(http(pem=pem(key, certificate))), script, authority, other)

    assert outcome.verdict is Verdict.SUCCEEDED
    assert seen == [((("commonName", "me"),),)]


def test_a_certificate_that_the_target_does_not_know_is_a_tls_failure(authority: Authority, other: Authority) -> None:
    outcome = called(parsed(http(pem=pem(*authority.client("me")))), answering(OK), authority, other)

    assert (outcome.verdict, outcome.reason, outcome.retryable) == (Verdict.FAILED, Reason.TLS, True)
    assert "TLS connection broke" in (outcome.message or "")


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        (timedelta(0), None),
        (timedelta(days=9), "; the client certificate ended at {0.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}"),
        (
            timedelta(days=-9),
            "; the client certificate is not valid before {0.not_valid_before_utc:%Y-%m-%dT%H:%M:%SZ}",
        ),
    ],
)
@pytest.mark.parametrize("refusal", ["connection", "status"])
def test_a_failure_under_a_certificate_out_of_time_says_so(
    authority: Authority, other: Authority, moved: timedelta, words: str | None, refusal: str
) -> None:
    """The caller's clock decides: that of the test is moved, because OpenSSL's cannot be."""
    key, certificate = authority.client("me")
    made = parsed(http(pem=pem(key, certificate)))
    begins = certificate.not_valid_before_utc
    clock = VirtualClock(begins + timedelta(days=1) + moved)
    call = replace(CALL, secrets=made.secrets, clock=clock)
    script = answering(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    server = authority.server("127.0.0.1", clients_of=other if refusal == "connection" else authority)
    with listening(script, tls=server) as endpoint:
        there = replace(made, url=endpoint.url(scheme="https"))
        outcome = perform(there, call, Outbound(LOCAL, authorities=authority.pem))

    assert outcome.reason is (Reason.TLS if refusal == "connection" else Reason.HTTP_STATUS)
    message = outcome.message or ""
    assert message.endswith(words.format(certificate)) if words else "the client certificate" not in message


def test_without_its_key_nothing_is_sent(authority: Authority) -> None:
    made = parsed(http(pem=pem(*authority.client("me"))))

    outcome = perform(made, CALL, Outbound(LOCAL, authorities=authority.pem))

    assert (outcome.reason, outcome.retryable) == (Reason.GUARD, False)


def test_the_certificates_of_two_jobs_stay_separate(authority: Authority) -> None:
    outbound = Outbound(LOCAL, authorities=authority.pem)
    mine, yours = pem(*authority.client("me")), pem(*authority.client("you"))

    contexts = [client_tls.context(each, outbound) for each in (mine, yours, mine)]

    assert contexts[0] is contexts[2]
    assert contexts[0] is not contexts[1]


def test_the_key_is_in_no_file_afterwards(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system has no files in memory."""
    monkeypatch.delattr("os.memfd_create", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    assert client_tls.context(pem(*authority.client("nobody")), Outbound(LOCAL, authorities=authority.pem))

    assert list(tmp_path.iterdir()) == []
