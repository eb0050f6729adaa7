"""The life of one occurrence: its states, its reasons, and the outcomes of its attempts."""

from __future__ import annotations

import hashlib
from dataclasses import field, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from sweephand.base.records import dataclass
from sweephand.domain.instants import text_ms

if TYPE_CHECKING:
    from sweephand.domain.posted import Posted


class Status(StrEnum):
    """The phase of a run."""

    SCHEDULED = "SCHEDULED"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"


class State(StrEnum):
    """The state of a run, or how it ended. SCHEDULED is stored for messages only, and computed from schedules."""

    SCHEDULED = "SCHEDULED"
    TRIGGERED = "TRIGGERED"
    ACK_RECVD = "ACK_RECVD"
    ACK_NOT_RECVD = "ACK_NOT_RECVD"
    RETRY_WAIT = "RETRY_WAIT"
    HELD = "HELD"
    QUEUED = "QUEUED"
    SUCCESS = "SUCCESS"
    ERROR = "ERROR"
    REQUEST_ERROR = "REQUEST_ERROR"
    UNKNOWN = "UNKNOWN"
    TIMEOUT = "TIMEOUT"
    SKIPPED = "SKIPPED"
    MISSED = "MISSED"
    EXPIRED = "EXPIRED"
    CANCELLED = "CANCELLED"

    @property
    def status(self) -> Status:
        if self is State.SCHEDULED:
            return Status.SCHEDULED
        return Status.COMPLETED if self in TERMINAL else Status.RUNNING


TERMINAL = frozenset(
    {
        State.SUCCESS,
        State.ERROR,
        State.REQUEST_ERROR,
        State.UNKNOWN,
        State.TIMEOUT,
        State.SKIPPED,
        State.MISSED,
        State.EXPIRED,
        State.CANCELLED,
    }
)
FAILED = frozenset({State.ERROR, State.REQUEST_ERROR, State.UNKNOWN, State.TIMEOUT})
RAN = FAILED | {State.SUCCESS}
OF_RANGES = frozenset({State.SKIPPED, State.MISSED, State.EXPIRED, State.CANCELLED})
"""The states of ledger ranges, which stand for many occurrences that did not run."""
AWAITING_RESULT = frozenset({State.ACK_RECVD, State.ACK_NOT_RECVD})
CLAIMABLE = frozenset({State.RETRY_WAIT, State.QUEUED})


class Reason(StrEnum):
    """The reason for a run's state: a closed list with one meaning each."""

    ON_TIME = "ON_TIME"
    LATE = "LATE"
    HTTP_STATUS = "HTTP_STATUS"
    DNS = "DNS"
    TLS = "TLS"
    CONNECT = "CONNECT"
    NO_ANSWER = "NO_ANSWER"
    GUARD = "GUARD"
    DEADLINE = "DEADLINE"
    CALLBACK = "CALLBACK"
    BAD_PAYLOAD = "BAD_PAYLOAD"
    TARGET_ERROR = "TARGET_ERROR"
    NO_TARGET = "NO_TARGET"
    UNKNOWN_TASK = "UNKNOWN_TASK"
    EXECUTOR_LOST = "EXECUTOR_LOST"
    UNDELIVERED = "UNDELIVERED"
    CIRCUIT_OPEN = "CIRCUIT_OPEN"
    OVERLAP = "OVERLAP"
    PAUSED = "PAUSED"
    DISABLED = "DISABLED"
    CALENDAR = "CALENDAR"
    BY_HAND = "BY_HAND"
    QUOTA = "QUOTA"
    SERVICE_OUTAGE = "SERVICE_OUTAGE"
    CONSUMER_AWAY = "CONSUMER_AWAY"
    MAX_LATENESS = "MAX_LATENESS"
    MAX_AGE = "MAX_AGE"
    RETENTION = "RETENTION"
    BY_USER = "BY_USER"
    REPLACED = "REPLACED"
    OWNER_GONE = "OWNER_GONE"


UNREACHABLE = frozenset({Reason.DNS, Reason.TLS, Reason.CONNECT})
LATE_AFTER_MS = 5_000
LATE_END = timedelta(hours=23)
"""A run that ends this long after its instant corrects the statistics: the audit may have settled beyond it."""


class Kind(StrEnum):
    SCHEDULED = "scheduled"
    MANUAL = "manual"
    ERROR_ACTION = "error_action"
    BACKFILL = "backfill"
    ON_SUCCESS = "on_success"
    ON_FAILURE = "on_failure"
    ON_MISSED = "on_missed"
    TEST = "test"
    MESSAGE = "message"


REACTIONS = frozenset({Kind.ERROR_ACTION, Kind.ON_SUCCESS, Kind.ON_FAILURE, Kind.ON_MISSED})
"""Runs started by the end of another run. They have a separate action, and their own end starts nothing."""
APART = REACTIONS | {Kind.TEST}
"""Runs separate from those of the schedules. They take no turn; their end starts nothing and switches nothing off."""


