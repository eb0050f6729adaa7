"""A test of a job for the last day of each month. Three months pass in a moment."""

from __future__ import annotations

from datetime import UTC, datetime

from sweephand.sdk import FakeSweephand, cron, http


def test_the_books_are_closed_on_the_last_day_of_each_month() -> None:
    fake = FakeSweephand(now=datetime(2027, 1, 1, tzinfo=UTC))
    fake.jobs.create(
        "close-books", http.post("https://shop.example.org/close"), cron("0 9 L * *", zone="Europe/Berlin")
    )

    runs = fake.advance("90d")

    assert [f"{run.planned_at:%d %b %H:%M}" for run in runs] == ["31 Jan 08:00", "28 Feb 08:00", "31 Mar 07:00"]
