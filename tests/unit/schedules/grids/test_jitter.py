"""Jitter: a stable spread that keeps the order, the window and the count."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import assume, given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.rule import between
from sweephand.schedules.timing import parse
from sweephand.schedules.zones.localtime import LAST_SECOND, to_instant
from tests.unit.schedules import given as some

END = to_instant(LAST_SECOND)
HOURLY = {"cron": "0 * * * *", "jitterSeconds": 600}


@given(some.fields(), st.sampled_from([1, 45, 3600, 86_400]), st.data())
def test_each_occurrence_is_delayed_by_at_most_the_spread_and_never_past_the_next(
    fields: dict[str, object], spread: int, data: st.DataObject
) -> None:
    fields = {name: value for name, value in fields.items() if name != "jitterSeconds"}
    try:
        plain = some.parse_acting(fields)
    except InvalidRequest:
        assume(False)
    jittered = some.parse_acting({**fields, "jitterSeconds": spread}, salt="a")
    begin = data.draw(some.instants(str(fields.get("timezone", "UTC"))))
    first = plain.rule.next_after(begin)
    assume(first is not None)
    assert first is not None

    planned = between(plain.rule, first - timedelta(seconds=1), END, 7)
    late = between(jittered.rule, first - timedelta(seconds=1), END, 7)
    for index, (at, put_off) in enumerate(zip(planned, late, strict=True)):
        assert at <= put_off <= at + timedelta(seconds=spread)
        if index + 1 < len(planned):
            assert put_off < planned[index + 1]
    if "endTime" in fields:
        assert jittered.rule.next_after(datetime.fromisoformat(str(fields["endTime"]))) is None


def test_the_same_salt_gives_the_same_instants_and_another_gives_others() -> None:
    begin = some.NOW
    once, again, other = (
        between(parse(HOURLY, now=some.NOW, salt=salt).rule, begin, END, 50) for salt in ("a", "a", "b")
    )

    assert once == again
    assert once != other


def test_the_spread_is_even() -> None:
    found = between(parse(HOURLY, now=some.NOW, salt="a").rule, some.NOW, END, 2_000)

    delays = [(at.minute * 60 + at.second) for at in found]

    assert max(delays) <= 600
    thirds = [sum(1 for delay in delays if low <= delay < low + 200) for low in (0, 200, 400)]
    assert all(560 <= third <= 780 for third in thirds)


def test_a_spread_of_one_second_gives_zero_or_one() -> None:
    found = between(parse({**HOURLY, "jitterSeconds": 1}, now=some.NOW, salt="a").rule, some.NOW, END, 50)

    assert {at.second for at in found} == {0, 1}


def test_the_end_of_the_window_applies_to_the_delayed_instant() -> None:
    timing = parse(
        {"cron": "0 12 * * *", "jitterSeconds": 3600, "endTime": "2026-03-10T12:00:05Z"}, now=some.NOW, salt="a"
    )

    found = between(timing.rule, some.NOW + timedelta(hours=2), END, 9)

    assert [at.day for at in found] == [8, 9, 10]
    assert found[-1] <= to_instant(1_773_144_005)
    assert timing.rule.next_after(found[-1]) is None


def test_a_step_of_a_second_leaves_no_room_for_jitter() -> None:
    timing = parse({"every": "1 second", "jitterSeconds": 60}, now=some.NOW, salt="a")

    found = between(timing.rule, some.NOW, END, 5)

    assert found == [some.NOW + timedelta(seconds=step) for step in range(1, 6)]


def test_the_packed_text_omits_absent_jitter() -> None:
    assert parse({**HOURLY, "jitterSeconds": 0}, now=some.NOW, salt="a") == parse({"cron": "0 * * * *"}, now=some.NOW)
