"""A turnstile, and who asks it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sweephand.domain.flow_keys.flow_key_lines import Waiting
from sweephand.domain.flow_keys.flow_keys import Enter, Go, Terms, Turnstile, Wait, answer

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LEASE = 25 * SECOND


def turnstile(**terms: object) -> Turnstile:
    return Turnstile("acme", "k", Terms(**terms))  # type: ignore[arg-type]


def enter(there: Turnstile, who: str, at: datetime = NOON, order: str = "") -> tuple[Turnstile, Go | Wait]:
    after, (said,) = answer(there, [Enter(who, at + LEASE, order)], at)
    assert isinstance(said, Go | Wait)
    return after, said


def waiting(*orders: str, target: str = "t") -> list[Waiting]:
    return [Waiting(order, f"who-{order}", target) for order in orders]
