"""The tables of offsets against zoneinfo, over every zone of the tzdata package."""

from __future__ import annotations

from datetime import UTC, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.schedules.zones import localtime
from sweephand.schedules.zones.localtime import LAST_SECOND, to_instant, zone
from tests.unit.schedules import given as some
from tests.unit.schedules.oracle import zone_info

ALL = sorted(localtime.names())
YEAR_S = 31_556_952


def offset_s(name: str, second: int) -> int:
    offset = to_instant(second).astimezone(zone_info(name)).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def test_the_offsets_before_and_at_every_change_of_every_zone_agree_with_zoneinfo() -> None:
    checked = 0
    for name in ALL:
        known = zone(name)
        for start, before, offset in zip(known.starts[1:], known.offsets, known.offsets[1:], strict=False):
            if 0 < start <= LAST_SECOND:
                assert offset_s(name, start) == offset, (name, start)
                assert offset_s(name, start - 1) == before, (name, start)
                checked += 1
    assert checked > 50_000


@given(name=st.sampled_from(ALL), second=st.integers(0, LAST_SECOND))
def test_no_change_is_missed(name: str, second: int) -> None:
    assert zone(name).wall(second) - second == offset_s(name, second)


def test_no_change_between_two_months_of_the_horizon_is_missed_in_any_zone() -> None:
    for name in ALL[::6]:
        known = zone(name)
        for second in range(0, LAST_SECOND, YEAR_S // 3):
            assert known.wall(second) - second == offset_s(name, second), (name, second)


def test_pieces_are_longer_than_any_jump_of_their_clock() -> None:
    """The search for wall times relies on it: a week between changes, a day and two hours at most per jump."""
    for name in ALL:
        known = zone(name)
        recent = [piece for piece in range(1, len(known.starts)) if known.starts[piece] > -YEAR_S]
        assert all(abs(known.jump(piece)) <= 86_400 for piece in recent), name
        assert all(known.ends[piece] - known.starts[piece] >= 7 * 86_400 - 3600 for piece in recent), name


@pytest.mark.parametrize(
    "name", ["posixrules", "localtime", "tzdata.zi", "zone.tab", "Factory", "", "utc", "../UTC", "Europe"]
)
def test_zones_outside_the_package_are_unknown(name: str) -> None:
    with pytest.raises(KeyError):
        zone(name)


@given(data=st.data(), name=some.zones)
def test_a_wall_time_leads_to_the_instants_that_read_it(data: st.DataObject, name: str) -> None:
    known = zone(name)
    wall = data.draw(some.seconds(name, 10**6, LAST_SECOND - 10**6)) + data.draw(st.integers(-50_000, 50_000))

    found = known.instants(wall)

    assert all(known.wall(second) == wall for second in found)
    copies = [to_instant(wall).replace(tzinfo=zone_info(name), fold=fold) for fold in (0, 1)]
    real = {
        copy.astimezone(UTC)
        for copy in copies
        if copy.astimezone(UTC).astimezone(zone_info(name)).replace(tzinfo=None) == copy.replace(tzinfo=None)
    }
    assert {to_instant(second) for second in found} == real


def test_a_missing_wall_time_has_the_instant_after_the_jump_and_the_shifted_one() -> None:
    new_york = zone("America/New_York")
    wall = 1_772_937_000  # 2026-03-08T02:30:00 on the clock

    jumped, shifted = new_york.around_gap(wall)

    assert to_instant(jumped).isoformat() == "2026-03-08T07:00:00+00:00"
    assert to_instant(shifted) - to_instant(jumped) == timedelta(minutes=30)
    with pytest.raises(ValueError, match="exists"):
        new_york.around_gap(wall + 7200)


@pytest.mark.parametrize(
    ("footer", "year", "expected"),
    [
        ("M3.2.0", 2026, "2026-03-08"),
        ("M10.5.0", 2026, "2026-10-25"),
        ("M12.5.4", 2026, "2026-12-31"),
        ("J60", 2024, "2024-03-01"),
        ("J60", 2023, "2023-03-01"),
        ("J59", 2024, "2024-02-28"),
        ("59", 2024, "2024-02-29"),
        ("0", 2024, "2024-01-01"),
    ],
)
def test_the_three_forms_of_a_day_in_a_footer(footer: str, year: int, expected: str) -> None:
    assert to_instant(localtime._day(year, footer) * 86_400).date().isoformat() == expected


@pytest.mark.parametrize("footer", ["", "EST", "EST5EDT", "EST5EDT,M3.2.0", "5", "EST5EDT,M3.2.0,X"])
def test_a_footer_of_an_unknown_form_is_refused(footer: str) -> None:
    with pytest.raises(ValueError, match="unknown form"):
        localtime._Footer.parse(footer)
