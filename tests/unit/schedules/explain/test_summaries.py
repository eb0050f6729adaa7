"""Summaries in plain English."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sweephand.schedules.timing import parse

NOW = datetime(2026, 3, 7, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("fields", "summary"),
    [
        ({"cron": "30 2 * * 1-5", "timezone": "Europe/Berlin"}, "at 02:30 from Monday to Friday, Europe/Berlin"),
        ({"cron": "* * * * *"}, "every minute"),
        ({"cron": "*/15 * * * *"}, "every 15 minutes"),
        ({"cron": "@hourly"}, "every hour"),
        ({"cron": "7 * * * *"}, "at minute 7 of every hour"),
        ({"cron": "7,8,9,40 * * * *"}, "at minutes 7 to 9 and 40 of every hour"),
        ({"cron": "0 6,18 * * *"}, "at 06:00 and 18:00"),
        ({"cron": "0 */2 * * *"}, "every 2 hours from 00:00"),
        ({"cron": "*/10 9-17 * * 6,0"}, "every 10 minutes from 09:00 to 17:59 on Saturday and Sunday"),
        ({"cron": "*/10 9,10,20 * * *"}, "every 10 minutes in the hours 9, 10 and 20"),
        ({"cron": "0 0 1,15 * *"}, "at 00:00 on day 1 and 15 of the month"),
        ({"cron": "0 0 13 * 5"}, "at 00:00 on day 13 of the month or on Friday"),
        (
            {"cron": "0 0 */2 * 1"},
            "at 00:00 on every second day of the month from day 1 if it is a Monday",
        ),
        (
            {"cron": "0 9 13 * */2"},
            "at 09:00 on day 13 of the month if it is a Tuesday, Thursday, Saturday or Sunday",
        ),
        ({"cron": "0 9 * * */2"}, "at 09:00 on Tuesday, Thursday, Saturday and Sunday"),
        ({"sapCron": "* * 1:7 mon,fri 9 0 0"}, "at 09:00 on day 1 to 7 of the month if it is a Monday or Friday"),
        ({"cron": "5 */2 * * *"}, "at minute 5 of every second hour from 00:00"),
        ({"cron": "*/20 */3 * * *"}, "every 20 minutes of every third hour from 00:00"),
        ({"cron": "0 8-18 * * *"}, "every hour from 08:00 to 18:59"),
        ({"cron": "5 8-18 * * *"}, "at minute 5 of every hour from 08:00 to 18:59"),
        ({"cron": "* 0 * * *"}, "every minute from 00:00 to 00:59"),
        ({"cron": "*/5 0 * * *"}, "every 5 minutes from 00:00 to 00:59"),
        ({"cron": "30-59 0 * * *"}, "at minutes 30 to 59 of every hour from 00:00 to 00:59"),
        (
            {"sapCron": "* * * * 0 */7 0"},
            "at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour from 00:00 to 00:59",
        ),
        (
            {"sapCron": "*/4 2 29 * 0 0 0"},
            "at 00:00 on day 29 of the month in February in every 4th year from 1972 to 2196",
        ),
        ({"eventBridge": "cron(0 9 * * ? 2027/2)"}, "at 09:00 in every second year from 2027 to 2199"),
        ({"eventBridge": "cron(0 9 * * ? 2027,2029,2031)"}, "at 09:00 in 2027, 2029 and 2031"),
        ({"cron": "* 9 * * *"}, "every minute from 09:00 to 09:59"),
        ({"cron": "1,2,3,4,5,6,7,8 9 * * *"}, "at minutes 1 to 8 of every hour from 09:00 to 09:59"),
        ({"cron": "0 */4 * * *"}, "at 00:00, 04:00, 08:00, 12:00, 16:00 and 20:00"),
        ({"cron": "0 */7 * * 2"}, "at 00:00, 07:00, 14:00 and 21:00 on Tuesday"),
        ({"cron": "0 0 1 1 *"}, "at 00:00 on day 1 of the month in January"),
        ({"cron": "0 0 1-31 * 5"}, "at 00:00"),
        ({"cron": "0 12 * 6-8 *"}, "at 12:00 from June to August"),
        ({"cron": "0 12 * 6-8 1-5"}, "at 12:00 from Monday to Friday, June to August"),
        (
            {"cron": "*/15 9-17 * 6-8 1-5", "timezone": "Europe/Berlin"},
            "every 15 minutes from 09:00 to 17:59, Monday to Friday, June to August, Europe/Berlin",
        ),
        (
            {"cron": "*/15 9-17 * 6,7 1,2"},
            "every 15 minutes from 09:00 to 17:59 on Monday and Tuesday in June and July",
        ),
        ({"every": "PT10S", "startTime": "2026-04-01T00:00:00Z"}, "every 10 seconds from 2026-04-01T00:00:00Z"),
        ({"every": "1 hour", "align": "clock", "timezone": "Asia/Kolkata"}, "every hour by the clock, Asia/Kolkata"),
        ({"every": "90 minutes", "align": "epoch"}, "every 90 minutes since 1970, UTC"),
        ({"every": "1 week", "startTime": "2026-04-01T00:00:00Z"}, "every week from 2026-04-01T00:00:00Z"),
        (
            {"every": "10 minutes", "align": "actual_start", "startTime": "2026-04-01T00:00:00Z"},
            "every 10 minutes from 2026-04-01T00:00:00Z, counted from each actual start",
        ),
        ({"every": "P1Y", "startTime": "2026-04-01T00:00:00Z"}, "every year from 2026-04-01T00:00:00, UTC"),
        ({"every": "P18M", "startTime": "2026-04-01T00:00:00Z"}, "every 18 months from 2026-04-01T00:00:00, UTC"),
        ({"at": "2027-01-01T09:00:00+01:00"}, "once at 2027-01-01T08:00:00Z"),
        ({"at": "2027-01-01T09:00:00", "timezone": "Europe/Berlin"}, "once at 2027-01-01T09:00:00, Europe/Berlin"),
    ],
)
def test_a_summary_says_what_the_schedule_does(fields: dict[str, object], summary: str) -> None:
    assert parse(fields, now=NOW).summary == summary
