"""The actions on Azure's queues and topics, against a server that checks signature and message."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, quote_plus

import pytest
from moto import mock_aws

from sweephand.base.errors import InvalidRequest
from sweephand.base.sources import SystemClock
from sweephand.domain.job import ActionSpec
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.server import actions
from sweephand.server.actions.azure import redirects
from sweephand.server.actions.azure.service_bus import signed
from sweephand.server.actions.call import Call
from sweephand.server.actions.run_headers import traceparent
from sweephand.server.security.guard import GuardSettings
from sweephand.testing.sources import VirtualClock
from tests.support.acting import ACCOUNT, GUARD, ROLE, Roles, arn, client, outbound
from tests.support.azure import KEYS, STORAGE_TOKEN, AzureServer, azure

RUN = "01a400f7-2060-80bb-bddc-751bf7f155d6"
CALL = Call(
    run_id=f"01a400f6-36fa-7a04-8427-6847f70af232_{RUN}",
    job_id="j",
    schedule_id="01a400f6-36fa-7a04-8427-6847f70af232",
    tenant="acme",
    planned_at=datetime(2027, 3, 1, 12, 0, tzinfo=UTC),
    attempt=1,
    deadline_s=60.0,
    clock=SystemClock(),
    payload='<order n="1">ü & so on</order>',
    job_name="night & day",
    collection="jobs",
)
STORAGE = {"type": "azure_storage_queue", "storageAccount": "Acme", "queueName": "orders", "sasToken": STORAGE_TOKEN}
SHARED_KEY = {"type": "sharedAccessKey", "sasKeyName": "QPolicy", "sasKey": KEYS["QPolicy"]}
QUEUE = {
    "type": "azure_service_bus_queue",
    "namespace": "acmebus",
    "queueName": "orders",
    "authentication": SHARED_KEY,
}
TOPIC = {"type": "azure_service_bus_topic", "namespace": "AcmeBus", "topicPath": "news", "authentication": SHARED_KEY}
ALL = [STORAGE, QUEUE, TOPIC]
of_each = pytest.mark.parametrize("fields", ALL, ids=[each["type"] for each in ALL])


@pytest.fixture
def there() -> Iterator[AzureServer]:
    with azure() as server:
        yield server


def drafted(fields: dict[str, Any], guard: GuardSettings | None = None, **more: Any) -> actions.ActionDraft:
    return actions.draft(fields, field="action", guard=guard or GuardSettings(), **more)


def performed(there: AzureServer, fields: dict[str, Any], call: Call = CALL) -> Outcome:
    draft = drafted(fields, there.guard)
    stored = json.loads(json.dumps(draft.params))
    return actions.perform(draft.kind, stored, replace(call, secrets=draft.secrets), there.outbound)


# ---- What is sent ----------------------------------------------------------------------------------------------------


@pytest.mark.action("azure_storage_queue", "key", "success")
def test_a_storage_queue_gets_the_envelope_that_azure_scheduler_sent(there: AzureServer) -> None:
    outcome = performed(there, {**STORAGE, "region": "West Europe"})

    assert outcome == Outcome(Verdict.SUCCEEDED, http_status=201)
    assert there.storage == [
        {
            "ExecutionTag": RUN.replace("-", ""),
            "ClientRequestId": there.storage[0]["ClientRequestId"],
            "ExpectedExecutionTime": "2027-03-01T12:00:00",
            "SchedulerJobId": "night & day",
            "SchedulerJobCollectionId": "jobs",
            "Region": "West Europe",
            "Message": '<order n="1">ü & so on</order>',
        }
    ]


def test_each_attempt_at_a_storage_queue_is_a_request_of_its_own(there: AzureServer) -> None:
    """Azure Scheduler told attempts apart by it. One that is made twice, after a crash, is still the same."""
    for attempt in (1, 2, 2):
        performed(there, STORAGE, replace(CALL, attempt=attempt))
    performed(there, STORAGE, replace(CALL, run_id=CALL.run_id.replace("01a400f7", "01a400f8")))

    first, second, again, other_run = (uuid.UUID(each["ClientRequestId"]) for each in there.storage)
    assert second == again
    assert len({first, second, other_run, uuid.UUID(RUN)}) == 4


def test_line_ends_of_the_job_are_kept_in_the_queue(there: AzureServer) -> None:
    performed(there, STORAGE, replace(CALL, payload="one\r\ntwo\rthree\n"))

    assert there.storage[0]["Message"] == "one\r\ntwo\rthree\n"


@pytest.mark.parametrize("before", ["?", "s?", "https://acme.queue.core.windows.net/orders?"])
def test_the_part_of_a_token_before_the_question_mark_is_dropped(there: AzureServer, before: str) -> None:
    assert performed(there, {**STORAGE, "sasToken": before + STORAGE_TOKEN}).verdict is Verdict.SUCCEEDED


@pytest.mark.action("azure_service_bus_queue azure_service_bus_topic", "key", "success")
@pytest.mark.parametrize("fields", [QUEUE, TOPIC], ids=["queue", "topic"])
def test_the_service_bus_gets_the_message_signed(there: AzureServer, fields: dict[str, Any]) -> None:
    outcome = performed(there, fields)

    assert outcome == Outcome(Verdict.SUCCEEDED, http_status=201)
    assert there.bus == [
        (
            {"MessageId": RUN.replace("-", ""), "ContentType": "text/plain; charset=utf-8"},
            {"traceparent": traceparent(CALL)},
            '<order n="1">ü & so on</order>',
        )
    ]


def test_broker_and_custom_properties_are_sent(there: AzureServer) -> None:
    properties = {
        "contentType": "application/xml",
        "correlationId": "c-ü",
        "forcePersistence": True,
        "label": 'a "label"',
        "messageId": "m-1",
        "partitionKey": "p",
        "replyTo": "r",
        "replyToSessionId": "rs",
        "scheduledEnqueueTimeUtc": "2027-11-06T08:49:37Z",
        "sessionId": "p",
        "timeToLiveSeconds": 60,
        "to": "t",
        "viaPartitionKey": "v",
    }
    custom = {"appname": "From Scheduler", "note": 'a "word" ü'}

    performed(there, {**QUEUE, "brokeredMessageProperties": properties, "customMessageProperties": custom})

    ((broker, sent, _),) = there.bus
    assert broker == {
        "ContentType": "application/xml",
        "CorrelationId": "c-ü",
        "ForcePersistence": True,
        "Label": 'a "label"',
        "MessageId": "m-1",
        "PartitionKey": "p",
        "ReplyTo": "r",
        "ReplyToSessionId": "rs",
        "ScheduledEnqueueTimeUtc": "Sat, 06 Nov 2027 08:49:37 GMT",
        "SessionId": "p",
        "TimeToLive": 60,
        "To": "t",
        "ViaPartitionKey": "v",
    }
    assert sent == {**custom, "traceparent": traceparent(CALL)}


def test_a_traceparent_of_the_sender_replaces_the_one_of_the_service(there: AzureServer) -> None:
    performed(there, {**TOPIC, "customMessageProperties": {"Traceparent": "00-theirs"}})

    ((_, sent, _),) = there.bus
    assert sent == {"traceparent": "00-theirs"}  # names of headers arrive in lower case


def test_the_signature_follows_azures_documentation() -> None:
    """A vector that was computed apart from this code."""
    clock = VirtualClock()
    clock.move_to(datetime.fromtimestamp(1_893_456_000 - 300, UTC))

    made = signed(
        "https://MySbNamespace.servicebus.windows.net/q1",
        "QPolicy",
        "s3cret-Sas-key",
        replace(CALL, clock=clock),
    )

    assert made == (
        "SharedAccessSignature sr=https%3A%2F%2Fmysbnamespace.servicebus.windows.net%2Fq1"
        "&sig=0%2BiL7oDEtbApVF7R6WJiwGwy9JAz2P81d1fmbnJbDVw%3D&se=1893456000&skn=QPolicy"
    )


@of_each
def test_repeats_carry_the_same_id(there: AzureServer, fields: dict[str, Any]) -> None:
    for attempt in (1, 2):
        performed(there, fields, replace(CALL, attempt=attempt))

    ids = [each["ExecutionTag"] for each in there.storage] + [broker["MessageId"] for broker, *_ in there.bus]
    assert ids == [RUN.replace("-", "")] * 2


@of_each
def test_a_job_without_payload_sends_the_run(there: AzureServer, fields: dict[str, Any]) -> None:
    performed(there, fields, replace(CALL, payload=None))

    (text,) = [each["Message"] for each in there.storage] + [text for *_, text in there.bus]
    assert json.loads(text)["runId"] == CALL.run_id


@pytest.mark.action("azure_storage_queue azure_service_bus_queue azure_service_bus_topic", "key", "wait")
@of_each
def test_a_reader_of_the_queue_can_report_the_result(there: AzureServer, fields: dict[str, Any]) -> None:
    outcome = performed(there, {**fields, "outcome": {"onAccepted": "wait"}})

    assert (outcome.verdict, outcome.http_status) == (Verdict.ACCEPTED, 201)


# ---- What fails ------------------------------------------------------------------------------------------------------


@pytest.mark.action("azure_storage_queue azure_service_bus_queue azure_service_bus_topic", "key", "failure")
@of_each
@pytest.mark.parametrize(("status", "retryable"), [(403, False), (404, False), (429, True), (500, True), (503, True)])
def test_any_other_status_is_a_failure_and_secrets_in_the_answer_are_not_kept(
    there: AzureServer, fields: dict[str, Any], status: int, retryable: bool
) -> None:
    there.answers = status

    outcome = performed(there, fields, replace(CALL, payload=None, callback_token="token-of-this-run"))

    assert (outcome.verdict, outcome.reason, outcome.http_status) == (Verdict.FAILED, Reason.HTTP_STATUS, status)
    assert outcome.retryable is retryable
    assert CALL.run_id in str(outcome.answer), "the server says all of it back"
    assert "token-of-this-run" not in str(outcome), "whoever reads it could report for the target"
    assert "***" in str(outcome.answer) or fields is not STORAGE
    assert STORAGE_TOKEN not in str(outcome)
    said = parse_qs(there.heard)
    assert said["sig"][0] not in str(outcome), "a signature opens the door by itself"
    assert quote_plus(said["sig"][0]) not in str(outcome)
    assert KEYS["QPolicy"] not in str(outcome)


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({**STORAGE, "sasToken": STORAGE_TOKEN.replace("sp=a", "sp=r")}, 403),
        ({**STORAGE, "queueName": "other"}, 404),
        ({**QUEUE, "authentication": {**SHARED_KEY, "sasKey": "another"}}, 401),
        ({**QUEUE, "authentication": {**SHARED_KEY, "sasKeyName": "another"}}, 401),
        ({**TOPIC, "topicPath": "other"}, 404),
    ],
)
def test_the_server_refuses_what_is_not_signed_for_it(there: AzureServer, fields: dict[str, Any], status: int) -> None:
    outcome = performed(there, fields)

    assert (outcome.http_status, outcome.retryable) == (status, False)
    assert there.storage == there.bus == []


@pytest.mark.action("azure_storage_queue azure_service_bus_queue azure_service_bus_topic", "key", "unproven")
@of_each
def test_a_secret_that_cannot_be_decrypted_fails_the_run_without_a_call(
    there: AzureServer, fields: dict[str, Any]
) -> None:
    draft = drafted(fields, there.guard)

    outcome = actions.perform(draft.kind, draft.params, CALL, there.outbound)

    assert (outcome.reason, outcome.retryable) == (Reason.GUARD, False)
    assert "secret" in str(outcome.message)


@of_each
def test_the_outbound_guard_checks_azure_hosts_too(there: AzureServer, fields: dict[str, Any]) -> None:
    draft = drafted(fields, there.guard)
    strict = replace(there.outbound, settings=replace(there.guard, private=()))

    outcome = actions.perform(draft.kind, draft.params, replace(CALL, secrets=draft.secrets), strict)

    assert (outcome.reason, outcome.retryable) == (Reason.GUARD, False)


@pytest.mark.action("azure_storage_queue azure_service_bus_queue azure_service_bus_topic", "key", "silence")
@of_each
def test_a_call_without_an_answer_ends_at_its_deadline_and_is_retried(
    there: AzureServer, fields: dict[str, Any]
) -> None:
    there.hangs.clear()

    outcome = performed(there, fields, replace(CALL, deadline_s=2))

    there.hangs.set()
    assert (outcome.reason, outcome.retryable, outcome.message) == (Reason.NO_ANSWER, True, "no answer within 2 s")


@pytest.mark.action("azure_storage_queue azure_service_bus_queue azure_service_bus_topic", "key", "unreachable")
@of_each
def test_a_missing_connection_is_a_failure_that_is_retried(fields: dict[str, Any]) -> None:
    with azure() as there:
        pass

    outcome = performed(there, fields)

    assert (outcome.reason, outcome.retryable) == (Reason.CONNECT, True)


# ---- What is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        *(
            ({**STORAGE, "storageAccount": name}, "storageAccount", "must have 1 to 63 letters, digits and inner hyph")
            for name in ("evil.example/?x", "acme_x", "-acme", "acme-", "a" * 64, "\u0251bc")
        ),
        *(
            (
                {**STORAGE, "queueName": name},
                "queueName",
                "must have 1 to 260 letters, digits, and . _ / - between them",
            )
            for name in ("-orders", "orders-", "orders?x", "orders#x", "or ders", "orders\n", "\u0251bc")
        ),
        ({**STORAGE, "queueName": "x" * 261}, "queueName", "must have 1 to 260 characters, not 261"),
        ({**STORAGE, "storageAccount": None}, "storageAccount", "is required"),
        ({**STORAGE, "queueName": "a/../b"}, "queueName", "must not contain // or .."),
        ({**QUEUE, "queueName": "a/../b"}, "queueName", "must not contain // or .."),
        ({**QUEUE, "queueName": "a?b"}, "queueName", "must have 1 to 260 letters"),
        ({**STORAGE, "sasToken": "a b"}, "sasToken", "must be the query of an address"),
        ({**STORAGE, "sasToken": "sig=a#b"}, "sasToken", "must be the query of an address"),
        ({**STORAGE, "sasToken": None}, "sasToken", "is required"),
        ({**STORAGE, "sasToken": "***"}, "sasToken", "is required"),
        ({**STORAGE, "body": "a\x00"}, "body", "contains a control character"),
        ({**STORAGE, "body": "&" * 10_000}, "body", "must have at most 47,000 bytes as XML"),
        ({**QUEUE, "namespace": "a.b"}, "namespace", "must have 1 to 63 letters"),
        ({**QUEUE, "topicPath": "news"}, "topicPath", "is not a known member"),
        ({**QUEUE, "authentication": None}, "authentication", "is required"),
        ({**QUEUE, "authentication": "s3cret"}, "authentication", "must be an object, not a string"),
        ({**QUEUE, "authentication": {"type": "basic"}}, "authentication.type", "must be one of sharedAccessKey"),
        ({**QUEUE, "authentication": {"type": "sharedAccessKey"}}, "authentication.sasKeyName", "is required"),
        ({**QUEUE, "authentication": {**SHARED_KEY, "sasKey": None}}, "authentication.sasKey", "is required"),
        ({**QUEUE, "transportType": "SBMP"}, "transportType", "must be one of NotSpecified, NetMessaging, AMQP"),
        ({**QUEUE, "brokeredMessageProperties": {"x": 1}}, "brokeredMessageProperties.x", "is not a known member"),
        (
            {**QUEUE, "brokeredMessageProperties": {"contentType": "a\r\nb: c"}},
            "brokeredMessageProperties.contentType",
            "must be visible ASCII",
        ),
        *(
            (
                {**QUEUE, "brokeredMessageProperties": {name: "x" * 129}},
                f"brokeredMessageProperties.{name}",
                "must have 1 to 128 characters",
            )
            for name in ("messageId", "partitionKey", "replyToSessionId", "sessionId", "viaPartitionKey")
        ),
        (
            {**QUEUE, "brokeredMessageProperties": {"timeToLiveSeconds": 0}},
            "brokeredMessageProperties.timeToLiveSeconds",
            "must be a whole number from",
        ),
        (
            {**QUEUE, "brokeredMessageProperties": {"scheduledEnqueueTimeUtc": "soon"}},
            "brokeredMessageProperties.scheduledEnqueueTimeUtc",
            "",
        ),
        ({**QUEUE, "customMessageProperties": {"a b": "c"}}, "customMessageProperties.a b", "is not a header name"),
        (
            {**QUEUE, "customMessageProperties": {"Authorization": "c"}},
            "customMessageProperties.Authorization",
            "Authorization is set by the service",
        ),
        ({**QUEUE, "customMessageProperties": {"a": 1}}, "customMessageProperties.a", "must be a string, not a number"),
        ({**QUEUE, "customMessageProperties": {"a": "b\nc"}}, "customMessageProperties.a", "contains a line break"),
        ({**QUEUE, "customMessageProperties": {"a": "b\r"}}, "customMessageProperties.a", "contains a line break"),
        ({**QUEUE, "customMessageProperties": {"a": "1", "A": "2"}}, "customMessageProperties", "has a name twice"),
    ],
)
def test_a_field_is_refused_with_its_path_and_the_reason(fields: dict[str, Any], field: str, reason: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        drafted(fields)

    assert caught.value.field == f"action.{field}"
    assert caught.value.reason.startswith(reason)


def stored(fields: dict[str, Any]) -> ActionSpec:
    draft = drafted(fields)
    return ActionSpec(draft.kind, draft.params, draft.retry)


@of_each
def test_a_secret_is_shown_as_stars_and_kept_while_destination_and_identity_stay(fields: dict[str, Any]) -> None:
    there = stored(fields)

    again = drafted(dict(there.params), stored=there)

    assert again.params == there.params
    assert again.secrets == {}
    assert again.kept in ({"sasToken"}, {"authentication.sasKey"})
    assert not any(secret in json.dumps(there.params) for secret in (STORAGE_TOKEN, KEYS["QPolicy"]))


@pytest.mark.parametrize(
    ("fields", "change"),
    [
        (STORAGE, {"storageAccount": "evil"}),
        (STORAGE, {"queueName": "other"}),
        (QUEUE, {"namespace": "evil"}),
        (QUEUE, {"queueName": "other"}),
        (QUEUE, {"authentication": {"type": "sharedAccessKey", "sasKeyName": "other"}}),
        (TOPIC, {"topicPath": "other"}),
    ],
)
def test_a_kept_secret_never_goes_elsewhere(fields: dict[str, Any], change: dict[str, Any]) -> None:
    there = stored(fields)

    with pytest.raises(
        InvalidRequest, match=r"is required: the .* changed, and the stored secret belongs to the old one"
    ):
        drafted({**there.params, **change}, stored=there)


# ---- What a collection redirects -------------------------------------------------------------------------------------

ELSEWHERE = {"targetArn": arn("sqs", "orders"), "roleArn": ROLE}
NEWS = {"targetArn": arn("sns", "news"), "roleArn": ROLE}
SETTINGS = GuardSettings(aws=GUARD.aws)


class Sqs:
    meta = type("Meta", (), {"endpoint_url": "https://sqs.example"})

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def send_message(self, **request: Any) -> dict[str, Any]:
        self.asked.append(request)
        return {"MessageId": "m", "ResponseMetadata": {"HTTPStatusCode": 200}}

    def publish(self, **request: Any) -> dict[str, Any]:
        return self.send_message(**request)


def redirected(
    fields: dict[str, Any], place: str, redirect: dict[str, str], call: Call = CALL
) -> tuple[Outcome, list[dict[str, Any]]]:
    """Returns what becomes of a job's message where its collection has this one redirect."""
    sqs = Sqs()
    draft = drafted(fields)
    call = replace(call, redirects=redirects.parse({place: redirect}, "redirects", SETTINGS), secrets=draft.secrets)
    there = replace(outbound(Roles({"sqs": sqs, "sns": sqs})), lookup=lambda *_args, **_more: [])
    return actions.perform(draft.kind, draft.params, call, there), sqs.asked


