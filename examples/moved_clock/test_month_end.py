"""A test of a job for the last day of each month. Three months pass in a moment."""

from __future__ import annotations

from datetime import UTC, datetime

from sweephand.sdk import cron, http
from sweephand.testing import stack


def test_the_books_are_closed_on_the_last_day_of_each_month() -> None:
    with stack(now=datetime(2027, 1, 1, tzinfo=UTC)) as sh:
        sh.jobs.create("books", http.post("https://shop.example.org/close"), cron("0 9 L * *", zone="Europe/Berlin"))

        calls = sh.advance("90d")

    assert [f"{call.at:%d %b %H:%M}" for call in calls] == ["31 Jan 08:00", "28 Feb 08:00", "31 Mar 07:00"]
