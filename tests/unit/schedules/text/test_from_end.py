"""Days and weekdays that are counted from the end of the month have one wording, whatever the notation."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sweephand.schedules.explain.preview_warnings import describe
from sweephand.schedules.timing import parse

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def described(timing: dict[str, object]) -> str:
    return describe(parse(timing, now=NOW), NOW)


@pytest.mark.parametrize("number", range(1, 32))
def test_a_day_from_the_end_is_named_alike_in_each_notation(number: int) -> None:
    monthly = {"frequency": "month", "schedule": {"monthDays": [-number], "hours": [9], "minutes": [0]}}

    texts = [
        described({"sapCron": f"* * -{number} * 9 0 0"}),
        described({"rrule": f"FREQ=MONTHLY;BYMONTHDAY=-{number};BYHOUR=9;BYMINUTE=0;BYSECOND=0"}),
        described({"recurrence": monthly}),
    ]

    name = {1: "the last day", 2: "the second-to-last day", 31: "the 31st-to-last day"}.get(number, "-to-last day")
    assert [name in text for text in texts] == [True] * 3, texts
