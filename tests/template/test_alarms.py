"""Guards of what watches the stack: alarms, what they tell, and the dashboard."""

from __future__ import annotations

import json
import re

import pytest

from sweephand.telemetry import METRICS, NAMESPACE
from tests.template.cloudformation import ROOT, of_type

ALARMS = {
    "OldestDueAlarm": ("OldestDue", "notBreaching"),
    "SweeperSilentAlarm": ("OldestDue", "breaching"),
    "DeadLetterAlarm": ("NumberOfMessagesReceived", "notBreaching"),
    "ExecutorErrorsAlarm": ("Errors", "notBreaching"),
    "ExecutorSlowErrorsAlarm": ("Errors", "notBreaching"),
    "AuditAlarm": ("AuditFindings", "notBreaching"),
    "ApplicationAwayAlarm": ("ApplicationsAway", "notBreaching"),
    "UnauditedAlarm": ("Unaudited", "breaching"),
}
MOST_ALARMS = 8
KIND = "AWS::CloudWatch::Alarm"
TOPIC = "arn:aws:sns:eu-central-1:123456789012:night-watch"


def _present(deployed, raw, **parameters):
    """Names of the resources whose condition holds."""
    stack = deployed(**parameters)
    wanted = {
        "HasAlarms": stack_value(raw, "Alarms", parameters),
        "HasDashboard": stack_value(raw, "Dashboard", parameters),
        "OnX86": "on",
        "OnArm": "off",
        "HasSapFacade": stack_value(raw, "SapFacade", parameters),
        "HasAzureFacade": stack_value(raw, "AzureFacade", parameters),
        "HasIdentity": "on" if stack_value(raw, "OutboundIdentity", parameters) != "off" else "off",
        "HasTasks": "on" if stack_value(raw, "TaskCluster", parameters) else "off",
    }
    return {
        name
        for name, resource in stack["Resources"].items()
        if "Condition" not in resource or wanted[resource["Condition"]] == "on"
    }


def stack_value(raw, parameter, given):
    return given.get(parameter, raw["Parameters"][parameter]["Default"])


def test_the_alarms_are_known_to_these_tests_and_not_too_many(stack):
    assert of_type(stack, KIND).keys() == ALARMS.keys()
    assert len(ALARMS) <= MOST_ALARMS


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_watches_the_stated_metric_and_treats_missing_data_as_intended(stack, name):
    alarm = of_type(stack, KIND)[name]

    assert (alarm["MetricName"], alarm["TreatMissingData"]) == ALARMS[name]
    if alarm["Namespace"] == NAMESPACE:
        assert alarm["Dimensions"] == [{"Name": "stack", "Value": "sweephand"}]
        assert alarm["MetricName"] in METRICS


@pytest.mark.parametrize(
    ("name", "watched"),
    [
        ("DeadLetterAlarm", {"Fn::GetAtt": ["DeadLetterQueue", "QueueName"]}),
        ("ExecutorErrorsAlarm", {"Ref": "ExecutorFunction"}),
        ("ExecutorSlowErrorsAlarm", {"Ref": "ExecutorSlowFunction"}),
    ],
)
def test_an_alarm_watches_this_stacks_own_resource(stack, name, watched):
    ((dimension),) = of_type(stack, KIND)[name]["Dimensions"]

    assert dimension["Value"] == watched


@pytest.mark.parametrize("workers", [1, 3])
def test_each_silent_sweeper_raises_an_alarm(deployed, workers):
    alarm = of_type(deployed(SweepWorkers=workers), KIND)["SweeperSilentAlarm"]

    assert (alarm["Statistic"], alarm["ComparisonOperator"]) == ("SampleCount", "LessThanThreshold")
    assert alarm["Threshold"] == workers
    assert alarm["Period"] * alarm["DatapointsToAlarm"] == 300


def test_an_audit_that_is_not_completed_for_three_hours_raises_an_alarm(stack):
    """The rule is off, or each audit fails: there is no value. Or a shard is not reached: the value is above 0."""
    alarm = of_type(stack, KIND)["UnauditedAlarm"]

    assert (alarm["Statistic"], alarm["ComparisonOperator"]) == ("Maximum", "GreaterThanOrEqualToThreshold")
    assert (alarm["Threshold"], alarm["TreatMissingData"]) == (1, "breaching")
    assert alarm["Period"] * alarm["DatapointsToAlarm"] == 3 * 3_600
    assert alarm["Period"] * alarm["EvaluationPeriods"] <= 86_400  # CloudWatch's limit


