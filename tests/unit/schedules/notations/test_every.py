"""Equal steps: how they are written, where their grid lies, months against a walk by days."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.grids import months
from sweephand.schedules.grids.clock import Clock
from sweephand.schedules.rule import between, count_between
from sweephand.schedules.timing import Timing, load, parse
from sweephand.schedules.zones.localtime import LAST_SECOND, MonthOverflow, to_instant

NOW = datetime(2026, 3, 7, 12, 0, 0, 1, tzinfo=UTC)
END = to_instant(LAST_SECOND)


def every(text: object, **members: object) -> Timing:
    return parse({"every": text, **members}, now=NOW)


def first(count: int, text: str, **members: object) -> list[str]:
    return [f"{at:%Y-%m-%d %H:%M:%S}" for at in between(every(text, **members).rule, to_instant(0), END, count)]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1 second", 1),
        ("10 seconds", 10),
        ("5 minutes", 300),
        ("30s", 30),
        ("5m", 300),
        ("2h", 7_200),
        ("1d", 86_400),
        ("2w", 1_209_600),
        ("2 hours", 7200),
        ("1 day", 86_400),
        ("3 weeks", 3 * 604_800),
        ("1  Week", 604_800),
        ("36500 days", 36_500 * 86_400),
        ("PT10S", 10),
        ("PT90M", 5400),
        ("P1D", 86_400),
        ("P2W", 2 * 604_800),
        ("P1DT2H3M4S", 93_784),
        ("P1W1D", 8 * 86_400),
        ("PT0H1S", 1),
        ("PT1.5S", 2),
        ("PT1H0,000S", 3600),
        ("PT1M0.0000001S", 61),
        ("00:00:10", 10),
        ("00:05:00", 300),
        ("23:59:59", 86_399),
        ("1.00:00:00", 86_400),
        ("1.02:03:04", 93_784),
        ("36500.00:00:00", 36_500 * 86_400),
        ("00:00:01.5000000", 2),
        ("00:01:00.0000001", 61),
        ("00:01:00.0000000", 60),
        ("P36500D", 36_500 * 86_400),
    ],
)
def test_a_duration_is_elapsed_time(text: str, seconds: int) -> None:
    timing = every(text)

    assert timing.interval_s == seconds
    assert timing.recurring
    assert timing.actual_start_interval_s is None
    start = NOW.replace(microsecond=0) + timedelta(seconds=1 + seconds)
    wanted = [start + timedelta(seconds=seconds) * k for k in range(3)]
    assert between(timing.rule, to_instant(0), END, 3) == [each for each in wanted if each <= END]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT1.5H", 5_400),
        ("PT0,5M", 30),
        ("P0.5D", 43_200),
        ("P1.5W", 907_200),
        ("P1DT1.25H", 90_900),
        ("PT1.00001M", 61),
        ("PT1.0H", 3_600),
        (f"PT1.{'0' * 900}1H", 3_601),
    ],
)
def test_the_last_part_of_a_fixed_length_can_have_a_fraction(text: str, seconds: int) -> None:
    assert parse({"every": text}, now=NOW).interval_s == seconds


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("0 seconds", 0, "1 second to 36,500 days"),
        ("PT0S", 0, "1 second to 36,500 days"),
        ("P0M", 0, "1 second to 36,500 days"),
        ("36501 days", 0, "1 second to 36,500 days"),
        ("P36501D", 0, "1 second to 36,500 days"),
        ("9" * 900 + " days", 0, "1 second to 36,500 days"),
        ("P1201M", 0, "1 to 1,200 months"),
        ("P101Y", 0, "1 to 1,200 months"),
        ("P1M1D", 0, "cannot be mixed"),
        ("P1YT1S", 0, "cannot be mixed"),
        ("1 month", 2, "no fixed length; for calendar months write P1M"),
        ("2 years", 2, "no fixed length; for calendar years write P2Y"),
        ("9999999 months", 8, "write P1M"),
        ("10 fortnights", 3, "the unit must be seconds, minutes, hours, days or weeks, not"),
        ("10 ss", 3, "the unit must be seconds, minutes, hours, days or weeks, not"),
        ("10", 2, 'must be a duration such as "5m", "10 seconds" or "PT10S", not'),
        ("10ms", 2, 'must be a duration such as "5m", "10 seconds" or "PT10S", not'),
        ("10M", 2, 'must be a duration such as "5m", "10 seconds" or "PT10S", not'),
        ("5m 10s", 1, 'must be a duration such as "5m", "10 seconds" or "PT10S", not'),
        ("ten seconds", 0, 'must be a duration such as "5m", "10 seconds" or "PT10S", not'),
        ("-10 seconds", 0, 'must be a duration such as "5m", "10 seconds" or "PT10S", not'),
        ("1.5 hours", 1, 'must be a duration such as "5m", "10 seconds" or "PT10S", not'),
        ("10 seconds ", 2, 'must be a duration such as "5m", "10 seconds" or "PT10S", not'),
        ("-PT10S", 0, 'must be a duration such as "5m", "10 seconds" or "PT10S", not'),
        ("pt10s", 0, 'must be a duration such as "5m", "10 seconds" or "PT10S", not'),
        ("P", 1, "must continue with a whole number and one of Y, M, W, D after"),
        ("PT", 2, 'must continue with a whole number and one of H, M, S after "PT"'),
        ("P1DT", 4, "must continue with a whole number and one of H, M, S after"),
        ("P1", 2, 'must continue with one of Y, M, W, D after "P1"'),
        ("P1S", 2, 'must continue with one of Y, M, W, D after "P1", not "S"'),
        ("PT1D", 3, 'must continue with one of H, M, S after "PT1", not "D"'),
        ("PT1S1M", 4, 'must end before "1M"'),
        ("P1D1W", 3, 'must end before "1W"'),
        ("PT0.5S", 0, "1 second to 36,500 days"),
        ("00:00:00.9999999", 0, "1 second to 36,500 days"),
        ("PT1.5H30M", 6, "only the last part has a fraction"),
        ("P1.5DT1H", 5, "only the last part has a fraction"),
        ("P1.5M", 2, "months and years have no fraction"),
        ("P0.5Y", 2, "months and years have no fraction"),
        ("PT0.0002H", 0, "1 second to 36,500 days"),
        ("PT1.S", 3, 'must continue with one of H, M, S after "PT1", not ".S"'),
        ("P1.D", 2, 'must continue with one of Y, M, W, D after "P1", not ".D"'),
        ("PT1.5", 5, 'must continue with one of H, M, S after "PT1.5"'),
        ("r5/2027-01-01T00:00Z/PT1H", 0, "must be a repeating interval such as"),
        ("5/2027-01-01T00:00Z/PT1H", 0, "must be a repeating interval such as"),
        ("00:00:00", 0, "1 second to 36,500 days"),
        ("36500.00:00:01", 0, "1 second to 36,500 days"),
        ("999999999.00:00:00", 0, "1 second to 36,500 days"),
        ("24:00:00", 0, 'hours must be 0 to 23, not "24"'),
        ("1.24:00:00", 2, 'hours must be 0 to 23, not "24"'),
        ("00:60:00", 3, 'minutes must be 0 to 59, not "60"'),
        ("00:00:60", 6, 'seconds must be 0 to 59, not "60"'),
        ("5:00", 1, "must be [days.]hh:mm:ss, such as 00:05:00 or 1.02:03:04, not"),
        ("05:00", 5, "must be [days.]hh:mm:ss, such as 00:05:00 or 1.02:03:04, not"),
        ("-00:05:00", 0, "must be [days.]hh:mm:ss, such as 00:05:00 or 1.02:03:04, not"),
        ("1:02:03:04", 1, "must be [days.]hh:mm:ss, such as 00:05:00 or 1.02:03:04, not"),
        ("00:05:00 ", 8, "must be [days.]hh:mm:ss, such as 00:05:00 or 1.02:03:04, not"),
        ("00:05:00.12345678", 8, "must be [days.]hh:mm:ss, such as 00:05:00 or 1.02:03:04, not"),
        ("PTT1S", 2, "must continue with a whole number and one of H, M, S after"),
        ("PT10S ", 5, 'must end before " "'),
        ("P1D1", 3, 'must end before "1"'),
        ("\u0661 day", 0, 'must be a duration such as "5m", "10 seconds" or "PT10S":'),
        ("1_0 seconds", 1, 'must be a duration such as "5m", "10 seconds" or "PT10S", not'),
        ("PT1\x00S", 3, "U+0000"),
        ("", 0, 'must be a duration such as "5m", "10 seconds" or "PT10S", not ""'),
    ],
)
def test_an_invalid_duration_is_refused_at_its_position(text: str, position: int, says: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        every(text)

    assert says in refused.value.reason
    assert (refused.value.field, refused.value.code, refused.value.position) == ("every", "INVALID_FIELD", position)


def test_a_grid_from_start_time_holds_the_start_itself() -> None:
    assert first(3, "PT7H", startTime="2026-03-29T00:30:00Z", timezone="Europe/Berlin") == [
        "2026-03-29 00:30:00",
        "2026-03-29 07:30:00",
        "2026-03-29 14:30:00",
    ]


def test_a_grid_without_start_time_begins_one_step_after_now_rounded_up() -> None:
    assert first(2, "1 minute") == ["2026-03-07 12:01:01", "2026-03-07 12:02:01"]


def test_the_jobs_start_is_the_anchor_of_a_schedule_without_one() -> None:
    job_start = datetime(2026, 5, 1, 0, 0, 7, 500_000, tzinfo=UTC)

    without = parse({"every": "1 hour"}, now=NOW, job_start=job_start)
    with_own = parse({"every": "1 hour", "startTime": "2026-04-30T23:30:00Z"}, now=NOW, job_start=job_start)

    assert without.rule.next_after(NOW) == datetime(2026, 5, 1, 0, 0, 8, tzinfo=UTC)
    assert with_own.rule.next_after(NOW) == datetime(2026, 5, 1, 0, 30, tzinfo=UTC)


def test_the_epoch_grid_counts_from_1970() -> None:
    found = between(every("7 hours", align="epoch").rule, NOW, END, 100)

    assert all(int(at.timestamp()) % 25_200 == 0 for at in found)
    assert found[0] - NOW < timedelta(hours=7)


def test_the_clock_grid_lies_on_local_midnight_before_and_after_a_change() -> None:
    timing = every("6 hours", align="clock", timezone="Europe/Berlin")

    winter = between(timing.rule, datetime(2026, 3, 27, 22, 59, tzinfo=UTC), END, 4)
    summer = between(timing.rule, datetime(2026, 3, 29, 21, 59, tzinfo=UTC), END, 4)

    assert [at.hour for at in winter] == [23, 5, 11, 17]
    assert [at.hour for at in summer] == [22, 4, 10, 16]


def test_the_interval_from_an_actual_start_is_returned_to_the_caller() -> None:
    timing = every("10 minutes", align="actual_start", startTime="2026-03-08T00:00:00Z")

    assert timing.actual_start_interval_s == 600
    assert timing.rule.next_after(NOW) == datetime(2026, 3, 8, tzinfo=UTC)


@pytest.mark.parametrize(("own", "jobs"), [("00:05", "00:15"), ("00:15", "00:05")])
def test_an_interval_from_the_actual_start_begins_at_the_later_of_two_starts(own: str, jobs: str) -> None:
    start = f"2026-03-08T{own}:00Z"
    job_start = datetime.fromisoformat(f"2026-03-08T{jobs}:00+00:00")

    timing = parse({"every": "1 hour", "align": "actual_start", "startTime": start}, now=NOW, job_start=job_start)
    grid = parse({"every": "1 hour", "startTime": start}, now=NOW, job_start=job_start)

    assert timing.rule.next_after(NOW) == datetime(2026, 3, 8, 0, 15, tzinfo=UTC)
    first = grid.rule.next_after(NOW)
    assert first is not None
    assert (first - datetime.fromisoformat(start)) % timedelta(hours=1) == timedelta(0)


@pytest.mark.parametrize(
    ("overflow", "expected"),
    [
        (None, ["01-31", "02-28", "03-31", "04-30"]),
        ("clamp", ["01-31", "02-28", "03-31", "04-30"]),
        ("skip", ["01-31", "03-31", "05-31", "07-31"]),
        ("next", ["01-31", "03-01", "03-31", "05-01"]),
    ],
)
def test_the_31st_of_every_month(overflow: str | None, expected: list[str]) -> None:
    members = {} if overflow is None else {"monthOverflow": overflow}
    found = first(4, "P1M", startTime="2026-01-31T09:00:00Z", **members)

    assert found == [f"2026-{day} 09:00:00" for day in expected]
    rule = every("P1M", startTime="2026-01-31T09:00:00Z", **members).rule
    morning = datetime(2026, 3, 1, 8, tzinfo=UTC)
    assert f"{rule.next_after(morning):%m-%d}" == next(day for day in expected if day >= "03-01")


def test_a_year_from_29_february_does_not_drift() -> None:
    assert first(5, "P1Y", startTime="2024-02-29T00:00:00Z") == [
        "2024-02-29 00:00:00",
        "2025-02-28 00:00:00",
        "2026-02-28 00:00:00",
        "2027-02-28 00:00:00",
        "2028-02-29 00:00:00",
    ]
    leap = first(2, "P1Y", startTime="2096-02-29T00:00:00Z", monthOverflow="skip")
    assert leap == ["2096-02-29 00:00:00", "2104-02-29 00:00:00"]


def test_a_month_without_start_time_begins_one_month_after_now() -> None:
    assert first(2, "P1M") == ["2026-04-07 12:00:01", "2026-05-07 12:00:01"]


def test_months_of_clock_and_epoch_begin_with_the_first() -> None:
    assert first(2, "P3M", align="epoch", timezone="Asia/Kolkata") == ["1970-04-01 00:00:00", "1970-07-01 00:00:00"]
    quarter = between(every("P3M", align="clock", timezone="Asia/Kolkata").rule, NOW, END, 1)
    assert quarter == [datetime(2026, 3, 31, 18, 30, tzinfo=UTC)]


@given(
    begun=st.dates(date(1971, 1, 1), date(2190, 1, 1)),
    step=st.integers(1, 18),
    overflow=st.sampled_from(MonthOverflow),
    looked=st.dates(date(1972, 1, 1), date(2190, 1, 1)),
)
def test_months_agree_with_a_walk_from_the_anchor(
    begun: date, step: int, overflow: MonthOverflow, looked: date
) -> None:
    epoch = date(1970, 1, 1)
    made = months.of_months(step, (begun - epoch).days)
    series = months.on_dates(made, 1 << begun.day, 0, Clock.at(5), overflow)
    walked = []
    most = (abs(begun.year - looked.year) + 10) * 12 // step + 15
    for k in range(-most, most):
        year, month = divmod(begun.year * 12 + begun.month - 1 + k * step, 12)
        length = monthrange(year, month + 1)[1]
        if begun.day <= length:
            walked.append(date(year, month + 1, begun.day))
        elif overflow is MonthOverflow.CLAMP:
            walked.append(date(year, month + 1, length))
        elif overflow is MonthOverflow.NEXT:
            walked.append(date(year, month + 1, length) + timedelta(days=1))
    wall = (looked - epoch).days * 86_400

    after, until = series.after(wall), series.until(wall)

    upcoming = next(day for day in walked if day >= looked)  # each at 00:00:05
    assert after == ((upcoming - epoch).days * 86_400 + 5 if upcoming < date(2201, 1, 1) else None)
    past = [day for day in walked if day < looked]
    if past and past[-1] >= epoch:
        assert until == (past[-1] - epoch).days * 86_400 + 5


@pytest.mark.parametrize(
    ("members", "field", "says"),
    [
        ({"every": "P1M", "align": "actual_start"}, "align", "fixed length"),
        ({"every": "P1D", "align": "week"}, "align", 'must be one of start, clock, epoch, actual_start, not "week"'),
        ({"every": "P1D", "align": 1}, "align", "must be one of start, clock, epoch, actual_start, not 1"),
        ({"cron": "@daily", "align": "clock"}, "align", "`every` only"),
        ({"every": "P1M", "monthOverflow": "last"}, "monthOverflow", 'must be one of skip, clamp, next, not "last"'),
    ],
)
def test_members_that_exclude_each_other_are_refused(members: dict[str, object], field: str, says: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse(members, now=NOW)

    assert refused.value.field == field
    assert says in refused.value.reason


def test_steps_are_counted_without_walking() -> None:
    timing = every("1 second", startTime="1970-01-01T00:00:00Z")
    from_1970 = to_instant(-1)

    assert count_between(timing.rule, from_1970, END, 10**12) == LAST_SECOND + 1
    assert timing.rule.last_until(END) == END


@pytest.mark.parametrize("step", ["P1W", "PT7H", "PT25H", "P2D", "PT37M", "PT11S"])
def test_a_step_that_divides_no_day_has_no_grid_on_the_clock(step: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse({"every": step, "align": "clock", "timezone": "Europe/Berlin"}, now=NOW)

    assert refused.value.field == "align"
    assert "write epoch or start" in refused.value.reason


def test_stored_schedules_with_such_a_grid_are_still_read() -> None:
    packed = parse({"every": "P1W", "align": "epoch"}, now=NOW).packed

    assert load(packed.replace("epoch", "clock")).rule == load(packed).rule