def test_the_envelope_of_a_redirected_storage_queue_goes_to_sqs() -> None:
    outcome, (sent,) = redirected(STORAGE, "ACME/orders", ELSEWHERE)

    assert (outcome.verdict, outcome.answer) == (Verdict.SUCCEEDED, "m")
    assert sent["QueueUrl"] == f"https://sqs.example/{ACCOUNT}/orders"
    assert "<ExecutionTag>" in sent["MessageBody"]
    assert '&lt;order n="1"&gt;' in sent["MessageBody"]
    assert sent["MessageAttributes"]["Sweephand-Run-Id"]["StringValue"] == CALL.run_id


@pytest.mark.parametrize(
    ("fields", "place", "redirect", "member"),
    [
        (STORAGE, "acme/orders", {**ELSEWHERE, "format": "raw"}, "MessageBody"),
        (QUEUE, "acmebus/orders", ELSEWHERE, "MessageBody"),
        (QUEUE, "AcmeBus/ORDERS", ELSEWHERE, "MessageBody"),
        ({**QUEUE, "queueName": "Orders"}, "acmebus/orders", ELSEWHERE, "MessageBody"),
        ({**TOPIC, "topicPath": "NEWS"}, "acmebus/News", NEWS, "Message"),
        (TOPIC, "acmebus/news", NEWS, "Message"),
    ],
)
def test_only_the_message_is_redirected(
    fields: dict[str, Any], place: str, redirect: dict[str, str], member: str
) -> None:
    outcome, (sent,) = redirected(fields, place, redirect)

    assert outcome.verdict is Verdict.SUCCEEDED
    assert sent[member] == CALL.payload


