"""Converts schedules of EventBridge Scheduler into a job set. Expressions, zones, starts and ends stay as they are.

python examples/from_eventbridge/convert.py SET ROLE SCHEDULES.json > jobs.json

SCHEDULES.json is a list of answers from `aws scheduler get-schedule`. ROLE is the role that the executors assume.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

KINDS = {"sqs": "sqs", "sns": "sns", "lambda": "lambda", "states": "states", "events": "events"}
"""The type of action by the service in a target's ARN."""


def job_of(schedule: dict[str, Any], role: str) -> dict[str, Any]:
    """Returns a schedule as an entry of a job set. Raises ValueError for a target that no action can call."""
    target, window = schedule["Target"], schedule.get("FlexibleTimeWindow", {})
    timing = {
        "name": "schedule",
        "eventBridge": schedule["ScheduleExpression"],
        "timezone": schedule.get("ScheduleExpressionTimezone", "UTC"),
        "startTime": schedule.get("StartDate"),
        "endTime": schedule.get("EndDate"),
        "jitterSeconds": 60 * window.get("MaximumWindowInMinutes", 0) or None,
    }
    group = schedule.get("GroupName", "default")
    return {
        "key": f"{group}/{schedule['Name']}",
        "name": f"{group}/{schedule['Name']}",
        "description": schedule.get("Description"),
        "active": schedule.get("State", "ENABLED") == "ENABLED",
        "action": _action(schedule["Name"], target, role) | {"retry": _retry(target.get("RetryPolicy", {}))},
        "schedules": [{name: value for name, value in timing.items() if value is not None}],
    }


def _action(name: str, target: dict[str, Any], role: str) -> dict[str, Any]:
    kind = KINDS.get(target["Arn"].split(":")[2])
    if kind is None:
        raise ValueError(f"{name}: no action calls {target['Arn']}; call it by http with sigv4")
    action = {"type": kind, "targetArn": target["Arn"], "roleArn": role}
    if "Input" in target:
        action["payload"] = json.loads(target["Input"])
    return action


def _retry(policy: dict[str, int]) -> dict[str, Any]:
    """Returns the retry policy. Without one, EventBridge Scheduler retries 185 times within a day; here, at most 49."""
    retries = min(policy.get("MaximumRetryAttempts", 185), 49)
    if retries == 0:
        return {"type": "none"}
    return {
        "type": "exponential",
        "maxRetries": retries,
        "maxAgeSeconds": policy.get("MaximumEventAgeInSeconds", 86_400),
    }


if __name__ == "__main__":
    job_set, of_executors, file = sys.argv[1:]
    entries = [job_of(each, of_executors) for each in json.loads(Path(file).read_text())]
    json.dump({"set": job_set, "jobs": entries}, sys.stdout, indent=2)
