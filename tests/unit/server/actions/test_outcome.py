"""Whose runs wait for a report by default: those whose targets are told how to report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sweephand.domain.run import Verdict
from sweephand.server import actions
from sweephand.server.actions.event import Event
from sweephand.server.actions.outcome import Rules, taken
from tests.unit.server.actions.test_http import CALL

ASKED = replace(CALL, callback_token="t", on202="wait")


@pytest.mark.parametrize(
    ("kind", "options", "with_payload", "told"),
    [
        ("http", {"url": "https://example.org"}, True, True),
        ("sqs", {}, True, True),
        ("sns", {}, True, True),
        ("ecs", {"taskDefinition": "d", "container": "c"}, True, True),
        ("event", {}, True, False),
        ("event", {}, False, False),
        ("events", {"source": "s", "detailType": "d"}, True, False),
        ("events", {"source": "s", "detailType": "d"}, False, True),
        ("states", {}, True, False),
        ("states", {}, False, True),
        ("azure_storage_queue", {"storageAccount": "a", "queueName": "q"}, True, False),
        (
            "azure_service_bus_topic",
            {"namespace": "n", "topicPath": "t", "authentication": {"sasKeyName": "k"}},
            False,
            True,
        ),
        ("lambda", {"invocation": "sync", "envelope": False}, True, True),
        ("lambda", {"invocation": "async", "envelope": False}, True, False),
        ("lambda", {"invocation": "async", "envelope": False}, False, True),
        ("lambda", {"invocation": "async", "envelope": True}, True, True),
    ],
)
def test_a_target_learns_how_to_report_if_its_kind_has_a_place_for_it(kind, options, with_payload, told):
    action = actions.load(kind, {"targetArn": "arn", "roleArn": "arn", **options})

    assert action.sends_callback(with_payload=with_payload) is told


def test_a_target_without_a_callback_address_is_waited_for_only_if_the_action_says_so():
    assert taken(Rules(), ASKED, None, can_report=False).verdict is Verdict.SUCCEEDED
    assert taken(Rules(), ASKED, None).verdict is Verdict.ACCEPTED
    assert taken(Rules(on_accepted="wait"), ASKED, None, can_report=False).verdict is Verdict.ACCEPTED


def test_an_event_is_complete_once_the_bus_has_it():
    call = replace(ASKED, put_event=lambda *_: None)

    assert Event("x").perform(call, None).verdict is Verdict.SUCCEEDED
