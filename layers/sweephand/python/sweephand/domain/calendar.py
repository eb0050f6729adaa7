"""A calendar: dates and hours that a tenant's schedules exclude or keep to."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_ms

MOST_OF_A_JOB = 6
"""The largest number of calendars that the schedules of one job may name."""
VERSIONS = 10**8
"""More than a calendar can have."""


@dataclass(frozen=True)
class Calendar:
    """The current version of a calendar. version: raised by each change. reference: names the content in timings.

    content: the members of schedules.calendars.calendar_content. facts: the dates and hours computed from them. Both
    are empty if only the head was read. users: how many jobs name it; 0 if they were not counted. replanning: whether
    some of these jobs still use an earlier version.
    """

    tenant: str
    name: str
    created_at: datetime
    modified_at: datetime
    description: str | None = None
    version: int = 1
    reference: str = ""
    users: int = 0
    replanning: bool = False
    content: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def edition(self) -> int:
        """Returns a number that each change raises, and each calendar that gets the name of a deleted one."""
        return epoch_ms(self.created_at) * VERSIONS + self.version


@dataclass(frozen=True)
class Version:
    """One version of a calendar. actor: who made it; None for the service."""

    number: int
    reference: str
    at: datetime
    actor: str | None
    description: str | None


def reference_of(calendar: Calendar) -> str:
    """Returns a reference that is unique to this version of this calendar: 96 bits of a hash."""
    parts = [calendar.tenant, calendar.name, epoch_ms(calendar.created_at), calendar.version, calendar.content]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).digest()
    return base64.urlsafe_b64encode(digest[:12]).decode()