class Verdict(StrEnum):
    """The outcome of an attempt before retries and policies are applied."""

    SUCCEEDED = "succeeded"
    ACCEPTED = "accepted"
    """The target accepted the work and will report later (202, and the job waits for the callback)."""
    SILENT = "silent"
    """The target did not answer in time, and the job's policy is to wait for the callback anyway."""
    FAILED = "failed"


WAITS = frozenset({Verdict.ACCEPTED, Verdict.SILENT})
"""The run waits for its result."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one attempt of an action.

    reason: why it failed; None if it succeeded, was accepted or stayed silent. http_status: None without an answer.
    answer: the body as a string, at most 16 KB, decoded with replacement. message: one plain sentence for people, never
    a secret. retryable: whether `retryOn: transient` allows another attempt. stop: whether only `retryOn: any` allows
    another attempt (410). retry_after_s: requested by the target, already capped. final: whether no attempt follows,
    whatever the policy. task: the ARN of the started ECS task. ends_as: the state of the run if no attempt follows;
    None if the reason determines it. answer_headers: one per line, without secrets; None if nobody reads them.
    apart: whether it is about another server, such as the one that issues tokens, and says nothing about the target.
    issuer: whether the attempt asked the server that issues tokens, and that server answered or stayed silent.
    """

    verdict: Verdict
    reason: Reason | None = None
    http_status: int | None = None
    answer: str | None = None
    message: str | None = None
    retryable: bool = False
    stop: bool = False
    retry_after_s: int | None = None
    final: bool = False
    task: str | None = None
    ends_as: State | None = None
    answer_headers: str | None = None
    apart: bool = False
    issuer: bool = False


@dataclass(frozen=True)
class LostCall:
    """A call whose result is unknown, because its executor stopped before reporting it. attempt: its attempt."""

    attempt: int
    started_at: datetime

    @classmethod
    def of(cls, run: Run) -> LostCall:
        """Returns the lost call of a run in the state in which its executor left it."""
        return cls(run.attempt, run.started_at or run.planned_at)


_FROM_ITS_JOB = "from its job"


def from_its_job(default: Any) -> Any:
    """Declares a member that a run takes from its job when it begins, and shows under the same name as the job does."""
    return field(default=default, metadata={_FROM_ITS_JOB: True})


