"""Guards of what waits: queues, their readers, and the times that must nest."""

from __future__ import annotations

import pytest

from sweephand.server.flow.bulk import carry_on
from sweephand.server.flow.delivery import dispatch
from sweephand.server.flow.verdict import LEASE_MARGIN_S
from tests.template.cloudformation import of_type

FOURTEEN_DAYS_S = 14 * 24 * 3600
READERS = {
    "ExecutorFunctionRuns": ("RunQueue", "ExecutorFunction"),
    "ExecutorSlowFunctionRuns": ("SlowQueue", "ExecutorSlowFunction"),
    "OperationsFunctionPages": ("OperationsQueue", "OperationsFunction"),
}
ONE_BY_ONE = {"OperationsFunctionPages"}
EVERY_QUEUE = ("RunQueue", "SlowQueue", "OperationsQueue", "DeadLetterQueue", "ArchiveQueue", "TickDeadLetterQueue")


def test_the_queues_are_known_to_these_tests(stack):
    assert sorted(of_type(stack, "AWS::SQS::Queue")) == sorted(EVERY_QUEUE)


def test_the_readers_are_known_to_these_tests(stack):
    mappings = of_type(stack, "AWS::Lambda::EventSourceMapping")

    assert {
        name: (mapping["EventSourceArn"]["Fn::GetAtt"][0], mapping["FunctionName"]["Ref"])
        for name, mapping in mappings.items()
    } == READERS


@pytest.mark.parametrize("queue", EVERY_QUEUE)
def test_every_queue_keeps_its_messages_for_14_days(stack, queue):
    assert stack["Resources"][queue]["Properties"]["MessageRetentionPeriod"] == FOURTEEN_DAYS_S


@pytest.mark.parametrize("queue", EVERY_QUEUE)
def test_every_queue_is_encrypted(stack, queue):
    assert stack["Resources"][queue]["Properties"]["SqsManagedSseEnabled"] is True


@pytest.mark.parametrize("queue", EVERY_QUEUE)
def test_cloudformation_names_every_queue(stack, queue):
    assert "QueueName" not in stack["Resources"][queue]["Properties"]


@pytest.mark.parametrize(("queue", "receives"), [("RunQueue", 10), ("SlowQueue", 10), ("OperationsQueue", 30)])
def test_a_message_received_ten_times_without_success_goes_to_the_dead_letters(stack, queue, receives):
    """An operation waits for six hours, because a function that cannot start shortens no visibility time-out."""
    assert stack["Resources"][queue]["Properties"]["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]},
        "maxReceiveCount": receives,
    }


def test_dead_letters_are_retried_until_they_expire_and_never_moved_on_unsettled(stack):
    assert "RedrivePolicy" not in stack["Resources"]["DeadLetterQueue"]["Properties"]


def test_a_message_of_an_operation_stays_hidden_six_times_as_long_as_its_reader_may_run(stack):
    visibility_s = stack["Resources"]["OperationsQueue"]["Properties"]["VisibilityTimeout"]
    assert visibility_s == 6 * stack["Resources"]["OperationsFunction"]["Properties"]["Timeout"]


@pytest.mark.parametrize("function", ["ExecutorFunction", "ExecutorSlowFunction"])
def test_two_rounds_of_calls_fit_into_an_executors_time_after_it_has_received_its_last_message(stack, function):
    properties = stack["Resources"][function]["Properties"]
    environment = properties["Environment"]["Variables"]

    last_s = int(environment["RELIEF_S"]) + 2 * int(environment["CALL_DEADLINE_S"])
    assert properties["Timeout"] >= last_s + 10
    assert int(environment["LEASE_S"]) + LEASE_MARGIN_S > dispatch.HELD_S + int(environment["CALL_DEADLINE_S"])


@pytest.mark.parametrize(
    ("function", "queue", "times_s"),
    [("ExecutorFunction", "RunQueue", (15, 25, 120, 180)), ("ExecutorSlowFunction", "SlowQueue", (60, 75, 210, 540))],
)
def test_call_lease_function_and_hidden_time_of_a_message_end_in_this_order(stack, function, queue, times_s):
    properties = stack["Resources"][function]["Properties"]
    environment = properties["Environment"]["Variables"]

    times = (
        int(environment["CALL_DEADLINE_S"]),
        int(environment["LEASE_S"]),
        properties["Timeout"],
        stack["Resources"][queue]["Properties"]["VisibilityTimeout"],
    )
    assert times == times_s
    assert list(times) == sorted(set(times))
    assert int(environment["VISIBILITY_S"]) == times[-1]


