"""A job: what to do, for whom, under which policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from sweephand.domain.run import Kind

if TYPE_CHECKING:
    from sweephand.domain.schedule import StateReason

DEFAULT_COLLECTION = "default"
TASK_KINDS = frozenset({"ecs"})
"""Kinds of actions that run code of the tenant's in the stack's own account: they need a scope of their own."""
IN_JOBS_TRANSACTION = 60
"""Writes of schedules and their payloads in their job's transaction (DynamoDB takes 100 in all). Schedules of larger
jobs follow in transactions of their own.
"""
SCHEDULES_AT_ONCE = 40
"""Schedules that one request may bring: they are written in one transaction with the job."""


HOOKS: Mapping[Kind, str] = {
    Kind.ON_SUCCESS: "onSuccess",
    Kind.ON_FAILURE: "onFailure",
    Kind.ON_MISSED: "onMissed",
}
HOOK_KINDS: Mapping[str, Kind] = {name: kind for kind, name in HOOKS.items()}


def owner_of(kind: Kind) -> str:
    """Whose payload and secrets the runs of a kind have, as they are stored."""
    if kind in HOOKS:
        return hook_owner(HOOKS[kind])
    return "errorAction" if kind is Kind.ERROR_ACTION else "action"


def hook_owner(name: str) -> str:
    return f"hooks.{name}"


class JobState(StrEnum):
    ACTIVE = "ACTIVE"
    INACTIVE = "INACTIVE"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    FAULTED = "FAULTED"


@dataclass(frozen=True)
class Payload:
    """What is sent to the target: `text` exactly as it goes out; is_json tells how it came in."""

    text: str
    is_json: bool


@dataclass(frozen=True)
class Beside:
    """What is stored together with an action that stands in an item of its own.

    sealed: its secrets, field within the action -> ciphertext. of: the schedule that brings it.
    """

    of: str
    payload: Payload | None = None
    sealed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ActionSpec:
    """The typed target of a job, as it is stored: no secret, no payload.

    params: what `actions/<kind>.py` made of the caller's fields. retry: the retry policy's members.
    payload_version: which payload item holds the payload; None without one. beside: of a schedule's own hook alone.
    """

    kind: str
    params: Mapping[str, Any]
    retry: Mapping[str, Any]
    payload_version: int | None = None
    beside: Beside | None = None


@dataclass(frozen=True)
class Pause:
    since: datetime
    note: str | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class Job:
    """hooks: what is carried out when a run of it has ended, by `onSuccess`, `onFailure` and `onMissed`.

    revision: the user's, raised by each change of theirs. secret_version: which item holds the encrypted secrets.

    number: the tenant's jobs by creation, from 1, with gaps; never reused. It is its place in the directory.
    ordinal: the tenant's among all tenants; None where its facade asks for no integer ids. attributes: what only its
    facade knows, as JSON: no rule of the service looks at it.

    schedule_ids: of a job with at most 40 schedules, so that a list reads them by key; empty with `many_schedules`.
    schedule_count: how many it has, those that still follow a change included: what its tenant's quota counts.
    open_change: the revision whose schedules still follow, because they were too many for one transaction.
    own_runs: whether it may have runs that belong to no schedule: a list of many jobs reads only ledgers that exist.
    """

    tenant: str
    id: str
    collection: str
    name: str
    action: ActionSpec
    created_at: datetime
    modified_at: datetime
    description: str | None = None
    facade: str = "native"
    active: bool = True
    start_at: datetime | None = None
    end_at: datetime | None = None
    resource_id: str | None = None
    tags: tuple[str, ...] = ()
    error_action: ActionSpec | None = None
    hooks: Mapping[str, ActionSpec] = field(default_factory=dict)
    policies: Mapping[str, Any] = field(default_factory=dict)
    secret_version: int | None = None
    revision: int = 1
    pause: Pause | None = None
    state_reason: str | None = None
    schedule_ids: tuple[str, ...] = ()
    many_schedules: bool = False
    schedule_count: int = 0
    open_change: int | None = None
    number: int = 0
    ordinal: int | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    own_runs: bool = False

    def reaction(self, kind: Kind) -> ActionSpec | None:
        """What a run of such a kind carries out, None if the job does not say it any more."""
        if kind is Kind.ERROR_ACTION:
            return self.error_action
        return self.hooks.get(HOOKS[kind])

    @property
    def integer_id(self) -> int | None:
        """Unique in the whole stack. None where its facade asks for none."""
        return None if self.ordinal is None else integer_id(self.ordinal, self.number)

    @property
    def running(self) -> bool:
        """True while its schedules may plan occurrences."""
        return self.active and self.pause is None


JOBS_OF_ORDINAL = 1_000_000_000
"""So many integer ids has a tenant: together with the ordinal they stay below 2^53, where JavaScript counts exactly."""


def integer_id(ordinal: int, number: int) -> int:
    return ordinal * JOBS_OF_ORDINAL + number


def ordinal_and_number(integer: int) -> tuple[int, int]:
    return divmod(integer, JOBS_OF_ORDINAL)


@dataclass(frozen=True)
class ActionDraft:
    """An action that a caller asks for: params and retry checked, secrets in the clear, not yet written anywhere.

    secrets: field path -> text; the path is relative to the action: `authentication.password`. A field in `kept`
    keeps the value that is stored.
    """

    kind: str
    params: Mapping[str, Any]
    retry: Mapping[str, Any]
    payload: Payload | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Asked:
    """A request that goes by the rule of domain.occurrences.nothing_left.

    active: what the request says about it; None if it says nothing. within_job: the schedule is part of its job's body.
    """

    active: bool | None = None
    within_job: bool = False


@dataclass(frozen=True)
class ScheduleDraft:
    """A schedule that a caller asks for. timing: the members of schedules.timing as the caller wrote them.

    book: the references of the calendars that it names, as they are now, by name. because: why the service itself
    switches it off.
    hooks, attributes None: those that are there stay. asked: it goes by the rule of domain.occurrences.nothing_left.
    """

    name: str | None
    timing: Mapping[str, Any]
    active: bool = True
    payload: Payload | None = None
    policies: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    book: Mapping[str, str] = field(default_factory=dict, compare=False)
    because: StateReason | None = None
    hooks: Mapping[str, ActionDraft] | None = None
    attributes: Mapping[str, Any] | None = None
    asked: Asked | None = None


@dataclass(frozen=True)
class JobDraft:
    """A job that a caller asks for. schedules None: those that are there stay; so attributes. asked: of those."""

    name: str | None
    action: ActionDraft
    collection: str = DEFAULT_COLLECTION
    description: str | None = None
    active: bool = True
    start_at: datetime | None = None
    end_at: datetime | None = None
    resource_id: str | None = None
    tags: tuple[str, ...] = ()
    error_action: ActionDraft | None = None
    hooks: Mapping[str, ActionDraft] = field(default_factory=dict)
    policies: Mapping[str, Any] = field(default_factory=dict)
    schedules: tuple[ScheduleDraft, ...] | None = ()
    facade: str = "native"
    ordinal: int | None = None
    attributes: Mapping[str, Any] | None = None
    asked: Asked | None = None
