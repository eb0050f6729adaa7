"""The content of a calendar, as a caller writes it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.calendars import calendar_content
from sweephand.schedules.calendars.calendar_content import MEMBERS
from sweephand.schedules.calendars.calendars import calendar
from sweephand.schedules.zones.localtime import zone
from tests.unit.json_values import ANY_JSON

DAY_S = 86_400


def refusal(content: Any) -> tuple[str | None, str]:
    with pytest.raises(InvalidRequest) as wrong:
        calendar_content.read(content)
    return wrong.value.field, wrong.value.reason


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        ({}, {}),
        ({"timezone": "Asia/Kolkata"}, {"zone": "Asia/Kolkata"}),
        ({"dates": ["1970-01-02", "02-29"]}, {"days": [[1, 1]], "yearly": [[2, 29]]}),
        ({"ranges": [{"from": "1970-01-01", "to": "1970-01-01"}]}, {"days": [[0, 0]]}),
        ({"ranges": [{"from": "1970-01-01T00:00:00", "to": "1970-01-02T00:00:01"}]}, {"walls": [[0, DAY_S + 1]]}),
        ({"ranges": [{"from": "1970-01-01T00:00:00Z", "to": "1970-01-01T02:00:00+01:00"}]}, {"fixed": [[0, 3600]]}),
        ({"weekly": [{"days": ["MON"]}]}, {"week": [[0, DAY_S]]}),
        ({"weekly": [{"days": ["TUE"], "from": "08:00", "to": "17:30"}]}, {"week": [[DAY_S + 28_800, DAY_S + 63_000]]}),
        (
            {"weekly": [{"days": ["SUN"], "from": "22:00", "to": "06:00"}]},
            {"week": [[6 * DAY_S + 79_200, 7 * DAY_S], [0, 21_600]]},
        ),
        ({"weekly": [{"days": ["FRI"], "from": "16:00:30", "to": None}]}, {"week": [[4 * DAY_S + 57_630, 5 * DAY_S]]}),
    ],
)
def test_members_are_compiled_to_facts(content: dict[str, Any], facts: dict[str, Any]) -> None:
    assert calendar_content.read(content) == facts


@pytest.mark.parametrize(
    ("content", "field", "reason"),
    [
        ({"timezone": "Europe/Nowhere"}, "timezone", 'must be an IANA zone such as "Europe/Berlin" (data 2026f), not'),
        ({"dates": "2026-12-25"}, "dates", 'must be a list, not "2026-12-25"'),
        ({"dates": [7]}, "dates[0]", 'must be a date such as "2026-12-25", or "12-25" for each year,'),
        (
            {"dates": ["2026-12-25", "25.12.2026"]},
            "dates[1]",
            'must be a date such as "2026-12-25", or "12-25" for each year,',
        ),
        ({"dates": ["2026-13-01"]}, "dates[0]", 'month must be 1 to 12, not "13"'),
        ({"dates": ["2026-02-29"]}, "dates[0]", "month 2 has no day 29"),
        ({"dates": ["02-30"]}, "dates[0]", "month 2 has no day 30"),
        ({"dates": ["1969-12-31"]}, "dates[0]", 'year must be 1970 to 2199, not "1969"'),
        ({"dates": ["2026-01-01"] * 2_001}, "dates", "must have at most 2,000 members, not 2,001"),
        ({"dates": ["12-25"] * 367}, "dates", "more than 366"),
        ({"ranges": [{}]}, "ranges[0].from", "is required"),
        ({"ranges": [{"from": "2026-01-01"}]}, "ranges[0].to", "is required"),
        ({"ranges": ["2026"]}, "ranges[0]", 'must be an object, not "2026"'),
        (
            {"ranges": [{"from": "2026-01-01", "until": "x"}]},
            "ranges[0].until",
            "is not a known member; known are from, to",
        ),
        ({"ranges": [{"from": "2026-01-02", "to": "2026-01-01"}]}, "ranges[0].to", "is before"),
        (
            {"ranges": [{"from": "01-02", "to": "01-03"}]},
            "ranges[0].from",
            'must be a date, or a time such as "2026-12-24T18:00:00", with',
        ),
        ({"ranges": [{"from": "2026-01-02", "to": "2026-01-03T00:00:00"}]}, "ranges[0].to", "written as `from` is"),
        (
            {"ranges": [{"from": "2026-01-02T00:00:00", "to": "2026-01-02T00:00:00"}]},
            "ranges[0].to",
            "must be after",
        ),
        ({"weekly": [{}]}, "weekly[0].days", "is required"),
        ({"weekly": [{"days": []}]}, "weekly[0].days", "must name at least one day"),
        (
            {"weekly": [{"days": ["Monday"]}]},
            "weekly[0].days[0]",
            'must be one of MON, TUE, WED, THU, FRI, SAT, SUN, not "Monday"',
        ),
        ({"weekly": [{"days": ["MON"] * 8}]}, "weekly[0].days", "must have at most 7 members, not 8"),
        (
            {"weekly": [{"days": ["MON"], "from": "8:00"}]},
            "weekly[0].from",
            'must be a time of the day such as "08:00", up to "24:00", not',
        ),
        ({"weekly": [{"days": ["MON"], "from": "24:00"}]}, "weekly[0].from", "must be before 24:00"),
        (
            {"weekly": [{"days": ["MON"], "to": "24:01"}]},
            "weekly[0].to",
            'must be a time of the day such as "08:00", up to "24:00", not',
        ),
        ({"weekly": [{"days": ["MON"], "to": "12:60"}]}, "weekly[0].to", 'minute must be 0 to 59, not "60"'),
        ({"weekly": [{"days": ["MON"]}] * 51}, "weekly", "must have at most 50 members, not 51"),
        ({"dates": ["\u0662026-01-01"]}, "dates[0]", "printable ASCII"),
    ],
)
def test_unreadable_content_is_refused_by_its_path(content: dict[str, Any], field: str, reason: str) -> None:
    where, why = refusal(content)

    assert where == field
    assert reason in why


@given(st.dictionaries(st.sampled_from(MEMBERS), ANY_JSON))
def test_any_json_is_refused_or_gives_a_calendar(content: dict[str, Any]) -> None:
    try:
        facts = calendar_content.read(content)
    except InvalidRequest as refused:
        named = refused.field
    else:
        named = None
        calendar("x", facts).covered(zone("UTC")).find(0, True, 1)

    assert named is None or named.partition("[")[0] in MEMBERS
