"""Messages: rows of runs that wait for their instant, in ledgers by collection and day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, SupportsInt

from sweephand.base.ids import shard_of
from sweephand.domain.instants import epoch_s
from sweephand.domain.run import Run, State
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Refused, Table, Written
from sweephand.server.store.dynamo.expressions import assign, removal
from sweephand.server.store.dynamo.table import MessageDayItem, PostedItem, RunItem
from sweephand.server.store.runs.run_rows import changes_of, key_of


def with_body(run: Run, row: dict[str, Any] | None) -> Run:
    """Returns a message with its action. row: that of its body; None if it has none or was not found."""
    if run.posted is None or not run.posted.apart or row is None:
        return run
    return replace(run, posted=run.posted.with_body(PostedItem.from_raw_data(row).body))


def whole(table: Table, runs: Sequence[Run]) -> list[Run]:
    """Returns the runs, messages with their actions."""
    wanted = [_body_key(run) for run in runs if run.posted is not None and run.posted.action is None]
    rows = table.batch_get(wanted) if wanted else {}
    return [with_body(run, rows.get(_body_key(run))) for run in runs]


def _body_key(run: Run) -> tuple[str, str]:
    return keys.runs(run.tenant, run.job_id), keys.body(run.uuid)


def note_day(table: Table, run: Run, shards: SupportsInt) -> None:
    """Notes that a collection has messages on the day of this one. Call it before the message is written."""
    assert run.posted is not None
    sk = keys.message_day(run.planned_at.astimezone(UTC).date(), run.tenant, run.posted.collection)
    own = keys.parts(sk)[1]
    table.put(MessageDayItem(pk=keys.message_days(run.tenant), sk=sk, shard=shard_of(own, shards), schedule_id=own))


def forget_day(table: Table, key: tuple[str, str]) -> None:
    """Takes a day out of the catalogue: the audit need not look at it again."""
    table.update(*key, [assign(MessageDayItem.schedule_id, None)], MessageDayItem.pk.exists())


def body_op(table: Table, run: Run, expires_at: datetime) -> Op:
    """Returns the operation that writes the action of a message that is too long for the row of its run.

    Carry it out before the run is written, or with it.
    """
    assert run.posted is not None
    pk, sk = _body_key(run)
    return table.put_op("body", PostedItem(pk=pk, sk=sk, body=run.posted.body, expires_at=epoch_s(expires_at)))


def revoke(table: Table, run: Run) -> Written | Refused:
    """Ends a message that has not begun [SCHEDULED]. run: its new state."""
    actions = [*changes_of(run, "state reason finished_at message expires_at"), *removal(RunItem, "next_run_at")]
    return table.update(*key_of(run), actions, RunItem.state == State.SCHEDULED.value)
