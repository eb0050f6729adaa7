"""The actions on AWS, against moto; Lambda against a client that answers as Lambda does."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore import exceptions
from moto import mock_aws

from sweephand.base.errors import InvalidRequest, Unavailable
from sweephand.base.sources import SystemClock
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.domain.runs.settlement import failure_state
from sweephand.server import actions
from sweephand.server.actions.call import Call
from sweephand.server.actions.run_headers import traceparent
from sweephand.server.security.guard import GuardSettings
from sweephand.server.security.target_roles import RoleNotAssumedError
from tests.support.acting import ACCOUNT, GUARD, REGION, ROLE, Roles, arn, client, outbound

CALL = Call(
    run_id="s_r",
    job_id="j",
    schedule_id="s",
    tenant="acme",
    planned_at=datetime(2027, 3, 1, 12, 0, tzinfo=UTC),
    attempt=2,
    deadline_s=15.0,
    clock=SystemClock(),
    payload='{"n":1}',
    payload_is_json=True,
    callback_url="https://sweephand.example/v1/runs/s_r/result",
)
QUEUE = {"type": "sqs", "targetArn": arn("sqs", "orders"), "roleArn": ROLE}
FIFO = {**QUEUE, "targetArn": arn("sqs", "orders.fifo")}
TOPIC = {"type": "sns", "targetArn": arn("sns", "news"), "roleArn": ROLE}
BUS = {
    "type": "events",
    "targetArn": arn("events", "event-bus/other"),
    "roleArn": ROLE,
    "source": "acme.orders",
    "detailType": "due",
}
FUNCTION = {"type": "lambda", "targetArn": arn("lambda", "function:f"), "roleArn": ROLE}
MACHINE = {"type": "states", "targetArn": arn("states", "stateMachine:m"), "roleArn": ROLE}
ALL = [QUEUE, TOPIC, BUS, FUNCTION, MACHINE]
JSON_ONLY = [BUS, FUNCTION, MACHINE]
FACTS = {
    "Sweephand-Job-Id": "j",
    "Sweephand-Schedule-Id": "s",
    "Sweephand-Run-Id": "s_r",
    "Sweephand-Planned-At": "2027-03-01T12:00:00Z",
    "Sweephand-Attempt": "2",
    "Sweephand-Callback-Url": "https://sweephand.example/v1/runs/s_r/result",
    "Sweephand-Hop": "1",
}
SPAN = hashlib.sha256(b"s_r 2").hexdigest()[:16]
ATTRIBUTES = {**FACTS, "traceparent": f"00-r-{SPAN}-01"}
RUN = {
    "runId": "s_r",
    "jobId": "j",
    "scheduleId": "s",
    "plannedAt": "2027-03-01T12:00:00Z",
    "attempt": 2,
    "callbackUrl": "https://sweephand.example/v1/runs/s_r/result",
}

of_each = pytest.mark.parametrize("fields", ALL, ids=[each["type"] for each in ALL])


def drafted(fields: dict[str, Any], guard: GuardSettings = GUARD) -> actions.ActionDraft:
    return actions.draft(fields, field="action", guard=guard)


def performed(fields: dict[str, Any], call: Call = CALL, roles: Roles | None = None) -> Outcome:
    draft = drafted(fields)
    stored = json.loads(json.dumps(draft.params))
    return actions.perform(draft.kind, stored, call, outbound(roles))


@pytest.fixture
def aws() -> Iterator[None]:
    with mock_aws():
        yield


def queue(name: str = "orders", **attributes: str) -> str:
    url: str = client("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return url


def received(url: str) -> list[dict[str, Any]]:
    everything = {"MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"], "AttributeNames": ["All"]}
    messages: list[dict[str, Any]] = client("sqs").receive_message(QueueUrl=url, **everything).get("Messages", [])
    return messages


def told(message: dict[str, Any]) -> dict[str, str]:
    return {name: each["StringValue"] for name, each in message["MessageAttributes"].items()}


# ---- What is sent ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("aws")
@pytest.mark.action("sqs", "role", "success")
def test_a_queue_gets_the_payload_and_the_id_of_its_run() -> None:
    url = queue()
    roles = Roles()

    outcome = performed(QUEUE, roles=roles)

    (message,) = received(url)
    assert (message["Body"], told(message)) == ('{"n":1}', ATTRIBUTES)
    assert outcome == Outcome(Verdict.SUCCEEDED, http_status=200, answer=message["MessageId"])
    assert roles.asked == [("sqs", REGION, ROLE, "acme", 15)]


@pytest.mark.usefixtures("aws")
def test_a_job_without_payload_sends_the_run() -> None:
    url = queue()

    performed(QUEUE, replace(CALL, payload=None, payload_is_json=False, callback_token="t" * 43))

    (message,) = received(url)
    assert json.loads(message["Body"]) == RUN | {"callbackToken": "t" * 43}


@pytest.mark.usefixtures("aws")
def test_a_string_is_sent_unchanged_to_a_queue_and_a_topic() -> None:
    url = queue()
    topic = client("sns").create_topic(Name="news")["TopicArn"]
    client("sns").subscribe(
        TopicArn=topic, Protocol="sqs", Endpoint=arn("sqs", "orders"), Attributes={"RawMessageDelivery": "true"}
    )
    text = replace(CALL, payload="<a>ü</a>", payload_is_json=False)

    assert performed(QUEUE, text).verdict is Verdict.SUCCEEDED
    assert performed({**TOPIC, "subject": "orders"}, text).verdict is Verdict.SUCCEEDED

    assert [message["Body"] for message in received(url)] == ["<a>ü</a>"] * 2


@pytest.mark.usefixtures("aws")
def test_a_fifo_queue_drops_the_repeat_of_a_run() -> None:
    url = queue("orders.fifo", FifoQueue="true")

    outcomes = [performed(FIFO) for _ in range(2)]

    (message,) = received(url)
    assert [outcome.verdict for outcome in outcomes] == [Verdict.SUCCEEDED] * 2
    assert message["Attributes"]["MessageDeduplicationId"] == "s_r"
    assert message["Attributes"]["MessageGroupId"] == "j", "the runs of a job in their order"


@pytest.mark.usefixtures("aws")
def test_a_user_can_set_the_group_of_a_fifo_queue() -> None:
    url = queue("orders.fifo", FifoQueue="true")

    performed({**FIFO, "messageGroupId": "all"})

    assert received(url)[0]["Attributes"]["MessageGroupId"] == "all"


@pytest.mark.usefixtures("aws")
@pytest.mark.action("sns", "role", "success")
def test_a_topic_gets_the_payload_and_the_id_of_its_run() -> None:
    url = queue()
    topic = client("sns").create_topic(Name="news")["TopicArn"]
    client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn("sqs", "orders"))

    outcome = performed({**TOPIC, "subject": "to you"})

    envelope = json.loads(received(url)[0]["Body"])
    assert (envelope["Message"], envelope["Subject"]) == ('{"n":1}', "to you")
    assert {name: each["Value"] for name, each in envelope["MessageAttributes"].items()} == ATTRIBUTES
    assert outcome.answer == envelope["MessageId"]


class Bus:
    """Answers as EventBridge does."""

    def __init__(self, **said: str) -> None:
        self.said = said or {"EventId": "e-1"}
        self.entries: list[dict[str, Any]] = []

    def put_events(self, **request: Any) -> dict[str, Any]:
        self.entries += request["Entries"]
        return {"Entries": [self.said], "ResponseMetadata": {"HTTPStatusCode": 200}}


@pytest.mark.action("events", "role", "success")
def test_a_bus_gets_an_event_with_the_payload_as_its_detail() -> None:
    bus = Bus()

    outcome = performed(BUS, roles=Roles({"events": bus}))

    assert bus.entries == [
        {
            "EventBusName": BUS["targetArn"],
            "Source": "acme.orders",
            "DetailType": "due",
            "Detail": '{"n":1}',
            "Time": CALL.planned_at,
            "Resources": ["s_r"],
            "TraceHeader": f"Root=1-r-;Parent={SPAN};Sampled=1",
        }
    ]
    assert outcome == Outcome(Verdict.SUCCEEDED, http_status=200, answer="e-1")


MADE = {"definition": json.dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}})}


@pytest.mark.usefixtures("aws")
@pytest.mark.action("states", "role", "success")
def test_a_state_machine_is_started_once_for_each_run() -> None:
    states = client("stepfunctions")
    states.create_state_machine(name="m", roleArn=ROLE, **MADE)

    first, again = performed(MACHINE), performed(MACHINE)

    (execution,) = states.list_executions(stateMachineArn=MACHINE["targetArn"])["executions"]
    assert execution["name"] == "s_r"
    assert states.describe_execution(executionArn=execution["executionArn"])["input"] == '{"n":1}'
    assert (first.verdict, first.answer) == (Verdict.SUCCEEDED, execution["executionArn"])
    assert again.verdict is Verdict.SUCCEEDED


class Lambda:
    """Answers as Lambda does."""

    def __init__(self, text: str = "null", **answer: Any) -> None:
        self.text, self.answer = text, answer
        self.asked: list[dict[str, Any]] = []

    def invoke(self, **request: Any) -> dict[str, Any]:
        self.asked.append(request)
        status = 202 if request["InvocationType"] == "Event" else 200
        return {"StatusCode": status, "Payload": io.BytesIO(self.text.encode()), **self.answer}


@pytest.mark.action("lambda", "role", "success")
def test_a_function_is_invoked_and_its_answer_kept() -> None:
    function = Lambda('{"rows":7}')
    roles = Roles({"lambda": function})

    outcome = performed({**FUNCTION, "outcome": {"answerTimeoutSeconds": 60}}, replace(CALL, deadline_s=60), roles)

    (request,) = function.asked
    context = json.loads(base64.b64decode(request.pop("ClientContext")))
    assert request == {
        "FunctionName": FUNCTION["targetArn"],
        "InvocationType": "RequestResponse",
        "Payload": b'{"n":1}',
    }
    assert context == {"custom": {**FACTS, "traceparent": traceparent(CALL)}}
    assert outcome == Outcome(Verdict.SUCCEEDED, http_status=200, answer='{"rows":7}')
    assert roles.asked[0][-1] == 60, "waits as long as the job allows"


def test_a_call_waits_no_longer_than_the_executor_can() -> None:
    roles = Roles({"lambda": Lambda()})

    performed({**FUNCTION, "outcome": {"answerTimeoutSeconds": 60}}, replace(CALL, deadline_s=8.7), roles)

    assert roles.asked[0][-1] == 8


def test_a_function_in_an_envelope_gets_the_run_and_the_payload_digit_for_digit() -> None:
    function = Lambda()

    performed({**FUNCTION, "envelope": True}, replace(CALL, payload='{"n":1.10}'), Roles({"lambda": function}))

    text = function.asked[0]["Payload"].decode()
    assert json.loads(text) == RUN | {"payload": {"n": 1.1}}
    assert '{"n":1.10}' in text


def test_a_function_without_a_wait_is_invoked_asynchronously() -> None:
    function = Lambda("")

    outcome = performed({**FUNCTION, "invocation": "async"}, roles=Roles({"lambda": function}))

    assert function.asked[0]["InvocationType"] == "Event"
    assert outcome == Outcome(Verdict.SUCCEEDED, http_status=202)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"errorType": "ValueError", "errorMessage": "no rows"}', "ValueError: no rows"),
        ('{"errorMessage": "2027-03-01 Task timed out"}', "2027-03-01 Task timed out"),
        ('"just a text"', "the function failed"),
        ("no json", "the function failed"),
        ("", "the function failed"),
    ],
)
def test_an_error_of_a_function_is_a_failed_run_with_its_message(text: str, message: str) -> None:
    outcome = performed(FUNCTION, roles=Roles({"lambda": Lambda(text, FunctionError="Unhandled")}))

    assert (outcome.verdict, outcome.reason, outcome.message) == (Verdict.FAILED, Reason.TARGET_ERROR, message)
    assert outcome.retryable
    assert outcome.answer == (text or None)


@pytest.mark.parametrize("more", [{}, {"FunctionError": "Unhandled"}], ids=["success", "error"])
def test_a_function_that_echoes_its_input_reveals_no_token(more: dict[str, str]) -> None:
    token = "token-of-this-run-0123456789"
    echo = Lambda(json.dumps({"errorMessage": "x" * 485 + token, "you": token}), **more)

    outcome = performed(FUNCTION, replace(CALL, payload=None, callback_token=token), Roles({"lambda": echo}))

    assert token in echo.asked[0]["Payload"].decode()
    assert '"you": "***"' in str(outcome.answer)
    assert "token-of" not in repr(outcome)


def test_a_message_quoted_by_aws_reveals_no_token() -> None:
    token = "token-of-this-run-0123456789"
    error = {"Error": {"Code": "InvalidMessageContents", "Message": f"cannot take {token}"}}
    quoting = exceptions.ClientError({**error, "ResponseMetadata": {"HTTPStatusCode": 400}}, "SendMessage")

    outcome = performed(QUEUE, replace(CALL, callback_token=token), Roles({"sqs": quoting}))

    assert outcome.message == "InvalidMessageContents: cannot take ***"


def test_the_beginning_of_a_long_answer_is_kept() -> None:
    outcome = performed(FUNCTION, roles=Roles({"lambda": Lambda("ü" * 20_000)}))

    assert outcome.answer == "ü" * 8_192


# ---- What is accepted ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize(
    ("outcome", "on202", "verdict"),
    [
        ({}, "success", Verdict.SUCCEEDED),
        ({}, "wait", Verdict.ACCEPTED),
        ({"onAccepted": "wait"}, "success", Verdict.ACCEPTED),
        ({"onAccepted": "success"}, "wait", Verdict.SUCCEEDED),
    ],
)
def test_a_run_waits_for_its_report_if_the_job_says_so(outcome: dict[str, str], on202: str, verdict: Verdict) -> None:
    queue()

    assert performed({**QUEUE, "outcome": outcome}, replace(CALL, on202=on202)).verdict is verdict


class Taking:
    """Takes whatever it is sent, as each service of AWS says so."""

    meta = type("Meta", (), {"endpoint_url": "https://aws.example"})

    def __getattr__(self, _name: str) -> Any:
        said = {"MessageId": "m", "executionArn": "a", "StatusCode": 200, "Entries": [{"EventId": "e"}]}
        return lambda **_request: {**said, "Payload": io.BytesIO(b"null")}


@of_each
@pytest.mark.action("sqs sns events lambda states", "role", "wait")
def test_an_accepted_message_waits_for_its_report_if_the_job_says_so(fields: dict[str, Any]) -> None:
    service = {"states": "stepfunctions"}.get(fields["type"], fields["type"])

    outcome = performed({**fields, "outcome": {"onAccepted": "wait"}}, roles=Roles({service: Taking()}))

    assert outcome.verdict is Verdict.ACCEPTED


# ---- What fails ------------------------------------------------------------------------------------------------------


class Failing:
    """A client each of whose calls raises."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.meta = type("Meta", (), {"endpoint_url": "https://aws.example"})

    def __getattr__(self, _name: str) -> Any:
        def call(**_request: Any) -> None:
            raise self.error

        return call


