"""Tenants and their collections of jobs: shared settings and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sweephand.base.errors import Conflict
from sweephand.base.records import dataclass


class TenantState(StrEnum):
    ACTIVE = "ACTIVE"
    DISABLED = "DISABLED"
    PURGING = "PURGING"
    """Everything it owns is being deleted, and then the tenant itself. Nothing runs any more; this cannot be undone."""


MOST_APPLICATIONS = 100
"""The largest number of applications that a tenant can be subscribed to."""
DESCENDANTS = 100
"""How many runs may follow from one run by default."""
MOST_DESCENDANTS = 10_000
MOST_RUNS_PER_MINUTE = 1_000_000


@dataclass(frozen=True)
class Pace:
    """The provider's limits on a tenant's runs. runs_per_minute: None for no limit.

    descendants: how many runs in all may follow from one run through job actions, hooks and error actions.
    """

    runs_per_minute: int | None = None
    descendants: int = DESCENDANTS


@dataclass(frozen=True)
class Subscription:
    """A tenant's subscription to an application: when it began, and who subscribed the tenant."""

    since: datetime
    by: str | None = None


@dataclass(frozen=True)
class Silence:
    """A note that a target does not answer. hangs: whether its calls keep executors busy. until: when the note ends."""

    since: datetime
    until: datetime
    reason: str
    hangs: bool = False


@dataclass(frozen=True)
class Tenant:
    """An owner of data. applications: its subscriptions by name. purge: the operation that deletes it.

    withheld: scopes that the provider withholds from all callers of the tenant. created_by, modified_by: client ids;
    None for the service and for rows that are older than these members. off_times: when it was disabled
    (domain.occurrences.off_times). silences: targets that do not answer its calls, by host or address. watched: the row
    keys of applications that are watched, so that their workers note that they are there.
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
    silences: Mapping[str, Silence] = field(default_factory=dict)
    watched: frozenset[str] = frozenset()

    def being_purged(self) -> Conflict:
        """Returns the error for a change of a tenant that is being deleted."""
        return Conflict(f"the tenant is being deleted with all its resources: see the operation {self.purge}")


MOST_SCHEDULES = 10_000_000
"""The largest quota of schedules, and of jobs."""


@dataclass(frozen=True)
class Usage:
    """The number of schedules and jobs that a tenant has, and its quotas. None: no limit.

    least_interval_s: the shortest time between two occurrences of a schedule. revision: of the quotas.
    """

    schedules: int = 0
    most_schedules: int | None = None
    jobs: int = 0
    most_jobs: int | None = None
    least_interval_s: int | None = None
    revision: int = field(default=0, compare=False)


class CollectionState(StrEnum):
    ENABLED = "ENABLED"
    DISABLED = "DISABLED"
    DELETING = "DELETING"
    """Its facade no longer shows the collection. Nothing runs and nothing can be added.

    An operation deletes its jobs and then the collection.
    """


class Events(StrEnum):
    """The choice of events that a collection publishes on the event bus."""

    FAILURES = "failures"
    ALL = "all"
    NONE = "none"


@dataclass(frozen=True)
class Quota:
    """Limits of a collection. None: no limit. max_runs_per_job: how many occurrences one schedule may plan in all.

    min_interval_s: the shortest time between two occurrences.
    """

    max_jobs: int | None = None
    max_runs_per_job: int | None = None
    min_interval_s: int | None = None


@dataclass(frozen=True)
class Retention:
    """The retention of a collection's runs and ended jobs.

    run_days: how long the ledger keeps a run, counted from its end. ended_job_days: how long a job is kept after the
    last of its schedules became COMPLETED; 0: forever.
    """

    run_days: int = 15
    ended_job_days: int = 60


REMEMBERED = timedelta(days=Retention.run_days) - timedelta(hours=1)
"""The age up to which an occurrence that has run certainly has its row: no collection keeps runs for a shorter time.

Without a row, an older occurrence may or may not have run. It must not be treated as one that never ran.
"""


CALLBACK_S, LONGEST_CALLBACK_S = 1_800, 604_800
"""How long a run waits for the result that its target reports: by default and at most."""


@dataclass(frozen=True)
class SigningKey:
    """A key that signs the calls of a collection's jobs. sealed: its secret, sealed by store.tenants.secret_box."""

    id: str
    created_at: datetime
    sealed: str = field(repr=False)
    by: str | None = None


@dataclass(frozen=True)
class Collection:
    """A tenant's group of jobs. defaults: members of the API that new jobs get by default. signing: at most two keys.

    callback_timeout_s: how long a run waits for its result if its job does not say; None for the stack's default.
    redirects: replacements for Azure queues, in the members of the API. flow_key: the key of all jobs that name no
    other. off_times: when it was disabled (domain.occurrences.off_times). facade: the facade that created it. address:
    the key by which the facade finds it, if the facade's names differ from `name`. attributes: JSON that only its
    facade reads, except `name` and `location`, which are sent to the targets of its jobs. job_count: only
    if it was read for an answer (store.views.tenants.with_job_counts).
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
    facade: str = "native"
    address: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Terms:
    """The settings of a run's collection and tenant that matter to the run.

    enabled: whether both are enabled. tenant_active: whether the tenant is. purging: whether one of them is being
    deleted with everything in it. tenant_since: when the tenant was created; None if it does not exist. withheld: the
    scopes that no caller of the tenant has. off_times: when one of the two was disabled. attributes: see Collection.
    silences, watched: see Tenant. gone: whether the collection does not exist.
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
    attributes: Mapping[str, Any] = field(default_factory=dict)
    silences: Mapping[str, Silence] = field(default_factory=dict)
    watched: frozenset[str] = frozenset()
    gone: bool = False


@dataclass(frozen=True)
class Home:
    """The surroundings of a job that is written: the collection that it names, its tenant, and the tenant's quotas.

    name: of the collection. tenant, collection: None if there is none.
    """

    name: str
    tenant: Tenant | None
    collection: Collection | None
    quotas: Usage

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Returns the collection's defaults for members that a new job leaves out; none for an unknown collection."""
        return {} if self.collection is None else self.collection.defaults
