"""What is disabled, tenants and collections, as one look of the sweep knows it. Pure.

While one is disabled, its schedules are held: their rows move on without being sent. What was due until it was enabled
again is left out; what is due later runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sweephand.domain.occurrences.index_row import SweepText, Waits

HOLD = timedelta(hours=1)
"""After this long a held schedule is looked at again."""
SPREAD_S = 3_600
"""Schedules that were due together are not looked at together again."""


@dataclass(frozen=True)
class Suspension:
    """until: None while it lasts; else the last second of it."""

    until: datetime | None = None


Key = tuple[str, str | None]
"""Tenant and collection; without one, the tenant as a whole."""


@dataclass(frozen=True)
class Suspensions:
    by_key: Mapping[Key, Suspension] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.by_key)

    def of(self, tenant: str, collection: str | None) -> Suspension | None:
        """What holds for a schedule: its tenant's and its collection's, the one that lasts longer."""
        keys: set[Key] = {(tenant, None), (tenant, collection)}
        found = [self.by_key[key] for key in keys if key in self.by_key]
        lasting = [each for each in found if each.until is None]
        if lasting or not found:
            return lasting[0] if lasting else None
        return Suspension(max(each.until for each in found if each.until is not None))

    def holds(self, tenant: str, sweep: SweepText) -> bool:
        """True for a schedule that waits for its occurrence and must not be sent now."""
        if sweep.waits not in {Waits.OCCURRENCE, Waits.HELD}:
            return False
        suspension = self.of(tenant, sweep.collection)
        return suspension is not None and suspension.until is None

    def ended_at(self, tenant: str, sweep: SweepText, unsent_from: datetime, now: datetime) -> datetime | None:
        """Up to when the occurrences of a schedule that may run are left out; None where none is.

        unsent_from: its earliest occurrence not yet sent. A held schedule of which the list says nothing any more is
        let go as if it had been enabled this moment.
        """
        suspension = self.of(tenant, sweep.collection)
        if suspension is not None and suspension.until is not None:
            return suspension.until if sweep.waits is Waits.HELD or unsent_from <= suspension.until else None
        return now if sweep.waits is Waits.HELD else None


def looked_at_again(now: datetime, sweep: SweepText, spread: float) -> datetime:
    """When a held schedule's row comes up next. spread: 0 to 1, the schedule's own, for the first time."""
    if sweep.waits is Waits.HELD:
        return now + HOLD
    return now + HOLD + timedelta(seconds=int(spread * SPREAD_S))