def test_a_redirect_stored_in_another_spelling_still_applies() -> None:
    sqs = Sqs()
    call = replace(CALL, redirects={"acmebus/Orders": {**ELSEWHERE, "format": "raw"}})

    outcome = actions.perform(QUEUE["type"], drafted(QUEUE).params, call, outbound(Roles({"sqs": sqs})))  # type: ignore[arg-type]

    assert (outcome.verdict, len(sqs.asked)) == (Verdict.SUCCEEDED, 1)


def told(sent: dict[str, Any]) -> dict[str, str]:
    """Returns the attributes of a message without those that describe the run."""
    given = {name: each["StringValue"] for name, each in sent["MessageAttributes"].items()}
    assert len(given) <= 10, "SQS takes no more"
    return {name: value for name, value in given.items() if not name.startswith("Sweephand-")}


def test_a_redirected_message_keeps_what_its_receivers_route_by() -> None:
    broker = {"label": "new", "correlationId": "c-ü", "sessionId": "customer-7", "contentType": "application/xml"}
    fields = {**QUEUE, "brokeredMessageProperties": broker, "customMessageProperties": {"tenant": "acme", "x.y": "ü"}}

    _, (sent,) = redirected(fields, "acmebus/orders", {**ELSEWHERE, "targetArn": arn("sqs", "orders.fifo")})

    brought = told(sent)
    assert json.loads(brought.pop("BrokerProperties")) == {
        "MessageId": RUN.replace("-", ""),
        "Label": "new",
        "CorrelationId": "c-ü",
        "SessionId": "customer-7",
        "ContentType": "application/xml",
    }
    assert brought == {"tenant": "acme", "x.y": "ü"}
    assert (sent["MessageGroupId"], sent["MessageDeduplicationId"]) == ("customer-7", CALL.run_id)


