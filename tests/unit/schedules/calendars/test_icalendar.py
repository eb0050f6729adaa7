"""Imported events, by their words and against dateutil."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from dateutil.rrule import rrulestr
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.calendars import calendar_content, icalendar
from sweephand.schedules.calendars.icalendar_text import YEARS, recurrence
from tests.support.work import few_calls

TODAY = date(2026, 12, 1)


def text(*events: str, head: str = "BEGIN:VCALENDAR\nVERSION:2.0\n") -> str:
    inner = "".join(f"BEGIN:VEVENT\n{event}\nEND:VEVENT\n" for event in events)
    return f"{head}{inner}END:VCALENDAR\n"


def read(*events: str) -> dict[str, Any]:
    """Returns the members that events become, without the empty ones; they must be a calendar's."""
    found = icalendar.read(text(*events), TODAY)
    calendar_content.read(found)
    return {name: each for name, each in found.items() if each}


def refusal(value: object) -> str:
    with pytest.raises(InvalidRequest) as wrong:
        icalendar.read(value, TODAY)
    assert wrong.value.field == "iCalendar"
    return wrong.value.reason


# Events


@pytest.mark.parametrize(
    ("event", "members"),
    [
        ("DTSTART;VALUE=DATE:20261225", {"dates": ["2026-12-25"]}),
        ("DTSTART:20261225", {"dates": ["2026-12-25"]}),
        ("DTSTART;VALUE=DATE:20261225\nDTEND;VALUE=DATE:20261226", {"dates": ["2026-12-25"]}),
        (
            "DTSTART;VALUE=DATE:20261224\nDTEND;VALUE=DATE:20270102",
            {"ranges": [{"from": "2026-12-24", "to": "2027-01-01"}]},
        ),
        ("DTSTART;VALUE=DATE:20261224\nDURATION:P1W", {"ranges": [{"from": "2026-12-24", "to": "2026-12-30"}]}),
        (
            "DTSTART:20261224T180000Z\nDTEND:20261225T060000Z",
            {"ranges": [{"from": "2026-12-24T18:00:00Z", "to": "2026-12-25T06:00:00Z"}]},
        ),
        (
            "DTSTART:20261224T180000\nDURATION:PT2H30M",
            {"ranges": [{"from": "2026-12-24T18:00:00", "to": "2026-12-24T20:30:00"}]},
        ),
        (
            'DTSTART;TZID=Europe/Berlin:20260624T180000\nDTEND;TZID="Europe/Berlin":20260624T190000',
            {"ranges": [{"from": "2026-06-24T16:00:00Z", "to": "2026-06-24T17:00:00Z"}]},
        ),
        ("DTSTART:20261224T180000Z", {}),
        ("DTSTART:20261225\nSTATUS:CANCELLED", {}),
        ("DTSTART:20261225\nTRANSP:TRANSPARENT\nSUMMARY:a\\, b: c;d", {"dates": ["2026-12-25"]}),
        ("DTSTART:20261225\nBEGIN:VALARM\nTRIGGER:-PT15M\nDTSTART:20200101\nEND:VALARM", {"dates": ["2026-12-25"]}),
        ("DTSTART:20261225\nRDATE;VALUE=DATE:20261231,20270106", {"dates": ["2026-12-25", "2026-12-31", "2027-01-06"]}),
        ("DTSTART:20261225\nRRULE:FREQ=YEARLY", {"dates": ["12-25"]}),
        ("DTSTART:20261225\nDTEND:20261227\nRRULE:FREQ=YEARLY;WKST=SU", {"dates": ["12-25", "12-26"]}),
        ("DTSTART:20261128\nRRULE:FREQ=WEEKLY;BYDAY=SA,SU", {"weekly": [{"days": ["SAT", "SUN"]}]}),
        ("DTSTART:20261128\nRRULE:FREQ=WEEKLY", {"weekly": [{"days": ["SAT"]}]}),
        (
            "DTSTART:20261128T220000\nDURATION:PT4H\nRRULE:FREQ=WEEKLY",
            {"weekly": [{"days": ["SAT"], "from": "22:00:00", "to": "02:00:00"}]},
        ),
        (
            "DTSTART:20260105\nRRULE:FREQ=WEEKLY;COUNT=4\nEXDATE:20260112",
            {"dates": ["2026-01-05", "2026-01-19", "2026-01-26"]},
        ),
        ("DTSTART:20260131\nRRULE:FREQ=MONTHLY;UNTIL=20260531", {"dates": ["2026-01-31", "2026-03-31", "2026-05-31"]}),
        (
            "DTSTART:20261126\nRRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH;COUNT=2",
            {"dates": ["2026-11-26", "2027-11-25"]},
        ),
    ],
)
def test_an_event_becomes_members_of_a_calendar(event: str, members: dict[str, Any]) -> None:
    assert read(event) == members


