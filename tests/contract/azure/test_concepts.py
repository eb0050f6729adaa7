"""The concepts page of Azure Scheduler: its examples, states and retry policies, and what is kept for 60 days."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.contract.azure.api import EVERY_HOUR, HTTP, JOB, job
from tests.support.endpoint import WRONG

DAY_S = 86_400
COMPLETE = {
    "startTime": "2012-08-04T00:00Z",
    "action": {
        "type": "http",
        "retryPolicy": {"retryType": "none"},
        "request": {
            "uri": "https://example.org/run",
            "method": "PUT",
            "body": "Posting from a timer",
            "headers": {"Content-Type": "application/json"},
        },
        "errorAction": {"type": "http", "request": {"uri": "https://errors.example/", "method": "POST"}},
    },
    "recurrence": {
        "frequency": "week",
        "interval": 1,
        "schedule": {"weekDays": ["monday", "wednesday", "friday"], "hours": [10, 22]},
        "count": 10,
        "endTime": "2027-11-04",
    },
    "state": "disabled",
    "status": {
        "lastExecutionTime": "2007-03-01T13:00:00Z",
        "nextExecutionTime": "2007-03-01T14:00:00Z ",
        "executionCount": 3,
        "failureCount": 0,
        "faultedCount": 0,
    },
}
"""The page's comprehensive example, with the addresses that it leaves empty and an end that lies ahead."""
TOPIC = {
    "topicPath": "t1",
    "namespace": "mySBNamespace",
    "transportType": "netMessaging",
    "authentication": {"sasKeyName": "QPolicy", "type": "sharedAccessKey"},
    "message": "Some message",
    "brokeredMessageProperties": {},
    "customMessageProperties": {"appname": "FromScheduler"},
}
QUEUE = {"queueName": "q1", **{name: value for name, value in TOPIC.items() if name != "topicPath"}}
STORAGE = {"storageAccount": "myStorageAccount", "queueName": "myqueue", "sasToken": "TOKEN", "message": "My message"}


def fixed(**more):
    return {"action": {**HTTP, "retryPolicy": {"retryType": "fixed", **more}}}


def test_the_comprehensive_example_is_accepted_and_shown(api):
    shown = api.job(**COMPLETE)

    action, error = COMPLETE["action"], COMPLETE["action"]["errorAction"]
    assert shown == {
        "startTime": "2012-08-04T00:00:00Z",
        "action": {
            "type": "Http",
            "request": action["request"],
            "retryPolicy": {"retryType": "None"},
            "errorAction": {**error, "type": "Http"},
        },
        "recurrence": {
            "frequency": "Week",
            "interval": 1,
            "schedule": {"weekDays": ["Monday", "Wednesday", "Friday"], "hours": [10, 22]},
            "count": 10,
            "endTime": "2027-11-04T00:00:00Z",
        },
        "state": "Disabled",
        "status": {"executionCount": 0, "failureCount": 0, "faultedCount": 0},
    }


def test_the_comprehensive_example_runs_when_it_is_enabled(api):
    api.job(**COMPLETE)

    shown = api("PATCH", JOB, {"properties": {"state": "enabled"}}).json["properties"]
    api.stage.run(3 * DAY_S)

    assert shown["status"]["nextExecutionTime"] == "2027-03-01T22:00:00Z"
    planned = [each["expectedExecutionTime"][:16] for each in reversed(api.history())]
    assert planned == ["2027-03-01T22:00", "2027-03-03T10:00", "2027-03-03T22:00"]
    (received, *_) = api.stage.endpoint.received
    assert received.call.payload == "Posting from a timer"


@pytest.mark.parametrize(
    ("action", "lacks"),
    [
        ({"type": "storageQueue", "queueMessage": STORAGE}, "sasToken"),
        ({"type": "serviceBusTopic", "serviceBusTopicMessage": TOPIC}, "authentication.sasKey"),
        ({"type": "serviceBusQueue", "serviceBusQueueMessage": QUEUE}, "authentication.sasKey"),
    ],
    ids=["storage queue", "service bus topic", "service bus queue"],
)
def test_the_message_example_is_accepted_with_its_secret(api, action, lacks):
    """The page leaves the key of Service Bus out, as answers do; a new job needs it."""
    member = next(name for name in action if name != "type")
    api.collection()

    without = {**action, member: {name: value for name, value in action[member].items() if name != "sasToken"}}
    reply = api("PUT", JOB, job(action=without))
    proof = {} if member == "queueMessage" else {"authentication": {**TOPIC["authentication"], "sasKey": "canary"}}
    shown = api.job(action={**action, member: {**action[member], **proof}})["action"][member]

    assert reply.status == 400
    assert reply.json["error"]["message"].startswith(f"properties.action.{member}.{lacks}"), reply.text
    assert (shown["message"], "sasToken" in shown, "sasKey" in str(shown)) == (
        action[member]["message"],
        False,
        "sasKeyName" in str(shown),
    )


