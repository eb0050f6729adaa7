"""A job: what to do, for whom, under which policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from sweephand.base.errors import InvalidRequest
from sweephand.base.json_text import dumps
from sweephand.base.records import dataclass
from sweephand.domain.run import Kind

if TYPE_CHECKING:
    from sweephand.domain.job_set import Membership
    from sweephand.domain.schedule import StateReason

DEFAULT_COLLECTION = "default"
DEFAULT_FACADE = "native"
CLOSED_FACADES = frozenset({"azure"})
"""Facades that can show only their own form of a job. Such a job can be switched on and off, run and deleted."""
TASK_KINDS = frozenset({"ecs"})
"""Kinds of actions that run a tenant's code in the stack's own account. They require a separate scope."""
IN_JOBS_TRANSACTION = 60
"""The most writes of schedules and payloads in the transaction of their job. DynamoDB allows 100 writes in all.

Schedules of larger jobs follow in separate transactions.
"""
SCHEDULES_AT_ONCE = 40
"""The most schedules in one request. They are written in one transaction with the job."""


HOOKS: Mapping[Kind, str] = {
    Kind.ON_SUCCESS: "onSuccess",
    Kind.ON_FAILURE: "onFailure",
    Kind.ON_MISSED: "onMissed",
}
HOOK_KINDS: Mapping[str, Kind] = {name: kind for kind, name in HOOKS.items()}


def owner_of(kind: Kind) -> str:
    """Returns the key under which the payload and secrets for runs of this kind are stored."""
    if kind in HOOKS:
        return hook_owner(HOOKS[kind])
    return "errorAction" if kind is Kind.ERROR_ACTION else "action"


def hook_owner(name: str) -> str:
    return f"hooks.{name}"


_Action = TypeVar("_Action")


def by_owner(action: _Action, error_action: _Action | None, hooks: Mapping[str, _Action]) -> dict[str, _Action]:
    """Returns the actions of a job by the owner of their payload and secrets."""
    reactions = {hook_owner(name): hook for name, hook in hooks.items()}
    return {"action": action, **({"errorAction": error_action} if error_action is not None else {}), **reactions}


class JobState(StrEnum):
    ACTIVE = "ACTIVE"
    INACTIVE = "INACTIVE"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    FAULTED = "FAULTED"


@dataclass(frozen=True)
class Payload:
    """The body sent to the target. text: exactly as it is sent. is_json: whether the caller gave it as JSON."""

    text: str
    is_json: bool


def json_payload(value: object, field: str) -> Payload:
    """Returns a JSON payload as it is stored and sent. Raises InvalidRequest if it cannot be written in UTF-8."""
    try:
        written = dumps(value)
        written.encode()
    except (TypeError, ValueError, RecursionError) as wrong:
        raise InvalidRequest(field, "cannot be written as JSON in UTF-8") from wrong
    return Payload(written, is_json=True)


MASK = "***"
"""Stands for a stored secret, in answers and in requests that keep it."""
OWN_TOKEN = "sweephand"  # noqa: S105 - a type of authentication
"""The authentication with a token that the stack signs."""


def needed_again(path: str, changed: str) -> InvalidRequest:
    """Returns the error for a secret that was left out although the member that it belongs to has changed."""
    return InvalidRequest(path, f"is required: {changed} has changed, and the stored secret belongs to the old one")


@dataclass(frozen=True)
class Inline:
    """The payload and secrets of an action that is stored in a separate item.

    sealed: its secrets, field within the action -> ciphertext. of: the schedule that it belongs to.
    """

    of: str
    payload: Payload | None = None
    sealed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ActionSpec:
    """The typed target of a job in its stored form, without secrets and payload.

    params: the caller's fields as parsed by `actions/<kind>.py`. retry: the members of the retry policy.
    payload_version: identifies the item with the payload; None without one. inline: only for a schedule's own hook.
    """

    kind: str
    params: Mapping[str, Any]
    retry: Mapping[str, Any]
    payload_version: int | None = None
    inline: Inline | None = None


@dataclass(frozen=True)
class Pause:
    since: datetime
    note: str | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class Job:
    """An action and its policies. hooks: actions that the end of a run starts, by `onSuccess` and so on.

    revision: raised by each change that a user makes. secret_version: identifies the item with the encrypted secrets.

    number: numbers the tenant's jobs by creation, from 1, with gaps; never reused. It is the job's place in the
    directory. ordinal: the number of its tenant among all tenants; None if its facade uses no integer ids.
    attributes: JSON that only its facade reads.

    schedule_ids: set for jobs with at most 40 schedules, so that a list reads them by key; empty with
    `many_schedules`. schedule_count: counts towards the tenant's quota, including schedules not yet written.
    open_change: the revision whose schedules are still being written because they did not fit into one transaction.
    own_runs: whether it may have runs that belong to no schedule. A list of many jobs reads only ledgers that exist.
    job_set, key: the set that owns it, and its key there.
    """

    tenant: str
    id: str
    collection: str
    name: str
    action: ActionSpec
    created_at: datetime
    modified_at: datetime
    description: str | None = None
    facade: str = DEFAULT_FACADE
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
    job_set: str | None = None
    key: str | None = None
    of_message: ClassVar[bool] = False
    """Whether it stands for a message, which has no job."""

    def reaction(self, kind: Kind) -> ActionSpec | None:
        """Returns the action that runs of this kind carry out; None if the job no longer has it."""
        if kind is Kind.ERROR_ACTION:
            return self.error_action
        return self.hooks.get(HOOKS[kind])

    @property
    def integer_id(self) -> int | None:
        """Returns an id that is unique in the whole stack; None if its facade uses no integer ids."""
        return None if self.ordinal is None else integer_id(self.ordinal, self.number)

    @property
    def running(self) -> bool:
        """Returns True while its schedules may plan occurrences."""
        return self.active and self.pause is None


JOBS_OF_ORDINAL = 1_000_000_000
"""The number of integer ids that each tenant has. With the ordinal, ids stay below 2^53, where JavaScript is exact."""


def integer_id(ordinal: int, number: int) -> int:
    return ordinal * JOBS_OF_ORDINAL + number


def ordinal_and_number(integer: int) -> tuple[int, int]:
    return divmod(integer, JOBS_OF_ORDINAL)


@dataclass(frozen=True)
class ActionDraft:
    """An action that a caller requests, not yet stored: params and retry are validated, secrets are in plain text.

    secrets: values by field path, relative to the action: `authentication.password`. A field in `kept` keeps the stored
    value.
    """

    kind: str
    params: Mapping[str, Any]
    retry: Mapping[str, Any]
    payload: Payload | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Activation:
    """A request to which the rule of flow.jobs.last_instant applies.

    active: the request's member; None if it was not sent. within_job: whether the schedule is part of its job's body.
    """

    active: bool | None = None
    within_job: bool = False


@dataclass(frozen=True)
class ScheduleDraft:
    """A schedule that a caller requests. timing: the members of schedules.timing as the caller wrote them.

    book: the current references of the calendars that it names, by name. because: why the service itself switches it
    off. hooks, attributes: None keeps the stored ones. activation: set if the rule of flow.jobs.last_instant applies.
    fresh: whether a change plans the schedule as if it were created now; then its `count` begins again too.
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
    activation: Activation | None = None
    fresh: bool = False


@dataclass(frozen=True)
class JobDraft:
    """A job that a caller requests. schedules, attributes: None keeps the stored ones. activation: for its schedules.

    membership: the place that it takes in a job set; None keeps the one that it has.
    """

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
    facade: str = DEFAULT_FACADE
    ordinal: int | None = None
    attributes: Mapping[str, Any] | None = None
    activation: Activation | None = None
    membership: Membership | None = None
