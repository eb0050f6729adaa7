"""The disabled tenants and collections that one sweep knows of. Pure.

The schedules of a disabled tenant or collection are held: their rows move on, and nothing is sent. Occurrences that
fall due before it is enabled again are left out; later ones run. With the policy `onEnable: run_now`, a one-time
occurrence is not left out: it runs once both are enabled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any

from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.occurrences.index_row import SweepText, Waits

with lazy():
    from sweephand.schedules import timing

HOLD = timedelta(hours=1)
"""The time after which the sweeper checks a held schedule again."""
SPREAD_S = 3_600
"""The spread of these checks, so that schedules due together are not checked together."""


@dataclass(frozen=True)
class Suspension:
    """The time for which a tenant or collection is disabled. until: its last second, None while it lasts."""

    until: datetime | None = None


Key = tuple[str, str | None]
"""Tenant and collection; None as the collection for the tenant as a whole."""


@dataclass(frozen=True)
class Suspensions:
    by_key: Mapping[Key, Suspension] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.by_key)

    def of(self, tenant: str, collection: str | None) -> Suspension | None:
        """Returns the suspension of a schedule's tenant or collection, whichever lasts longer."""
        keys: set[Key] = {(tenant, None), (tenant, collection)}
        applying = [self.by_key[key] for key in keys if key in self.by_key]
        lasting = [each for each in applying if each.until is None]
        if lasting or not applying:
            return lasting[0] if lasting else None
        return Suspension(max(each.until for each in applying if each.until is not None))

    def holds(self, tenant: str, sweep: SweepText) -> bool:
        """Returns True for a schedule that waits for its occurrence and must not be sent now."""
        if sweep.waits not in {Waits.OCCURRENCE, Waits.HELD}:
            return False
        suspension = self.of(tenant, sweep.collection)
        return suspension is not None and suspension.until is None

    def ended_at(self, tenant: str, sweep: SweepText, unsent_from: datetime, now: datetime) -> datetime | None:
        """Returns the instant up to which occurrences of a released schedule are left out; None if none is.

        unsent_from: its earliest occurrence not yet sent. A held schedule without a suspension is released as if it had
        been enabled now.
        """
        suspension = self.of(tenant, sweep.collection)
        if suspension is not None and suspension.until is not None:
            return suspension.until if sweep.waits is Waits.HELD or unsent_from <= suspension.until else None
        return now if sweep.waits is Waits.HELD else None


def next_check(now: datetime, sweep: SweepText, spread: float) -> datetime:
    """Returns when a held schedule is checked next. spread: its own value from 0 to 1, for the first check."""
    if sweep.waits is Waits.HELD:
        return now + HOLD
    return now + HOLD + timedelta(seconds=int(spread * SPREAD_S))


def runs_when_enabled(policies: Mapping[str, Any], packed: str) -> bool:
    """Returns whether an occurrence that falls due meanwhile runs once tenant and collection are enabled.

    packed: the timing of the schedule.
    """
    return policies.get("onEnable") == "run_now" and not timing.load_or_never(packed).recurring
