"""Instants as callers write them, and `at` on the clock of a zone."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.rule import between
from sweephand.schedules.text.instants import parse_instant
from sweephand.schedules.timing import load, parse
from sweephand.schedules.zones.localtime import LAST_SECOND, to_instant
from tests.unit.schedules import given as some
from tests.unit.schedules.oracle import zone_info

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2027-01-01T09:00:00Z", None, "2027-01-01T09:00:00"),
        ("2027-01-01t09:00:00z", None, "2027-01-01T09:00:00"),
        ("2027-01-01T09:00:00+01:00", None, "2027-01-01T08:00:00"),
        ("2027-01-01T09:00:00-23:59", None, "2027-01-02T08:59:00"),
        ("2027-01-01T09:00:00-00:00", None, "2027-01-01T09:00:00"),
        ("2027-01-01T09:00:00", None, "2027-01-01T09:00:00"),
        ("2027-01-01T09:00:00", "Asia/Kolkata", "2027-01-01T03:30:00"),
        ("2027-01-01T09:00:00Z", "Asia/Kolkata", "2027-01-01T09:00:00"),
        ("2027-01-01T09:00:00.000Z", None, "2027-01-01T09:00:00"),
        ("2027-01-01T09:00:00.001Z", None, "2027-01-01T09:00:01"),
        ("2027-12-31T23:59:59.9+00:00", None, "2028-01-01T00:00:00"),
        ("2027-01-01T09:00:00.00000000000000000001", None, "2027-01-01T09:00:01"),
        ("2028-02-29T00:00:00Z", None, "2028-02-29T00:00:00"),
        ("1970-01-01T00:00:00Z", None, "1970-01-01T00:00:00"),
        ("2199-12-31T23:59:59Z", None, "2199-12-31T23:59:59"),
    ],
)
def test_an_instant_is_read(text: str, zone: str | None, expected: str) -> None:
    found = parse_instant(text, "at", None if zone is None else zone_info(zone))

    assert found == datetime.fromisoformat(expected).replace(tzinfo=UTC)
    assert found.tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("2025-1-1", 6, "must be an RFC 3339 instant such as 2027-01-01T09:00:00Z, not"),
        ("12", 2, "must be an RFC 3339 instant such as 2027-01-01T09:00:00Z, not"),
        ("9" * 70, 4, "must be an RFC 3339 instant"),
        ("9" * 1001, 1000, "must have at most 1,000 characters, not 1,001"),
        ("-0001-01-01T00:00:00Z", 0, "must be an RFC 3339 instant such as 2027-01-01T09:00:00Z, not"),
        ("2027-01-01", 10, "must be an RFC 3339 instant such as 2027-01-01T09:00:00Z, not"),
        ("2027-01-01 09:00:00Z", 10, "must be an RFC 3339 instant such as 2027-01-01T09:00:00Z, not"),
        ("2027-01-01T09:00Z", 16, "must be an RFC 3339 instant such as 2027-01-01T09:00:00Z, not"),
        ("2027-01-01T09:00:00.Z", 19, "must be an RFC 3339 instant such as 2027-01-01T09:00:00Z, not"),
        ("2027-01-01T09:00:00,5Z", 19, "must be an RFC 3339 instant such as 2027-01-01T09:00:00Z, not"),
        ("2027-01-01T09:00:00ZZ", 20, "must be an RFC 3339 instant such as 2027-01-01T09:00:00Z, not"),
        ("2027-01-01T09:00:00Z ", 20, "must be an RFC 3339 instant such as 2027-01-01T09:00:00Z, not"),
        (" 2027-01-01T09:00:00Z", 0, 'must be an RFC 3339 instant such as 2027-01-01T09:00:00Z, not "'),
        ("2027-01-01T09:00:00+0100", 19, "must be an RFC 3339 instant such as 2027-01-01T09:00:00Z, not"),
        ("2027-01-01T09:00:00+25:00", 19, 'offset must be at most 23:59, not "+25:00"'),
        ("2027-01-01T09:00:00+01:60", 19, 'offset must be at most 23:59, not "+01:60"'),
        ("1969-12-31T23:59:59Z", 0, 'year must be 1970 to 2199, not "1969"'),
        ("2200-01-01T00:00:00Z", 0, 'year must be 1970 to 2199, not "2200"'),
        ("9999-12-31T23:59:59-14:00", 0, 'year must be 1970 to 2199, not "9999"'),
        ("1970-01-01T00:00:00+14:00", 0, "must be in the years 1970 to 2199 in UTC"),
        ("2199-12-31T23:59:59.1Z", 0, "must be in the years 1970 to 2199 in UTC"),
        ("2027-13-01T00:00:00Z", 5, 'month must be 1 to 12, not "13"'),
        ("2027-00-01T00:00:00Z", 5, 'month must be 1 to 12, not "00"'),
        ("2027-02-29T00:00:00Z", 8, "month 2027-02 has no day 29"),
        ("2027-01-00T00:00:00Z", 8, "has no day 0"),
        ("2027-01-01T24:00:00Z", 11, 'hour must be 0 to 23, not "24"'),
        ("2027-01-01T09:60:00Z", 14, 'minute must be 0 to 59, not "60"'),
        ("2027-01-01T09:00:60Z", 17, 'second must be 0 to 59, not "60"'),
        ("\uff12027-01-01T09:00:00Z", 0, "must be an RFC 3339 instant such as 2027-01-01T09:00:00Z:"),
        ("2027-01-01T09:00:00\u0661", 19, "U+0661"),
        ("2027-01-01T09:00:00\x00", 19, "U+0000"),
        ("2027-01-01T09:00:00\n", 19, "U+000A"),
        ("", 0, 'must be an RFC 3339 instant such as 2027-01-01T09:00:00Z, not ""'),
    ],
)
def test_an_invalid_instant_is_refused_at_its_position(text: str, position: int, says: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_instant(text, "until")

    assert says in refused.value.reason
    assert (refused.value.field, refused.value.code, refused.value.position) == ("until", "INVALID_FIELD", position)


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, "null"), (5, "5"), (1.5, "1.5"), (True, "true"), ([], "a list"), ({}, "an object")],
)
def test_a_value_of_another_type_is_named(value: object, kind: str) -> None:
    with pytest.raises(InvalidRequest, match=f"not {kind}"):
        parse_instant(value, "at")


@given(second=st.integers(0, LAST_SECOND), offset=st.integers(-1439, 1439))
def test_an_instant_with_any_offset_comes_back(second: int, offset: int) -> None:
    local = to_instant(second + offset * 60)
    text = f"{local:%Y-%m-%dT%H:%M:%S}{'-' if offset < 0 else '+'}{abs(offset) // 60:02d}:{abs(offset) % 60:02d}"

    if 1970 <= local.year <= 2199:
        assert parse_instant(text, "at") == to_instant(second)


@given(name=some.zones, data=st.data())
def test_a_wall_time_that_exists_once_is_that_of_zoneinfo(name: str, data: st.DataObject) -> None:
    instant = to_instant(data.draw(some.seconds(name, 10**6, LAST_SECOND - 10**6)))
    wall = instant.astimezone(zone_info(name)).replace(tzinfo=None)
    twice = len({wall.replace(tzinfo=zone_info(name), fold=fold).utcoffset() for fold in (0, 1)}) == 2

    if twice:
        with pytest.raises(InvalidRequest, match="twice"):
            parse_instant(wall.isoformat(timespec="seconds"), "at", ZoneInfo(name))
    else:
        assert parse_instant(wall.isoformat(timespec="seconds"), "at", ZoneInfo(name)) == instant


NEW_YORK = {"timezone": "America/New_York"}
IN_GAP = {"at": "2026-03-08T02:30:00", **NEW_YORK}
IN_OVERLAP = {"at": "2026-11-01T01:30:00", **NEW_YORK}


def test_a_wall_time_in_a_gap_is_refused_with_both_instants() -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse(IN_GAP, now=NOW)

    assert refused.value.code == "INVALID_FIELD"
    assert refused.value.field == "at"
    for part in ("2026-03-08T07:00:00Z", "2026-03-08T07:30:00Z", "dstGap", "America/New_York"):
        assert part in refused.value.reason


def test_a_repeated_wall_time_is_refused_with_both_instants() -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse(IN_OVERLAP, now=NOW)

    for part in ("2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z", "dstOverlap", "America/New_York"):
        assert part in refused.value.reason


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({**IN_GAP, "dstGap": "next_valid"}, "2026-03-08T07:00:00"),
        ({**IN_GAP, "dstGap": "shift"}, "2026-03-08T07:30:00"),
        ({**IN_OVERLAP, "dstOverlap": "first"}, "2026-11-01T05:30:00"),
        ({**IN_OVERLAP, "dstOverlap": "second"}, "2026-11-01T06:30:00"),
        ({"at": "2026-03-08T02:30:00Z", **NEW_YORK}, "2026-03-08T02:30:00"),
        ({"at": "2026-03-08T03:30:00", "dstOverlap": "both", **NEW_YORK}, "2026-03-08T07:30:00"),
    ],
)
def test_a_stated_rule_decides(fields: dict[str, object], expected: str) -> None:
    timing = parse(fields, now=NOW)
    only = datetime.fromisoformat(expected).replace(tzinfo=UTC)

    assert between(timing.rule, to_instant(0), to_instant(LAST_SECOND), 9) == [only]
    assert between(load(timing.packed).rule, to_instant(0), to_instant(LAST_SECOND), 9) == [only]
    assert timing.rule.last_until(to_instant(LAST_SECOND)) == only
    assert (timing.recurring, timing.interval_s) == (False, None)


@pytest.mark.parametrize(
    ("fields", "code", "says"),
    [
        ({**IN_GAP, "dstGap": "skip"}, "NEVER_FIRES", "never reads 2026-03-08T02:30:00"),
        ({**IN_GAP, "dstOverlap": "first"}, "INVALID_FIELD", "dstGap"),
        ({**IN_OVERLAP, "dstOverlap": "both"}, "INVALID_FIELD", "one instant"),
        ({**IN_OVERLAP, "dstGap": "shift"}, "INVALID_FIELD", "dstOverlap"),
        ({"at": "2027-01-01T00:00:00Z", "endTime": "2026-12-31T00:00:00Z"}, "NEVER_FIRES", "2026-12-31T00:00:00Z"),
        ({"at": "2027-01-01T00:00:00Z", "startTime": "2027-01-01T00:00:01Z"}, "NEVER_FIRES", "2027-01-01T00:00:01Z"),
    ],
)
def test_an_impossible_instant_is_refused(fields: dict[str, object], code: str, says: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse(fields, now=NOW)

    assert (refused.value.field, refused.value.code) == ("at", code)
    assert says in refused.value.reason


def test_an_instant_in_the_past_is_accepted() -> None:
    timing = parse({"at": "1999-01-01T00:00:00Z"}, now=NOW)

    assert timing.rule.next_after(NOW) is None
    assert timing.rule.last_until(NOW) == datetime(1999, 1, 1, tzinfo=UTC)
