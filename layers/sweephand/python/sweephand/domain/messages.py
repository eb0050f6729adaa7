"""Messages: what callers request, the form of a job that they have for the steps of all runs, and their place. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sweephand.base import ids
from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_ms, up_to_second
from sweephand.domain.job import ActionDraft, ActionSpec, Inline, Job, Payload
from sweephand.domain.posted import Posted
from sweephand.domain.run import Kind, Run
from sweephand.domain.runs.run_action import targets_of

LATEST = datetime(2199, 12, 31, 23, 59, 59, tzinfo=UTC)
NEAR = timedelta(seconds=840)
"""Up to this far ahead, a message goes to its queue at once. A later one is sent by the sweep."""
PARTS = 4
"""The ledgers of a collection's messages of one day. Each takes 1,000 write units a second."""


@dataclass(frozen=True)
class Dedupe:
    """A caller's own key for a message: it is sent once in `seconds`, counted from the acceptance of the first one.

    refuse: whether a later one is refused instead of answered with the first one.
    """

    key: str
    seconds: int = 86_400
    refuse: bool = False


@dataclass(frozen=True)
class MessageDraft:
    """A message that a caller requests. action: with the payload and the headers of the message.

    at, delay_s: when; neither for now. run_past: whether an instant that has passed means now. The others: see Posted.
    """

    action: ActionDraft
    collection: str
    at: datetime | None = None
    delay_s: int | None = None
    run_past: bool = False
    name: str | None = None
    resource_id: str | None = None
    tags: tuple[str, ...] = ()
    policies: Mapping[str, Any] = field(default_factory=dict)
    max_lateness_s: int | None = None
    dedupe: Dedupe | None = None

    def planned(self, accepted_at: datetime) -> datetime:
        """Returns its instant, in whole seconds unless it is at once. It never lies before the acceptance."""
        if self.delay_s is not None:
            return up_to_second(accepted_at + timedelta(seconds=self.delay_s))
        return accepted_at if self.at is None else max(self.at, accepted_at)


class JobOfMessage(Job):
    """The form of a job that a message has for the steps of all runs. It has no row; never write it."""

    of_message = True


def packed(action: ActionSpec) -> list[Any]:
    """Returns an action as Posted has it."""
    inline = action.inline
    payload = None if inline is None or inline.payload is None else [inline.payload.text, inline.payload.is_json]
    sealed = None if inline is None or not inline.sealed else [inline.of, dict(inline.sealed)]
    return [action.kind, dict(action.params), dict(action.retry), payload, sealed]


def action_of(posted: Posted) -> ActionSpec | None:
    """Returns the action, with its payload and its secrets; None if it was not read."""
    if posted.action is None:
        return None
    kind, params, retry, payload, sealed = posted.action
    of, texts = sealed or ("", {})
    return ActionSpec(kind, params, retry, inline=Inline(of, None if payload is None else Payload(*payload), texts))


def target_of(action: ActionSpec) -> str:
    return next(iter(targets_of(action)), "")


def job_of(run: Run) -> Job | None:
    """Returns what a message does in the form of a job, for the steps that all runs share.

    None if the action is in a row of its own that was not read.
    """
    action = None if run.posted is None else action_of(run.posted)
    if run.posted is None or action is None:
        return None
    return job_with(run.tenant, run.job_id, run.posted, action)


def job_with(tenant: str, owner: str, posted: Posted, action: ActionSpec) -> Job:
    """Returns the same for a message that has no run yet. owner: of its runs."""
    return JobOfMessage(
        tenant=tenant,
        id=owner,
        collection=posted.collection,
        name=posted.name or "",
        action=action,
        created_at=posted.created_at,
        modified_at=posted.created_at,
        resource_id=posted.resource_id,
        tags=posted.tags,
        policies=posted.policies,
    )


def ledger_of(tenant: str, collection: str, day: date, part: int) -> str:
    """Returns the owner of the runs of one of a day's ledgers. It is computed, so that a list finds all of them."""
    midnight = datetime.combine(day, time(), UTC)
    return ids.run_uuid(tenant, collection, epoch_ms(midnight), "messages", str(part))


def ledgers_of(tenant: str, collection: str, day: date) -> list[str]:
    return [ledger_of(tenant, collection, day, part) for part in range(PARTS)]


def place_of(tenant: str, collection: str, planned_at: datetime, key: str) -> tuple[str, str]:
    """Returns owner and uuid of a message. key: identifies its request, so that a repetition gives the same place."""
    part = int.from_bytes(hashlib.sha256(key.encode()).digest()[:2], "big") % PARTS
    owner = ledger_of(tenant, collection, planned_at.astimezone(UTC).date(), part)
    return owner, ids.run_uuid(tenant, owner, epoch_ms(planned_at), Kind.MESSAGE.value, key)
