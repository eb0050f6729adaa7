"""Actions: each type as it is sent, shown and stored; secrets; limits."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.contract.azure.api import COLLECTION, HTTP, JOB, job
from tests.contract.native.filled import certificates

REQUEST = HTTP["request"]
QUEUE = {"storageAccount": "MyAccount", "queueName": "orders", "sasToken": "sv=1&sig=canary", "message": "hello"}
BUS = {
    "namespace": "mysbnamespace",
    "queueName": "q1",
    "transportType": "netMessaging",
    "authentication": {"type": "sharedAccessKey", "sasKeyName": "QPolicy", "sasKey": "canary"},
    "message": "Some message",
    "brokeredMessageProperties": {"sessionId": "s", "timeToLive": "00:01:00", "forcePersistence": True},
    "customMessageProperties": {"appname": "FromScheduler"},
}
TOPIC = {**{name: each for name, each in BUS.items() if name != "queueName"}, "topicPath": "t1"}
BASIC = {"type": "basic", "username": "joe", "password": "canary"}
OAUTH = {
    "type": "activeDirectoryOAuth",
    "tenant": "contoso.onmicrosoft.com",
    "audience": "https://api.example/",
    "clientId": "client",
    "secret": "canary",
}


def http(**request):
    return {"type": "http", "request": {**REQUEST, **request}}


def refused(api, action, names):
    api.collection()
    reply = api("PUT", JOB, job(action=action))
    assert reply.status == 400, reply.text
    assert reply.json["error"]["message"].startswith(f"properties.action.{names}"), reply.text
    assert api.get(f"{COLLECTION}/jobs").json["value"] == []


def test_a_storage_queue_is_shown_without_its_token_and_called_with_it(api):
    shown = api.job(startTime=api.at(60), action={"type": "storageQueue", "queueMessage": QUEUE})

    assert shown["action"] == {
        "type": "StorageQueue",
        "queueMessage": {"storageAccount": "MyAccount", "queueName": "orders", "message": "hello"},
    }
    api.stage.run(61)
    (received,) = api.stage.endpoint.received
    assert received.call.secrets == {"sasToken": "sv=1&sig=canary"}
    assert received.call.payload == "hello"
    (record,) = api.history()
    assert record["message"] == "StorageQueue Action - Post to storage account 'MyAccount' queue 'orders' succeeded."


@pytest.mark.parametrize(
    ("kind", "member", "target", "entity"),
    [
        ("ServiceBusQueue", "serviceBusQueueMessage", BUS, "queue 'q1'"),
        ("ServiceBusTopic", "serviceBusTopicMessage", TOPIC, "topic 't1'"),
    ],
)
def test_a_service_bus_message_is_shown_without_its_key(api, kind, member, target, entity):
    shown = api.job(startTime=api.at(60), action={"type": kind.lower(), member: target})

    properties = {**target["brokeredMessageProperties"], "timeToLive": "PT1M"}
    proof = {"type": "SharedAccessKey", "sasKeyName": "QPolicy"}
    wanted = {
        **target,
        "transportType": "NetMessaging",
        "authentication": proof,
        "brokeredMessageProperties": properties,
    }
    assert shown["action"] == {"type": kind, member: wanted}
    api.stage.run(61)
    (record,) = api.history()
    assert record["message"] == f"{kind} Action - ok: {entity} namespace 'mysbnamespace'"
    (received,) = api.stage.endpoint.received
    assert received.params["brokeredMessageProperties"]["timeToLiveSeconds"] == 60


@pytest.mark.parametrize(("proof", "secret"), [(BASIC, "password"), (OAUTH, "secret")])
def test_secrets_of_an_authentication_are_kept_only_for_the_same_destination(api, proof, secret):
    without = {name: each for name, each in proof.items() if name != secret}
    api.job(startTime=api.at(3600), action=http(authentication=proof))

    kept = api("PUT", JOB, job(startTime=api.at(60), action=http(authentication=without)))
    shown = kept.json["properties"]["action"]["request"]["authentication"]
    elsewhere = api("PUT", JOB, job(action=http(uri="https://evil.example/", authentication=without)))

    assert kept.status == 200
    assert shown == {
        **without,
        "type": {"basic": "Basic", "activeDirectoryOAuth": "ActiveDirectoryOAuth"}[proof["type"]],
    }
    assert elsewhere.status == 400
    assert elsewhere.json["error"]["message"].startswith(f"properties.action.request.authentication.{secret}")
    api.stage.run(61)
    (received,) = api.stage.endpoint.received
    assert received.call.secrets == {f"authentication.{secret}": "canary"}


def test_another_user_needs_a_password_and_null_removes_the_authentication(api):
    api.job(startTime=api.at(3600), action=http(authentication=BASIC))
    other = {"type": "Basic", "username": "jim"}

    changed = api("PATCH", JOB, {"properties": {"action": {"request": {"authentication": other}}}})
    removed = api("PATCH", JOB, {"properties": {"action": {"request": {"authentication": None}}}})

    assert changed.status == 400
    assert "authentication" not in removed.json["properties"]["action"]["request"]


def test_secrets_in_addresses_and_headers_are_shown_as_stars_and_stars_keep_them(api):
    uri, headers = (
        "https://example.org/run?code=canary-canary-canary-canary",
        {"Authorization": "Bearer canary", "X-A": "1"},
    )
    api.job(startTime=api.at(60), action=http(uri=uri, headers=headers))
    shown = api.get(JOB).json

    request = shown["properties"]["action"]["request"]
    assert request["uri"] == "https://example.org/run?code=***"
    assert request["headers"] == {"Authorization": "***", "X-A": "1"}
    assert api("PUT", JOB, shown).json == shown
    api.stage.run(61)
    (received,) = api.stage.endpoint.received
    assert "canary-canary-canary-canary" in received.call.secrets.values()


@pytest.mark.parametrize("method", ["GET", "delete", "POST"])
def test_a_body_is_sent_unchanged_with_every_method(api, method):
    api.job(startTime=api.at(60), action=http(method=method, body='{"a":  1}'))
    api.stage.run(61)

    (received,) = api.stage.endpoint.received
    assert (received.params["method"], received.call.payload) == (method.upper(), '{"a":  1}')
    assert not received.call.payload_is_json


@pytest.mark.parametrize(
    ("action", "names"),
    [
        ({}, "type"),
        ({"type": "Smtp"}, "type"),
        ({"type": "Http"}, "request"),
        ({"type": "Http", "request": {"method": "GET"}}, "request.uri"),
        ({"type": "Http", "request": {"uri": "https://example.org/"}}, "request.method"),
        (http(uri="ftp://example.org/"), "request.uri"),
        (http(uri="https://example.org/" + "x" * 2_048), "request.uri"),
        (http(method="TRACE"), "request.method"),
        (http(body="x" * 8_193), "request.body"),
        (http(headers={f"X-{n}": "1" for n in range(51)}), "request.headers"),
        (http(headers={"X-A": "x" * 4_096}), "request.headers"),
        (http(headers={"Host": "x"}), "request.headers"),
        ({**http(uri="http://127.0.0.1/"), "type": "Https"}, "request.uri"),
        (http(authentication={"type": "Digest"}), "request.authentication.type"),
        (http(authentication={"type": "Basic", "username": "joe"}), "request.authentication.password"),
        (http(authentication={"type": "Basic", "password": "canary"}), "request.authentication.username"),
        (http(authentication={**OAUTH, "tenant": "a/b"}), "request.authentication.tenant"),
        (
            http(authentication={"type": "ClientCertificate", "pfx": "AAAA", "password": "canary"}),
            "request.authentication.pfx",
        ),
        (http(authentication={"type": "ClientCertificate", "pfx": "AAAA"}), "request.authentication.password"),
        ({"type": "StorageQueue", "queueMessage": {**QUEUE, "sasToken": None}}, "queueMessage.sasToken"),
        ({"type": "StorageQueue", "queueMessage": {**QUEUE, "storageAccount": "a.b/?"}}, "queueMessage.storageAccount"),
        (
            {"type": "ServiceBusQueue", "serviceBusQueueMessage": {**BUS, "namespace": None}},
            "serviceBusQueueMessage.namespace",
        ),
        ({**HTTP, "retryPolicy": {"retryType": "Fixed", "retryInterval": "PT14S"}}, "retryPolicy.retryInterval"),
        ({**HTTP, "retryPolicy": {"retryType": "Fixed", "retryInterval": "P549D"}}, "retryPolicy.retryInterval"),
        ({**HTTP, "retryPolicy": {"retryCount": 21}}, "retryPolicy.retryCount"),
        ({**HTTP, "retryPolicy": {"retryType": "Often"}}, "retryPolicy.retryType"),
        ({**HTTP, "errorAction": {"type": "Http"}}, "errorAction.request"),
    ],
)
def test_missing_and_unknown_members_of_an_action_are_refused_by_name(api, action, names):
    refused(api, action, names)


@pytest.mark.parametrize(
    ("properties", "names"),
    [
        ({"startTime": "2029-01-01"}, "startTime"),
        ({"startTime": "tomorrow"}, "startTime"),
        ({"state": "Completed"}, "state"),
        ({"recurrence": {}}, "recurrence.frequency"),
        ({"recurrence": {"frequency": "Second"}}, "recurrence.frequency"),
        ({"recurrence": {"frequency": "Day", "interval": "2"}}, "recurrence.interval"),
        ({"recurrence": {"frequency": "Week", "interval": 79}}, "recurrence.interval"),
        ({"recurrence": {"frequency": "Day", "count": 0}}, "recurrence.count"),
        ({"recurrence": {"frequency": "Day", "schedule": {"weekDays": ["Monday"]}}}, "recurrence.schedule.weekDays"),
        ({"recurrence": {"frequency": "Month", "schedule": {"monthDays": [0]}}}, "recurrence.schedule.monthDays"),
        (
            {"recurrence": {"frequency": "Day", "endTime": "2027-03-02"}, "startTime": "2027-03-03"},
            "recurrence.endTime",
        ),
    ],
)
def test_invalid_times_are_refused_by_name(api, properties, names):
    api.collection()

    reply = api("PUT", JOB, job(**properties))

    assert reply.status == 400
    assert reply.json["error"]["message"].startswith(f"properties.{names}"), reply.text
    assert api.get(JOB).status == 404


def test_a_job_holds_at_most_16_kib(api):
    api.collection()
    message = {**BUS, "message": "x" * 16_384}

    assert api("PUT", JOB, job(action={"type": "ServiceBusQueue", "serviceBusQueueMessage": message})).status == 400


def test_the_16_kib_of_a_job_include_its_secrets_but_not_its_certificate(api):
    api.collection()
    certificate = {"type": "ClientCertificate", "pfx": certificates()["pfx"], "password": "of the file"}
    inner = {"type": "Http", "request": {"uri": "https://a.example/", "method": "POST", "body": "x" * 8_192}}
    padded = {**inner, "errorAction": http(body="x" * 7_500)}

    def put(proof):
        action = {**padded, "request": {**inner["request"], "authentication": proof}}
        return api("PUT", JOB, job(startTime=api.at(3600), action=action))

    too_large = put({**BASIC, "password": "p" * 1_000})
    assert (too_large.status, too_large.json["error"]["message"]) == (400, "properties: must have at most 16,384 bytes")
    assert len(certificate["pfx"]) > 1_000
    assert put(certificate).status == 201


def test_broker_properties_can_be_empty(api):
    empty = dict.fromkeys(("label", "correlationId", "messageId", "contentType", "sessionId"), "")
    action = {"type": "ServiceBusQueue", "serviceBusQueueMessage": {**BUS, "brokeredMessageProperties": empty}}

    shown = api.job(startTime=api.at(60), action=action)

    assert shown["action"]["serviceBusQueueMessage"]["brokeredMessageProperties"] == empty
    api.stage.run(61)
    (received,) = api.stage.endpoint.received
    assert received.params["brokeredMessageProperties"] == {}


def test_the_type_of_a_service_bus_key_can_be_omitted(api):
    key = {name: value for name, value in BUS["authentication"].items() if name != "type"}
    action = {"type": "ServiceBusQueue", "serviceBusQueueMessage": {**BUS, "authentication": key}}

    shown = api.job(startTime=api.at(60), action=action)

    assert shown["action"]["serviceBusQueueMessage"]["authentication"] == {"sasKeyName": key["sasKeyName"]}


@pytest.mark.parametrize(("account", "queue"), [("a", "q"), ("acme-secondary", "Orders_2.x/y")])
def test_accounts_and_queues_have_names_that_a_redirect_accepts(api, account, queue):
    message = {**QUEUE, "storageAccount": account, "queueName": queue}

    shown = api.job(startTime=api.at(60), action={"type": "StorageQueue", "queueMessage": message})

    assert shown["action"]["queueMessage"]["queueName"] == queue


@pytest.mark.parametrize("other", [{}, {"storageAccount": 5}, {"storageAccount": "", "queueName": ""}])
def test_targets_of_other_types_are_ignored(api, other):
    action = {**http(), "queueMessage": other, "serviceBusQueueMessage": {"namespace": "a/b"}}

    shown = api.job(startTime=api.at(60), action={**action, "errorAction": action})["action"]

    assert shown == {"type": "Http", "request": REQUEST, "errorAction": {"type": "Http", "request": REQUEST}}


def test_an_authentication_shows_only_the_members_of_its_own_type(api):
    api.job(startTime=api.at(60), action=http(authentication={**BASIC, "tenant": "t", "pfx": "canary"}))
    assert api.properties()["action"]["request"]["authentication"] == {"type": "Basic", "username": "joe"}

    patched = api("PATCH", JOB, {"properties": {"action": {"request": {"authentication": OAUTH}}}})

    shown = {**OAUTH, "type": "ActiveDirectoryOAuth"}
    del shown["secret"]
    assert patched.json["properties"]["action"]["request"]["authentication"] == shown


@pytest.mark.parametrize("changed", ["tenant", "audience", "clientId"])
def test_a_directory_secret_is_kept_only_for_its_tenant_audience_and_client(api, changed):
    api.job(startTime=api.at(60), action=http(authentication=OAUTH))
    before = api.get(JOB).json

    reply = api("PATCH", JOB, {"properties": {"action": {"request": {"authentication": {changed: "other"}}}}})

    assert reply.status == 400
    assert reply.json["error"]["message"].startswith("properties.action.request.authentication.secret: is required")
    assert api.get(JOB).json == before


def test_a_password_can_be_empty(api):
    api.job(action=http(authentication={**BASIC, "password": ""}))

    api.stage.run(5)

    (received,) = api.stage.endpoint.received
    assert received.call.secrets == {"authentication.password": ""}


def test_a_certificate_password_must_be_sent_with_its_certificate(api):
    proof = {"type": "ClientCertificate", "pfx": certificates()["pfx"], "password": "of the file"}
    api.job(startTime=api.at(3600), action=http(authentication=proof))

    reply = api("PATCH", JOB, {"properties": {"action": {"request": {"authentication": {"password": "canary"}}}}})

    assert reply.status == 400
    assert reply.json["error"]["message"] == "properties.action.request.authentication.pfx: is required"


@pytest.mark.parametrize("inner", [False, True])
def test_an_expired_certificate_is_refused_by_its_path(api, inner):
    proof = {"type": "ClientCertificate", "pfx": certificates()["pfx"], "password": "of the file"}
    api.stage.clock.move_to(datetime(2190, 1, 1, tzinfo=UTC))
    action = http(authentication=proof)
    sent, place = ({**http(), "errorAction": action}, "errorAction.request.") if inner else (action, "request.")

    refused(api, sent, f"{place}authentication: the certificate ended")
