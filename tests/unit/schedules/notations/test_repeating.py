"""Repeating intervals of ISO 8601 against a list of their beginnings, made one by one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.rule import between
from sweephand.schedules.timing import counted_from, load, parse
from sweephand.schedules.zones.localtime import LAST_SECOND, to_instant
from tests.unit.schedules import given as some

NOW = some.NOW
END = to_instant(LAST_SECOND)


def instants(text: str, count: int = 10, **more: object) -> list[str]:
    timing = parse({"every": text, **more}, now=NOW)
    assert load(timing.packed) == timing
    return [f"{at:%Y-%m-%dT%H:%M}" for at in between(timing.rule, to_instant(-1), END, count)]


@given(st.integers(1, 40), st.integers(1, 548 * 86_400), st.integers(10**9, 3 * 10**9), st.sampled_from("bde"))
def test_the_given_number_of_intervals_follow_each_other(times, step_s, at, form):
    written, step = some.text_of(at), timedelta(seconds=step_s)
    texts = {
        "b": f"R{times}/{written}/PT{step_s}S",
        "d": f"R{times}/PT{step_s}S/{written}",
        "e": f"R{times}/{written}/{some.text_of(at + step_s)}",
    }
    begun = to_instant(at) - (step * times if form == "d" else 0 * step)

    timing = parse({"every": texts[form]}, now=NOW)

    wanted = [found for n in range(times) if (found := begun + n * step) >= to_instant(0)]  # nothing is before 1970
    assert between(timing.rule, to_instant(-1), END, times + 1) == wanted
    assert timing.rule.last_until(END) == wanted[-1]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("R3/2027-01-01T00:00Z/PT1H", ["2027-01-01T00:00", "2027-01-01T01:00", "2027-01-01T02:00"]),
        ("R3/PT1H/2027-01-01T00:00Z", ["2026-12-31T21:00", "2026-12-31T22:00", "2026-12-31T23:00"]),
        ("R2/2027-01-01T00:00Z/2027-01-02T12:00Z", ["2027-01-01T00:00", "2027-01-02T12:00"]),
        ("R3/2027-01-31T09:00Z/P1M", ["2027-01-31T09:00", "2027-02-28T09:00", "2027-03-31T09:00"]),
        ("R3/P1M/2027-03-31T09:00Z", ["2026-12-31T09:00", "2027-01-31T09:00", "2027-02-28T09:00"]),
        ("R2/20270101T000000Z/P1W", ["2027-01-01T00:00", "2027-01-08T00:00"]),
        ("R2/2027-01-01T10+01/P1D", ["2027-01-01T09:00", "2027-01-02T09:00"]),
        ("R2/2027-01-01T10:00-0330/P1D", ["2027-01-01T13:30", "2027-01-02T13:30"]),
        ("R1/2027-01-01T00:00Z/P1Y", ["2027-01-01T00:00"]),
        ("R2/2026-12-01/P1M", ["2026-12-01T00:00", "2027-01-01T00:00"]),
        ("R2/2027-W06-1T09:00Z/P1W", ["2027-02-08T09:00", "2027-02-15T09:00"]),
        ("R2/2027-039/2027-041", ["2027-02-08T00:00", "2027-02-10T00:00"]),
        ("R2/P1D/2027-W06", ["2027-02-06T00:00", "2027-02-07T00:00"]),
        ("R2/PT1H", ["2026-03-07T13:00", "2026-03-07T14:00"]),
        ("R2/P1M", ["2026-04-07T12:00", "2026-05-07T12:00"]),
    ],
)  # fmt: skip
def test_examples(text, found):
    assert instants(text) == found


def test_an_expression_without_a_number_never_ends():
    forward = parse({"every": "R/2027-01-01T00:00Z/PT1H"}, now=NOW)
    assert parse({"every": "R-1/2027-01-01T00:00Z/PT1H"}, now=NOW) == forward
    backward = parse({"every": "R/PT1H/2027-01-01T00:00Z"}, now=NOW)

    assert forward.rule.last_until(END) == datetime(2199, 12, 31, 23, tzinfo=UTC)
    assert backward.rule.last_until(END) == datetime(2026, 12, 31, 23, tzinfo=UTC)
    assert backward.rule.next_after(to_instant(1)) == to_instant(3600)


def test_a_start_without_an_offset_is_wall_time():
    assert instants("R2/2027-01-01T09:00/P1D", timezone="Europe/Berlin") == ["2027-01-01T08:00", "2027-01-02T08:00"]


def test_a_start_in_the_expression_combines_with_a_window():
    found = instants("R5/2027-01-01T00:00Z/PT1H", startTime="2027-01-01T01:30:00Z", endTime="2027-01-01T03:00:00Z")

    assert found == ["2027-01-01T02:00", "2027-01-01T03:00"]


def test_an_interval_begun_at_creation_keeps_its_rhythm():
    timing = parse({"every": "R9/PT90M"}, now=NOW)
    begun = counted_from(timing.packed)

    assert begun is not None
    assert parse({"every": "R9/PT90M"}, now=begun) == timing


@pytest.mark.parametrize(
    ("text", "reason", "position"),
    [
        ("R0/2027-01-01T00:00Z/PT1H", "from 1 to", 1),
        ("R2147483648/PT1H", "R and a number from 1 to 2,147,483,647", 1),
        ("R99999999999/PT1H", "R and a number from 1 to 2,147,483,647", 1),
        (f"R{'9' * 900}/PT1H", "R and a number from 1 to 2,147,483,647", 1),
        ("R5", "must be a repeating interval such as", 0),
        ("R5/PT1H/PT1H", "its date must be a date, or a date and time such as", 8),
        ("R5/2027-01-01T00:00Z/1 hour", "its date must be a date, or a date and time such as", 21),
        ("R5/2027-13-01T00:00Z/PT1H", 'month must be 1 to 12, not "13"', 8),
        ("R5/2027-01-02T00:00Z/2027-01-01T00:00Z", "ends before it begins", 21),
        ("R5/2027-01-01T00:00Z/PT1X", 'must continue with one of H, M, S after "PT1", not "X"', 24),
        ("R5/2027-01-01T00:00Z/PT0S", "must be 1 second to 36,500 days, not 0 seconds", 21),
        ("R5/2027-01-01T00:00Z/P1MT1H", "cannot be mixed", 21),
        ("R-2/2027-01-01T00:00Z/PT1H", "from 1 to", 1),
        ("R5/2026-12-01T00:00Z/PT0.5S", "must be 1 second to 36,500 days, not 0 seconds", 21),
        ("R5/2027-01-31T09:00/P1M2D", "cannot be mixed", 20),
        ("R5/PT1H2X", 'must continue with one of M, S after "PT1H2", not "X"', 8),
        ("R5/P1M2D/2027-01-31T09:00", "cannot be mixed", 3),
        ("R5/1971-01-01/2199-01-01", "must be 1 second to 36,500 days, not 7,195,046,400 seconds", 14),
        ("R5/2027-W54-1/P1W", 'week must be 1 to 53, not "54"', 9),
        ("R5/Mon, 08 Feb 2027/P1W", "its date must be a date, or a date and time such as", 3),
        ("r5/2027-01-01T00:00Z/PT1H", "must be a repeating interval such as", 0),
        ("R/2027-03-28T02:30/PT1H", "never reads", 2),
    ],
)  # fmt: skip
def test_an_invalid_expression_is_refused_with_its_position(text, reason, position):
    with pytest.raises(InvalidRequest) as refused:
        parse({"every": text, "timezone": "Europe/Berlin"}, now=NOW)

    assert (refused.value.field, refused.value.position) == ("every", position)
    assert reason in refused.value.reason


def test_align_is_refused_with_a_repeating_interval():
    with pytest.raises(InvalidRequest, match="repeating interval"):
        parse({"every": "R/2027-01-01T00:00Z/PT1H", "align": "clock"}, now=NOW)


def test_summaries():
    assert parse({"every": "R5/2027-01-01T00:00Z/PT1H"}, now=NOW).summary == (
        "every hour from 2027-01-01T00:00:00Z until 2027-01-01T04:00:00Z"
    )
    assert parse({"every": "R3/P1M/2027-03-31T09:00Z"}, now=NOW).summary == (
        "every month from 2026-12-31T09:00:00Z until 2027-02-28T09:00:00Z; a month without such a day has its last one"
    )
