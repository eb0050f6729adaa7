"""Guards of what watches the stack: alarms, what they tell, and the dashboard."""

from __future__ import annotations

import json
import re

import pytest
from samtranslator.yaml_helper import yaml_parse

from sweephand.domain import watched
from sweephand.server.flow.verdict import LONGEST_WAIT_S
from sweephand.server.telemetry import METRICS, NAMESPACE, Telemetry
from tests.template.cloudformation import ROOT, of_type, present

OWN = [{"Name": "stack", "Value": "sweephand"}]


def _queue(name):
    return [{"Name": "QueueName", "Value": {"Fn::GetAtt": [name, "QueueName"]}}]


def _function(name):
    return [{"Name": "FunctionName", "Value": {"Ref": name}}]


ALARMS = {
    "LatenessAlarm": ("Sweephand", "Lateness", OWN),
    "OldestDueAlarm": ("Sweephand", "OldestDue", OWN),
    "SweeperSilentAlarm": ("AWS/Lambda", "Invocations", _function("SweeperFunction")),
    "TickDeadLetterAlarm": ("AWS/SQS", "NumberOfMessagesSent", _queue("TickDeadLetterQueue")),
    "RunQueueAgeAlarm": ("AWS/SQS", "ApproximateAgeOfOldestMessage", _queue("RunQueue")),
    "SlowQueueAgeAlarm": ("AWS/SQS", "ApproximateAgeOfOldestMessage", _queue("SlowQueue")),
    "FunctionErrorsAlarm": ("Sweephand/sweephand", "FunctionErrors", []),
    "DeadLetterAlarm": ("AWS/SQS", "NumberOfMessagesReceived", _queue("DeadLetterQueue")),
    "ThrottlesAlarm": ("Sweephand", "Throttled", OWN),
    "ApiErrorsAlarm": ("AWS/ApiGateway", "5xx", [{"Name": "ApiId", "Value": {"Ref": "Api"}}]),
    "AuditAlarm": ("Sweephand", "AuditFindings", OWN),
    "AuditorSilentAlarm": ("AWS/Lambda", "Invocations", _function("AuditorFunction")),
    "EventsUnsentAlarm": ("Sweephand", "EventsUnsent", OWN),
    "AwayAlarm": ("Sweephand", "Away", OWN),
}
SILENT = {"SweeperSilentAlarm", "AuditorSilentAlarm"}
"""Alarms for which a missing value is what they report."""
KIND, FILTER = "AWS::CloudWatch::Alarm", "AWS::Logs::MetricFilter"
LETTERS = {"Fn::GetAtt": ["TickDeadLetterQueue", "Arn"]}
TOPIC = "arn:aws:sns:eu-central-1:123456789012:night-watch"


def test_the_alarms_are_known_to_these_tests(stack):
    assert of_type(stack, KIND).keys() == ALARMS.keys()


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_watches_a_metric_of_this_stack_and_treats_missing_data_as_intended(stack, name):
    alarm = of_type(stack, KIND)[name]

    assert (alarm["Namespace"], alarm["MetricName"], alarm.get("Dimensions", [])) == ALARMS[name]
    assert alarm["TreatMissingData"] == ("breaching" if name in SILENT else "notBreaching")
    assert alarm["Namespace"] != NAMESPACE or alarm["MetricName"] in METRICS


def test_a_metric_that_a_healthy_idle_stack_writes_would_cost_money_so_only_awss_own_show_that_it_lives(stack):
    """Each own metric that an alarm watches is absent while nothing is wrong, so its absence is no alarm."""
    assert {of_type(stack, KIND)[name]["Namespace"] for name in SILENT} == {"AWS/Lambda"}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(("name", "span_s"), [("SweeperSilentAlarm", 300), ("AuditorSilentAlarm", 3 * 3_600)])
