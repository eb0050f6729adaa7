from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.instants import (
    EPOCH,
    epoch_ms,
    epoch_s,
    from_ms,
    from_ms_if_any,
    from_s,
    from_s_if_any,
    ms_if_any,
    s_if_any,
    text,
    text_ms,
    up_to_second,
)

AWARE = st.builds(
    lambda microseconds, zone: (EPOCH + timedelta(microseconds=microseconds)).astimezone(zone),
    st.integers(0, 7_258_118_399_999_999),
    st.sampled_from([UTC, timezone(timedelta(hours=5.5))]),
)


@given(AWARE)
def test_seconds_and_milliseconds_are_rounded_down_and_come_back(instant: datetime) -> None:
    assert from_s(epoch_s(instant)) <= instant < from_s(epoch_s(instant) + 1)
    assert from_ms(epoch_ms(instant)) <= instant < from_ms(epoch_ms(instant) + 1)
    assert epoch_ms(instant) // 1_000 == epoch_s(instant)


@given(AWARE)
def test_an_optional_instant_is_written_like_a_required_one(instant: datetime) -> None:
    assert (s_if_any(instant), ms_if_any(instant)) == (epoch_s(instant), epoch_ms(instant))
    assert from_s_if_any(epoch_s(instant)) == from_s(epoch_s(instant))
    assert from_ms_if_any(epoch_ms(instant)) == from_ms(epoch_ms(instant))


def test_an_absent_instant_stays_absent_and_the_epoch_is_not_absent() -> None:
    assert [convert(None) for convert in (s_if_any, ms_if_any, from_s_if_any, from_ms_if_any)] == [None] * 4
    assert (s_if_any(EPOCH), ms_if_any(EPOCH), from_s_if_any(0), from_ms_if_any(0)) == (0, 0, EPOCH, EPOCH)


def test_no_instant_of_the_range_loses_a_millisecond_to_floats() -> None:
    for ms in range(4_102_444_800_000, 4_102_444_801_000):
        assert epoch_ms(from_ms(ms)) == ms


def test_before_1970_down_is_towards_the_past() -> None:
    assert epoch_s(EPOCH - timedelta(milliseconds=1)) == -1


@given(AWARE)
def test_up_to_the_second_is_never_early_and_less_than_a_second_late(instant: datetime) -> None:
    whole = up_to_second(instant)

    assert timedelta(0) <= whole - instant < timedelta(seconds=1)
    assert epoch_s(whole) * 1_000 == epoch_ms(whole)


@given(AWARE)
def test_a_written_instant_is_read_as_the_same_instant(instant: datetime) -> None:
    assert datetime.fromisoformat(text(instant)) == from_s(epoch_s(instant))
    assert datetime.fromisoformat(text_ms(instant)) == from_ms(epoch_ms(instant))
    assert text(instant).endswith("Z")
    assert len(text_ms(instant)) == len("2027-01-01T09:00:00.123Z")