def refused(code: str, status: int | None = 400) -> exceptions.ClientError:
    answer: dict[str, Any] = {"Error": {"Code": code, "Message": "because"}}
    if status is not None:
        answer["ResponseMetadata"] = {"HTTPStatusCode": status}
    return exceptions.ClientError(answer, "Send")  # type: ignore[arg-type]


def failing(fields: dict[str, Any], error: Exception) -> Outcome:
    service = {"states": "stepfunctions"}.get(fields["type"], fields["type"])
    return performed(fields, roles=Roles({service: Failing(error)}))


@of_each
@pytest.mark.parametrize(
    ("code", "status", "retryable", "state"),
    [
        ("AccessDeniedException", 403, False, "REQUEST_ERROR"),
        ("ResourceNotFoundException", 404, False, "REQUEST_ERROR"),
        ("AWS.SimpleQueueService.NonExistentQueue", 400, False, "REQUEST_ERROR"),
        ("ThrottlingException", 400, True, "REQUEST_ERROR"),
        ("KMSThrottling", 400, True, "REQUEST_ERROR"),
        ("KmsThrottlingException", 400, True, "REQUEST_ERROR"),
        ("KMS.ThrottlingException", 400, True, "REQUEST_ERROR"),
        ("TooManyRequestsException", 429, True, "REQUEST_ERROR"),
        ("InternalFailure", 500, True, "ERROR"),
        ("ServiceUnavailable", 503, True, "ERROR"),
        ("Strange", None, False, "ERROR"),
    ],
)
@pytest.mark.action("sqs sns events lambda states", "role", "failure")
def test_a_refusal_by_aws_is_reported_by_code_and_retried_if_it_is_transient(
    fields: dict[str, Any], code: str, status: int | None, retryable: bool, state: str
) -> None:
    outcome = failing(fields, refused(code, status))

    assert (outcome.reason, outcome.http_status) == (Reason.HTTP_STATUS, status)
    assert (outcome.message, outcome.retryable) == (f"{code}: because", retryable)
    assert failure_state(Reason.HTTP_STATUS, status) == state


