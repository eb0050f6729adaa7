"""Replaces Celery beat: each entry of a `beat_schedule` becomes a task of a worker.

python examples/from_celery/beat_worker.py billing      the module with `beat_schedule` and, optionally, `timezone`
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any

from sweephand.sdk import cron, every
from sweephand.sdk.worker import TaskRun, Worker

FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")


def schedule_of(name: str, schedule: Any, zone: str) -> dict[str, Any]:
    """Converts a schedule of Celery: seconds, a timedelta, or a `crontab`. Raises ValueError for others."""
    if isinstance(schedule, (int, float, timedelta)):
        return every(schedule if isinstance(schedule, timedelta) else timedelta(seconds=schedule), name="beat")
    fields = {each: str(vars(schedule).get(f"_orig_{each}", "")).replace(" ", "") for each in FIELDS}
    if not all(fields.values()):
        raise ValueError(f"{name}: {schedule!r} has no counterpart; use rrule, cron or every")
    if fields["day_of_month"] != "*" and fields["day_of_week"] != "*":
        raise ValueError(f"{name}: Celery wants both the day and the weekday of {schedule!r}; cron takes either")
    return cron(" ".join(fields.values()), zone=zone, name="beat")


def function_of(entry: Mapping[str, Any]) -> Callable[[TaskRun], Any]:
    """Returns the call of an entry's function, or Celery task, with its arguments.

    To leave the work to Celery's own workers, send it there instead:
    `app.send_task(entry["task"], args, kwargs, task_id=run.id, **entry.get("options", {}))`.
    """
    module, _, name = entry["task"].rpartition(".")
    function = getattr(import_module(module), name)
    args, kwargs = entry.get("args", ()), entry.get("kwargs", {})

    def call(run: TaskRun) -> Any:
        print(f"{run.planned_at:%H:%M:%S} {entry['task']}", flush=True)
        return function(*args, **kwargs)

    return call


def worker_of(name: str, entries: Mapping[str, Mapping[str, Any]], zone: str) -> Worker:
    """Returns a worker with a task for each entry, under the entry's name."""
    worker = Worker(f"beat-{name}", retry={"type": "none"})
    for key, entry in entries.items():
        schedules = [schedule_of(key, entry["schedule"], zone)]
        worker.task(name=key, schedules=schedules, overlap="allow")(function_of(entry))
    return worker


if __name__ == "__main__":
    given = import_module(sys.argv[1])
    worker_of(sys.argv[1], given.beat_schedule, getattr(given, "timezone", "UTC")).run()