def test_each_worker_that_is_not_invoked_raises_an_alarm(deployed, workers, name, span_s):
    alarm = of_type(deployed(SweepWorkers=workers), KIND)[name]

    assert (alarm["Statistic"], alarm["ComparisonOperator"]) == ("Sum", "LessThanThreshold")
    assert alarm["Threshold"] == workers
    assert alarm["Period"] * alarm["EvaluationPeriods"] == span_s
    assert "DatapointsToAlarm" not in alarm, "all of them"


def test_a_function_that_fails_raises_an_alarm_whoever_calls_it(stack):
    """The gateway counts 5xx, failed events go to the queue of TickDeadLetterAlarm, and filters read the logs of those
    that read queues.
    """
    functions = of_type(stack, "AWS::Lambda::Function")
    invoked = of_type(stack, "AWS::Lambda::EventInvokeConfig").values()
    readers = {each["FunctionName"]["Ref"] for each in of_type(stack, "AWS::Lambda::EventSourceMapping").values()}
    permissions = of_type(stack, "AWS::Lambda::Permission").values()
    of_api = {each["FunctionName"]["Ref"] for each in permissions if each["Principal"].startswith("apigateway")}
    of_rules = {each["FunctionName"]["Ref"] for each in permissions if each["Principal"].startswith("events")}
    filtered = {each["LogGroupName"]["Ref"] for each in of_type(stack, FILTER).values()}

    assert functions.keys() == readers | of_api | of_rules
    assert {functions[name]["LoggingConfig"]["LogGroup"]["Ref"] for name in readers} == filtered
    assert {each["FunctionName"]["Ref"] for each in invoked} == of_rules
    for each in invoked:
        assert each["DestinationConfig"]["OnFailure"]["Destination"] == LETTERS
    assert of_type(stack, KIND)["TickDeadLetterAlarm"]["Threshold"] == 1


@pytest.mark.parametrize(("status", "counts"), [("success", 0), ("error", 1), ("timeout", 1), ("failure", 1)])
def test_the_filters_count_invocations_that_fail_in_the_metric_of_the_alarm(stack, status, counts):
    report = {"type": "platform.report", "record": {"requestId": "r", "status": status}}
    start = {"type": "platform.start", "record": {"requestId": "r"}}

    for each in of_type(stack, FILTER).values():
        (metric,) = each["MetricTransformations"]
        alarm = of_type(stack, KIND)["FunctionErrorsAlarm"]
        assert (metric["MetricNamespace"], metric["MetricName"]) == (alarm["Namespace"], alarm["MetricName"])
        assert metric.keys() == {"MetricNamespace", "MetricName", "MetricValue"}, "no value costs nothing"
        assert sum(_matches(each["FilterPattern"], line) for line in (report, start)) == counts


def _matches(pattern, line):
    """Compares the members as CloudWatch does; only for patterns with `&&`, `=` and `!=`."""
    terms = re.findall(r'\$\.([\w.]+) (!?=) "([^"]*)"', pattern)
    assert pattern == "{ " + " && ".join(f'$.{way} {sign} "{value}"' for way, sign, value in terms) + " }"
    return all((_member(line, way) == value) is (sign == "=") for way, sign, value in terms)


def _member(line, way):
    for step in way.split("."):
        line = line.get(step, {})
    return line


def test_messages_that_nobody_takes_or_settles_raise_an_alarm(stack):
    """Each queue is watched, or what is not settled goes to one that is. The archive is only evidence."""
    watched = {
        dimension["Value"]["Fn::GetAtt"][0]
        for alarm in of_type(stack, KIND).values()
        for dimension in alarm.get("Dimensions", [])
        if dimension["Name"] == "QueueName"
    }
    unwatched = of_type(stack, "AWS::SQS::Queue").keys() - watched

    assert unwatched == {"ArchiveQueue", "OperationsQueue"}
    redrive = stack["Resources"]["OperationsQueue"]["Properties"]["RedrivePolicy"]
    assert redrive["deadLetterTargetArn"]["Fn::GetAtt"][0] in watched