def test_one_occurrence_is_replaced_by_another_event() -> None:
    weekly = "UID:a\nDTSTART:20260105\nRRULE:FREQ=WEEKLY;COUNT=3"
    moved = "UID:a\nRECURRENCE-ID;VALUE=DATE:20260112\nDTSTART:20260114"

    assert read(weekly, moved)["dates"] == ["2026-01-05", "2026-01-19", "2026-01-14"]


WEEKLY = "UID:a\nDTSTART:20270104T090000\nDURATION:PT1H\nRRULE:FREQ=WEEKLY;COUNT=3"
IN_BERLIN = "DTSTART;TZID=Europe/Berlin:20261123T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=3"
IN_NEW_YORK = "DTSTART;TZID=America/New_York:20261123T200000\nDURATION:PT1H\nRRULE:FREQ=DAILY;"


def begins(*given: str) -> list[str]:
    """Returns where the ranges of events begin: day and time."""
    return [each["from"][5:] for each in read(*given).get("ranges", [])]


def test_a_cancelled_occurrence_is_free() -> None:
    cancelled = "UID:a\nRECURRENCE-ID:20270111T090000\nDTSTART:20270111T090000\nSTATUS:CANCELLED"
    days = "UID:b\nDTSTART;VALUE=DATE:20270104\nRRULE:FREQ=WEEKLY;COUNT=3"
    day = "UID:b\nRECURRENCE-ID;VALUE=DATE:20270111\nDTSTART;VALUE=DATE:20270111\nSTATUS:CANCELLED"

    assert begins(WEEKLY, cancelled) == begins(cancelled, WEEKLY) == ["01-04T09:00:00", "01-18T09:00:00"]
    assert read(days, day) == {"dates": ["2027-01-04", "2027-01-18"]}


def test_an_overriding_occurrence_has_its_own_time_and_length() -> None:
    moved = "UID:a\nRECURRENCE-ID:20270111T090000\nDTSTART:20270112T140000\nDURATION:PT2H"

    assert begins(WEEKLY, moved) == ["01-04T09:00:00", "01-18T09:00:00", "01-12T14:00:00"]
    assert read(moved) == {"ranges": [{"from": "2027-01-12T14:00:00", "to": "2027-01-12T16:00:00"}]}
    assert begins(WEEKLY, f"{moved}\nUID:b".replace("UID:a\n", "")) == [*begins(WEEKLY), "01-12T14:00:00"]


def test_a_cancelled_event_leaves_nothing_of_its_occurrences() -> None:
    occurrence = "UID:a\nRECURRENCE-ID:20270111T090000\nDTSTART:20270111T090000\nSTATUS:CANCELLED"

    assert read(f"{WEEKLY}\nSTATUS:CANCELLED", occurrence) == {}


