"""Disabled owners, and their meaning for a row of the next-run index."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.occurrences.suspension import HOLD, Suspension, Suspensions, next_check
from sweephand.domain.schedule import Lane
from tests.unit.domain.nouns import NOW

ROW = SweepText(Waits.OCCURRENCE, Lane.FAST, "sap", "{}", "reports")
HELD = replace(ROW, waits=Waits.HELD, since=NOW)
LASTS = Suspension()
OVER = Suspension(NOW)
MINUTE = timedelta(minutes=1)


def suspensions(**found: Suspension) -> Suspensions:
    """Returns suspensions. tenant=..., reports=...: of the tenant acme as a whole, and of its collection."""
    return Suspensions({("acme", None if name == "tenant" else name): each for name, each in found.items()})


@pytest.mark.parametrize(
    ("found", "holds"),
    [
        ({}, False),
        ({"tenant": LASTS}, True),
        ({"reports": LASTS}, True),
        ({"other": LASTS}, False),
        ({"tenant": OVER}, False),
        ({"tenant": OVER, "reports": LASTS}, True),
        ({"tenant": LASTS, "reports": OVER}, True),
    ],
)
def test_a_schedule_is_held_while_its_collection_or_its_tenant_is_disabled(
    found: dict[str, Suspension], holds: bool
) -> None:
    assert suspensions(**found).holds("acme", ROW) is holds
    assert suspensions(**found).holds("acme", HELD) is holds
    assert not suspensions(**found).holds("globex", ROW)


@pytest.mark.parametrize("waits", [each for each in Waits if each not in {Waits.OCCURRENCE, Waits.HELD}])
def test_only_coming_occurrences_are_held(waits: Waits) -> None:
    assert not suspensions(tenant=LASTS, reports=LASTS).holds("acme", replace(ROW, waits=waits))


def test_a_row_without_a_collection_is_held_only_for_its_tenant() -> None:
    row = replace(ROW, collection=None)

    assert suspensions(tenant=LASTS).holds("acme", row)
    assert not suspensions(reports=LASTS).holds("acme", row)


def test_occurrences_due_while_disabled_are_omitted() -> None:
    over = suspensions(reports=OVER)

    assert over.ended_at("acme", ROW, NOW, NOW + MINUTE) == NOW
    assert over.ended_at("acme", ROW, NOW + timedelta(seconds=1), NOW + MINUTE) is None
    assert over.ended_at("acme", HELD, NOW + MINUTE, NOW + MINUTE) == NOW


def test_the_later_end_counts() -> None:
    later = Suspension(NOW + MINUTE)

    for found in ({"tenant": OVER, "reports": later}, {"tenant": later, "reports": OVER}):
        assert suspensions(**found).ended_at("acme", ROW, NOW, NOW + HOLD) == NOW + MINUTE


def test_a_held_row_missing_from_the_list_continues_from_now() -> None:
    assert Suspensions().ended_at("acme", HELD, NOW, NOW + MINUTE) == NOW + MINUTE
    assert Suspensions().ended_at("acme", ROW, NOW, NOW + MINUTE) is None


def test_rows_are_spread_once_and_keep_their_distance() -> None:
    assert next_check(NOW, ROW, 0.0) == NOW + HOLD
    assert next_check(NOW, ROW, 0.5) == NOW + HOLD + timedelta(minutes=30)
    assert next_check(NOW, HELD, 0.5) == NOW + HOLD
