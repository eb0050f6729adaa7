"""`L`, `LW`, `5L` and `2#2` in five-field cron, against cronsim and day by day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.explain.preview_warnings import cautions
from sweephand.schedules.timing import load, parse
from tests.support.examples import examples

NOW = datetime(2027, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)

_plain_days = st.sampled_from(["*", "13", "1-7", "*/2", "1,15"])
_days = st.one_of(
    _plain_days,
    st.lists(st.sampled_from(["L", "LW", "1", "29-31", "l"]), min_size=1, max_size=3).map(",".join),
)
_nth = st.builds("{}#{}".format, st.sampled_from(["0", "3", "7", "tue", "FRI"]), st.integers(1, 5))
_weekdays = st.one_of(
    st.sampled_from(["*", "1-5", "sun"]),
    st.lists(st.one_of(_nth, st.sampled_from(["0L", "5L", "6l", "2"])), min_size=1, max_size=3).map(",".join),
)
texts = st.builds(
    "{} {} {} {} {}".format,
    st.sampled_from(["0", "*/20", "5,50"]),
    st.sampled_from(["9", "*/6", "0-3"]),
    _days,
    st.sampled_from(["*", "2", "jan,jul", "*/3"]),
    _weekdays,
)


def peer(text: str, after: datetime, most: int, *, back: bool = False) -> list[datetime]:
    return list(islice(CronSim(text, after, reverse=back), most))


@examples(150)
@given(texts, st.integers(0, 60_000))
def test_cronsim_finds_the_same_instants(text: str, days: int) -> None:
    after = datetime(1990, 1, 1, tzinfo=UTC) + days * DAY
    rule = parse({"cron": text}, now=NOW).rule

    found, instant = [], after
    for _ in range(4):
        following = rule.next_after(instant)
        assert following is not None
        found.append(following)
        instant = following

    assert found == peer(text, after, 4)
    assert [rule.last_until(after - timedelta(seconds=1))] == peer(text, after, 1, back=True)
    assert load(parse({"cron": text}, now=NOW).packed).rule == rule


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("0 9 L * *", "at 09:00 on the last day of the month"),
        ("0 9 1,L * *", "at 09:00 on day 1 and the last day of the month"),
        ("0 9 LW * *", "at 09:00 on the last weekday (Monday to Friday) of the month"),
        ("0 9 * * 5L", "at 09:00 on the last Friday of the month"),
        ("0 9 * 3 tue#2", "at 09:00 on the second Tuesday of the month in March"),
        ("0 9 L * 5#1", "at 09:00 on the last day of the month or on the first Friday of the month"),
        ("0 9 * * 1,5L", "at 09:00 on Monday and on the last Friday of the month"),
        (
            "0 0 */5 * 5L",
            "at 00:00 on every 5th day of the month from day 1 if it is also on the last Friday of the month",
        ),
        ("0 0 */5,L * *", "at 00:00 on every 5th day from day 1 and the last day of the month"),
    ],
)  # fmt: skip
def test_a_summary_says_the_letters_in_words(text: str, summary: str) -> None:
    assert parse({"cron": text}, now=NOW).summary == summary


@pytest.mark.parametrize(
    ("text", "reason", "position"),
    [
        ("0 9 15W * *", "only in eventBridge", 4),
        ("0 9 1,15w * *", "eventBridge", 6),
        ("0 9 L-3 * *", "BYMONTHDAY=-3", 4),
        ("0 9 L/2 * *", "is not supported", 4),
        ("0 9 * * L", "L needs its weekday", 8),
        ("0 9 * * 8L", 'weekday must be 0 to 7, not "8"', 8),
        ("0 9 * * 2#6", 'the number after # must be 1 to 5, not "6"', 10),
        ("0 9 * * 2#", 'the number after # must be 1 to 5, not ""', 10),
        ("0 9 * * 1-5L", "weekday must be *, a number from 0 to 7 or sun, mon, tue, wed,", 8),
        ("0 9 32,L * *", 'day of the month must be 1 to 31, not "32"', 4),
        ("0 L * * *", 'hour must be *, a number from 0 to 23, not "L"', 2),
    ],
)
def test_other_letters_are_refused_with_what_to_write_instead(text: str, reason: str, position: int) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse({"cron": text}, now=NOW)

    assert (refused.value.field, refused.value.position) == ("cron", position)
    assert reason in refused.value.reason


def test_letters_need_no_month_overflow() -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse({"cron": "0 9 L * *", "monthOverflow": "clamp"}, now=NOW)

    assert refused.value.field == "monthOverflow"


def test_letters_and_plain_fields_obey_clock_changes_alike() -> None:
    """Sunday, 28 March 2027 is the last Sunday of its month, on which Berlin jumps from 02:00 to 03:00."""
    found = {
        gap: parse({"cron": "30 2 * * 0L", "timezone": "Europe/Berlin", "dstGap": gap}, now=NOW).rule
        for gap in ("next_valid", "shift", "skip")
    }

    march = datetime(2027, 3, 1, tzinfo=UTC)
    assert [f"{rule.next_after(march):%m-%d %H:%M}" for rule in found.values()] == [
        "03-28 01:00",
        "03-28 01:30",
        "04-25 00:30",
    ]


def test_a_fifth_weekday_missing_in_most_months_is_reported() -> None:
    (told,) = cautions(parse({"cron": "0 9 * * 5#5"}, now=NOW), NOW)

    assert told.code == "SOME_MONTHS_LACK_THE_DAY"