def test_until_and_exdate_mean_all_of_a_day_by_the_clock_of_the_event() -> None:
    assert begins(f"{IN_NEW_YORK}UNTIL=20261125") == ["11-24T01:00:00Z", "11-25T01:00:00Z", "11-26T01:00:00Z"]
    assert begins(f"{IN_NEW_YORK}UNTIL=20261126T005959Z") == ["11-24T01:00:00Z", "11-25T01:00:00Z"]
    assert begins(f"{IN_NEW_YORK}COUNT=3\nEXDATE;VALUE=DATE:20261124") == ["11-24T01:00:00Z", "11-26T01:00:00Z"]
    assert begins(f"{IN_BERLIN}\nEXDATE:20261124T080000Z,20261125T090000Z") == ["11-23T08:00:00Z", "11-25T08:00:00Z"]
    late = "DTSTART;TZID=Europe/Berlin:20271030T233000\nDURATION:PT1H\nRRULE:FREQ=DAILY;UNTIL=20271031"
    assert begins(late) == ["10-30T21:30:00Z", "10-31T22:30:00Z"]  # the last day of summer time has 25 hours


def test_the_same_time_twice_is_one_member() -> None:
    assert read("DTSTART:20261225", "DTSTART:20261225", "DTSTART:20261225\nRDATE:20261231") == {
        "dates": ["2026-12-25", "2026-12-31"]
    }


@pytest.mark.parametrize(
    ("event", "year_or_hours"),
    [
        ("DTSTART:20240229\nRRULE:FREQ=YEARLY", {"dates": ["02-29"]}),
        ("DTSTART:20241230\nDURATION:P4D\nRRULE:FREQ=YEARLY", {"dates": ["01-01", "01-02", "12-30", "12-31"]}),
        ("DTSTART:20261201\nRRULE:FREQ=WEEKLY", {"weekly": [{"days": ["TUE"]}]}),
        ("DTSTART:20261206\nRRULE:FREQ=WEEKLY;BYDAY=SU", {"weekly": [{"days": ["SUN"]}]}),
        ("DTSTART:20271130\nRRULE:FREQ=YEARLY", {"dates": ["11-30"]}),
    ],
)
def test_an_endless_event_continues_forever(event: str, year_or_hours: dict[str, Any]) -> None:
    assert read(event) == year_or_hours


