"""Secrets of a job stay between it and its target: here the target says all of it back, and fails."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from sweephand.domain.collection import Events
from sweephand.formats.azure import actions
from sweephand.server.facades.azure.routes import AzureApi
from tests.contract.azure.api import COLLECTION, JOB, Azure, job
from tests.contract.calls import CANARY
from tests.contract.native.test_canary import GUARDED
from tests.contract.native.test_canary import told as told  # noqa: PLC0414 - a fixture
from tests.contract.native.test_canary_targets import there as there  # noqa: PLC0414 - a fixture
from tests.unit.endpoints import Authority

ONCE = {"retryType": "Fixed", "retryInterval": "PT15S", "retryCount": 1}
KEY = {"type": "SharedAccessKey", "sasKeyName": "QPolicy", "sasKey": f"{CANARY}-of-a-target"}
QUEUES = {
    "StorageQueue": (
        "queueMessage",
        {"storageAccount": "acme", "queueName": "orders", "sasToken": f"sv=1&sig={CANARY}-of-a-target"},
    ),
    "ServiceBusQueue": (
        "serviceBusQueueMessage",
        {"namespace": "acmebus", "queueName": "orders", "authentication": KEY},
    ),
    "ServiceBusTopic": ("serviceBusTopicMessage", {"namespace": "acmebus", "topicPath": "news", "authentication": KEY}),
}


def facade(native, guard):
    return Azure(native.stage, AzureApi(native.stage.world, guard, native.facade.door), native.credentials, native)


def nowhere(api, answers, confidential):
    """Looks at all that leaves the process."""
    for path in (COLLECTION, f"{COLLECTION}/jobs", JOB, f"{JOB}/history"):
        answers.append(api.get(path).text)
    everywhere = {
        "answers": "\n".join(answers),
        "log": str(api.stage.journal.lines),
        "metrics": str(api.stage.journal.measures),
        "events": str(api.stage.bus.told),
        "rows and messages": "\n".join(api.native.picture()),
    }
    assert '"Failed"' in everywhere["answers"]
    for where, text in everywhere.items():
        found = [word[:12] for word in confidential if word in text]
        assert not found, f"{where} tell {found}"


def pfx(tmp_path):
    key, certificate = Authority(tmp_path).client("me", days=3_650)
    encrypted = BestAvailableEncryption(f"{CANARY}-password".encode())
    return base64.b64encode(pkcs12.serialize_key_and_certificates(b"me", key, certificate, None, encrypted)).decode()


@pytest.fixture
def proofs(told, tmp_path, monkeypatch):
    _, _, _, authentications = told
    monkeypatch.setattr(actions, "LOGIN", authentications["oauth2"]["tokenUrl"].removesuffix("/token"))
    return {
        "header": None,
        "Basic": {"username": "me", "password": f"{CANARY}-password"},
        "ClientCertificate": {"pfx": pfx(tmp_path), "password": f"{CANARY}-password"},
        "ActiveDirectoryOAuth": {"tenant": "t", "audience": "a", "clientId": "me", "secret": f"{CANARY}-secret"},
    }


@pytest.mark.parametrize("kind", ["header", "Basic", "ClientCertificate", "ActiveDirectoryOAuth"])
def test_secrets_for_an_http_target_appear_nowhere_else(told, proofs, kind):
    native, target, url, _ = told
    api = facade(native, GUARDED)
    api.stage.tell(Events.ALL)
    request = {"uri": f"{url['https' if kind == 'ClientCertificate' else 'http']}?code={CANARY}-code-code-code-code"}
    request |= {"method": "POST", "headers": {"Authorization": f"{CANARY}-header"} if kind == "header" else {}}
    if proofs[kind] is not None:
        request["authentication"] = {"type": kind, **proofs[kind]}
    action = {"type": "Http", "request": request, "retryPolicy": ONCE}
    api.collection()

    made = api("PUT", JOB, job(startTime=api.at(10), action={**action, "errorAction": action}))
    answers = [made.text, api("PATCH", JOB, {"properties": {"action": {"request": {"method": "PUT"}}}}).text]
    api.stage.run(120)

    assert made.status == 201, made.text
    assert len(target.heard) >= 4 * (kind != "ClientCertificate")
    assert len(api.history()) == 4
    own = [each[:40] for each in (proofs[kind] or {}).values() if len(each) > 100]
    nowhere(api, answers, {*target.heard, CANARY, "PRIVATE KEY", *own})


@pytest.mark.parametrize("kind", QUEUES)
def test_secrets_for_a_queue_appear_nowhere_else(there, kind):
    native, _ = there
    api = facade(native, native.facade.guard)
    api.stage.tell(Events.ALL)
    member, target = QUEUES[kind]
    action = {"type": kind, member: {**target, "message": "hello"}, "retryPolicy": ONCE}
    api.collection()

    made = api("PUT", JOB, job(startTime=api.at(10), action={**action, "errorAction": action}))
    answers = [made.text, api("PATCH", JOB, {"properties": {"action": {member: {"message": "again"}}}}).text]
    api.stage.run(120)

    assert made.status == 201, made.text
    assert len(api.history()) == 4
    nowhere(api, answers, {CANARY, "sig=", "SharedAccessSignature"})


def test_a_certificate_is_shown_by_its_thumbprint_and_kept(told, proofs):
    native, _, url, _ = told
    api = facade(native, GUARDED)
    proof = {"type": "ClientCertificate", **proofs["ClientCertificate"]}
    action = {"type": "Https", "request": {"uri": url["https"], "method": "GET", "authentication": proof}}
    shown = api.job(startTime=api.at(60), action=action)["action"]["request"]["authentication"]

    again = api("PUT", JOB, api.get(JOB).json)

    assert again.status == 200
    assert again.json["properties"]["action"]["request"]["authentication"] == shown
    assert len(shown["certificateThumbprint"]) == 40
    assert shown["certificateSubjectName"] == "CN=me"
    assert shown["certificateExpirationDate"] == shown["certificateExpiration"]
    assert shown.keys() & {"pfx", "password"} == set()


@pytest.mark.parametrize(
    ("members", "names"),
    [
        ({"password": "another"}, "pfx"),
        ({"pfx": base64.b64encode(b"no certificate").decode()}, "pfx"),
        ({"password": None}, "password"),
    ],
)
def test_a_certificate_that_cannot_be_opened_is_refused(told, proofs, members, names):
    native, _, url, _ = told
    api = facade(native, GUARDED)
    api.collection()
    proof = {"type": "ClientCertificate", **proofs["ClientCertificate"], **members}

    action = {"type": "Https", "request": {"uri": url["https"], "method": "GET", "authentication": proof}}
    reply = api("PUT", JOB, job(action=action))

    assert reply.status == 400
    assert reply.json["error"]["message"].startswith(f"properties.action.request.authentication.{names}"), reply.text
    assert api.get(JOB).status == 404