def test_a_topic_gets_the_properties_too() -> None:
    _, (sent,) = redirected({**TOPIC, "customMessageProperties": {"tenant": "acme"}}, "acmebus/news", NEWS)

    assert told(sent) == {"tenant": "acme"}
    assert "MessageGroupId" not in sent


@pytest.mark.parametrize(
    "custom",
    [
        {f"p{n}": str(n) for n in range(5)},
        {f"p{n}": "v" * 150 for n in range(50)},
        *({name: "v"} for name in ("a!b", "a..b", ".a", "a.", "AWS.a", "amazon.a")),
        {"a": ""},
        {"a": "\ue000\ufffe"},
        {"a": "\x00"},
    ],
)
def test_properties_that_cannot_be_attributes_are_sent_as_a_single_attribute(custom: dict[str, str]) -> None:
    _, (sent,) = redirected({**QUEUE, "customMessageProperties": custom}, "acmebus/orders", ELSEWHERE)

    ((name, value),) = told(sent).items()
    assert name == "CustomMessageProperties"
    assert json.loads(value) == custom


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("properties", [{}, {"label": "l"}], ids=["alone", "with the broker's"])
@pytest.mark.parametrize("token", [None, "t" * 43])
def test_all_runs_of_a_job_send_the_properties_in_one_form(
    count: int, properties: dict[str, str], token: str | None
) -> None:
    custom = {f"p{n}": str(n) for n in range(count)}
    fields = {**QUEUE, "customMessageProperties": custom, "brokeredMessageProperties": properties}
    call = replace(CALL, callback_url="https://s.example/r", callback_token=token)

    by_schedule, by_hand = (
        told(redirected(fields, "acmebus/orders", ELSEWHERE, replace(call, schedule_id=schedule))[1][0])
        for schedule in ("s", None)
    )

    assert by_schedule == by_hand
    assert ("p0" in by_hand) == (count <= 3 - (token is not None) - bool(properties))


