"""The tables of metrics and alarms: names, units and thresholds from the code and the template, meanings from here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sweephand.server.telemetry import METRICS

# A metric without a line here is an error: whoever adds one says what it means and when it is written.
MEANINGS: Mapping[str, tuple[str, str]] = {
    "OldestDue": (
        "How long the oldest row had been due when the tick found it. Normally, none is due.",
        "by each tick that found a due row",
    ),
    "Lateness": (
        "From the planned instant to the start of the first attempt, one value per run.",
        "one line per batch",
    ),
    "Failed": (
        "1 for a run that failed, 0 for one that succeeded: the sum counts failures, the sample count runs.",
        "one line per batch",
    ),
    "Resent": (
        "Advances that failed, so that the next tick sends the same again. Harmless now and then.",
        "when it happens",
    ),
    "Away": (
        "1 for each application, consumer and target that is away, by every check.",
        "once a minute for each that is away",
    ),
    "Throttled": (
        "Requests that the table or an index refused in all of their attempts, because it was asked for too much.",
        "when it happens",
    ),
    "AuditFindings": (
        "Repairs by the audit, and about how many schedules it has not compared for three days. Normally none.",
        "when it happens",
    ),
    "DeadLetters": (
        "Messages that could not be processed in ten receives. Most of them go back to their queues.",
        "when it happens",
    ),
    "EventsUnsent": (
        (
            "[Events](../reference/events.md#delivery-guarantees) that the bus did not accept in four tries. "
            "They are lost."
        ),
        "when it happens",
    ),
    "Broken": (
        "Stored schedules that can no longer be read. They are taken out of service, with a row in the ledger.",
        "when it happens",
    ),
}
STATISTICS = {"Maximum": "the maximum of", "Sum": "the sum of", "p90": "the 90th percentile of"}
COMPARED = {"GreaterThanOrEqualToThreshold": "is at least", "LessThanThreshold": "is below"}
PAGE = re.compile(r"\$\{AWS::StackName\}: (.+) \(docs/operate/(.+)\.md\)")


def metrics() -> Iterable[tuple[str, ...]]:
    for name, unit in sorted(METRICS.items()):
        meaning, written = MEANINGS[name]
        yield f"`{name}`", unit, meaning, written


def alarms(template: Mapping[str, Any]) -> Iterable[tuple[str, ...]]:
    for name, resource in template["Resources"].items():
        if resource["Type"] == "AWS::CloudWatch::Alarm":
            facts = resource["Properties"]
            said = PAGE.fullmatch(facts["AlarmDescription"]["Fn::Sub"])
            assert said is not None, f"{name}: its description names no page of docs/operate"
            text, page = said.groups()
            yield (
                f"`{name}`",
                f"{text[0].upper()}{text[1:]}.",
                _condition(facts),
                f"[{page.replace('-', ' ')}]({page}.md)",
            )


def _condition(facts: Mapping[str, Any]) -> str:
    threshold = facts["Threshold"]
    limit = f"`{threshold['Ref']}`" if isinstance(threshold, dict) else str(threshold)
    statistic = STATISTICS[facts.get("Statistic") or facts["ExtendedStatistic"]]
    watched = f"{statistic} `{facts['MetricName']}` {COMPARED[facts['ComparisonOperator']]} {limit}"
    minutes, times = facts["Period"] // 60, facts["EvaluationPeriods"]
    span = f"{minutes} minutes" if minutes > 1 else "a minute"
    missing = "; missing values count too" if facts["TreatMissingData"] == "breaching" else ""
    return f"{watched} within {span}{f', {times} times in a row' if times > 1 else ''}{missing}"