FOR_EVER = "DTSTART:20261123T090000\nDURATION:PT1H\nRRULE:FREQ=WEEKLY"


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([f"{FOR_EVER}\nRDATE:20261125T090000"], "line 6: needs COUNT or UNTIL, because of RDATE"),
        ([f"{FOR_EVER}\nEXDATE:20261130T090000"], "line 6: needs COUNT or UNTIL, because of EXDATE"),
        (
            [f"UID:a\n{FOR_EVER}", "UID:a\nRECURRENCE-ID:20261130T090000\nDTSTART:20261201T090000"],
            "line 7: needs COUNT or UNTIL, because of RECURRENCE-ID in line 11",
        ),
        (
            ["UID:a\nRECURRENCE-ID:20261130T090000\nSTATUS:CANCELLED", f"UID:a\n{FOR_EVER}"],
            "line 12: needs COUNT or UNTIL, because of RECURRENCE-ID in line 5",
        ),
        (
            ["DTSTART:20300107T090000\nDURATION:PT1H\nRRULE:FREQ=WEEKLY"],
            "line 6: needs COUNT or UNTIL: endless recurrences begin today",
        ),
        (["DTSTART:20261208\nRRULE:FREQ=WEEKLY"], "begin today, so 2026-12-01 would count too"),
        (
            ["DTSTART:20401225\nRRULE:FREQ=YEARLY"],
            "line 5: needs COUNT or UNTIL: endless recurrences begin today, so 2026-12-25",
        ),
        (["DTSTART:20320229\nRRULE:FREQ=YEARLY"], "so 2028-02-29 would count too"),
        (["DTSTART:20261123\nRRULE:FREQ=WEEKLY;BYDAY=SA"], "line 5: needs COUNT or UNTIL, because DTSTART is on none"),
        (
            ["DTSTART:20250228\nDURATION:P2D\nRRULE:FREQ=YEARLY"],
            "line 6: needs COUNT or UNTIL, because the event has other",
        ),
        (["DTSTART:20240229\nDURATION:P2D\nRRULE:FREQ=YEARLY"], "has other days in leap years"),
        (
            [WEEKLY, "UID:a\nRECURRENCE-ID:20270112T090000\nSTATUS:CANCELLED"],
            "line 11: RECURRENCE-ID must be an occurrence",
        ),
        (
            [WEEKLY, "UID:a\nRECURRENCE-ID;VALUE=DATE:20270111\nSTATUS:CANCELLED"],
            "line 11: RECURRENCE-ID must be an occurr",
        ),
        (
            [WEEKLY, "UID:a\nRECURRENCE-ID:20270111T090000Z\nSTATUS:CANCELLED"],
            "line 11: RECURRENCE-ID must be an occurrence",
        ),
        (
            [f"{WEEKLY}\nSTATUS:CANCELLED", "UID:a\nRECURRENCE-ID:20270111T090000\nDTSTART:20270111T100000"],
            "line 12: RECURRENCE-ID must be an occurrence",
        ),
        (
            [WEEKLY, *["UID:a\nRECURRENCE-ID:20270111T090000\nDTSTART:20270112T090000"] * 2],
            "line 16: a second event for this occurrence",
        ),
        ([WEEKLY, "UID:a\nRECURRENCE-ID;RANGE=THISANDFUTURE:20270111T090000"], "line 11: RANGE is not supported"),
        (
            [WEEKLY, "UID:a\nRECURRENCE-ID:20270111T090000\nRRULE:FREQ=DAILY"],
            "line 12: RRULE must not be combined with RECURRENCE-ID",
        ),
        (["RECURRENCE-ID:20270111T090000\nDTSTART:20270111T090000"], "line 4: RECURRENCE-ID needs a UID"),
        ([f"{WEEKLY}\nEXDATE:20270111T090000Z"], "line 8: EXDATE must be a time without a zone, as DTSTART is"),
        ([f"{WEEKLY}\nRDATE;VALUE=DATE:20270112"], "line 8: RDATE must be a time without a zone, as DTSTART is"),
        ([f"{IN_BERLIN}\nEXDATE:20261124T090000"], "line 7: EXDATE must be a time in a zone (with TZID or Z), as"),
        (
            [f"{IN_NEW_YORK}UNTIL=20261125T200000"],
            "line 6: UNTIL must be a time in a zone (with TZID or Z), as",
        ),
        (
            ["DTSTART:20261225\nRRULE:FREQ=DAILY;UNTIL=20261226T000000Z"],
            "line 5: UNTIL must be a date, as DTSTART is",
        ),
        (
            ["DTSTART:20261225\nRRULE:FREQ=DAILY;COUNT=5\nEXRULE:FREQ=DAILY;INTERVAL=2"],
            "line 6: EXRULE is not supported; write EXDATE",
        ),
        (["DTSTART:20260101T090000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=1001"], "line 3: with this event the file"),
        (["DTSTART:21991231\nDURATION:P2D"], "line 3: must be in the years 1970 to 2199"),
        (["DTSTART;TZID=Asia/Tokyo:19700101T000000\nDURATION:PT1H"], "line 3: must be in the years 1970 to 2199"),
    ],
)
def test_entries_that_a_calendar_cannot_keep_are_refused_with_their_line(events: list[str], reason: str) -> None:
    assert reason in refusal(text(*events))


