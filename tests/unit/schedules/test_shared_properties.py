"""Properties of every schedule in every notation. A new notation joins by its line in given.BY_NOTATION."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.explain.explain import preview
from sweephand.schedules.notations import NOTATIONS
from sweephand.schedules.rule import between, count_between
from sweephand.schedules.timing import Timing, load
from sweephand.schedules.zones.localtime import LAST_SECOND, to_instant
from tests.unit.schedules import given as some

SECOND = timedelta(seconds=1)
END = to_instant(LAST_SECOND)


@st.composite
def timings(draw: st.DrawFn) -> Timing:
    """Schedules that fire at all."""
    timing = parsed(draw(some.fields()), salt="0192aa10-0000-7000-8000-000000000001")
    assume(timing is not None)
    assert timing is not None
    return timing


def parsed(fields: dict[str, object], salt: str = "") -> Timing | None:
    """Returns None for a schedule that never fires; any other refusal fails the test. A rule for clock changes that
    does not act is left out.
    """
    try:
        return some.parse_acting(fields, salt=salt)
    except InvalidRequest as refused:
        if refused.code != "NEVER_FIRES":
            raise
        return None


@st.composite
def timings_and_instants(draw: st.DrawFn) -> tuple[Timing, datetime]:
    """Draws an instant close to a change of the schedule's own zone, or close to one of its own occurrences."""
    timing = draw(timings())
    zone = json.loads(timing.packed).get("zone", "UTC")
    instant = draw(some.instants(zone))
    near = timing.rule.next_after(instant)
    if near is not None and draw(st.booleans()):
        instant = near + draw(st.sampled_from([-SECOND, 0 * SECOND, SECOND, SECOND / 2]))
    return timing, instant


@given(timings_and_instants())
def test_next_lies_strictly_after_and_last_at_or_before(case: tuple[Timing, datetime]) -> None:
    timing, instant = case
    upcoming, latest = timing.rule.next_after(instant), timing.rule.last_until(instant)

    assert upcoming is None or instant < upcoming <= END
    assert latest is None or latest <= instant
    for found in (upcoming, latest):
        assert found is None or (found.tzinfo is UTC and found.microsecond == 0 and found.year in range(1970, 2200))


@given(timings_and_instants())
def test_next_and_last_find_the_same_occurrences(case: tuple[Timing, datetime]) -> None:
    timing, instant = case
    upcoming, latest = timing.rule.next_after(instant), timing.rule.last_until(instant)

    if upcoming is not None:
        assert timing.rule.last_until(upcoming) == upcoming
        assert timing.rule.last_until(upcoming - SECOND) == latest
        assert timing.rule.next_after(upcoming - SECOND) == upcoming
    if latest is not None:
        assert timing.rule.next_after(latest) == upcoming
        assert timing.rule.next_after(latest - SECOND) == latest
        assert timing.rule.last_until(latest) == latest


@given(timings_and_instants(), st.integers(1, 12))
def test_a_walk_forwards_ascends_and_returns_by_the_same_instants(case: tuple[Timing, datetime], steps: int) -> None:
    timing, instant = case
    there = between(timing.rule, instant, END, steps)

    back, at = [], there[-1] if there else None
    while at is not None and at > instant:
        back.append(at)
        at = timing.rule.last_until(at - SECOND)

    assert there == sorted(set(there))
    assert back == there[::-1]


@given(timings_and_instants(), st.integers(0, 40), st.integers(0, 10**7))
def test_the_count_is_the_length_of_the_list(case: tuple[Timing, datetime], limit: int, span_s: int) -> None:
    timing, instant = case
    until = instant + timedelta(seconds=span_s)

    listed = between(timing.rule, instant, until, limit)

    assert count_between(timing.rule, instant, until, limit) == len(listed)
    assert all(instant < found <= until for found in listed)
    assert count_between(timing.rule, until, instant, limit) == 0 or until == instant


@given(timings_and_instants())
def test_a_packed_schedule_comes_back_as_the_same_schedule(case: tuple[Timing, datetime]) -> None:
    timing, instant = case

    loaded = load(timing.packed)

    assert loaded == timing
    assert hash(loaded.rule) == hash(timing.rule)
    assert (loaded.summary, loaded.interval_s, loaded.packed) == (timing.summary, timing.interval_s, timing.packed)
    assert between(loaded.rule, instant, END, 5) == between(timing.rule, instant, END, 5)


