"""Recurrence rules of RFC 5545 against python-dateutil, whose wall times are brought into the zone one by one."""

from __future__ import annotations

import datetime as dt
import sys
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from types import SimpleNamespace
from unittest.mock import patch

import dateutil.rrule
import pytest
from dateutil.rrule import rrulestr
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.explain.explain import Dropped, dropped, preview
from sweephand.schedules.explain.explain_instant import explain, explain_written
from sweephand.schedules.explain.preview_warnings import cautions
from sweephand.schedules.rule import MovedBy, between
from sweephand.schedules.text.instants import read
from sweephand.schedules.timing import Timing, load, parse
from sweephand.schedules.zones.localtime import LAST_SECOND, to_instant
from tests.unit.schedules import given as some
from tests.unit.schedules.given_rrule import SHORT, WEEKDAYS, rules, starts
from tests.unit.schedules.oracle import zone_info

NOW = some.NOW
END = to_instant(LAST_SECOND)
SECOND = timedelta(seconds=1)


def parsed(text: str, zone: str = "UTC", **more: object) -> Timing | None:
    """Returns None for a rule that is refused because it never fires."""
    try:
        return parse({"rrule": text, "timezone": zone, **more}, now=NOW)
    except InvalidRequest as refused:
        if refused.code != "NEVER_FIRES":
            raise
        return None


