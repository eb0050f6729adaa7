"""Failed runs, and the signature by which they are grouped. Pure."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime

from sweephand.base.records import dataclass
from sweephand.domain.job import owner_of
from sweephand.domain.run import Run, State

LONGEST_TEXT = 160
MESSAGES = "messages/"
"""The beginning of what stands in the place of a job's id for messages; collection and target follow."""
_VARIES = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{12,}\b|[0-9]+", re.IGNORECASE)
"""The parts in which two messages of the same failure differ: ids, hashes, numbers."""

_SINCE_EVER = {"action": False, "errorAction": True}
"""The values that were hashed before hooks existed. With them, groups from that time keep their ids."""


@dataclass(frozen=True)
class Signature:
    """The properties that failures of one group share. text: their message with `#` for the parts that vary.

    job_id: for messages, which have no job, what stands in its place (MESSAGES). action: the action of the job that
    failed, by its member: `action`, `errorAction`, `hooks.onSuccess`. Failures of two actions are never in one group,
    because the actions call different targets.
    """

    job_id: str
    action: str
    state: State
    reason: str | None
    http_status: int | None
    text: str

    @property
    def shown_job_id(self) -> str | None:
        """Returns the id of the job as the API shows it; None for messages."""
        return None if self.job_id.startswith(MESSAGES) else self.job_id

    @property
    def target(self) -> str | None:
        """Returns the target of messages; None for a job, whose action may have another one by now."""
        if self.shown_job_id is not None:
            return None
        return self.job_id.removeprefix(MESSAGES).partition("/")[2] or None

    @property
    def id(self) -> str:
        """Returns 32 hexadecimal digits, which are the same for all failures of one group."""
        failed = _SINCE_EVER.get(self.action, self.action)
        facts = (self.job_id, failed, self.state.value, self.reason, self.http_status, self.text)
        return hashlib.sha256("\x00".join(map(str, facts)).encode()).hexdigest()[:32]


def signature_of(run: Run) -> Signature:
    """Returns the signature of a failed run."""
    return Signature(
        job_id=run.job_id if run.posted is None else f"{MESSAGES}{run.posted.collection}/{run.posted.target}",
        action=owner_of(run.kind),
        state=run.state,
        reason=run.reason.value if run.reason else None,
        http_status=run.http_status,
        text=normalised(run.message or ""),
    )


def normalised(message: str) -> str:
    return _VARIES.sub("#", message)[:LONGEST_TEXT]


def example_of(run: Run) -> str:
    """Returns the message of a failed run as its group shows it, with the parts that the signature leaves out."""
    return (run.message or "")[:LONGEST_TEXT]


@dataclass(frozen=True)
class Note:
    """A remark on a group. by: the client id of its author."""

    text: str
    by: str | None
    at: datetime


@dataclass(frozen=True)
class Group:
    """All failures of one signature.

    last_at: exact to half a minute. last_run: the whole id of a run that failed then. last_message: its message,
    shortened; None in groups that are older than this member. closed_through: failures up to this instant are archived.
    closed_by, closed_reason: who archived them, and why. job_name: the name at the first failure, kept in case the job
    is deleted; None in groups that are older than this member.
    """

    tenant: str
    signature: Signature
    collection: str
    first_at: datetime
    last_at: datetime
    last_run: str
    notes: tuple[Note, ...] = ()
    closed_through: datetime | None = None
    closed_by: str | None = None
    closed_reason: str | None = None
    revision: int = 1
    job_name: str | None = None
    last_message: str | None = None

    @property
    def id(self) -> str:
        return self.signature.id


@dataclass(frozen=True)
class Archived:
    """A note that a failed run was dealt with without a rerun: when, by whom (a client id) and why."""

    at: datetime
    by: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Failure:
    """One failed run of a group. at: when it was recorded; None if it was rerun before that.

    expires_at: when its row in the ledger expires. rerun_by: the whole id of the run that repeats it. rerun_at: when
    that run was started. operation: the operation that requested the rerun, if any. archived: set if this run
    itself was archived, whatever the state of its group.
    """

    run_id: str
    uuid: str
    expires_at: datetime | None
    at: datetime | None = None
    rerun_by: str | None = None
    rerun_at: datetime | None = None
    actor: str | None = None
    operation: str | None = None
    archived: Archived | None = None

    def is_gone(self, now: datetime) -> bool:
        """Returns True if its retention has ended, even if the table still contains the row."""
        return self.expires_at is not None and self.expires_at <= now

    def is_archived(self, group: Group) -> bool:
        """Returns True if it was archived alone or with its group."""
        return self.archived is not None or self._went_with(group.closed_through)

    def _went_with(self, closed_through: datetime | None) -> bool:
        """Returns True if its group was archived after it failed."""
        return self.at is not None and closed_through is not None and self.at <= closed_through

    def is_open(self, group: Group, now: datetime) -> bool:
        """Returns True if it still exists and was neither rerun nor archived, alone or with its group."""
        if self.at is None or self.rerun_by is not None:
            return False
        return not self.is_archived(group) and not self.is_gone(now)

    def was_open(self, at: datetime, closed_through: datetime | None) -> bool:
        """Returns True if it was open at the past instant `at`. closed_through: the group's value at that instant."""
        if self.at is None or self.at >= at or self._went_with(closed_through):
            return False
        seen_to = [self.rerun_at or self.at] if self.rerun_by is not None else []
        seen_to += [] if self.archived is None else [self.archived.at]
        return not self.is_gone(at) and all(each >= at for each in seen_to)


@dataclass(frozen=True)
class Redirect:
    """A rule that reruns the failed runs of job `source` as runs of job `to`."""

    source: str
    to: str
    actor: str | None
    at: datetime