@of_each
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (exceptions.EndpointConnectionError(endpoint_url="u"), Reason.CONNECT),
        (exceptions.ConnectTimeoutError(endpoint_url="u"), Reason.CONNECT),
        (exceptions.ReadTimeoutError(endpoint_url="u"), Reason.NO_ANSWER),
        (exceptions.ConnectionClosedError(endpoint_url="u"), Reason.NO_ANSWER),
        (exceptions.SSLError(endpoint_url="u", error="e"), Reason.TLS),
    ],
)
@pytest.mark.action("sqs sns events lambda states", "role", "silence")
@pytest.mark.action("sqs sns events lambda states", "role", "unreachable")
def test_a_failed_connection_is_retried(fields: dict[str, Any], error: Exception, reason: Reason) -> None:
    outcome = failing(fields, error)

    assert (outcome.verdict, outcome.reason, outcome.retryable) == (Verdict.FAILED, reason, True)


@of_each
@pytest.mark.action("sqs sns events lambda states", "role", "unproven")
def test_a_role_that_does_not_trust_the_stack_fails_the_run_and_says_so(fields: dict[str, Any]) -> None:
    service = {"states": "stepfunctions"}.get(fields["type"], fields["type"])
    error = RoleNotAssumedError(refused("AccessDenied", 403))

    outcome = performed(fields, roles=Roles({service: error}))

    assert (outcome.reason, outcome.http_status, outcome.retryable) == (Reason.HTTP_STATUS, 403, False)
    assert outcome.message == "the role could not be assumed: AccessDenied: because"