class CountsWeeks(dateutil.rrule._iterinfo):
    """dateutil's view of a year, its weeks counted day by day: it miscounts those around New Year (decision 0027)."""

    def rebuild(self, year: int, month: int) -> None:
        super().rebuild(year, month)
        if self.rrule._byweekno:
            first = date(year, 1, 1)
            self.wnomask = [self._is_in_weeks(first + timedelta(days=n)) for n in range(self.yearlen)] + [0] * 7

    def _is_in_weeks(self, day: date) -> bool:
        """Tells the year of a week, which is that of its fourth day."""
        fourth = day + timedelta(days=3 - (day.weekday() - self.rrule._wkst) % 7)
        day_of_year = fourth.timetuple().tm_yday
        number = -(-day_of_year // 7)
        left = (date(fourth.year, 12, 31).timetuple().tm_yday - day_of_year) // 7
        return not {number, -1 - left}.isdisjoint(self.rrule._byweekno)


def by_dateutil(rule: str, start: datetime, zone: str, until: datetime, most: int) -> list[datetime]:
    """Returns the instants of a rule: shifted out of gaps, the first of those that come twice."""
    info = zone_info(zone)
    bounded = SimpleNamespace(**{**vars(dt), "MAXYEAR": until.year + 1})  # it looks no further than this
    with patch.object(dateutil.rrule, "datetime", bounded), patch.object(dateutil.rrule, "_iterinfo", CountsWeeks):
        walls = list(islice(rrulestr(f"{rule};UNTIL={until:%Y%m%dT%H%M%S}", dtstart=start), most))
    # PEP 495: in a gap the offset before it holds
    return sorted({wall.replace(tzinfo=info, fold=0).astimezone(UTC) for wall in walls})


SPANS = {
    "YEARLY": timedelta(days=3650),
    "MONTHLY": timedelta(days=1460),
    "WEEKLY": timedelta(days=700),
    "DAILY": timedelta(days=700),
    "HOURLY": timedelta(days=40),
    "MINUTELY": timedelta(days=4),
    "SECONDLY": timedelta(hours=30),
}


@given(st.data(), st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY"]), starts, st.sampled_from(some.ZONES))
def test_days_weeks_months_and_years_agree_with_dateutil(data, frequency, start, zone):
    rule = data.draw(rules(frequency, start))
    if (
        frequency == "WEEKLY" and "BYSETPOS" in rule
    ):  # dateutil picks from what is left of the first week (decision 0027)
        first = rule.partition("WKST=")[2][:2] or "MO"
        start -= timedelta(days=(start.weekday() - WEEKDAYS.index(first)) % 7)
    agrees(rule, start, zone, start + SPANS[frequency])


@given(st.data(), st.sampled_from(SHORT), starts)
def test_hours_minutes_and_seconds_agree_with_dateutil(data, frequency, start):
    agrees(data.draw(rules(frequency, start)), start, "UTC", start + SPANS[frequency])


def agrees(rule: str, start: datetime, zone: str, until: datetime) -> None:
    wanted = by_dateutil(rule, start, zone, until, 60)
    timing = parsed(f"DTSTART:{start:%Y%m%dT%H%M%S}\nRRULE:{rule}", zone)
    if timing is None:
        assert wanted == []
        return
    found = between(timing.rule, to_instant(-1), END, max(len(wanted), 1))
    if wanted:
        assert found == wanted
        assert timing.rule.last_until(wanted[-1]) == wanted[-1]
        assert timing.rule.last_until(wanted[-1] - SECOND) == (wanted[-2] if len(wanted) > 1 else None)
    else:
        assert found == [] or found[0] >= until.replace(tzinfo=UTC) - timedelta(days=2)


@given(st.data(), st.sampled_from([*SPANS]), starts, st.sampled_from(some.ZONES), st.integers(1, 40))
def test_count_ends_a_rule_after_that_many_instants(data, frequency, start, zone, count):
    rule = data.draw(rules(frequency, start))
    lines = f"DTSTART:{start:%Y%m%dT%H%M%S}\nRRULE:{rule}"
    endless = parsed(lines, zone)
    if endless is None:
        return

    counted = parsed(f"{lines};COUNT={count}", zone)

    assert counted is not None
    wanted = between(endless.rule, to_instant(-1), END, count)
    assert between(counted.rule, to_instant(-1), END, count + 1) == wanted
    assert counted.rule.last_until(END) == wanted[-1]


@pytest.mark.parametrize(
    ("rule", "last"),
    [
        ("FREQ=DAILY;COUNT=10000", "2003-05-18 09:00:00"),
        ("FREQ=MINUTELY;INTERVAL=5;COUNT=1000000", "1985-07-04 14:15:00"),
        ("FREQ=HOURLY;BYHOUR=9,10;BYDAY=MO,FR;COUNT=9999", "2023-11-27 09:00:00"),
    ],
)
def test_a_count_of_many_instants_is_found_by_arithmetic(rule, last, monkeypatch):
    def walked(*_):
        raise AssertionError("walked")

    monkeypatch.setattr("sweephand.schedules.rule.Series.seconds", walked)

    timing = parse({"rrule": f"DTSTART:19760101T090000\n{rule}"}, now=NOW)

    assert f"{timing.rule.last_until(END):%Y-%m-%d %H:%M:%S}" == last


# The examples of RFC 5545, 3.8.5.3, all in New York from 1997-09-02 at nine: (rule, its first days, how many in all).
EXAMPLES = [
    ("FREQ=DAILY;COUNT=10", "09-02 09-03 09-04", 10),
    ("FREQ=DAILY;UNTIL=19971224T000000Z", "09-02 09-03 09-04", 113),
    ("FREQ=DAILY;INTERVAL=2", "09-02 09-04 09-06", None),
    ("FREQ=DAILY;INTERVAL=10;COUNT=5", "09-02 09-12 09-22 10-02 10-12", 5),
    ("FREQ=WEEKLY;COUNT=10", "09-02 09-09 09-16", 10),
    ("FREQ=WEEKLY;UNTIL=19971224T000000Z", "09-02 09-09 09-16", 17),
    ("FREQ=WEEKLY;INTERVAL=2;WKST=SU", "09-02 09-16 09-30", None),
    ("FREQ=WEEKLY;UNTIL=19971007T000000Z;WKST=SU;BYDAY=TU,TH", "09-02 09-04 09-09", 10),
    ("FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH", "09-02 09-04 09-16 09-18", 8),
    ("FREQ=MONTHLY;COUNT=10;BYDAY=1FR", "09-05 10-03 11-07 12-05", 10),
    ("FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU", "09-07 09-28 11-02 11-30", 10),
    ("FREQ=MONTHLY;COUNT=6;BYDAY=-2MO", "09-22 10-20 11-17 12-22", 6),
    ("FREQ=MONTHLY;BYMONTHDAY=-3", "09-28 10-29 11-28 12-29", None),
    ("FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15", "09-02 09-15 10-02 10-15", 10),
    ("FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1", "09-30 10-01 10-31 11-01", 10),
    ("FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12", "09-10 09-11 09-12 03-10", 10),
    ("FREQ=MONTHLY;INTERVAL=2;BYDAY=TU", "09-02 09-09 09-16 09-23 09-30 11-04", None),
    ("FREQ=YEARLY;COUNT=10;BYMONTH=6,7", "06-02 07-02 06-02", 10),
    ("FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3", "01-02 02-02 03-02", 10),
    ("FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200", "01-01 04-09 07-18", 10),
    ("FREQ=YEARLY;BYDAY=20MO", "05-18 05-17 05-15", None),
    ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "05-11 05-17 05-15", None),
    ("FREQ=YEARLY;BYMONTH=3;BYDAY=TH", "03-05 03-12 03-19", None),
    ("FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8", "06-04 06-11 06-18", None),
    ("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "02-13 03-13 11-13 08-13", None),
    ("FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13", "09-13 10-11 11-08", None),
    ("FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8", "11-04 11-06 11-08", None),
    ("FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3", "09-04 10-07 11-06", 3),
    ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2", "09-29 10-30 11-27", None),
    ("FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T210000Z", "09-02 09-02 09-02", 3),
    ("FREQ=MINUTELY;INTERVAL=15;COUNT=6", "09-02 09-02 09-02", 6),
    ("FREQ=MINUTELY;INTERVAL=90;COUNT=4", "09-02 09-02 09-02 09-02", 4),
    ("FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40", "09-02 09-02 09-02", None),
    ("FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5", "09-15 09-30 10-15 10-30 11-15", 5),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "days", "count"), EXAMPLES)
def test_examples_of_the_standard(rule, days, count):
    timing = parse({"rrule": f"DTSTART;TZID=America/New_York:19970902T090000\nRRULE:{rule}"}, now=NOW)
    begin = datetime(1997, 1, 1, tzinfo=UTC)

    first = between(timing.rule, begin, END, len(days.split()))

    assert [f"{at.astimezone(zone_info('America/New_York')):%m-%d}" for at in first] == days.split()
    if count is not None:
        assert len(between(timing.rule, begin, END, 200)) == count


def test_weeks_begin_where_wkst_says():
    def days(first: str) -> list[int]:
        text = f"DTSTART:19970805T090000Z\nRRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST={first}"
        return [at.day for at in between(parse({"rrule": text}, now=NOW).rule, to_instant(0), END, 9)]

    assert days("MO") == [5, 10, 19, 24]
    assert days("SU") == [5, 17, 19, 31]


def test_weekdays_with_and_without_a_number_add_up():
    """dateutil asks for days that are both (decision 0027)."""
    timing = parse({"rrule": "DTSTART:20270101T090000Z\nFREQ=MONTHLY;BYDAY=MO,2TU"}, now=NOW)

    assert [at.day for at in between(timing.rule, NOW, END, 6)] == [4, 11, 12, 18, 25, 1]


def test_a_week_of_53_that_begins_the_year_before_counts_from_the_end_too():
    """Week -53 of a year of 53 weeks is its first: dateutil forgets the days of it before New Year (decision 0027)."""
    text = "DTSTART:20200101T000000Z\nFREQ=YEARLY;BYWEEKNO={};BYDAY=WE,TH"
    counted = [parse({"rrule": text.format(number)}, now=NOW).rule for number in ("-53", "1")]

    found = [between(rule, datetime(2025, 12, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC), 9) for rule in counted]

    assert found[0] == found[1] == [datetime(2025, 12, 31, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("rule", "day", "occurs"),
    [
        ("FREQ=YEARLY;BYWEEKNO=53", datetime(2011, 1, 1, 12, tzinfo=UTC), False),  # of week 52 of 2010
        ("FREQ=YEARLY;BYWEEKNO=52", datetime(2011, 1, 1, 12, tzinfo=UTC), True),
        ("FREQ=YEARLY;BYWEEKNO=1,52,2;BYMONTHDAY=1,30", datetime(1983, 1, 1, 12, tzinfo=UTC), True),
        ("FREQ=YEARLY;BYWEEKNO=-52", datetime(2013, 12, 30, 12, tzinfo=UTC), True),  # 2014 has 52 weeks
    ],
)
def test_days_around_new_year_are_in_the_week_of_iso_8601(rule, day, occurs):
    """dateutil answers each of these wrongly (decision 0027)."""
    timing = parse({"rrule": f"DTSTART:19750616T120000Z\n{rule}"}, now=NOW)
    theirs = rrulestr(rule, dtstart=datetime.fromisoformat("1975-06-16T12:00"))

    assert (timing.rule.last_until(day) == day) is occurs
    assert (day.replace(tzinfo=None) in theirs) is not occurs  # once it is mended, decision 0027 can be shorter


ZONE = "America/New_York"


def walls(text: str, after: str, count: int, **more: object) -> list[str]:
    timing = parse({"rrule": text, **more}, now=NOW)
    begin = datetime.fromisoformat(after).replace(tzinfo=UTC)
    return [f"{at:%m-%dT%H:%M}" for at in between(timing.rule, begin, END, count)]


def test_a_gap_shifts_and_an_overlap_runs_the_first_time_by_default():
    gap, overlap = (
        f"DTSTART;TZID={ZONE}:20270310T023000\nFREQ=DAILY",
        f"DTSTART;TZID={ZONE}:20270310T013000\nFREQ=DAILY",
    )

    assert walls(gap, "2027-03-14", 2) == ["03-14T07:30", "03-15T06:30"]
    assert walls(gap, "2027-03-14", 2, dstGap="next_valid") == ["03-14T07:00", "03-15T06:30"]
    assert walls(gap, "2027-03-14", 2, dstGap="skip") == ["03-15T06:30", "03-16T06:30"]
    assert walls(overlap, "2027-11-07", 2) == ["11-07T05:30", "11-08T06:30"]
    assert walls(overlap, "2027-11-07", 2, dstOverlap="second") == ["11-07T06:30", "11-08T06:30"]


@pytest.mark.parametrize(
    "rule", ["FREQ=MINUTELY;INTERVAL=30", "FREQ=HOURLY;BYMINUTE=0,30", "FREQ=SECONDLY;INTERVAL=1800"]
)
@pytest.mark.parametrize("day", ["2027-03-14", "2027-11-07"])
def test_steps_run_through_clock_changes_without_loss_or_duplicate(rule, day):
    begin = datetime.fromisoformat(day).replace(tzinfo=UTC)
    wanted = [f"{begin + timedelta(minutes=30 * n):%m-%dT%H:%M}" for n in range(1, 49)]

    assert walls(f"DTSTART;TZID={ZONE}:20270101T000000\n{rule}", day, 48) == wanted
    assert walls(f"DTSTART;TZID={ZONE}:{begin - timedelta(hours=-5, minutes=10):%Y%m%dT%H}0000\n{rule}", day, 1)


def test_every_two_hours_runs_once_for_each_time_of_the_clock():
    assert walls(f"DTSTART;TZID={ZONE}:20270101T000000\nFREQ=HOURLY;INTERVAL=2", "2027-03-14T04:30", 4) == [
        "03-14T05:00", "03-14T07:00", "03-14T08:00", "03-14T10:00",
    ]  # fmt: skip


def test_a_rule_alone_begins_with_the_schedule():
    at_start = parse({"rrule": "FREQ=DAILY;COUNT=2", "startTime": "2027-01-01T09:00:00Z"}, now=NOW)
    at_creation = parse({"rrule": "FREQ=DAILY;COUNT=2"}, now=NOW)

    assert between(at_start.rule, NOW, END, 9) == [
        datetime(2027, 1, 1, 9, tzinfo=UTC),
        datetime(2027, 1, 2, 9, tzinfo=UTC),
    ]
    assert between(at_creation.rule, NOW, END, 9) == [NOW + timedelta(days=1), NOW + timedelta(days=2)]


def test_exdates_are_removed_and_rdates_added():
    text = f"""DTSTART;TZID={ZONE}:20270101T090000
RRULE:FREQ=DAILY;COUNT=5
RDATE;TZID={ZONE}:20270103T120000,20270101T090000
RDATE;VALUE=PERIOD:20270110T100000Z/PT1H
EXDATE:20270102T140000Z
EXDATE;VALUE=DATE:20270104
"""

    assert walls(text, "2026-01-01", 9) == [
        "01-01T14:00", "01-03T14:00", "01-03T17:00", "01-05T14:00", "01-10T10:00",
    ]  # fmt: skip
    assert load(parse({"rrule": text}, now=NOW).packed) == parse({"rrule": text}, now=NOW)
    assert parse({"rrule": text}, now=NOW).interval_s == 3 * 3600


@pytest.mark.parametrize(
    ("hour", "rules", "left"),
    [
        ("03:00", {}, ["03-14T07:00", "03-15T07:00"]),
        ("03:30", {"dstGap": "next_valid"}, ["03-14T07:30", "03-15T07:30"]),
        ("03:00", {"dstGap": "skip"}, ["03-14T07:00", "03-15T07:00"]),
        ("02:30", {}, ["03-15T06:30", "03-16T06:30"]),
        ("02:30", {"dstGap": "next_valid"}, ["03-15T06:30", "03-16T06:30"]),
    ],
)
def test_an_exception_in_a_gap_removes_only_the_replacement_instant(hour, rules, left):
    rule = f"DTSTART;TZID={ZONE}:20270110T{hour.replace(':', '')}00\nFREQ=DAILY\nEXDATE:20270314T023000"

    assert walls(rule, "2027-03-14", 2, **rules) == left


def test_an_exception_in_a_gap_removes_nothing_from_steps_that_run_through_it():
    rule = f"DTSTART;TZID={ZONE}:20270110T003000\nFREQ=HOURLY\nEXDATE:20270314T023000"

    assert walls(rule, "2027-03-14T06:00", 3) == ["03-14T06:30", "03-14T07:30", "03-14T08:30"]


@pytest.mark.parametrize(
    ("rules", "taken"),
    [({}, ["05:30"]), ({"dstOverlap": "second"}, ["06:30"]), ({"dstOverlap": "both"}, ["05:30", "06:30"])],
)
def test_an_exception_at_a_repeated_time_removes_the_copies_that_run(rules, taken):
    both = "RDATE:20271107T053000Z,20271107T063000Z"
    text = f"DTSTART;TZID={ZONE}:20270110T013000\nRRULE:FREQ=DAILY\n{both}\nEXDATE:20271107T013000"
    left = [f"11-07T{copy}" for copy in ("05:30", "06:30") if copy not in taken]

    assert walls(text, "2027-11-07", len(left) + 1, **rules) == [*left, "11-08T06:30"]


@pytest.mark.parametrize("exception", ["20270314T023000", "20271107T013000"])
def test_one_exception_at_a_clock_change_is_reported_as_one(exception):
    text = f"DTSTART;TZID={ZONE}:20270110T090000\nFREQ=DAILY\nEXDATE:{exception}"

    for overlap in ("first", "second", "both"):
        timing = parse({"rrule": text, "dstOverlap": overlap}, now=NOW)
        assert timing.summary == f"every day at 09:00, {ZONE}, 1 exception"
        assert load(timing.packed) == timing


def test_an_excluded_instant_is_explained():
    text = "DTSTART:20270101T090000Z\nFREQ=DAILY\nEXDATE:20270102T090000Z\nRDATE:20270105T120000Z"
    timing = parse({"rrule": text}, now=NOW)

    def codes(day: int, hour: int) -> list[str]:
        return [reason.code for reason in explain(timing, datetime(2027, 1, day, hour, tzinfo=UTC)).reasons]

    assert codes(2, 9) == ["TAKEN_OUT"]
    assert codes(5, 12) == ["MATCHES"]
    assert codes(3, 10) == ["DOES_NOT_MATCH"]


def test_until_is_included_and_a_date_means_all_of_that_day():
    def last(until: str) -> datetime | None:
        text = f"DTSTART;TZID={ZONE}:20270101T090000\nFREQ=DAILY;UNTIL={until}"
        return parse({"rrule": text}, now=NOW).rule.last_until(END)

    assert last("20270105T140000Z") == datetime(2027, 1, 5, 14, tzinfo=UTC)
    assert last("20270105T135959Z") == datetime(2027, 1, 4, 14, tzinfo=UTC)
    assert last("20270105T090000") == datetime(2027, 1, 5, 14, tzinfo=UTC)
    assert last("20270105") == datetime(2027, 1, 5, 14, tzinfo=UTC)


def test_folded_lines_small_letters_and_blanks_are_read():
    folded = "dtstart:20270101T090000Z\r\nrrule:freq=weekly;by\r\n day=mo,fr\r\n\r\n"
    plain = "DTSTART:20270101T090000Z\nRRULE:FREQ=WEEKLY;BYDAY=MO,FR;"

    assert walls(folded, "2027-01-01", 5) == walls(plain, "2027-01-01", 5)
    assert parse({"rrule": "freq=daily;byday=mo"}, now=NOW) == parse({"rrule": "FREQ=DAILY;BYDAY=MO"}, now=NOW)


def test_a_parameter_can_be_quoted():
    quoted = f'DTSTART;TZID="{ZONE}";VALUE="DATE-TIME":20270101T090000\nRRULE:FREQ=DAILY;COUNT=2'

    assert walls(quoted, "2027-01-01", 5) == ["01-01T14:00", "01-02T14:00"]
    with pytest.raises(InvalidRequest, match="TZID must be an IANA zone"):
        parse({"rrule": f'DTSTART;TZID="{ZONE}:20270101T090000\nRRULE:FREQ=DAILY'}, now=NOW)


def test_dates_without_a_rule_are_dtstart_and_each_rdate():
    begin, named = (
        f"DTSTART;TZID={ZONE}:20270314T023000",
        "RDATE:20270103T100000Z,20270110T100000Z\nRDATE:20270401T090000",
    )

    assert walls(f"{begin}\n{named}", "2027-01-01", 9) == ["01-03T10:00", "01-10T10:00", "03-14T07:30", "04-01T13:00"]
    assert walls(f"{begin}\n{named}", "2027-01-01", 9, dstGap="skip") == ["01-03T10:00", "01-10T10:00", "04-01T13:00"]
    timing = parse({"rrule": f"{begin}\n{named}\nEXDATE:20270103T100000Z"}, now=NOW)
    assert load(timing.packed) == timing
    assert timing.interval_s == 7 * 86_400
    assert timing.summary == "at 4 dates, the first 2027-01-03T10:00:00Z, the last 2027-04-01T13:00:00Z, 1 exception"
    with pytest.raises(InvalidRequest, match="leave one of them out"):
        parse({"rrule": f"{begin}\n{named}", "timezone": "Europe/Berlin"}, now=NOW)
    with pytest.raises(InvalidRequest, match="must have an RRULE, or DTSTART with RDATE"):
        parse({"rrule": named}, now=NOW)


DATES = "RDATE:20270328T023000,20271031T023000"
MARKED = f"DTSTART;TZID=Europe/Berlin:20270101T023000\nRRULE:FREQ=MONTHLY\n{DATES}"
ALONE = f"DTSTART;TZID=Europe/Berlin:20270101T023000\n{DATES}"
FAR = datetime(2027, 12, 1, tzinfo=UTC)


def asked(timing: Timing) -> list[str]:
    found = explain_written(timing, read("2027-03-28T02:30:00", "at"))
    moved = found.moved_by and found.moved_by.effect
    return [f"{found.instant:%H:%M} {found.occurs} {moved}", *(each.code for each in found.reasons)]


@pytest.mark.parametrize("text", [MARKED, ALONE])
@pytest.mark.parametrize(("gap", "at"), [("shift", "01:30"), ("next_valid", "01:00")])
def test_a_date_that_the_clock_moves_is_marked_and_explained(text, gap, at):
    timing = parse({"rrule": text, "dstGap": gap}, now=NOW)
    moved = {f"{each.instant:%m-%d %H:%M}": each.moved_by for each in preview(timing, NOW, 99) if each.moved_by}

    assert moved == {
        f"03-28 {at}": MovedBy("dstGap", "2027-03-28T02:30:00", "moved"),
        "10-31 00:30": MovedBy("dstOverlap", "2027-10-31T02:30:00", "once"),
    }
    assert asked(timing) == [f"{at} True moved", "IN_GAP", "MOVED_BY_GAP"]
    assert load(timing.packed) == timing


@pytest.mark.parametrize("gap", ["shift", "skip"])
def test_a_date_in_another_zone_is_marked_by_the_clock_there(gap):
    """Clocks in London and Berlin change at the same instants, so the mark must say whose clock it is."""
    named = "RDATE;TZID=Europe/Berlin:20270328T023000,20271031T023000,20270601T120000"
    text = f"DTSTART;TZID=Europe/London:20270101T120000\nRRULE:FREQ=MONTHLY\n{named}"
    timing = parse({"rrule": text, "dstGap": gap}, now=NOW)
    moved = {f"{each.instant:%m-%d %H:%M}": each.moved_by for each in preview(timing, NOW, 30) if each.moved_by}
    twice, missing = ("dstOverlap", "2027-10-31T02:30:00"), ("dstGap", "2027-03-28T02:30:00")
    left_out = dropped(timing, NOW, FAR, 9)

    assert moved.pop("10-31 00:30") == MovedBy(*twice, "once", "Europe/Berlin")
    if gap == "shift":
        assert moved == {"03-28 01:30": MovedBy(*missing, "moved", "Europe/Berlin")}
        assert "clock in Europe/Berlin" in explain(timing, datetime(2027, 3, 28, 1, 30, tzinfo=UTC)).reasons[0].text
    else:
        at = datetime(2027, 3, 28, 1, tzinfo=UTC)
        assert left_out == [Dropped(at, MovedBy(*missing, "skipped", "Europe/Berlin"))]
    assert "clock in Europe/Berlin" in explain(timing, datetime(2027, 10, 31, 0, 30, tzinfo=UTC)).reasons[0].text
    assert not [each for each in cautions(timing, datetime(2027, 3, 10, tzinfo=UTC)) if each.code == "CLOCK_CHANGE"]
    assert load(timing.packed) == timing


@pytest.mark.parametrize(
    ("text", "position", "begins"),
    [
        ("FREQ=DAILY;UNTIL=20200101T000000Z", 17, "2026-03-07T12:00:01Z"),
        ("DTSTART:20270101T090000Z\nRRULE:FREQ=DAILY;UNTIL=20261231", 48, "2027-01-01T09:00:00Z"),
    ],
)
def test_a_rule_that_ends_before_it_begins_says_so(text, position, begins):
    with pytest.raises(InvalidRequest) as refused:
        parse({"rrule": text}, now=NOW)

    assert (refused.value.code, refused.value.position) == ("NEVER_FIRES", position)
    assert refused.value.reason == f"UNTIL: lies before the beginning, {begins}"
    assert parse({"rrule": f"{text if 'RRULE' in text else 'RRULE:' + text}\nRDATE:20280101T000000Z"}, now=NOW)


@pytest.mark.parametrize("text", [MARKED, ALONE])
def test_a_date_omitted_by_dst_gap_skip_is_among_those_dropped(text):
    timing = parse({"rrule": text, "dstGap": "skip"}, now=NOW)

    assert dropped(timing, NOW, FAR, 9) == [
        Dropped(datetime(2027, 3, 28, 1, tzinfo=UTC), MovedBy("dstGap", "2027-03-28T02:30:00", "skipped"))
    ]
    assert asked(timing) == ["01:00 False None", "IN_GAP", "LEFT_OUT_BY_GAP"]


def test_a_date_that_the_rule_omits_too_is_dropped_once():
    text = "DTSTART;TZID=Europe/Berlin:20270101T023000\nRRULE:FREQ=DAILY\nRDATE:20270328T023000,20270328T023000"
    timing = parse({"rrule": text, "dstGap": "skip"}, now=NOW)

    assert len(dropped(timing, NOW, FAR, 9)) == 1
    assert load(timing.packed) == timing


@pytest.mark.parametrize(
    ("gap", "what"),
    [
        ("shift", "runs at 2027-03-28T01:30:00Z (dstGap shift)"),
        ("next_valid", "runs at 2027-03-28T01:00:00Z (dstGap next_valid)"),
        ("skip", "does not run (dstGap skip)"),
    ],
)
@pytest.mark.parametrize("rule", ["FREQ=MONTHLY", "FREQ=HOURLY;INTERVAL=11"])
def test_a_date_at_a_clock_change_is_announced(gap, what, rule):
    timing = parse({"rrule": MARKED.replace("FREQ=MONTHLY", rule), "dstGap": gap}, now=NOW)
    found = [each.text for each in cautions(timing, datetime(2027, 3, 10, tzinfo=UTC)) if each.code == "CLOCK_CHANGE"]

    assert found[0] == f"the clock in Europe/Berlin jumps over 2027-03-28T02:30:00: it {what}"
    assert "jumps over" not in found[1]


def test_a_moved_date_that_is_also_an_exception_is_explained_as_excluded():
    timing = parse({"rrule": f"{MARKED}\nEXDATE:20270328T023000"}, now=NOW)

    assert asked(timing) == ["01:30 False None", "IN_GAP", "TAKEN_OUT"]


def test_one_date_named_twice_is_one_occurrence():
    timing = parse({"rrule": "DTSTART:20270101T090000Z\nRDATE:20270101T090000Z"}, now=NOW)

    assert between(timing.rule, NOW, END, 9) == [datetime(2027, 1, 1, 9, tzinfo=UTC)]
    assert timing.summary == "at 2027-01-01T09:00:00Z"


@pytest.mark.parametrize(
    ("text", "reason", "position"),
    [
        ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY cannot be combined with FREQ=WEEKLY", 23),
        ("FREQ=MONTHLY;BYYEARDAY=1", "BYYEARDAY cannot be combined with FREQ=MONTHLY", 23),
        ("FREQ=DAILY;BYWEEKNO=1", "BYWEEKNO cannot be combined with FREQ=DAILY", 20),
        ("FREQ=WEEKLY;BYDAY=1MO", "cannot be combined with FREQ=WEEKLY", 18),
        ("FREQ=YEARLY;BYWEEKNO=1;BYDAY=1MO", "cannot be combined with BYWEEKNO", 29),
        ("FREQ=DAILY;BYSETPOS=1", "BYSETPOS needs another", 20),
        ("FREQ=DAILY;COUNT=1;UNTIL=20270101T000000Z", "cannot be combined", 25),
        ("FREQ=DAILY;BYMONTHDAY=1,32", 'BYMONTHDAY must be 1 to 31, or -31 to -1, not "32"', 24),
        ("FREQ=DAILY;BYMONTHDAY=0", 'BYMONTHDAY must be 1 to 31, or -31 to -1, not "0"', 22),
        ("FREQ=MINUTELY;INTERVAL=7;BYMINUTE=61", 'BYMINUTE must be 0 to 59, not "61"', 34),
        ("FREQ=DAILY;BYSECOND=60", "leap second", 20),
        ("FREQ=DAILY;INTERVAL=0", 'INTERVAL must be a number from 1 to 2,147,483,647, not "0"', 20),
        ("FREQ=DAILY;COUNT=0", 'COUNT must be a number from 1 to 2,147,483,647, not "0"', 17),
        ("FREQ=DAILY;FREQ=DAILY", "FREQ is given twice; leave one out", 11),
        ("FREQ=DAYLY", "FREQ must be one of SECONDLY, MINUTELY, HOURLY, DAILY, WEEKLY,", 5),
        ("INTERVAL=2", 'must be a rule with FREQ, such as "FREQ=WEEKLY;BYDAY=MO", not', 0),
        ("FREQ=DAILY;BYEASTER=1", "each part must be one of FREQ, INTERVAL, COUNT, UNTIL, BYDAY,", 11),
        ("FREQ=DAILY;BYHOUR=\u0663", "U+0663", 18),
        ("FREQ=DAILY;BYDAY=MO;;", "each part must be one of FREQ, INTERVAL, COUNT, UNTIL, BYDAY,", 20),
        ("FREQ=DAILY;UNTIL=20270230", "the calendar has no", 17),
        ("DTSTART:20270101T090000Z", "must have an RRULE, or DTSTART with RDATE; it has only DTSTART", 0),
        ("FREQ=DAILY\nFREQ=WEEKLY", "must have one RRULE, not 2", 11),
        ("DTSTART:2027-01-01\nFREQ=DAILY", "DTSTART must be a date or time such as 20270101 or", 8),
        ("DTSTART;TZID=Mars/Olympus:20270101T090000\nFREQ=DAILY", "TZID must be an IANA zone", 13),
        ("DTSTART;LANGUAGE=en:20270101T090000\nFREQ=DAILY", "is not supported here", 8),
        ("RRULE:FREQ=DAILY\nEXRULE:FREQ=DAILY", 'must be a rule such as "FREQ=WEEKLY;BYDAY=MO,FR", or lines', 17),
        ("RRULE:FREQ=DAILY\r\n ;INTERVAL=0", 'INTERVAL must be a number from 1 to 2,147,483,647, not "0"', 29),
        ("RRULE:FREQ=DAILY\nEXDATE:20270101,x", "EXDATE must be a date or time such as 20270101 or", 33),
        ("DTSTART:19690101T000000Z\nFREQ=DAILY", "the year of DTSTART must be 1970 to 2199, not 1969", 8),
        ("FREQ=DAILY" + ";" * 50_000, "must have at most 1,000 characters, not 50,010", 1000),
        ("  \n ", 'must be a rule such as "FREQ=WEEKLY;BYDAY=MO,FR", or lines', 0),
        (5, 'must be a rule such as "FREQ=WEEKLY;BYDAY=MO,FR", or lines', None),
    ],
)  # fmt: skip
def test_an_invalid_expression_is_refused_with_its_position(text, reason, position):
    with pytest.raises(InvalidRequest) as refused:
        parse({"rrule": text}, now=NOW)

    assert (refused.value.field, refused.value.position) == ("rrule", position)
    assert reason in refused.value.reason


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=SECONDLY;INTERVAL=7;BYMONTH=4;BYMONTHDAY=31",
        "FREQ=MONTHLY;INTERVAL=12;BYMONTH=2",
        "FREQ=MONTHLY;BYDAY=6MO",
        "FREQ=MONTHLY;BYMONTHDAY=1;BYSETPOS=2",
        "FREQ=DAILY;BYHOUR=9;BYSETPOS=2",
        "FREQ=WEEKLY;BYDAY=MO;BYSETPOS=2",
        "FREQ=WEEKLY;BYDAY=MO;BYMONTH=1;BYSETPOS=2",
        "FREQ=DAILY;INTERVAL=14;BYDAY=MO,TU",
        "FREQ=MINUTELY;INTERVAL=2;BYMINUTE=1,3",
        "FREQ=MINUTELY;INTERVAL=10080;BYDAY=MO",
        "FREQ=MINUTELY;INTERVAL=120;BYHOUR=1",
        "FREQ=SECONDLY;INTERVAL=120;BYMINUTE=1",
        "FREQ=YEARLY;BYYEARDAY=366;BYMONTH=11",
        "FREQ=HOURLY;BYYEARDAY=1;BYMONTH=11",
        "FREQ=HOURLY;INTERVAL=7;BYMINUTE=1,2;BYSETPOS=3",
        "FREQ=DAILY;UNTIL=20250101T000000Z",
        "FREQ=DAILY;COUNT=1\nEXDATE:20260307T120000Z",
    ],
)  # fmt: skip
def test_an_expression_that_never_fires_is_refused(rule):
    with pytest.raises(InvalidRequest) as refused:
        parse({"rrule": f"DTSTART:20260307T120000Z\n{rule}"}, now=NOW)

    assert refused.value.code == "NEVER_FIRES"


