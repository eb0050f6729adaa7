"""The misfire policy as a value: which late occurrences run. Does not load the mathematics of schedules."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any

from sweephand.base.records import dataclass

FRESH = timedelta(minutes=2)
"""An occurrence up to this age is not missed yet, because fewer than two ticks have passed."""
ALL_UNDER = timedelta(seconds=1_200)
"""SAP's rule: below 20 minutes, all missed occurrences run; from 20 minutes on, only the last."""
RATE_PER_MINUTE = 60


class Misfire(StrEnum):
    SAP = "sap"
    ALL = "all"
    LATEST = "latest"
    SKIP = "skip"


CATCHES_UP = (Misfire.SAP, Misfire.ALL)
"""The types that send missed occurrences one after the other and therefore have a rate."""


def inactive(policy: Mapping[str, Any]) -> dict[str, str]:
    """Returns the members of a `misfire` that have no effect, each with the reason."""
    kind = policy.get("type", Misfire.SAP)
    if "ratePerMinute" not in policy or kind in CATCHES_UP or kind not in tuple(Misfire):
        return {}
    return {"ratePerMinute": f'the type is "{kind}", which sends no missed occurrences one after the other'}


@dataclass(frozen=True)
class Policy:
    """A misfire policy. rate_per_minute: how fast missed occurrences are sent after an outage.

    max_lateness_s: an occurrence that is later than this never runs, whatever the type; None for no limit.
    """

    type: Misfire = Misfire.SAP
    rate_per_minute: int = RATE_PER_MINUTE
    max_lateness_s: int | None = None

    def __str__(self) -> str:
        rate = "" if self.rate_per_minute == RATE_PER_MINUTE else str(self.rate_per_minute)
        most = "" if self.max_lateness_s is None else str(self.max_lateness_s)
        return f"{self.type}/{rate}/{most}".rstrip("/")

    @classmethod
    def read(cls, text: str) -> Policy:
        """Reads a stored policy. Raises ValueError for an invalid string."""
        kind, rate, most, *more = [*text.split("/"), "", ""]
        if any(more):
            raise ValueError("a misfire policy has three parts")
        return cls(Misfire(kind), int(rate) if rate else RATE_PER_MINUTE, int(most) if most else None)

    def runs_all(self, age: timedelta) -> bool:
        """Returns True if all missed occurrences run. age: that of the oldest one when the row was found overdue."""
        return self.type is Misfire.ALL or (self.type is Misfire.SAP and age < ALL_UNDER)

    def expires(self, lateness: timedelta) -> bool:
        return self.max_lateness_s is not None and lateness > timedelta(seconds=self.max_lateness_s)
