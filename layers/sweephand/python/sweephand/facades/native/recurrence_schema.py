"""The JSON of a `recurrence`, a part of schemas.py. The service never imports this module either."""

from __future__ import annotations

from collections.abc import Iterable

from sweephand.facades.native.json_schema import Schema, items, request, text, whole
from sweephand.schedules.notations.recurrence_fields import LONGEST, MONDAY_FIRST, MOST


def _any_case(names: Iterable[str]) -> Schema:
    spelled = ("".join(f"[{letter.upper()}{letter}]" for letter in name) for name in names)
    return text(pattern=f"^({'|'.join(spelled)})$", description=f"{', '.join(names)}; in any case.")


def _numbers(name: str, number: Schema, description: str = "A number alone is a list of one.") -> Schema:
    return {"anyOf": [items(number, maxItems=MOST[name]), number], "description": description}


_INTERVALS = ", ".join(f"{unit} {most:,}" for unit, most in LONGEST.items()) + " at most."
_OF_MONTHS = "With the frequency `month`. -1 is the last."
_WEEKDAY = _any_case(MONDAY_FIRST)
_OCCURRENCE = request({"day": _WEEKDAY, "occurrence": {**whole(-5, 5), "not": {"const": 0}}}, ("day",))
_SCHEDULE = request(
    {
        "minutes": _numbers("minutes", whole(0, 59)),
        "hours": _numbers("hours", whole(0, 23)),
        "weekDays": items(_WEEKDAY, maxItems=MOST["weekDays"], description="With the frequency `week`."),
        "monthDays": _numbers("monthDays", {**whole(-31, 31), "not": {"const": 0}}, _OF_MONTHS),
        "monthlyOccurrences": items(
            _OCCURRENCE,
            maxItems=MOST["monthlyOccurrences"],
            description=f"{_OF_MONTHS} Without `occurrence` every one. Not beside `monthDays`.",
        ),
    }
)
RECURRENCE = request(
    {
        "frequency": _any_case(LONGEST),
        "interval": whole(1, max(LONGEST.values()), description=_INTERVALS),
        "schedule": _SCHEDULE,
    },
    ("frequency",),
    description="Every so many units from `startTime`, else from creation. `count` and `endTime` stand beside it.",
)
