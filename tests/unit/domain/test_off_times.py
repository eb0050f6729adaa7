"""When something was off: which occurrences are meant, and how much a row keeps of it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from sweephand.domain.occurrences import off_times
from sweephand.domain.run import Reason
from tests.unit.domain.nouns import DAY, NOW, SECOND

SINCE = NOW.replace(microsecond=0)
UNTIL = SINCE + 10 * SECOND


def off(reason: Reason = Reason.PAUSED, generation: int = 3) -> str:
    text = off_times.ended(off_times.began(None, reason, generation, SINCE), UNTIL)
    assert text is not None
    return text


@pytest.mark.parametrize(
    ("at", "meant"),
    [(SINCE, False), (SINCE + SECOND, True), (UNTIL, True), (UNTIL + SECOND, False)],
)
def test_an_off_time_begins_after_its_start_and_includes_its_end(at: datetime, meant: bool) -> None:
    assert (off_times.reason_at(off(), at, 3) is Reason.PAUSED) is meant


def test_instants_of_a_later_plan_count_only_if_all_plans_do() -> None:
    at = SINCE + SECOND

    assert off_times.reason_at(off(), at, 2) is Reason.PAUSED
    assert off_times.reason_at(off(), at, 4) is None
    assert off_times.reason_at(off(Reason.DISABLED, off_times.ANY_GENERATION), at, 4) is Reason.DISABLED


def test_the_state_describes_a_time_that_still_lasts() -> None:
    lasting = off_times.began(None, Reason.PAUSED, 1, SINCE)

    assert off_times.reason_at(lasting, UNTIL, 1) is None


def test_an_end_closes_only_the_open_off_time() -> None:
    again = off_times.ended(off_times.began(off(), Reason.DISABLED, 5, UNTIL + 5 * SECOND), UNTIL + 9 * SECOND)

    assert off_times.reason_at(again, UNTIL + SECOND, 3) is None
    assert off_times.reason_at(again, UNTIL + 6 * SECOND, 3) is Reason.DISABLED
    assert off_times.ended(None, UNTIL) is None


def test_off_times_too_old_for_any_message_are_dropped() -> None:
    kept = off_times.began(off(), Reason.PAUSED, 9, SINCE + off_times.KEPT - SECOND)
    forgotten = off_times.began(off(), Reason.PAUSED, 9, SINCE + off_times.KEPT)

    assert [len(text.split()) for text in (kept, forgotten)] == [2, 1]
    assert off_times.KEPT > timedelta(days=4) == 4 * DAY


def test_beyond_the_limit_the_oldest_two_become_one_and_none_is_forgotten() -> None:
    text = None
    starts = [SINCE + n * 10 * SECOND for n in range(off_times.MOST + 3)]
    for n, start in enumerate(starts):
        text = off_times.ended(off_times.began(text, Reason.PAUSED, n + 1, start), start + 5 * SECOND)

    assert text is not None
    assert len(text.split()) == off_times.MOST
    assert all(off_times.reason_at(text, start + SECOND, n + 1) is Reason.PAUSED for n, start in enumerate(starts))
    assert off_times.reason_at(text, starts[-1] + 6 * SECOND, 1) is None
    assert off_times.reason_at(text, starts[-2] + 6 * SECOND, 1) is None


@pytest.mark.parametrize("text", ["P1", "X1:1-2", "P1:a-2", "P1:1-2-3"])
def test_an_invalid_text_is_an_error(text: str) -> None:
    with pytest.raises((ValueError, LookupError)):
        off_times.reason_at(text, NOW, 1)