def test_a_zone_that_differs_from_that_of_the_text_is_refused():
    text = f"DTSTART;TZID={ZONE}:20270101T090000\nFREQ=DAILY"
    with pytest.raises(InvalidRequest, match="leave one of them out"):
        parse({"rrule": text, "timezone": "Europe/Berlin"}, now=NOW)
    with pytest.raises(InvalidRequest, match="leave one of them out"):
        parse({"rrule": "DTSTART:20270101T090000Z\nFREQ=DAILY", "timezone": "Europe/Berlin"}, now=NOW)

    assert parse({"rrule": text, "timezone": ZONE}, now=NOW) == parse({"rrule": text}, now=NOW)


def test_a_day_that_its_month_lacks_is_omitted_and_no_other_rule_is_accepted():
    rule = "DTSTART:20270131T090000Z\nFREQ=MONTHLY"
    assert [at.month for at in between(parse({"rrule": rule}, now=NOW).rule, NOW, END, 3)] == [1, 3, 5]
    with pytest.raises(InvalidRequest, match="BYMONTHDAY=-1"):
        parse({"rrule": rule, "monthOverflow": "clamp"}, now=NOW)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (
            "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE,FR",
            "every 2 weeks on Monday, Wednesday and Friday at 09:00, America/New_York",
        ),
        ("FREQ=DAILY;COUNT=3", "every day at 09:00, America/New_York, 3 times"),
        ("FREQ=MONTHLY;BYDAY=-1FR", "every month on the last Friday of the month at 09:00, America/New_York"),
        (
            "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
            "every month from Monday to Friday at 09:00; of these the last of each month, America/New_York",
        ),
        ("FREQ=YEARLY", "every year on day 1 of the month in January at 09:00, America/New_York"),
        (
            "FREQ=YEARLY;BYYEARDAY=100,-1",
            "every year on day 100 and the last day of the year at 09:00, America/New_York",
        ),
        ("FREQ=MINUTELY;INTERVAL=15;BYHOUR=9,10", "every 15 minutes in the hours 9 and 10, America/New_York"),
        (
            "FREQ=DAILY;UNTIL=20270301T140000Z\nEXDATE:20270102T140000Z",
            "every day at 09:00, America/New_York, until 2027-03-01T14:00:00Z, 1 exception",
        ),
    ],
)  # fmt: skip
def test_summaries(rule, said):
    assert parse({"rrule": f"DTSTART;TZID={ZONE}:20270101T090000\n{rule}"}, now=NOW).summary == said


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("DTSTART;TZID=Europe/Berlin:20270328T030000\nRRULE:FREQ=DAILY;BYHOUR=2;BYMINUTE=30;COUNT=2",
         ["03-29T00:30", "03-30T00:30"]),
        ("DTSTART;TZID=Europe/Berlin:20270328T023000\nRRULE:FREQ=DAILY;BYHOUR=2;BYMINUTE=15,45;COUNT=3",
         ["03-28T01:45", "03-29T00:15", "03-29T00:45"]),
        ("DTSTART;TZID=Europe/Berlin:20270327T030000\nRRULE:FREQ=DAILY;BYHOUR=2;BYMINUTE=30;COUNT=2",
         ["03-28T01:30", "03-29T00:30"]),
        ("DTSTART;TZID=Europe/Berlin:20271031T023000\nRRULE:FREQ=DAILY;COUNT=2", ["10-31T00:30", "11-01T01:30"]),
        ("DTSTART;TZID=Pacific/Kwajalein:19930822T102558\nRRULE:FREQ=MINUTELY;INTERVAL=1368;BYSECOND=47;COUNT=2",
         None),
        ("DTSTART;TZID=Pacific/Kiritimati:19950102T102558\nRRULE:FREQ=MINUTELY;INTERVAL=1368;BYSECOND=47;COUNT=2",
         None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("gap", ["shift", "next_valid"])
def test_a_wall_time_before_dtstart_never_runs_even_if_a_gap_moves_it_later(text, first, gap):
    stated = {} if "MINUTELY" in text else {"dstGap": gap}
    timing = parse({"rrule": text, **stated}, now=NOW, may_be_over=True)
    begin = text.partition(":")[2].partition("\n")[0]
    start = datetime.strptime(begin, "%Y%m%dT%H%M%S")  # noqa: DTZ007 - a wall time

    found = [to_instant(second) for second in timing.rule.seconds(0, LAST_SECOND)]

    for instant in found:
        moved_by = timing.rule.moved_by(int(instant.timestamp()))
        read = instant.astimezone(zone_info(timing.zone.name)).replace(tzinfo=None)
        wall = datetime.fromisoformat(moved_by.local_time) if moved_by else read
        assert wall >= start
    assert len(found) == int(text.rpartition("=")[2])
    if first is not None and gap == "shift":
        assert [f"{instant:%m-%dT%H:%M}" for instant in found] == first


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=DAILY",
        "FREQ=HOURLY;INTERVAL=7",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE,FR",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
        "FREQ=MINUTELY;INTERVAL=7;BYDAY=MO;COUNT=100000000",
    ],
)
def test_a_search_takes_as_many_steps_from_an_old_beginning_as_from_a_new_one(rule):
    def steps(year: int) -> int:
        timing = parse({"rrule": f"DTSTART;TZID={ZONE}:{year}0105T090000\n{rule}"}, now=NOW)
        taken = 0

        def count(frame: object, event: str, _: object) -> None:
            nonlocal taken
            taken += event == "call"

        sys.setprofile(count)
        try:
            timing.rule.next_after(NOW)
        finally:
            sys.setprofile(None)
        return taken

    assert steps(1976) <= 1.15 * steps(2025)
    assert steps(1976) < 500
