"""Guards of the clocks: minute rule and audit rule."""

from __future__ import annotations

import json

import pytest

from sweephand.server.flow.audit import audit
from sweephand.server.flow.delivery import dead_letters
from tests.template.cloudformation import ROOT, of_type

TICKED = {"MinuteRule": "SweeperFunction", "DeadLetterRule": "ExecutorFunction", "AuditRule": "AuditorFunction"}


def test_the_clocks_are_known_to_these_tests(stack):
    clocks = [name for name, rule in of_type(stack, "AWS::Events::Rule").items() if "ScheduleExpression" in rule]

    assert sorted(clocks) == sorted(TICKED)


@pytest.mark.parametrize(
    ("rule", "rate"),
    [("MinuteRule", "rate(1 minute)"), ("DeadLetterRule", "rate(1 minute)"), ("AuditRule", "rate(1 hour)")],
)
def test_sweep_and_dead_letters_run_each_minute_and_the_audit_runs_each_hour(stack, rule, rate):
    properties = stack["Resources"][rule]["Properties"]

    assert (properties["ScheduleExpression"], properties["State"]) == (rate, "ENABLED")
    assert {target["Arn"]["Fn::GetAtt"][0] for target in properties["Targets"]} == {TICKED[rule]}


@pytest.mark.parametrize("rule", ["MinuteRule", "AuditRule"])
@pytest.mark.parametrize("workers", [1, 2, 3, 4, 5])
def test_each_worker_gets_its_number_and_the_total(deployed, workers, rule):
    targets = deployed(SweepWorkers=workers)["Resources"][rule]["Properties"]["Targets"]

    assert [json.loads(target["Input"]) for target in targets] == [
        {"worker": worker, "workers": workers} for worker in range(workers)
    ]
    assert len({target["Id"] for target in targets}) == workers


def test_the_maximum_number_of_workers_fits_the_targets_of_one_rule(raw):
    most_targets_of_a_rule = 5

    assert raw["Parameters"]["SweepWorkers"]["MaxValue"] == most_targets_of_a_rule
    assert raw["Parameters"]["SweepWorkers"]["MinValue"] == 1


def test_a_tick_older_than_a_minute_is_dropped_because_the_next_one_reads_the_same_rows(deployed):
    targets = deployed(SweepWorkers=5)["Resources"]["MinuteRule"]["Properties"]["Targets"]

    assert [target["RetryPolicy"] for target in targets] == [
        {"MaximumRetryAttempts": 2, "MaximumEventAgeInSeconds": 60}
    ] * 5


def test_dead_letters_are_requested_by_the_event_that_the_executor_knows(stack):
    (target,) = stack["Resources"]["DeadLetterRule"]["Properties"]["Targets"]
    code = (ROOT / "functions" / "executor" / "app.py").read_text()

    assert json.loads(target["Input"]) == {"deadLetters": True}
    assert 'event.get("deadLetters") is True' in code


def test_the_function_settles_the_dead_letters_it_received_before_its_time_ends(stack):
    assert stack["Resources"]["ExecutorFunction"]["Properties"]["Timeout"] >= 2 * dead_letters.TAKEN_FOR_S


def test_a_letter_stays_hidden_while_its_reader_may_still_be_running(stack):
    visibility_s = stack["Resources"]["DeadLetterQueue"]["Properties"]["VisibilityTimeout"]

    assert visibility_s > stack["Resources"]["ExecutorFunction"]["Properties"]["Timeout"]


def test_a_failed_audit_is_retried_but_never_overlaps_the_next_one(stack):
    for target in stack["Resources"]["AuditRule"]["Properties"]["Targets"]:
        assert target["RetryPolicy"]["MaximumRetryAttempts"] == 2
        assert target["RetryPolicy"]["MaximumEventAgeInSeconds"] < 3600 / 2


def test_an_audit_ends_before_its_function_does(stack):
    auditor = stack["Resources"]["AuditorFunction"]["Properties"]

    assert audit.SEARCHES_S < audit.DEADLINE_S <= auditor["Timeout"] - 60
    assert auditor["MemorySize"] >= 1769  # from there on, Lambda gives a whole processor


@pytest.mark.parametrize("rule", TICKED)
def test_an_undeliverable_tick_is_kept_as_evidence(deployed, rule):
    targets = deployed(SweepWorkers=5)["Resources"][rule]["Properties"]["Targets"]

    assert [target["DeadLetterConfig"] for target in targets] == [
        {"Arn": {"Fn::GetAtt": ["TickDeadLetterQueue", "Arn"]}}
    ] * len(targets)


@pytest.mark.parametrize(
    ("function", "attempts", "oldest_s"),
    [("SweeperFunction", 0, 60), ("ExecutorFunction", 0, 60), ("AuditorFunction", 1, 900)],
)
def test_a_failed_tick_is_not_repeated_by_lambda_and_leaves_evidence(stack, function, attempts, oldest_s):
    (config,) = (
        config
        for config in of_type(stack, "AWS::Lambda::EventInvokeConfig").values()
        if config["FunctionName"] == {"Ref": function}
    )

    assert (config["MaximumRetryAttempts"], config["MaximumEventAgeInSeconds"]) == (attempts, oldest_s)
    assert config["DestinationConfig"] == {"OnFailure": {"Destination": {"Fn::GetAtt": ["TickDeadLetterQueue", "Arn"]}}}


@pytest.mark.parametrize(("rule", "function"), TICKED.items())
def test_a_rule_may_start_only_its_own_function(stack, rule, function):
    granted = [
        permission
        for permission in of_type(stack, "AWS::Lambda::Permission").values()
        if permission["FunctionName"] == {"Ref": function}
    ]

    assert granted == [
        {
            "Action": "lambda:InvokeFunction",
            "FunctionName": {"Ref": function},
            "Principal": "events.amazonaws.com",
            "SourceArn": {"Fn::GetAtt": [rule, "Arn"]},
        }
    ]


def test_no_service_may_start_a_function_except_for_a_named_resource(stack):
    assert all("SourceArn" in permission for permission in of_type(stack, "AWS::Lambda::Permission").values())