def test_lines_are_unfolded_with_any_line_end() -> None:
    event = "DTSTART;VALUE=DA\r\n TE:2026\r\n\t1225"

    assert icalendar.read(text(event).replace("\n", "\r\n").replace("\r\r", "\r"), TODAY)["dates"] == ["2026-12-25"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (7, "must be the text of an iCalendar file, not 7"),
        ("", "no event"),
        (text(), "no event"),
        ("BEGIN:VEVENT\nEND:VEVENT", 'line 1: must be BEGIN:VCALENDAR, not "BEGIN:VEVENT"'),
        ("BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20261225\n", "VEVENT has no END"),
        ("BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR\n", "line 3: ends a component that is not open"),
        (text("DTSTART"), 'line 4: must be NAME:value, not "DTSTART"'),
        (text("SUMMARY:x"), "line 3: the event has no DTSTART"),
        (text("DTSTART:20261225\nDTSTART:20261225"), "line 5: a second DTSTART"),
        (text("DTSTART:2026-12-25"), "line 4: must be a date such as 20261225, or a time such as"),
        (text("DTSTART:20260230"), "line 4: 20260230 does not exist"),
        (text("DTSTART:20260101T250000"), "does not exist"),
        (text("DTSTART:19690101"), 'line 4: year must be 1970 to 2199, not "1969"'),
        (text("DTSTART;VALUE=DATE:20260101T000000Z"), "does not match VALUE"),
        (
            text("DTSTART;TZID=W. Europe Standard Time:20260101T000000"),
            'line 4: TZID must be an IANA zone such as "Europe/Berlin", not',
        ),
        (text("DTSTART:20261225\nDTEND:20261224"), "must end after it begins"),
        (text("DTSTART:20261225\nDTEND:20281225"), "at most 366 days later"),
        (text("DTSTART:20261225\nDURATION:PT1H"), "must end after"),
        (text("DTSTART:20261225\nDURATION:P"), 'line 5: DURATION must be as in P1D or PT2H30M, not "P"'),
        (text("DTSTART:20261225\nDTEND:20261226\nDURATION:P1D"), "line 6: DURATION must not be combined with DTEND"),
        (text("DTSTART:20261225T100000\nDTEND:20261225T110000Z"), "of the same kind as DTSTART"),
        (text("DTSTART:20261225\nRRULE:FREQ=SECONDLY"), "line 5: RRULE: FREQ must be one of"),
        (text("DTSTART:20261225\nRRULE:FREQ=DAILY;COUNT=0"), "COUNT must be 1 to"),
        (text("DTSTART:20261225\nRRULE:FREQ=DAILY;COUNT=1;UNTIL=20270101"), "COUNT must not be combined with UNTIL"),
        (text("DTSTART:20261225\nRRULE:FREQ=DAILY;BYSETPOS=1"), "'BYSETPOS=1' is unknown or repeated"),
        (
            text("DTSTART:20261225\nRRULE:FREQ=YEARLY;BYDAY=1MO;COUNT=2"),
            "needs FREQ=MONTHLY, or FREQ=YEARLY with BYMONTH",
        ),
        (text("DTSTART:20261225\nRRULE:FREQ=DAILY"), "needs COUNT or UNTIL"),
        (text("DTSTART:20261225\nRRULE:FREQ=YEARLY\nEXDATE:20271225"), "needs COUNT or UNTIL, because of EXDATE"),
        (text("DTSTART;TZID=Europe/Berlin:20261225T080000\nDURATION:PT1H\nRRULE:FREQ=WEEKLY"), "needs COUNT or UNTIL"),
        (text("DTSTART:20260101\nRRULE:FREQ=DAILY;COUNT=9999"), "more than 2,000 dates"),
        (text(*["DTSTART:20260101\nRRULE:FREQ=YEARLY"] * 51), "more than 50 events that recur"),
        ("x" * 200_001, "must have at most 200,000 characters, not 200,001"),
    ],
)
def test_an_invalid_line_is_refused_with_its_number(value: object, reason: str) -> None:
    assert reason in refusal(value)


@pytest.mark.parametrize(
    "line",
    ["A;" + "B=c;" * 40_000, "A" * 199_000, ";" * 199_000, 'A;B="' + "x" * 190_000, "\n " * 90_000],
)
def test_a_hostile_text_is_read_in_linear_time(line: str) -> None:
    begun = time.process_time()

    refusal(f"BEGIN:VCALENDAR\n{line}")

    assert time.process_time() - begun < 2


def test_a_file_of_2_000_events_is_read_quickly() -> None:
    begun = time.process_time()
    days = (date(2026, 1, 1) + timedelta(days=n) for n in range(2_000))

    assert len(read(*(f"UID:{day}\nDTSTART:{day:%Y%m%d}" for day in days))["dates"]) == 2_000
    assert time.process_time() - begun < 2


