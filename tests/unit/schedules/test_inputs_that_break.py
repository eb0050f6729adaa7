"""Inputs on which other libraries hang, crash or answer wrongly: each is refused in few steps, or answered rightly.

Steps are Python calls, which a busy machine does not change. Only where a number of milliseconds was asked for is
time measured, by the thread's own clock.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.notations import NOTATIONS
from sweephand.schedules.timing import parse

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
FULL_WIDTH = "".join(chr(0xFF10 + int(digit)) for digit in "2027")
FEW = 4_000
LOADED = [NOTATIONS[name] for name in NOTATIONS]
"""The import of a notation is not what its texts cost."""


def refused(fields: dict[str, Any], *, steps: int = FEW) -> InvalidRequest:
    """Returns the refusal, which came within so many calls."""
    found: list[InvalidRequest] = []

    def ask() -> None:
        with pytest.raises(InvalidRequest) as refusal:
            parse(fields, now=NOW)
        found.append(refusal.value)

    assert calls(ask) <= steps
    return found[0]


def calls(action: Callable[[], object]) -> int:
    """Returns how many functions an action calls."""
    counted = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return counted


def test_an_rrule_with_an_interval_of_0_is_refused() -> None:
    """dateutil loops for ever."""
    wrong = refused({"rrule": "FREQ=DAILY;INTERVAL=0"})

    assert (wrong.code, wrong.field) == ("INVALID_FIELD", "rrule")


def test_the_next_minutely_instant_since_1970_is_found_without_a_walk() -> None:
    """dateutil takes more than 20 seconds."""
    text = "DTSTART:19700101T000007Z\nRRULE:FREQ=MINUTELY"
    rule = parse({"rrule": text}, now=NOW).rule

    assert calls(lambda: rule.next_after(NOW)) < 200
    assert rule.next_after(NOW) == NOW.replace(second=7)


@pytest.mark.parametrize(
    "fields",
    [
        {"cron": "0 0 30 2 *"},
        {"cron": "* * 30 2 *"},
        {"eventBridge": "cron(0 0 30 2 ? *)"},
        {"rrule": "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"},
        {"rrule": "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30"},
        {"rrule": "FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30"},
    ],
    ids=str,
)
def test_the_30th_of_february_is_refused_immediately(fields: dict[str, Any]) -> None:
    """dateutil searches for 2 to 5 seconds and then says None."""
    assert refused(fields).code == "NEVER_FIRES"


def test_a_rule_with_every_occurrence_excluded_is_refused() -> None:
    """dateutil searches for more than 10 seconds."""
    text = "DTSTART:20270101T000000Z\nRRULE:FREQ=DAILY;COUNT=2\nEXDATE:20270101T000000Z,20270102T000000Z"

    assert refused({"rrule": text}).code == "NEVER_FIRES"


@pytest.mark.parametrize(
    "text", ["R R R R R", "R(0-29) * * * *", "H H * * *", "0 0 L-3 * *", "0 0 15W * *", "? * * * *"]
)
def test_other_dialects_of_cron_are_refused(text: str) -> None:
    """croniter takes R for a random number."""
    assert refused({"cron": text}).code == "INVALID_FIELD"


@pytest.mark.parametrize("member", ["at", "startTime"])
@pytest.mark.parametrize(
    "text",
    [
        "9" * 70,
        "12",
        "2027-1-1",
        "-0001-01-01T00:00:00Z",
        f"{FULL_WIDTH}-01-01T00:00:00Z",
        "2027-01-01T00:00:00+25:00",
        "2027-01-01T00:00:00+24:00",
        "9999-12-31T23:59:59-14:00",
        "0001-01-01T00:00:00+14:00",
        "1969-12-31T23:59:59Z",
        "2200-01-01T00:00:00Z",
        "2027-02-29T00:00:00Z",
        "2027-01-01T24:00:00Z",
        "2027-01-01T23:59:60Z",
    ],
)
def test_a_text_that_a_fuzzy_parser_accepts_or_fails_on_is_refused(member: str, text: str) -> None:
    """dateutil takes some and raises decimal.InvalidOperation or OverflowError for others."""
    wrong = refused({"cron": "* * * * *", member: text} if member != "at" else {"at": text})

    assert (wrong.code, wrong.field) == ("INVALID_FIELD", member)
    assert wrong.position is not None


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system cannot change its zone")
@pytest.mark.parametrize("host", ["America/New_York", "Asia/Kolkata", "UTC"])
def test_z_is_utc_in_every_local_zone(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """dateutil reads it as the local zone where that is called UTC."""
    with machine_in(host, monkeypatch):
        rule = parse({"at": "2027-06-01T09:00:00Z"}, now=NOW).rule

        assert rule.next_after(NOW) == datetime(2027, 6, 1, 9, tzinfo=UTC)


class machine_in:  # noqa: N801 - reads as a sentence
    def __init__(self, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.host, self.monkeypatch = host, monkeypatch

    def __enter__(self) -> None:
        self.monkeypatch.setenv("TZ", self.host)
        time.tzset()

    def __exit__(self, *_: object) -> None:
        self.monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("value", [10**18, 1e18, float("inf"), float("nan"), -1, 0, True, [], {}, ["2027-01-01"]])
@pytest.mark.parametrize("member", ["at", "startTime", "endTime"])
def test_a_number_is_not_an_instant(member: str, value: object) -> None:
    """datetime.fromtimestamp raises OSError or OverflowError."""
    wrong = refused({"at": value} if member == "at" else {"cron": "* * * * *", member: value})

    assert (wrong.code, wrong.field) == ("INVALID_FIELD", member)


@pytest.mark.parametrize(
    "name",
    [
        *("tzdata.zi", "zone.tab", "zone1970.tab", "posixrules", "localtime", "Factory", "europe/berlin", "Europe"),
        *("../../etc/passwd", "/etc/localtime", "", " UTC", "UTC\n", "UTC\0", "+01:00", 7, True, ["UTC"], {}),
    ],
)
def test_an_invalid_zone_is_refused(name: object) -> None:
    """ZoneInfo raises ValueError, TypeError or IsADirectoryError, or takes it."""
    wrong = refused({"cron": "* * * * *", "timezone": name})

    assert (wrong.code, wrong.field) == ("INVALID_FIELD", "timezone")


@pytest.mark.parametrize("number", ["\u0663", "1_0", "\u00b2", "\uff11", "+1", "-1", "1.0", "0x1", "1e1", " "])
@pytest.mark.parametrize("where", ["cron", "eventBridge", "every"])
def test_only_ascii_digits_are_accepted(where: str, number: str) -> None:
    """int() takes some, and str.isdigit() says yes to others."""
    texts = {"cron": f"{number} * * * *", "eventBridge": f"cron({number} * * * ? *)", "every": f"{number} hours"}

    assert refused({where: texts[where]}).field == where


@pytest.mark.parametrize("value", [1.0, 1.5, 10**39, 1e130, float("nan"), -1, 0, True, "3", [], {}])
def test_a_count_is_a_whole_number_within_bounds(value: object) -> None:
    """boto3 raises TypeError, decimal.Inexact or Overflow."""
    assert refused({"cron": "* * * * *", "count": value}).field == "count"


@pytest.mark.parametrize(
    "text", ["FREQ=MINUTELY;INTERVAL=7;BYMINUTE=61", "FREQ=DAILY;BYHOUR=24", "FREQ=YEARLY;BYYEARDAY=367", "FREQ=NEVER"]
)
def test_parts_of_an_rrule_out_of_range_are_refused(text: str) -> None:
    """dateutil raises TypeError."""
    wrong = refused({"rrule": text})

    assert (wrong.code, wrong.field) == ("INVALID_FIELD", "rrule")
    assert wrong.position is not None


WITHIN_S = 0.05


def long_texts() -> Iterator[str]:
    for piece in ("9", " ", "1,", "1-", "*/", "a", "P1D", "10 ", "T", "(", "MO,", "+", "-", ":", "\n", "next "):
        yield piece * (50_000 // len(piece))


def read_in_s(notation: str, text: str) -> float:
    """Returns the time of the thread for a text that is refused: the least of three, if the first are long. The
    collector of garbage may have come in between.
    """
    least_s = WITHIN_S
    for _ in range(3):
        begun = time.thread_time()
        with pytest.raises(InvalidRequest) as refusal:
            parse({notation: text}, now=NOW)
        least_s = min(least_s, time.thread_time() - begun)
        assert refusal.value.field is not None
        assert refusal.value.field.startswith(notation)
        if least_s < WITHIN_S:
            break
    return least_s


@pytest.mark.parametrize("notation", list(NOTATIONS))
def test_50_000_characters_are_refused_within_50_milliseconds(notation: str) -> None:
    for text in long_texts():
        assert read_in_s(notation, text) < WITHIN_S, text[:20]


@pytest.mark.parametrize("notation", list(NOTATIONS))
def test_the_longest_accepted_texts_are_read_in_linear_time(notation: str) -> None:
    """Nested quantifiers would take for ever; calls grow with the length at most."""
    for text in long_texts():
        for length in (100, 1_000):
            assert read_in_s(notation, text[:length] + "!") < WITHIN_S, text[:20]
