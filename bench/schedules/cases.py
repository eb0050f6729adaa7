"""The cases that are measured: dense and sparse expressions, with zones, and rules with anchors of 1, 5 and 50
years.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
"""A day without a change of any clock; so are all instants asked about, or engines could not agree."""

AFTERS = [NOW + timedelta(seconds=777_777 * number) for number in range(48)]
_NEW_YORK = "America/New_York"


class Case(NamedTuple):
    """notation: cron, eventBridge, every, rrule. anchor_years: how long ago the series began; 0 without an anchor."""

    notation: str
    text: str
    zone: str = "UTC"
    anchor_years: int = 0

    @property
    def start(self) -> datetime:
        """Midnight on the clock of the zone, so many years ago (naive)."""
        return datetime(NOW.year - self.anchor_years, 1, 31 if "31" in self.text else 1)  # noqa: DTZ001


_CRONS = (
    "* * * * *",
    "*/5 * * * *",
    "0 * * * *",
    "7 * * * *",
    "0,30 * * * *",
    "0 */2 * * *",
    "30 2 * * *",
    "15 14 1 * *",
    "0 22 * * mon-fri",
    "0 9 * * mon",
    "0 0 1,15 * *",
    "0 0 13 * fri",
    "*/10 9-17 * * mon-fri",
    "0 0 31 * *",
    "5 4 * jun-aug sun",
    "0 0 1 1 *",
    "0 0 29 2 *",
    "0 0 29 2 mon",
)
CRONS = [
    *(Case("cron", text) for text in _CRONS),
    *(Case("cron", text, zone) for text in _CRONS[::3] for zone in (_NEW_YORK, "Australia/Lord_Howe")),
]
EVENT_BRIDGES = [
    *(Case("eventBridge", text) for text in ("cron(0/5 * * * ? *)", "cron(0 9 L * ? *)", "cron(0 9 ? * 6#3 *)")),
    Case("eventBridge", "cron(0 9 15W * ? *)", _NEW_YORK),
]
EVERIES = [Case("every", text, "UTC", years) for text in ("PT10S", "7 hours", "P1M") for years in (1, 50)]
RRULES = [
    Case("rrule", text, zone, years)
    for text, zone in (
        ("FREQ=DAILY", "UTC"),
        ("FREQ=HOURLY;INTERVAL=7", "UTC"),
        ("FREQ=MINUTELY;INTERVAL=5", "UTC"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE,FR", _NEW_YORK),
        ("FREQ=MONTHLY;BYMONTHDAY=31", "UTC"),
    )
    for years in (1, 5, 50)
]
LEAP_MONDAY = Case("rrule", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO", "UTC", 5)
CASES = [*CRONS, *EVENT_BRIDGES, *EVERIES, *RRULES, LEAP_MONDAY]
NEVER = [
    ("cron", "0 0 30 2 *"),
    ("cron", "0 0 31 2,4,6 *"),
    ("eventBridge", "cron(0 0 30 2 ? *)"),
    ("rrule", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"),
    ("rrule", "FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30"),
]
