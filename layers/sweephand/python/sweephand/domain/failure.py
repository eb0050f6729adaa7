"""What failed, and what makes two failures the same: the signature by which errors are grouped. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime

from sweephand.domain.job import owner_of
from sweephand.domain.run import Run, State

LONGEST_TEXT = 160
_VARIES = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{12,}\b|[0-9]+", re.IGNORECASE)
"""What differs between two messages that say the same: ids, hashes, numbers."""

_SINCE_EVER = {"action": False, "errorAction": True}
"""Groups are older than hooks: those that are there keep their ids."""


@dataclass(frozen=True)
class Signature:
    """state, reason, http_status: how the runs ended; text: their message, with `#` in the place of what varies.

    action: which of the job's actions failed, as it is called in the job: `action`, `errorAction`, `hooks.onSuccess`.
    They go to different targets, whatever their messages have in common.
    """

    job_id: str
    action: str
    state: State
    reason: str | None
    http_status: int | None
    text: str

    @property
    def id(self) -> str:
        """32 hexadecimal digits, computed: who meets the same failure meets the same group."""
        failed = _SINCE_EVER.get(self.action, self.action)
        facts = (self.job_id, failed, self.state.value, self.reason, self.http_status, self.text)
        return hashlib.sha256("\x00".join(map(str, facts)).encode()).hexdigest()[:32]


def signature_of(run: Run) -> Signature:
    """run: one that failed."""
    return Signature(
        job_id=run.job_id,
        action=owner_of(run.kind),
        state=run.state,
        reason=run.reason.value if run.reason else None,
        http_status=run.http_status,
        text=normalised(run.message or ""),
    )


def normalised(message: str) -> str:
    return _VARIES.sub("#", message)[:LONGEST_TEXT]


@dataclass(frozen=True)
class Note:
    """by: the client id of who wrote it."""

    text: str
    by: str | None
    at: datetime


@dataclass(frozen=True)
class Group:
    """Failures of one signature. last_at: to within half a minute; last_run: the whole id of one that failed then.

    closed_through: whatever failed up to then is archived, by whom and why.
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

    @property
    def id(self) -> str:
        return self.signature.id


@dataclass(frozen=True)
class Archived:
    """That somebody has seen to a failed run without running it again: when, who (a client id), and why."""

    at: datetime
    by: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Failure:
    """One failed run of a group. at: when it was noted, None where it was run again before that. expires_at: of its
    row in the ledger. rerun_by: the whole id of the run that repeats it; rerun_at: since when; operation: that asked
    for it, if one did. archived: of this run alone, beside what its group is.
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
        """Its retention is over, though the table may still show it."""
        return self.expires_at is not None and self.expires_at <= now

    def is_archived(self, group: Group) -> bool:
        """Alone, or with its group."""
        return self.archived is not None or self._went_with(group.closed_through)

    def _went_with(self, closed_through: datetime | None) -> bool:
        """Its group archived what failed up to then."""
        return self.at is not None and closed_through is not None and self.at <= closed_through

    def is_open(self, group: Group, now: datetime) -> bool:
        """Nobody has seen to it: it was not run again, nor archived, alone or with its group; and it is still there."""
        if self.at is None or self.rerun_by is not None:
            return False
        return not self.is_archived(group) and not self.is_gone(now)

    def was_open(self, at: datetime, closed_through: datetime | None) -> bool:
        """At `at`, a time that is over. closed_through: of its group, then."""
        if self.at is None or self.at >= at or self._went_with(closed_through):
            return False
        seen_to = [self.rerun_at or self.at] if self.rerun_by is not None else []
        seen_to += [] if self.archived is None else [self.archived.at]
        return not self.is_gone(at) and all(each >= at for each in seen_to)


@dataclass(frozen=True)
class Redirect:
    """Runs of job `source` are run again as runs of job `to`."""

    source: str
    to: str
    actor: str | None
    at: datetime
