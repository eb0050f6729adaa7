"""Tenants, and their groups of jobs: what these share, and what they may not exceed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class TenantState(StrEnum):
    ACTIVE = "ACTIVE"
    DISABLED = "DISABLED"
    PURGING = "PURGING"
    """All that it has is being deleted, and then it itself: nothing of it runs any more, and nothing brings it back."""


MOST_APPLICATIONS = 100
"""That a tenant can be subscribed to."""
DESCENDANTS = 100
"""Runs that one run may start where the provider sets nothing else."""
MOST_DESCENDANTS = 10_000
MOST_RUNS_PER_MINUTE = 1_000_000


@dataclass(frozen=True)
class Pace:
    """The provider's limits on a tenant's runs. runs_per_minute: None for no limit.

    descendants: how many runs may follow from one run through job actions, hooks and error actions, in all.
    """

    runs_per_minute: int | None = None
    descendants: int = DESCENDANTS


@dataclass(frozen=True)
class Subscription:
    """Since when a tenant is subscribed to an application, and who subscribed it."""

    since: datetime
    by: str | None = None


@dataclass(frozen=True)
class Tenant:
    """applications: those that it is subscribed to. purge: the operation that deletes it.

    withheld: scopes that its provider withholds from all its callers. created_by, modified_by: client ids; None: the
    service, or before it was kept. off_times: when it was disabled (domain.off_times).
    """

    name: str
    state: TenantState
    description: str | None
    created_at: datetime
    applications: Mapping[str, Subscription] = field(default_factory=dict)
    purge: str | None = None
    pace: Pace = Pace()
    withheld: frozenset[str] = frozenset()
    created_by: str | None = None
    modified_at: datetime | None = None
    modified_by: str | None = None
    off_times: str | None = None


MOST_SCHEDULES = 10_000_000
"""The largest quota of schedules, and of jobs."""


@dataclass(frozen=True)
class Usage:
    """How many schedules and jobs a tenant has, and how many it may have. None: no limit.

    least_interval_s: the shortest time between two occurrences of a schedule.
    """

    schedules: int = 0
    most_schedules: int | None = None
    jobs: int = 0
    most_jobs: int | None = None
    least_interval_s: int | None = None


class CollectionState(StrEnum):
    ENABLED = "ENABLED"
    DISABLED = "DISABLED"


class Events(StrEnum):
    """Which events of a collection's jobs go to the event bus."""

    FAILURES = "failures"
    ALL = "all"
    NONE = "none"


@dataclass(frozen=True)
class Quota:
    """None: no limit. max_runs_per_job: occurrences that each schedule of a job may plan, in all.

    min_interval_s: between occurrences.
    """

    max_jobs: int | None = None
    max_runs_per_job: int | None = None
    min_interval_s: int | None = None


@dataclass(frozen=True)
class Retention:
    """run_days: how long the ledger keeps a run, counted from its end. ended_job_days: how long a job stays whose
    schedules are all COMPLETED, counted from the last one's completion; 0: for ever.
    """

    run_days: int = 15
    ended_job_days: int = 60


CALLBACK_S, LONGEST_CALLBACK_S = 1_800, 604_800
"""How long a run waits for the result that its target reports, where nobody says; and at most."""


@dataclass(frozen=True)
class SigningKey:
    """Signs the calls of a collection's jobs. sealed: its secret, as security.secrets sealed it. by: who made it."""

    id: str
    created_at: datetime
    sealed: str = field(repr=False)
    by: str | None = None


@dataclass(frozen=True)
class Collection:
    """defaults: what a new job gets where its caller says nothing, in the members of the API. signing: at most two.

    callback_timeout_s: how long a run waits for its result where its job does not say; None: as the stack has it.
    redirects: of Azure's queues to others, in the members of the API. flow_key: of all its jobs that name no other.
    off_times: when it was disabled (domain.off_times).
    """

    tenant: str
    name: str
    state: CollectionState = CollectionState.ENABLED
    quota: Quota = Quota()
    retention: Retention = Retention()
    events: Events = Events.FAILURES
    defaults: Mapping[str, Any] = field(default_factory=dict)
    callback_timeout_s: int | None = None
    redirects: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    flow_key: str | None = None
    revision: int = 1
    job_count: int = 0
    created_at: datetime | None = None
    created_by: str | None = None
    modified_at: datetime | None = None
    modified_by: str | None = None
    signing: tuple[SigningKey, ...] = ()
    off_times: str | None = None


@dataclass(frozen=True)
class Terms:
    """What its collection and its tenant mean for a run. enabled: both are. tenant_active: the tenant is. withheld: the
    scopes that no caller of the tenant has.

    purging: the tenant is being deleted, with all that it has. tenant_since: when it was made; None: it is not there.
    off_times: when one of the two was disabled.
    """

    enabled: bool = True
    tenant_active: bool = True
    purging: bool = False
    tenant_since: datetime | None = None
    withheld: frozenset[str] = frozenset()
    events: Events = Events.FAILURES
    retention: Retention = Retention()
    signing: tuple[SigningKey, ...] = ()
    callback_timeout_s: int | None = None
    redirects: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    flow_key: str | None = None
    pace: Pace = Pace()
    off_times: str | None = None