@given(timings())
def test_an_ordinary_schedule_packs_into_400_bytes_of_compact_json(timing: Timing) -> None:
    assert timing.notation in NOTATIONS
    assert json.dumps(json.loads(timing.packed), separators=(",", ":")) == timing.packed
    assert len(timing.packed) <= 400


@given(timings_and_instants())
def test_no_two_occurrences_are_closer_than_the_certain_gap(case: tuple[Timing, datetime]) -> None:
    timing, instant = case
    assume(not timing.jitter_s)
    found = between(timing.rule, instant, END, 8)

    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(found)]

    assert timing.interval_s is None if not timing.recurring else timing.interval_s >= 1
    assert all(timing.interval_s is not None and gap >= timing.interval_s for gap in gaps)


@given(some.fields(), st.data())
def test_the_window_only_limits_the_occurrences(fields: dict[str, object], data: st.DataObject) -> None:
    """Inside its window a schedule fires as it would without one; outside it never does."""
    fields = {name: value for name, value in fields.items() if name not in ("startTime", "endTime", "jitterSeconds")}
    assume(
        fields.get("align") not in (None, "start", "actual_start")
        or fields.keys() & {"cron", "sapCron", "repeatAt"}
        or "cron(" in str(fields.get("eventBridge"))
    )
    whole = parsed(fields)
    assume(whole is not None)
    assert whole is not None
    first = data.draw(some.seconds(str(fields.get("timezone", "UTC"))))
    last = min(LAST_SECOND, first + data.draw(st.integers(0, 10**8)))
    inside = between(whole.rule, to_instant(first - 1), to_instant(last), 20)

    cut_fields = {**fields, "startTime": some.text_of(first), "endTime": some.text_of(last)}
    if not inside:
        with pytest.raises(InvalidRequest) as refused:
            some.parse_acting(cut_fields)
        assert refused.value.code == "NEVER_FIRES"
        return
    cut = some.parse_acting(cut_fields)

    assert between(cut.rule, to_instant(-1), END, 20) == inside
    assert cut.rule.last_until(END) == whole.rule.last_until(to_instant(last))
    assert cut.rule.next_after(to_instant(last)) is None
    assert cut.rule.last_until(to_instant(first - 1)) is None


@given(timings_and_instants())
def test_a_preview_lists_the_exact_occurrences(case: tuple[Timing, datetime]) -> None:
    timing, instant = case

    assert [shown.instant for shown in preview(timing, instant, 6)] == between(timing.rule, instant, END, 6)


@given(timings_and_instants())
def test_instants_of_other_zones_are_the_same_instants(case: tuple[Timing, datetime]) -> None:
    timing, instant = case
    elsewhere = instant.astimezone(datetime.fromisoformat("2026-01-01T00:00:00+05:45").tzinfo)

    assert timing.rule.next_after(elsewhere) == timing.rule.next_after(instant)
    assert timing.rule.last_until(elsewhere) == timing.rule.last_until(instant)


def test_a_rule_of_the_callers_own_can_be_counted() -> None:
    """The functions need no more of a rule than its two questions."""

    class Once:
        def next_after(self, instant: datetime) -> datetime | None:
            return some.NOW if instant < some.NOW else None

        def last_until(self, instant: datetime) -> datetime | None:
            return some.NOW if instant >= some.NOW else None

    assert count_between(Once(), to_instant(0), END, 9) == 1
    assert between(Once(), some.NOW, END, 9) == []
    assert between(Once(), to_instant(0), END, 0) == []


@given(timings_and_instants(), st.integers(0, 3 * 10**7))
def test_many_are_counted_as_a_walk_counts_them(case: tuple[Timing, datetime], span_s: int) -> None:
    """Also where masks count them without a walk."""
    timing, instant = case
    after = int(instant.timestamp())
    until = min(after + span_s, LAST_SECOND)
    walked = sum(1 for _ in islice(timing.rule.seconds(after, until), 3_000))

    counted = timing.rule.count(after, until, 10**9) if walked < 3_000 else timing.rule.count(after, until, 3_000)

    assert counted == walked