@of_each
@pytest.mark.parametrize(
    "error", [refused("ServiceUnavailable", 503), exceptions.EndpointConnectionError(endpoint_url="u")]
)
def test_sts_that_does_not_answer_is_an_outage_of_the_service(fields: dict[str, Any], error: Any) -> None:
    service = {"states": "stepfunctions"}.get(fields["type"], fields["type"])

    with pytest.raises(Unavailable, match="STS does not answer"):
        performed(fields, roles=Roles({service: RoleNotAssumedError(error)}))


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize("fields", [QUEUE, TOPIC, MACHINE], ids=["sqs", "sns", "states"])
def test_a_deleted_target_is_a_failed_run_that_is_not_retried(fields: dict[str, Any]) -> None:
    outcome = performed(fields)

    assert (outcome.verdict, outcome.reason, outcome.retryable) == (Verdict.FAILED, Reason.HTTP_STATUS, False)
    assert outcome.http_status in {400, 404}


@pytest.mark.parametrize(("code", "retryable"), [("InternalFailure", True), ("NotAuthorizedForSourceException", False)])
def test_an_event_that_the_bus_rejects_is_a_failed_attempt(code: str, retryable: bool) -> None:
    outcome = performed(BUS, roles=Roles({"events": Bus(ErrorCode=code, ErrorMessage="because")}))

    assert (outcome.verdict, outcome.reason) == (Verdict.FAILED, Reason.TARGET_ERROR)
    assert (outcome.message, outcome.retryable) == (f"{code}: because", retryable)