# States


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize(
    ("given", "status", "shown"),
    [
        ("enabled", 200, "Enabled"),
        ("disabled", 200, "Disabled"),
        ("completed", 400, "Enabled"),
        ("faulted", 400, "Enabled"),
        ("paused", 400, "Enabled"),
        (True, 400, "Enabled"),
    ],
)
def test_put_and_patch_set_only_enabled_and_disabled(api, method, given, status, shown):
    api.job(startTime=api.at(3600))
    body = job(startTime=api.at(3600), state=given) if method == "PUT" else {"properties": {"state": given}}

    reply = api(method, JOB, body)

    assert (reply.status, api.properties()["state"]) == (status, shown)
    assert status == 200 or reply.json["error"]["message"].startswith("properties.state")


def test_only_the_service_writes_the_status(api):
    before = api.job(startTime=api.at(3600), recurrence=EVERY_HOUR)

    api("PATCH", JOB, {"properties": {"status": {"executionCount": 9, "nextExecutionTime": "2030-01-01"}}})

    assert api.properties() == before


def test_records_are_kept_for_60_days(api):
    api.job(startTime=api.at(60), recurrence={"frequency": "Month"})
    api.stage.run(120)

    api.stage.pass_time(27 * DAY_S)
    assert len(api.history()) == 1
    api.stage.run(5 * DAY_S)
    assert len(api.history()) == 2
    api.stage.pass_time(28.5 * DAY_S)
    assert [each["repeatCount"] for each in api.history()] == [2]
    assert api.properties()["status"]["executionCount"] == 2


# Retry policies


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, ("PT30S", 4)),
        ({"retryInterval": "PT15S"}, ("PT15S", 4)),
        ({"retryInterval": "00:00:15", "retryCount": 0}, ("PT15S", 0)),
        ({"retryInterval": "P548D", "retryCount": 20}, ("P548D", 20)),
        ({"retryInterval": "548.00:00:00", "retryCount": 1}, ("P548D", 1)),
        ({"retryInterval": "P18M"}, ("P545D", 4)),
    ],
)
def test_retry_policies_within_their_bounds_show_their_defaults(api, given, shown):
    policy = api.job(startTime=api.at(3600), **fixed(**given))["action"]["retryPolicy"]

    assert policy == {"retryType": "Fixed", "retryInterval": shown[0], "retryCount": shown[1]}


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"retryInterval": "PT14S"}, "retryInterval"),
        ({"retryInterval": "00:00:14"}, "retryInterval"),
        ({"retryInterval": "P548DT1S"}, "retryInterval"),
        ({"retryInterval": "P19M"}, "retryInterval"),
        ({"retryInterval": 60}, "retryInterval"),
        ({"retryInterval": "soon"}, "retryInterval"),
        ({"retryCount": 21}, "retryCount"),
        ({"retryCount": -1}, "retryCount"),
        ({"retryCount": "4"}, "retryCount"),
        ({"retryCount": 1.5}, "retryCount"),
    ],
)
def test_out_of_range_retry_policies_are_refused_by_name(api, given, names):
    api.collection()

    reply = api("PUT", JOB, job(**fixed(**given)))

    assert reply.status == 400
    assert reply.json["error"]["message"].startswith(f"properties.action.retryPolicy.{names}"), reply.text


@pytest.mark.parametrize(
    ("given", "waits_s"), [({}, [30] * 4), ({"retryInterval": "PT15S", "retryCount": 20}, [15] * 20)]
)
def test_retries_follow_the_requested_count_and_interval(api, given, waits_s):
    api.stage.endpoint.answer = WRONG
    api.job(**fixed(**given))
    api.stage.run(600)

    at = [received.at for received in api.stage.endpoint.received]
    assert [(after - before).total_seconds() for before, after in pairwise(at)] == waits_s
    assert api.properties()["status"]["failureCount"] == len(waits_s) + 1


def test_a_free_collection_retries_after_an_hour_at_the_earliest(api):
    api.collection(sku={"name": "Free"})

    refused = api("PUT", JOB, job(**fixed(retryInterval="PT59M59S")))
    least = api("PUT", JOB, job(startTime=api.at(3600), **fixed(retryInterval="PT1H")))

    assert (refused.status, refused.json["error"]["code"]) == (409, "ConflictError")
    assert "retryInterval" in refused.json["error"]["message"]
    assert least.status == 201