def test_an_event_that_a_rule_cannot_deliver_raises_an_alarm(deployed):
    rules = of_type(deployed(SweepWorkers=5, TaskCluster="c", TaskDefinitionArns="d"), "AWS::Events::Rule")

    assert [target["DeadLetterConfig"] for rule in rules.values() for target in rule["Targets"]] == [
        {"Arn": LETTERS}
    ] * 13


@pytest.mark.parametrize("kind", ["AWS::DynamoDB::Table", "AWS::Events::EventBus", "AWS::ApiGatewayV2::Api"])
def test_the_table_the_bus_and_the_gateway_that_alarms_watch_are_the_only_ones(stack, kind):
    """ThrottlesAlarm, EventsUnsentAlarm and ApiErrorsAlarm watch them."""
    assert len(of_type(stack, kind)) == 1


def test_runs_that_begin_late_raise_an_alarm_within_five_minutes(stack):
    alarm = of_type(stack, KIND)["LatenessAlarm"]

    assert (alarm["ExtendedStatistic"], alarm["Threshold"], METRICS["Lateness"]) == ("p90", 30_000, "Milliseconds")
    assert "Statistic" not in alarm
    assert alarm["Period"] * alarm["EvaluationPeriods"] == 300


@pytest.mark.parametrize("name", ["RunQueueAgeAlarm", "SlowQueueAgeAlarm"])
def test_messages_that_wait_for_their_second_or_for_a_retry_raise_no_alarm(stack, raw, name):
    """SQS counts the age of a delayed or hidden message from the time when it was sent."""
    alarm = of_type(stack, KIND)[name]

    assert alarm["Threshold"] >= max(raw["Parameters"]["LookAheadSeconds"]["MaxValue"], LONGEST_WAIT_S) + 300


def test_one_lost_tick_raises_no_alarm_and_makes_nothing_late(stack, raw):
    """The look-ahead bears it."""
    silent = of_type(stack, KIND)["SweeperSilentAlarm"]

    assert silent["EvaluationPeriods"] * silent["Period"] > raw["Parameters"]["LookAheadSeconds"]["Default"]


def test_thresholds_tolerate_conditions_that_pass_without_help(stack, raw):
    """The look-ahead bears one lost tick, and Lambda's own trouble now and then fails an invocation."""
    alarms = of_type(stack, KIND)

    assert 60 < alarms["OldestDueAlarm"]["Threshold"] < raw["Parameters"]["LookAheadSeconds"]["Default"]
    assert alarms["FunctionErrorsAlarm"]["Threshold"] == 3
    assert alarms["ThrottlesAlarm"]["EvaluationPeriods"] > 1


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
    text = (ROOT / page).read_text()
    assert name in text.partition("\n")[0]
    assert "**Is it urgent?**" in text.partition("\n1. ")[0]


def test_the_alarm_in_the_page_watches_a_metric_of_a_listed_collection_as_it_is_written(capsys):
    page = (ROOT / "docs" / "operate" / "look-after.md").read_text()
    (text,) = re.findall(r"```yaml\n(NightlyLateness:.*?)```", page, re.DOTALL)
    (alarm,) = (each["Properties"] for each in yaml_parse(text).values())
    (part,) = watched.parts("acme/nightly")

    Telemetry("sweephand").measure({part.kind: part.value}, **{alarm["MetricName"]: 61_000})

    line = json.loads(capsys.readouterr().out)
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert {each["Name"]: each["Value"] for each in alarm["Dimensions"]} == {
        name: line[name] for (names,) in [directive["Dimensions"]] for name in names
    }
    assert (directive["Namespace"], directive["Metrics"][0]["Unit"]) == (alarm["Namespace"], "Milliseconds")


def test_alarms_and_dashboard_are_optional_because_they_cost_money(translated):
    everything = present(translated)
    bare = present(translated, Alarms="off", Dashboard="off")
    filters = of_type(translated, FILTER)

    assert everything - bare == {*ALARMS, *filters, "DashboardOfStack"}


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