@of_each
def test_a_target_that_the_stack_no_longer_allows_is_not_called(fields: dict[str, Any]) -> None:
    draft = drafted(fields)
    roles = Roles()
    strict = replace(outbound(roles), settings=GuardSettings())

    outcome = actions.perform(draft.kind, draft.params, CALL, strict)

    assert (outcome.reason, outcome.retryable) == (Reason.GUARD, False)
    assert "TargetRoleArns" in str(outcome.message)
    assert roles.asked == []


@pytest.mark.parametrize("fields", JSON_ONLY, ids=[each["type"] for each in JSON_ONLY])
def test_a_payload_stored_for_another_kind_is_a_bad_payload(fields: dict[str, Any]) -> None:
    outcome = performed(fields, replace(CALL, payload="text", payload_is_json=False), Roles({fields["type"]: Lambda()}))

    assert (outcome.reason, outcome.retryable) == (Reason.BAD_PAYLOAD, False)


# ---- What is refused -------------------------------------------------------------------------------------------------


def refusal(fields: dict[str, Any], guard: GuardSettings = GUARD) -> tuple[str | None, str]:
    with pytest.raises(InvalidRequest) as caught:
        drafted(fields, guard)
    return caught.value.field, caught.value.reason


@of_each
def test_a_job_of_the_kind_cannot_be_created_without_the_parameter(fields: dict[str, Any]) -> None:
    assert refusal(fields, GuardSettings()) == (
        "action.roleArn",
        "is not among the roles that this stack may assume (parameter TargetRoleArns)",
    )