def test_one_lost_tick_raises_no_alarm_and_makes_nothing_late(stack, raw):
    """The look-ahead bears it."""
    silent = of_type(stack, KIND)["SweeperSilentAlarm"]

    assert silent["DatapointsToAlarm"] * silent["Period"] > raw["Parameters"]["LookAheadSeconds"]["Default"]


def test_thresholds_tolerate_conditions_that_pass_without_help(stack, raw):
    """The look-ahead bears one lost tick, and Lambda's own trouble now and then fails an invocation."""
    alarms = of_type(stack, KIND)

    assert 60 < alarms["OldestDueAlarm"]["Threshold"] < raw["Parameters"]["LookAheadSeconds"]["Default"]
    assert alarms["ExecutorErrorsAlarm"]["Threshold"] == alarms["ExecutorSlowErrorsAlarm"]["Threshold"] == 3


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_notifies_the_operators_topic_when_it_begins_and_ends(translated, deployed, name):
    assert "AlarmActions" not in of_type(deployed(), KIND)[name]
    assert "OKActions" not in of_type(deployed(), KIND)[name]

    split = {"Fn::Split": [",", TOPIC]}
    told = of_type(deployed(AlarmActionArns=TOPIC), KIND)[name]
    assert (told["AlarmActions"], told["OKActions"]) == (split, split)


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_names_the_page_that_says_what_to_do(stack, name):
    description = of_type(stack, KIND)[name]["AlarmDescription"]

    (page,) = re.findall(r"docs/operate/[a-z-]+\.md", description)
    assert description.startswith("sweephand: ")
    assert (ROOT / page).is_file()


def test_alarms_and_dashboard_are_optional_because_they_cost_money(deployed, raw):
    everything = _present(deployed, raw)
    bare = _present(deployed, raw, Alarms="off", Dashboard="off")

    assert everything - bare == {*ALARMS, "DashboardOfStack"}


def test_the_dashboard_shows_lateness_outcomes_queues_and_throttles(dashboard):
    titles = [widget["properties"]["title"] for widget in dashboard]
    lateness = next(widget for widget in dashboard if "Lateness" in widget["properties"]["title"])

    assert [metric[-1]["stat"] for metric in lateness["properties"]["metrics"]] == ["p50", "p90", "p99"]
    for word in ("Runs", "Oldest due", "Messages", "Age", "Throttles", "Errors"):
        assert any(word in title for title in titles)


def test_the_dashboard_shows_a_queues_age_next_to_that_of_quiet_tenants(dashboard):
    (ages,) = (widget["properties"]["metrics"] for widget in dashboard if "Age" in widget["properties"]["title"])

    for queue in ("RunQueue", "SlowQueue"):
        named = [metric[1] for metric in ages if metric[3] == f"${{{queue}.QueueName}}"]
        assert named == ["ApproximateAgeOfOldestMessage", "ApproximateAgeOfOldestMessageInQuietGroups"]


def test_the_dashboards_own_metrics_are_written_and_all_that_are_written_are_shown(dashboard):
    shown = [metric for widget in dashboard for metric in widget["properties"]["metrics"] if metric[0] == NAMESPACE]

    assert {metric[1] for metric in shown} == METRICS.keys()
    assert all(metric[2:4] == ["stack", "sweephand"] for metric in shown)


def test_the_dashboards_widgets_do_not_overlap(dashboard):
    cells = [
        (x, y)
        for widget in dashboard
        for x in range(widget["x"], widget["x"] + widget["width"])
        for y in range(widget["y"], widget["y"] + widget["height"])
    ]

    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_the_dashboard_names_resources_of_the_template(stack, raw, dashboard):
    names = set(
        re.findall(
            r"\$\{(\w+)(?:\.\w+)?\}", raw["Resources"]["DashboardOfStack"]["Properties"]["DashboardBody"]["Fn::Sub"]
        )
    )

    assert names <= stack["Resources"].keys()


@pytest.fixture
def dashboard(stack):
    (properties,) = of_type(stack, "AWS::CloudWatch::Dashboard").values()
    assert "DashboardName" not in properties, "two stacks fit into one account"
    return json.loads(properties["DashboardBody"])["widgets"]
