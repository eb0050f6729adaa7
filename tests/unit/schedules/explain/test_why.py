"""Why an instant is an occurrence of a schedule or none."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given

from sweephand.schedules.calendars import calendars
from sweephand.schedules.explain.explain_instant import REASON_CODES, Counted, Explanation, explain, explain_written
from sweephand.schedules.rule import MovedBy
from sweephand.schedules.text import instants
from sweephand.schedules.timing import Timing, parse
from tests.unit.schedules.test_shared_properties import SECOND, timings_and_instants

NOW = datetime(2026, 3, 7, 12, tzinfo=UTC)
BERLIN = {"timezone": "Europe/Berlin"}


def asked(fields: dict[str, object], at: str, counted: Counted | None = None) -> Explanation:
    return explain_written(parse(fields, now=NOW, salt="a"), instants.read(at, "at"), counted)


def reasons(explained: Explanation) -> list[str]:
    return [f"{each.code} {each.text}" for each in explained.reasons]


@given(timings_and_instants())
def test_every_instant_is_explained_as_the_rule_says(case: tuple[Timing, datetime]) -> None:
    timing, instant = case
    second = instant.replace(microsecond=0)

    for at in (second, timing.rule.next_after(second)):
        if at is None:
            continue
        found = explain(timing, at)
        assert found.instant == at
        assert found.occurs is (timing.rule.last_until(at) == at)
        assert found.previous == timing.rule.last_until(at - SECOND)
        assert found.following == timing.rule.next_after(at)
        assert found.reasons
        assert {each.code for each in found.reasons} <= REASON_CODES.keys()
        if timing.notation in {"cron", "eventBridge", "sapCron"} and timing.recurring:
            assert "NOT_IN_SERIES" not in {each.code for each in found.reasons}


@given(timings_and_instants())
def test_instants_said_to_match_occur_and_others_do_not(case: tuple[Timing, datetime]) -> None:
    """Codes of occurrences and codes of the others never meet, but for jitter and what the question itself brings."""
    timing, instant = case
    found = explain(timing, instant)
    codes = {each.code for each in found.reasons} - {"PUT_OFF_BY_JITTER"}

    assert (
        codes <= {"MATCHES", "MOVED_BY_GAP", "CHOSEN_BY_OVERLAP"}
        if found.occurs
        else not codes
        & {
            *("MATCHES", "MOVED_BY_GAP", "CHOSEN_BY_OVERLAP", "IN_GAP", "COMES_TWICE"),
        }
    )


@pytest.mark.parametrize(
    ("fields", "at", "expected"),
    [
        ({"cron": "30 2 * 6 1-5"}, "2026-06-06T02:30:00Z", [
            "DOES_NOT_MATCH weekday: Saturday is not Monday to Friday",
        ]),
        ({"cron": "*/15 9-17 * * *"}, "2026-06-06T08:01:00Z", [
            "DOES_NOT_MATCH hour: 8 is not 9 to 17",
            "DOES_NOT_MATCH minute: 1 is not 0, 15, 30 and 45",
        ]),
        ({"cron": "0 9 * * *"}, "2026-06-06T09:00:30Z", ["DOES_NOT_MATCH second: 30 is not 0"]),
        ({"cron": "0 9 13 * 5"}, "2026-06-06T09:00:00Z", [
            "DOES_NOT_MATCH day of the month: 6 is not 13",
            "DOES_NOT_MATCH weekday: Saturday is not Friday",
        ]),
        ({"cron": "1 9 13 * 5"}, "2026-06-05T09:00:00Z", ["DOES_NOT_MATCH minute: 0 is not 1"]),
        ({"eventBridge": "cron(0 9 LW * ? 2027)"}, "2026-06-06T09:00:00Z", [
            "DOES_NOT_MATCH the year 2026 is not one of its years",
            "DOES_NOT_MATCH weekday: Saturday is not Monday to Friday",
            "DOES_NOT_MATCH Saturday, 2026-06-06 is not one of its days of the month",
        ]),
        ({"eventBridge": "cron(0 9 ? 7 6#1 *)"}, "2026-06-06T09:00:00Z", [
            "DOES_NOT_MATCH month: June is not July",
            "DOES_NOT_MATCH weekday: Saturday is not Friday",
        ]),
        ({"eventBridge": "cron(0 9 ? * 6#1 *)"}, "2026-06-12T09:00:00Z", [
            "DOES_NOT_MATCH Friday, 2026-06-12 is not one of its days of the month",
        ]),
        ({"sapCron": "* * 13 fri 9 0 0"}, "2027-02-13T09:00:00Z", [
            "DOES_NOT_MATCH weekday: Saturday is not Friday",
        ]),
        ({"sapCron": "* * 13 fri 9 0 0"}, "2027-02-12T09:00:00Z", [
            "DOES_NOT_MATCH Friday, 2027-02-12 is not one of its days of the month",
        ]),
        ({"sapCron": "* * 13 fri 9 0 0"}, "2027-02-11T09:00:00Z", [
            "DOES_NOT_MATCH weekday: Thursday is not Friday",
            "DOES_NOT_MATCH Thursday, 2027-02-11 is not one of its days of the month",
        ]),
        ({"sapCron": "* * * sun,mon 9 0 0"}, "2027-02-13T09:00:00Z", [
            "DOES_NOT_MATCH weekday: Saturday is not Monday and Sunday",
        ]),
        ({"every": "1 hour", "startTime": "2026-06-06T00:00:00Z"}, "2026-06-06T09:20:00Z", [
            "BETWEEN_STEPS 1200 s after one step of 3600 s and 2400 s before the next",
        ]),
        ({"every": "1 hour", "startTime": "2026-06-06T00:00:00Z"}, "2026-06-05T09:00:00Z", [
            "BEFORE_START the schedule begins at 2026-06-06T00:00:00Z",
        ]),
        ({"every": "P1M", "startTime": "2026-06-06T00:00:00Z"}, "2026-06-07T00:00:00Z", [
            "DOES_NOT_MATCH Sunday, 2026-06-07 is not one of its days of the month",
        ]),
        ({"at": "2026-06-06T00:00:00Z"}, "2026-06-06T00:00:01Z", ["NOT_IN_SERIES it is not an instant of the series"]),
        ({"cron": "0 9 * * *", "endTime": "2026-06-06T00:00:00Z"}, "2026-06-06T09:00:00Z", [
            "AFTER_END the schedule ends at 2026-06-06T00:00:00Z",
        ]),
    ],
)  # fmt: skip
def test_the_reason_is_the_field_the_step_or_the_limit(fields: dict[str, object], at: str, expected: list[str]) -> None:
    found = asked(fields, at)

    assert not found.occurs
    assert reasons(found) == expected


def test_an_occurrence_says_what_the_clock_reads() -> None:
    found = asked({"cron": "30 2 * * *", **BERLIN}, "2026-06-06T02:30:00")

    assert (found.occurs, found.moved_by) == (True, None)
    assert reasons(found) == ["MATCHES 2026-06-06T02:30:00+02:00 is one of its instants"]


@pytest.mark.parametrize(
    ("rule", "instant", "code"),
    [("next_valid", "01:00", "MOVED_BY_GAP"), ("shift", "01:30", "MOVED_BY_GAP"), ("skip", "01:00", "LEFT_OUT_BY_GAP")],
)
def test_a_wall_time_in_a_gap_is_explained_by_what_the_rule_makes_of_it(rule: str, instant: str, code: str) -> None:
    found = asked({"cron": "30 2 * * *", "dstGap": rule, **BERLIN}, "2026-03-29T02:30:00")

    assert f"{found.instant:%H:%M}" == instant
    assert found.occurs is (rule != "skip")
    assert [each.code for each in found.reasons] == ["IN_GAP", code]


def test_a_wall_time_in_a_gap_that_does_not_match_says_both() -> None:
    found = asked({"cron": "30 2 * * *", **BERLIN}, "2026-03-29T02:40:00")

    assert (found.occurs, found.moved_by) == (False, None)
    assert reasons(found) == [
        "IN_GAP the clock in Europe/Berlin jumps over 2026-03-29T02:40:00 at 2026-03-29T01:00:00Z",
        "DOES_NOT_MATCH minute: 40 is not 30",
    ]


def test_elapsed_time_takes_a_wall_time_in_a_gap_by_the_clock_before() -> None:
    found = asked({"every": "30 minutes", "align": "epoch", **BERLIN}, "2026-03-29T02:30:00")

    assert (f"{found.instant:%H:%M}", found.occurs) == ("01:30", True)
    assert [each.code for each in found.reasons] == ["IN_GAP", "MATCHES"]


@pytest.mark.parametrize(
    ("rule", "first", "second"),
    [
        ("first", ["CHOSEN_BY_OVERLAP"], ["OTHER_COPY"]),
        ("second", ["OTHER_COPY"], ["CHOSEN_BY_OVERLAP"]),
        ("both", ["CHOSEN_BY_OVERLAP"], ["CHOSEN_BY_OVERLAP"]),
    ],
)
def test_each_copy_of_a_time_that_comes_twice_says_which_one_runs(
    rule: str, first: list[str], second: list[str]
) -> None:
    fields = {"cron": "30 2 * * *", "dstOverlap": rule, **BERLIN}

    assert [each.code for each in asked(fields, "2026-10-25T00:30:00Z").reasons] == first
    assert [each.code for each in asked(fields, "2026-10-25T01:30:00Z").reasons] == second
    by_the_wall = asked(fields, "2026-10-25T02:30:00")
    assert (by_the_wall.occurs, by_the_wall.reasons[0].code) == (True, "COMES_TWICE")
    assert f"{by_the_wall.instant:%H:%M}" == ("01:30" if rule == "second" else "00:30")


def test_a_planned_time_delayed_by_jitter_names_the_new_instant() -> None:
    fields = {"cron": "30 2 * * *", "jitterSeconds": 600}
    planned = asked(fields, "2026-06-06T02:30:00Z")
    assert planned.following is not None

    put_off = asked(fields, f"{planned.following:%Y-%m-%dT%H:%M:%SZ}")

    assert reasons(planned) == [f"PUT_OFF_BY_JITTER jitterSeconds delays it to {planned.following:%Y-%m-%dT%H:%M:%SZ}"]
    assert put_off.occurs
    assert [each.code for each in put_off.reasons] == ["PUT_OFF_BY_JITTER", "MATCHES"]


def test_the_count_is_used_up_after_its_last_occurrence() -> None:
    fields = {"cron": "0 9 * * *", "count": 5}
    counted = Counted(datetime(2026, 6, 1, tzinfo=UTC), 2)

    found = [asked(fields, f"2026-{day}T09:00:00Z", counted) for day in ("05-31", "06-01", "06-02", "06-03")]

    assert [each.occurs for each in found] == [True, True, True, False]
    assert reasons(found[-1]) == ["COUNT_REACHED all 5 occurrences of count come earlier"]
    assert found[-1].moved_by is None


def test_fractions_of_a_second_are_cut_off() -> None:
    timing = parse({"cron": "0 9 * * *"}, now=NOW)

    assert explain(timing, datetime(2026, 6, 6, 9, tzinfo=UTC) + timedelta(milliseconds=999)).occurs


def test_each_code_can_occur() -> None:
    """But those of stored schedules and of calendars, which have tests of their own (test_explain, test_calendars)."""
    met = set()
    for fields in (
        {"cron": "30 2 * * *", "startTime": "2026-03-20T00:00:00Z", "endTime": "2026-11-20T00:00:00Z", **BERLIN},
        {"cron": "30 2 * * *", "jitterSeconds": 60, **BERLIN},
        {"cron": "30 2 * * *", "dstGap": "skip", **BERLIN},
        {"every": "7 minutes"},
        {"cron": "30 2 31 * *", "monthOverflow": "next"},
        {"at": "2026-06-06T00:00:00Z"},
        {"rrule": "DTSTART:20260601T023000Z\nRRULE:FREQ=DAILY\nEXDATE:20260606T023000Z"},
    ):
        for at in (
            *("2026-03-19T02:30:00", "2026-03-29T02:30:00", "2026-06-06T02:30:00", "2026-10-25T01:30:00Z"),
            *("2026-06-06T03:30:00", "2026-10-25T02:30:00", "2026-12-01T02:30:00", "2027-03-01T02:30:00"),
        ):
            met |= {each.code for each in asked(fields, at, Counted(NOW, 300)).reasons}

    elsewhere = {code for code in REASON_CODES if "CALENDAR" in code} | {
        "BEGINS_PLAN",
        "PLANNED_BEFORE",
        "CHANGED_SINCE",
        "NOT_ACTIVE",
        "IN_LEDGER",
        "NO_ROW",
        "TOO_HARD",
    }
    assert met == REASON_CODES.keys() - elsewhere


def of_calendar(roll: str, at: str) -> Explanation:
    """Makes a schedule of a weekday and a calendar with one holiday, Tuesday 9 June."""
    holiday = (date(2026, 6, 9) - date(1970, 1, 1)).days
    calendars.keep(f"why-{roll}", {"days": [[holiday, holiday]]})
    fields = {"cron": "0 9 * * 1-5", "calendars": [{"name": "holidays", "roll": roll}]}
    timing = parse(fields, now=NOW, book={"holidays": f"why-{roll}"})
    return explain_written(timing, instants.read(at, "at"))


def test_effects_of_a_calendar_are_explained() -> None:
    left_out = of_calendar("none", "2026-06-09T09:00:00Z")
    moved, come = of_calendar("next", "2026-06-09T09:00:00Z"), of_calendar("next", "2026-06-10T09:00:00Z")

    assert not left_out.occurs
    assert reasons(left_out) == ["LEFT_OUT_BY_CALENDAR the times of calendar 1 of its list do not allow it"]
    assert not moved.occurs
    assert reasons(moved) == ["MOVED_BY_CALENDAR its calendars do not allow it: it comes at 2026-06-10T09:00:00Z"]
    assert come.occurs  # one of its own, which the one that is moved here meets


def test_an_occurrence_moved_by_a_calendar_names_its_origin() -> None:
    found = of_calendar("next", "2026-06-13T09:00:00Z")
    assert (found.occurs, [each.field for each in found.reasons]) == (False, ["weekday"])

    holiday = (date(2026, 6, 12) - date(1970, 1, 1)).days
    calendars.keep("why-friday", {"days": [[holiday, holiday]]})
    fields = {"cron": "0 9 * * 5", "calendars": [{"name": "holidays", "roll": "next"}]}
    timing = parse(fields, now=NOW, book={"holidays": "why-friday"})
    come = explain_written(timing, instants.read("2026-06-13T09:00:00Z", "at"))

    assert come.occurs
    assert reasons(come) == ["COMES_FROM_CALENDAR comes from 2026-06-12T09:00:00, which its calendars do not allow"]


ON_THE_31ST = {"recurrence": {"frequency": "month", "schedule": {"monthDays": [31]}}}


@pytest.mark.parametrize(("overflow", "runs"), [("clamp", "2027-02-28T09:00:00Z"), ("next", "2027-03-01T09:00:00Z")])
@pytest.mark.parametrize(
    "fields", [{"cron": "0 9 31 * *"}, {"cron": "* * 31 * *"}, {"every": "P1M"}, ON_THE_31ST], ids=str
)
def test_an_occurrence_for_a_day_that_the_month_lacks_says_so(
    fields: dict[str, object], overflow: str, runs: str
) -> None:
    start = datetime(2027, 1, 31, 9, tzinfo=UTC)
    begun = {} if "cron" in fields else {"startTime": "2027-01-31T09:00:00Z"}
    timing = parse({**fields, **begun, "monthOverflow": overflow}, now=start)

    found = explain(timing, datetime.fromisoformat(runs))

    assert found.moved_by == MovedBy("monthOverflow", "2027-02-31T09:00:00", "moved")
    assert [(each.code, each.text) for each in found.reasons] == [
        ("MOVED_BY_MONTH", "stands for the 31st, which February 2027 does not have")
    ]
    on_its_day = explain(timing, datetime(2027, 3, 31, 9, tzinfo=UTC))
    assert (on_its_day.moved_by, [each.code for each in on_its_day.reasons]) == (None, ["MATCHES"])


@pytest.mark.parametrize(
    ("cron", "at", "stands_for"),
    [
        ("0 9 29-31 * *", "2027-02-28T09:00:00Z", "2027-02-29T09:00:00"),
        ("0 9 30,31 * *", "2027-04-30T09:00:00Z", None),
        ("0 9 31 4 5", "2027-04-30T09:00:00Z", None),
        ("0 9 31 4 1", "2027-04-30T09:00:00Z", "2027-04-31T09:00:00"),
        ("0 9 1 * *", "2027-04-01T09:00:00Z", None),
    ],
)
def test_a_day_of_the_rule_itself_was_not_moved(cron: str, at: str, stands_for: str | None) -> None:
    timing = parse({"cron": cron, "monthOverflow": "clamp"}, now=datetime(2027, 1, 1, tzinfo=UTC))

    moved_by = explain(timing, datetime.fromisoformat(at)).moved_by

    assert (None if moved_by is None else moved_by.local_time) == stands_for


@pytest.mark.parametrize("fields", [{"cron": "0 9 31 * *"}, {"every": "P1M"}], ids=str)
def test_an_instant_without_an_occurrence_was_not_moved(fields: dict[str, object]) -> None:
    timing = parse({**fields, "monthOverflow": "clamp"}, now=datetime(2027, 1, 31, 9, tzinfo=UTC))

    assert timing.rule.moved_by(int(datetime(2027, 2, 27, 9, tzinfo=UTC).timestamp())) is None