def test_many_exceptions_of_a_long_series_are_read_quickly() -> None:
    begun = time.process_time()
    days = [f"{date(2026, 1, 1) + timedelta(days=n):%Y%m%d}" for n in range(7_000)]
    rule = "DTSTART:20260101T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=7300"

    assert len(read(f"{rule}\nEXDATE;VALUE=DATE:{','.join(days)}")["ranges"]) == 300
    assert len(read(f"{rule}\nEXDATE:{','.join(f'{day}T090000' for day in days)}")["ranges"]) == 300
    assert time.process_time() - begun < 3


@pytest.mark.parametrize(
    ("series", "reason"),
    [
        ("DTSTART;VALUE=DATE:20270101\nRRULE:FREQ=DAILY;COUNT=1999", "more than 7,500 occurrences"),
        ("DTSTART:20270101T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=999", "more than 7,500 occurrences"),
        ("DTSTART;VALUE=DATE:20270101\nRDATE;VALUE=DATE:" + ",".join(["20270102"] * 2_000), "RDATE and EXDATE"),
        ("DTSTART;VALUE=DATE:20270101\nEXDATE;VALUE=DATE:" + ",".join(["20270102"] * 2_000), "RDATE and EXDATE"),
    ],
)
def test_the_same_occurrences_again_and_again_cost_little(series: str, reason: str) -> None:
    copies = [f"UID:{n}\n{series}" for n in range(5 if len(series) > 1_000 else 50)]

    with few_calls(400_000), pytest.raises(InvalidRequest, match=reason):
        read(*copies)


# Recurrences

_weekdays = st.lists(st.sampled_from(["MO", "TU", "WE", "TH", "FR", "SA", "SU"]), min_size=1, max_size=3, unique=True)
_numbered = st.tuples(st.sampled_from([1, 2, 4, 5, -1, -2]), st.sampled_from(["MO", "TH", "SU"])).map(
    lambda p: f"{p[0]}{p[1]}"
)


@st.composite
def rules(draw: st.DrawFn) -> str:
    frequency = draw(st.sampled_from(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]))
    parts = [f"FREQ={frequency}", f"INTERVAL={draw(st.integers(1, 4))}"]
    months = draw(st.booleans())
    if months:
        parts.append(f"BYMONTH={','.join(map(str, draw(st.sets(st.integers(1, 12), min_size=1, max_size=3))))}")
    by = draw(st.sampled_from(["", "day", "numbered", "month day"]))
    if by == "day":
        parts.append(f"BYDAY={','.join(draw(_weekdays))}")
    elif by == "numbered" and (frequency == "MONTHLY" or (frequency == "YEARLY" and months)):
        parts.append(f"BYDAY={draw(_numbered)}")
    elif by == "month day" and frequency != "WEEKLY":
        parts.append(f"BYMONTHDAY={draw(st.sampled_from(['1', '15,31', '-1', '29']))}")
    if draw(st.booleans()):
        parts.append(f"WKST={draw(st.sampled_from(['MO', 'SU']))}")
    parts.append(draw(st.sampled_from(["COUNT=1", "COUNT=7", "UNTIL=20310315", "UNTIL=20260101"])))
    return ";".join(parts)


@given(rules(), st.dates(date(2026, 1, 1), date(2028, 12, 31)))
def test_recurrences_agree_with_dateutil(rule: str, start: date) -> None:
    midnight = datetime(start.year, start.month, start.day)  # noqa: DTZ001 - dateutil counts wall time
    end = midnight + timedelta(days=YEARS * 366 - 1)

    found = recurrence(rule, lambda text: int(datetime.strptime(text, "%Y%m%d").replace(tzinfo=UTC).timestamp())).days(
        start, lambda day: int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
    )

    wanted = rrulestr(rule, dtstart=midnight).between(midnight, end, inc=True)
    assert found == [each.date() for each in wanted]