@pytest.mark.parametrize("session", ["two words", "s" * 128 + "\u00fc", "ü"])
def test_a_session_that_is_no_valid_group_keeps_the_order_of_the_job(session: str) -> None:
    fields = {**QUEUE, "brokeredMessageProperties": {"sessionId": session[:128]}}

    _, (sent,) = redirected(fields, "acmebus/orders", {**ELSEWHERE, "targetArn": arn("sqs", "orders.fifo")})

    assert sent["MessageGroupId"] == ("s" * 128 if session.startswith("s") else CALL.job_id)


@mock_aws()
def test_sqs_accepts_the_redirected_messages() -> None:
    url = client("sqs").create_queue(QueueName="orders")["QueueUrl"]
    custom = {f"p{n}": "ü" * 20 for n in range(50)}
    fields = {**QUEUE, "customMessageProperties": custom, "brokeredMessageProperties": {"label": "l"}}
    call = replace(
        CALL,
        callback_url="https://s.example/r",
        callback_token="t" * 43,
        redirects=redirects.parse({"acmebus/orders": ELSEWHERE}, "redirects", SETTINGS),
    )

    outcome = actions.perform(QUEUE["type"], drafted(fields).params, call, outbound())  # type: ignore[arg-type]

    assert outcome.verdict is Verdict.SUCCEEDED
    (message,) = client("sqs").receive_message(QueueUrl=url, MessageAttributeNames=["All"])["Messages"]
    assert len(message["MessageAttributes"]) == 10
    assert json.loads(message["MessageAttributes"]["CustomMessageProperties"]["StringValue"]) == custom


