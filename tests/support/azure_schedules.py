"""The schedules of Azure's own page on complex schedules, from Wednesday 4 March 2026 at 08:25 UTC."""

from __future__ import annotations

from typing import Any

MO_WE_FR = ["monday", "wednesday", "friday"]
MO_TO_FR = ["monday", "tuesday", "wednesday", "thursday", "friday"]
QUARTERS = [0, 15, 30, 45]


def nth(*pairs: tuple[str, int]) -> list[dict[str, Any]]:
    return [{"day": day, "occurrence": which} for day, which in pairs]


EXAMPLES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "5 AM every day": ("day", {"hours": [5]}, ["03-05 05:25", "03-06 05:25"]),
    "5:15 AM every day": ("day", {"minutes": [15], "hours": [5]}, ["03-05 05:15", "03-06 05:15"]),
    "5:15 AM and 5:15 PM every day": (
        "day",
        {"minutes": [15], "hours": [5, 17]},
        ["03-04 17:15", "03-05 05:15", "03-05 17:15"],
    ),
    "each minute with each hour": (
        "day",
        {"minutes": [15, 45], "hours": [5, 17]},
        ["03-04 17:15", "03-04 17:45", "03-05 05:15", "03-05 05:45", "03-05 17:15"],
    ),
    "every 15 minutes": ("day", {"minutes": QUARTERS}, ["03-04 08:30", "03-04 08:45", "03-04 09:00", "03-04 09:15"]),
    "every hour at the minute of the start": (
        "day",
        {"hours": list(range(24))},
        ["03-04 08:25", "03-04 09:25", "03-04 10:25"],
    ),
    "hours of a monthly frequency: one day a month": ("month", {"hours": [12]}, ["03-04 12:25", "04-04 12:25"]),
    "every hour on the hour": ("day", {"minutes": [0]}, ["03-04 09:00", "03-04 10:00", "03-04 11:00"]),
    "on the hour, weekly: one day a week": ("week", {"minutes": [0], "hours": [10]}, ["03-04 10:00", "03-11 10:00"]),
    "on the hour, monthly: one day a month": ("month", {"minutes": [0], "hours": [10]}, ["03-04 10:00", "04-04 10:00"]),
    "15 minutes past every hour": ("day", {"minutes": [15]}, ["03-04 09:15", "03-04 10:15"]),
    "5 PM on Saturday every week": ("week", {"hours": [17], "weekDays": ["saturday"]}, ["03-07 17:25", "03-14 17:25"]),
    "5 PM on Monday, Wednesday and Friday": (
        "week",
        {"hours": [17], "weekDays": MO_WE_FR},
        ["03-04 17:25", "03-06 17:25", "03-09 17:25"],
    ),
    "5:15 PM and 5:45 PM on three days a week": (
        "week",
        {"minutes": [15, 45], "hours": [17], "weekDays": MO_WE_FR},
        ["03-04 17:15", "03-04 17:45", "03-06 17:15", "03-06 17:45", "03-09 17:15"],
    ),
    "5 AM and 5 PM on three days a week": (
        "week",
        {"hours": [5, 17], "weekDays": MO_WE_FR},
        ["03-04 17:25", "03-06 05:25", "03-06 17:25"],
    ),
    "four times on three days a week": (
        "week",
        {"minutes": [15, 45], "hours": [5, 17], "weekDays": MO_WE_FR},
        ["03-04 17:15", "03-04 17:45", "03-06 05:15", "03-06 05:45", "03-06 17:15"],
    ),
    "every 15 minutes on weekdays": (
        "week",
        {"minutes": QUARTERS, "weekDays": MO_TO_FR},
        ["03-04 08:30", "03-04 08:45"],
    ),
    "every 15 minutes on weekdays, between 9 AM and 4:45 PM": (
        "week",
        {"minutes": QUARTERS, "hours": [9, 10, 11, 12, 13, 14, 15, 16], "weekDays": MO_TO_FR},
        ["03-04 09:00", "03-04 09:15"],
    ),
    "Sundays at start time": ("week", {"weekDays": ["sunday"]}, ["03-08 08:25", "03-15 08:25"]),
    "Tuesdays and Thursdays at start time": (
        "week",
        {"weekDays": ["tuesday", "thursday"]},
        ["03-05 08:25", "03-10 08:25", "03-12 08:25"],
    ),
    "6 AM on the twenty-eighth": (
        "month",
        {"minutes": [0], "hours": [6], "monthDays": [28]},
        ["03-28 06:00", "04-28 06:00"],
    ),
    "6 AM on the last day": (
        "month",
        {"minutes": [0], "hours": [6], "monthDays": [-1]},
        ["03-31 06:00", "04-30 06:00"],
    ),
    "6 AM on the first and last day": (
        "month",
        {"minutes": [0], "hours": [6], "monthDays": [1, -1]},
        ["03-31 06:00", "04-01 06:00", "04-30 06:00"],
    ),
    "first and last day at start time": (
        "month",
        {"monthDays": [1, -1]},
        ["03-31 08:25", "04-01 08:25", "04-30 08:25"],
    ),
    "first and fourteenth at start time": (
        "month",
        {"monthDays": [1, 14]},
        ["03-14 08:25", "04-01 08:25", "04-14 08:25"],
    ),
    "second day at start time": ("month", {"monthDays": [2]}, ["04-02 08:25", "05-02 08:25"]),
    "first Friday at 5 AM": (
        "month",
        {"minutes": [0], "hours": [5], "monthlyOccurrences": nth(("friday", 1))},
        ["03-06 05:00", "04-03 05:00"],
    ),
    "first Friday at start time": ("month", {"monthlyOccurrences": nth(("friday", 1))}, ["03-06 08:25", "04-03 08:25"]),
    "third Friday from the end": (
        "month",
        {"monthlyOccurrences": nth(("friday", -3))},
        ["03-13 08:25", "04-10 08:25", "05-15 08:25"],
    ),
    "first and last Friday at 5:15 AM": (
        "month",
        {"minutes": [15], "hours": [5], "monthlyOccurrences": nth(("friday", 1), ("friday", -1))},
        ["03-06 05:15", "03-27 05:15", "04-03 05:15", "04-24 05:15"],
    ),
    "first and last Friday at start time": (
        "month",
        {"monthlyOccurrences": nth(("friday", 1), ("friday", -1))},
        ["03-06 08:25", "03-27 08:25"],
    ),
    "fifth Friday at start time, where there is one": (
        "month",
        {"monthlyOccurrences": nth(("friday", 5))},
        ["05-29 08:25", "07-31 08:25", "10-30 08:25"],
    ),
    "every 15 minutes on the last Friday": (
        "month",
        {"minutes": QUARTERS, "monthlyOccurrences": nth(("friday", -1))},
        ["03-27 00:00", "03-27 00:15", "03-27 00:30"],
    ),
    "four times on the third Wednesday": (
        "month",
        {"minutes": [15, 45], "hours": [5, 17], "monthlyOccurrences": nth(("wednesday", 3))},
        ["03-18 05:15", "03-18 05:45", "03-18 17:15", "03-18 17:45", "04-15 05:15"],
    ),
    "only months that have a thirty-first": (
        "month",
        {"monthDays": [31]},
        ["03-31 08:25", "05-31 08:25", "07-31 08:25"],
    ),
    "the first and second instead of once a month": (
        "month",
        {"monthDays": [1, 2]},
        ["04-01 08:25", "04-02 08:25", "05-01 08:25"],
    ),
    "every Sunday of the month": (
        "month",
        {"monthlyOccurrences": [{"day": "Sunday"}]},
        ["03-08 08:25", "03-15 08:25", "03-22 08:25"],
    ),
    "last Friday and Monday": (
        "month",
        {"monthlyOccurrences": nth(("monday", -1), ("friday", -1))},
        ["03-27 08:25", "03-30 08:25"],
    ),
    "daily at 5:15 AM and at 5:15 PM": ("day", {"minutes": [15], "hours": [5, 17]}, ["03-04 17:15", "03-05 05:15"]),
}
"""The page's words -> frequency, schedule and its first instants."""