@dataclass(frozen=True)
class Run:
    """One row of the ledger.

    uuid: computed (ids.run_uuid). schedule_id: None for a run of the job itself. parent_uuid: the run that started it;
    the whole id if that run belongs to another job. hop: the number of runs before it in a chain of jobs that run jobs.
    chain: the jobs of those runs. root: the whole id of the first run of the chain; set if a job, a hook or an error
    action has run another job, or may.

    attempt: the current or last one, from 1. lost_calls: calls after which another executor took the run over, in
    order. unknown: how many workers did not know its task. lease_owner, lease_until: the executor or worker that holds
    it, and until when; set only while TRIGGERED. not_before: the earliest start of the next attempt. wake_at: when the
    sweeper sends its pointer again. range_until, range_count: set on a ledger range, which stands for many occurrences.
    range_packed: the packed timing that they follow; None if the row does not say. slotted: whether it began, or waits,
    as the only active run of its schedule. attempt_planned_at, attempt_enqueued_at: set from the second attempt on; the
    first has those of the run.

    flow_key: the key that limits its calls. line_at: when it joined that key's line, kept after it left. task: the ARN
    of the ECS task that it waits or waited for. reported: the target's message as received. It may repeat a secret of
    the job, so it is never shown; the executor derives `message` from it.

    consumer: the consumer that was away when it fell due, and for which it was held. missed_count, missed_from: how
    many occurrences its event stands for, and the first of them.

    claims: the attempts that workers have claimed, each with a mark of the worker (claim_mark). reported_by: who
    reported how it ended: the worker that settled it, or the client id of the caller that sent its result.

    rerun_of: the whole id of the run that this one repeats, planned at occurrence_at. rerun_by: the whole id of the
    last run that repeats this one. edited: whether a separate row has the body that is sent instead of the job's.
    posted: of a message, which has no job: its action and everything else that its caller determines.
    """

    tenant: str
    job_id: str
    schedule_id: str | None
    uuid: str
    kind: Kind
    state: State
    planned_at: datetime
    reason: Reason | None = None
    enqueued_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    first_started_at: datetime | None = None
    attempt: int = 1
    max_attempts: int = 1
    lost_calls: tuple[LostCall, ...] = ()
    unknown: int = 0
    lease_owner: str | None = None
    lease_until: datetime | None = None
    not_before: datetime | None = None
    generation: int = 0
    http_status: int | None = None
    answer: str | None = None
    message: str | None = None
    reported: str | None = None
    result_digest: str | None = None
    deadline_at: datetime | None = None
    parent_uuid: str | None = None
    wake_at: datetime | None = None
    expires_at: datetime | None = None
    range_until: datetime | None = None
    range_count: int | None = None
    range_packed: str | None = None
    notes: tuple[str, ...] = ()
    slotted: bool = False
    hop: int = 0
    rerun_of: str | None = None
    rerun_by: str | None = None
    occurrence_at: datetime | None = None
    edited: bool = False
    attempt_planned_at: datetime | None = None
    attempt_enqueued_at: datetime | None = None
    task: str | None = None
    flow_key: str | None = None
    line_at: datetime | None = None
    chain: frozenset[str] = frozenset()
    root: str | None = None
    answer_headers: str | None = None
    consumer: str | None = None
    missed_count: int = 1
    missed_from: datetime | None = None
    claims: frozenset[str] = frozenset()
    reported_by: str | None = None
    posted: Posted | None = None

    @property
    def id(self) -> str:
        """Returns the native id: the id of the schedule (or of the job), and that of the run."""
        return f"{self.schedule_id or self.job_id}_{self.uuid}"

    @property
    def parent_id(self) -> str | None:
        """Returns the native id of the run that started it."""
        if self.parent_uuid is None or "_" in self.parent_uuid:
            return self.parent_uuid
        return f"{self.schedule_id or self.job_id}_{self.parent_uuid}"

    @property
    def of_job(self) -> str | None:
        """Returns the id of its job as the API shows it; None for a message, which has none."""
        return None if self.posted is not None else self.job_id

    @property
    def begins(self) -> bool:
        """Returns True if its first attempt has not begun and it waits for neither a slot nor its turn in a line."""
        new = self.state in {State.QUEUED, State.SCHEDULED}
        return new and self.attempt == 1 and not (self.slotted or self.in_line)

    @property
    def closes_circle(self) -> bool:
        """Returns True for a reaction of a job that already has a run further up the chain.

        If the chain did not end here, it would branch in each round, and one run would become thousands.
        """
        return self.kind in REACTIONS and self.job_id in self.chain

    @property
    def finished(self) -> bool:
        return self.state in TERMINAL

    def ended_at(self, now: datetime) -> datetime:
        """Returns when it ends: now, but never before its attempt began by another machine's clock."""
        return now if self.started_at is None else max(now, self.started_at)

    @property
    def state_in_words(self) -> str:
        """Returns its state for refusals: its attempt, until when somebody holds it, or how the last attempt failed."""
        said = f"the run is {self.state}, attempt {self.attempt} of {max(self.attempt, self.max_attempts)}"
        if self.finished:
            return f"the run has ended as {self.state}"
        if self.lease_owner is not None and self.lease_until is not None:
            return f"{said}, which is held until {text_ms(self.lease_until)}"
        return f"{said}, after {self.reason}" if self.state is State.RETRY_WAIT else said

    @property
    def lost(self) -> int:
        """Returns how many executors stopped while they held it."""
        return len(self.lost_calls)

    @property
    def lost_in_attempt(self) -> int:
        """Returns how many executors stopped in its current or last attempt."""
        return sum(call.attempt == self.attempt for call in self.lost_calls)

    def is_of_former(self, tenant_since: datetime | None) -> bool:
        """Returns True if it is older than the tenant: it belonged to an earlier tenant of the same name."""
        seen_at = self.enqueued_at or self.started_at or self.finished_at or self.planned_at
        return tenant_since is not None and seen_at < tenant_since

    def is_gone(self, now: datetime) -> bool:
        """Returns True if its retention has ended.

        DynamoDB deletes such rows within days; until then they are hidden.
        """
        return self.expires_at is not None and self.expires_at <= now

    @property
    def in_line(self) -> bool:
        """Returns True while it waits for its turn under a flow key."""
        return self.state is State.QUEUED and self.line_at is not None

    @property
    def ends_late(self) -> bool:
        """Returns True if the audit may have settled beyond its instant before it ended."""
        if self.kind is not Kind.SCHEDULED or self.finished_at is None:
            return False
        return self.finished_at - self.planned_at > LATE_END

    @property
    def lateness_ms(self) -> int | None:
        """Returns the time from the planned instant to the start of the first attempt; None before that start."""
        started = self.first_started_at or self.started_at
        if started is None:
            return None
        return max(0, int((started - self.planned_at).total_seconds() * 1000))


def claim_mark(worker: str, attempt: int) -> str:
    """Returns how a run notes that a worker has claimed an attempt. worker: the name that it sends as `owner`."""
    return f"{attempt},{hashlib.sha256(worker.encode()).hexdigest()[:16]}"


FROM_ITS_JOB = tuple(each.name for each in fields(Run) if _FROM_ITS_JOB in each.metadata)


def success_reason(run: Run) -> Reason:
    """Returns ON_TIME, or LATE if the first attempt began more than 5 s after the planned instant."""
    late = run.lateness_ms
    return Reason.LATE if late is not None and late > LATE_AFTER_MS else Reason.ON_TIME


@dataclass(frozen=True)
class Attempt:
    """One try within a run, stored in a separate row.

    answer: up to 16 KB. planned_at, enqueued_at: None for the first attempt, which has those of the run. state: set if
    the reason does not determine it.
    """

    number: int
    started_at: datetime
    finished_at: datetime
    reason: str | None = None
    http_status: int | None = None
    message: str | None = None
    answer: str | None = None
    planned_at: datetime | None = None
    enqueued_at: datetime | None = None
    state: str | None = None
    answer_headers: str | None = None