@of_each
@pytest.mark.parametrize("name", ["targetArn", "roleArn"])
def test_target_and_role_are_required(fields: dict[str, Any], name: str) -> None:
    without = {key: value for key, value in fields.items() if key != name}

    assert refusal(without) == (f"action.{name}", "is required")


@of_each
def test_the_target_must_belong_to_the_service_of_the_kind(fields: dict[str, Any]) -> None:
    field, reason = refusal({**fields, "targetArn": arn("s3", "bucket")})

    assert field == "action.targetArn"
    assert reason.startswith("must be an ARN of the form")


def test_a_queue_of_the_stack_itself_is_refused() -> None:
    own = f"arn:aws:sqs:eu-central-1:{ACCOUNT}:sweephand-RunQueue-1A2B3C"

    assert refusal({**QUEUE, "targetArn": own}) == ("action.targetArn", "is a resource of this service itself")


@of_each
def test_members_that_only_http_has_are_refused(fields: dict[str, Any]) -> None:
    field, reason = refusal({**fields, "url": "https://example.org"})

    assert field == "action.url"
    assert reason.startswith("is not a known member; known are ")
    assert "targetArn" in reason


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        (
            {**QUEUE, "messageGroupId": "g"},
            "messageGroupId",
            "has no effect here: it belongs to targets whose name ends in .fifo",
        ),
        ({**FIFO, "messageGroupId": "a b"}, "messageGroupId", "must be visible ASCII without spaces"),
        ({**QUEUE, "body": ""}, "body", "SQS accepts no empty string"),
        ({**QUEUE, "body": "a\x00"}, "body", "contains a control character, which SQS does not accept"),
        ({**TOPIC, "body": ""}, "body", "SNS accepts no empty string"),
        ({**TOPIC, "subject": "a\nb"}, "subject", "must be visible ASCII, without spaces at its ends"),
        ({**TOPIC, "subject": "a" * 101}, "subject", "must have 1 to 100 characters, not 101"),
        ({**BUS, "source": None}, "source", "is required"),
        ({**BUS, "source": "aws.ec2"}, "source", "begins with aws., which is reserved for AWS"),
        ({**BUS, "source": "a b"}, "source", "must be visible ASCII without spaces"),
        ({**BUS, "detailType": None}, "detailType", "is required"),
        ({**BUS, "payload": [1]}, "payload", "must be a JSON object: this target accepts nothing else"),
        ({**FUNCTION, "body": "{}"}, "body", "must be JSON (member payload): this target accepts no other string"),
        ({**FUNCTION, "invocation": "dry"}, "invocation", 'must be one of sync, async, not "dry"'),
        ({**FUNCTION, "envelope": 1}, "envelope", "must be true or false, not 1"),
        ({**MACHINE, "body": "{}"}, "body", "must be JSON (member payload): this target accepts no other string"),
        ({**QUEUE, "payload": "x" * 65_537}, "payload", "must have at most 65,536 bytes"),
        (
            {**QUEUE, "outcome": {"onAccepted": "maybe"}},
            "outcome.onAccepted",
            'must be one of success, wait, not "maybe"',
        ),
        (
            {**QUEUE, "outcome": {"answerTimeoutSeconds": 61}},
            "outcome.answerTimeoutSeconds",
            "must be a whole number from 1 to 60, not 61",
        ),
        ({**QUEUE, "targetArn": 7}, "targetArn", "must be a string, not a number"),
    ],
)
def test_a_field_is_refused_with_its_path_and_the_reason(fields: dict[str, Any], field: str, reason: str) -> None:
    assert refusal(fields) == (f"action.{field}", reason)


@of_each
def test_a_stored_action_reads_back_unchanged(fields: dict[str, Any]) -> None:
    stored = drafted({**fields, "payload": {"n": 1}}).params
    again = drafted({"payload": {"n": 1}, **stored}).params

    assert again == stored
    assert "payload" not in stored