@of_each
def test_a_redirect_of_another_queue_does_not_affect_a_job(fields: dict[str, Any]) -> None:
    outcome, sent = redirected(fields, "other/orders", ELSEWHERE)

    assert outcome.reason is Reason.DNS, "it goes where it went"
    assert sent == []


@pytest.mark.parametrize(
    ("given", "field", "reason"),
    [
        ([], "redirects", "must be an object"),
        ({"orders": ELSEWHERE}, "redirects.orders", "must be named account/queue"),
        ({"a/b": ELSEWHERE, "A/b": ELSEWHERE}, "redirects.A/b", "appears twice"),
        ({"a/b": ELSEWHERE, "a/B": ELSEWHERE}, "redirects.a/B", "appears twice"),
        ({"a/b": {"roleArn": ROLE}}, "redirects.a/b.targetArn", "is required"),
        ({"a/b": {**ELSEWHERE, "roleArn": ROLE + "x"}}, "redirects.a/b.roleArn", "is not among the roles"),
        ({"a/b": {**ELSEWHERE, "targetArn": arn("s3", "b")}}, "redirects.a/b.targetArn", "must be an ARN of the form"),
        ({"a/b": {**ELSEWHERE, "format": "xml"}}, "redirects.a/b.format", "must be one of envelope, raw"),
        ({f"a/{n}": ELSEWHERE for n in range(51)}, "redirects", "must have at most 50 members"),
    ],
)
def test_a_redirect_is_refused_with_its_path(given: Any, field: str, reason: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        redirects.parse(given, "redirects", SETTINGS)

    assert caught.value.field == field
    assert caught.value.reason.startswith(reason)