@pytest.mark.parametrize("reader", READERS)
def test_one_failed_message_does_not_return_the_nine_others(stack, reader):
    assert stack["Resources"][reader]["Properties"]["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


@pytest.mark.parametrize("reader", READERS)
def test_a_batch_has_up_to_ten_messages_and_does_not_wait_to_fill(stack, reader):
    """But of long work one at a time: each takes up to half of its function's time."""
    mapping = stack["Resources"][reader]["Properties"]

    wanted = 1 if reader in ONE_BY_ONE else 10
    assert (mapping["BatchSize"], mapping["MaximumBatchingWindowInSeconds"]) == (wanted, 0)


def test_no_page_of_long_work_starts_in_the_second_half_of_its_functions_time(stack):
    assert stack["Resources"]["OperationsFunction"]["Properties"]["Timeout"] >= 2 * carry_on.STRETCH_S


@pytest.mark.parametrize(
    ("reader", "parameter", "default"),
    [
        ("ExecutorFunctionRuns", "FastConcurrency", 3),
        ("ExecutorSlowFunctionRuns", "SlowConcurrency", 2),
        ("OperationsFunctionPages", "OperationsConcurrency", 2),
    ],
)
def test_no_queue_uses_more_executions_than_its_parameter_allows(stack, deployed, reader, parameter, default):
    chosen = deployed(**{parameter: 77})

    assert stack["Resources"][reader]["Properties"]["ScalingConfig"] == {"MaximumConcurrency": default}
    assert chosen["Resources"][reader]["Properties"]["ScalingConfig"] == {"MaximumConcurrency": 77}


def test_default_settings_leave_two_of_a_new_accounts_ten_executions_to_sweeper_and_api(stack):
    mappings = of_type(stack, "AWS::Lambda::EventSourceMapping").values()
    of_queues = sum(mapping["ScalingConfig"]["MaximumConcurrency"] for mapping in mappings)
    minutely = [
        rule for rule in of_type(stack, "AWS::Events::Rule").values() if "minute" in rule.get("ScheduleExpression", "")
    ]
    dead_letters, sweeper = len(minutely) - 1, 1

    assert of_queues + dead_letters == 8
    assert 10 - of_queues - dead_letters - sweeper >= 1


TLS_ONLY = {
    "Sid": "OverTlsOnly",
    "Effect": "Deny",
    "Principal": "*",
    "Action": "sqs:*",
    "Resource": "*",
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}


def test_every_queue_accepts_only_tls(stack):
    policies = of_type(stack, "AWS::SQS::QueuePolicy").values()
    queues = [queue["Ref"] for policy in policies for queue in policy["Queues"]]

    assert sorted(queues) == sorted(of_type(stack, "AWS::SQS::Queue"))
    assert all(TLS_ONLY in policy["PolicyDocument"]["Statement"] for policy in policies)


def test_only_the_clocks_and_the_task_events_may_send_to_a_queue_without_a_role(stack):
    policies = of_type(stack, "AWS::SQS::QueuePolicy")

    assert policies.keys() == {"TickDeadLetterPolicy", "RunQueuePolicy", "QueuesPolicy"}, "see test_tasks.py for tasks"
    assert policies["RunQueuePolicy"]["PolicyDocument"]["Statement"] == [TLS_ONLY]
    assert policies["QueuesPolicy"]["PolicyDocument"]["Statement"] == [TLS_ONLY]
    policy = policies["TickDeadLetterPolicy"]
    assert policy["Queues"] == [{"Ref": "TickDeadLetterQueue"}]
    assert policy["PolicyDocument"]["Statement"] == [
        TLS_ONLY,
        {
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": {"Fn::GetAtt": ["TickDeadLetterQueue", "Arn"]},
            "Condition": {
                "ArnEquals": {
                    "aws:SourceArn": [
                        {"Fn::GetAtt": ["MinuteRule", "Arn"]},
                        {"Fn::GetAtt": ["AuditRule", "Arn"]},
                        {"Fn::GetAtt": ["DeadLetterRule", "Arn"]},
                    ]
                }
            },
        },
    ]


def test_messages_sent_ahead_stay_within_the_maximum_delay_of_a_queue(raw):
    sqs_longest_delay_s, one_tick_s = 900, 60

    assert raw["Parameters"]["LookAheadSeconds"]["MaxValue"] <= sqs_longest_delay_s - one_tick_s


def test_the_look_ahead_tolerates_one_lost_tick(raw):
    two_ticks_s = 120

    assert raw["Parameters"]["LookAheadSeconds"]["Default"] > two_ticks_s
    assert raw["Parameters"]["LookAheadSeconds"]["MinValue"] > two_ticks_s / 2
