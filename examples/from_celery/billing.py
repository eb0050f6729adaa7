"""The settings and functions of a program that used Celery beat. In yours, import `crontab` from celery.schedules."""

from __future__ import annotations

from datetime import timedelta


class crontab:  # noqa: N801 - named as Celery's, with the same attributes
    """The part of Celery's `crontab` that beat_worker.py reads."""

    def __init__(
        self,
        minute: str | int = "*",
        hour: str | int = "*",
        day_of_week: str | int = "*",
        day_of_month: str | int = "*",
        month_of_year: str | int = "*",
    ) -> None:
        self._orig_minute, self._orig_hour = minute, hour
        self._orig_day_of_week, self._orig_day_of_month = day_of_week, day_of_month
        self._orig_month_of_year = month_of_year


def remind(kind: str, *, copies: int = 1) -> str:
    return f"{copies} x {kind}"


timezone = "Europe/Berlin"
beat_schedule = {
    "remind-each-workday": {
        "task": "billing.remind",
        "schedule": crontab(minute=30, hour=7, day_of_week="mon-fri"),
        "args": ("overdue",),
    },
    "remind-at-intervals": {
        "task": "billing.remind",
        "schedule": timedelta(hours=6),
        "args": ("due",),
        "kwargs": {"copies": 2},
    },
    "often": {"task": "billing.remind", "schedule": 3.0, "args": ("now",)},
}
