"""Groups of failures, the failed runs in them, and redirects of jobs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, SupportsInt

from sweephand.base.ids import shard_of
from sweephand.domain.failure import Archived, Failure, Group, Note, Redirect, Signature, example_of, signature_of
from sweephand.domain.instants import epoch_ms, epoch_s, from_ms, from_ms_if_any, s_if_any
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.run import Run, State
from sweephand.domain.schedule import Lane
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Refused, Table, Written, if_any
from sweephand.server.store.dynamo.expressions import Condition, assign, changes, every, removal
from sweephand.server.store.dynamo.flat_models import (
    SECONDS,
    TENANT,
    BooleanAttribute,
    Codec,
    Column,
    Integer,
    UnicodeAttribute,
    of_key,
    to_json,
)
from sweephand.server.store.dynamo.table import Item, RunItem, WakeItem
from sweephand.server.store.runs import run_rows

_SWEEP = str(SweepText(Waits.ERRORS, Lane.OPERATIONS))


class ErrorGroupItem(WakeItem):
    """A group of failures with the same signature: action, error_state, reason, http_status, text.

    notes: JSON. error_action: in rows older than `action`. closed_through: failures up to then are archived. The row is
    always in the next-run index, to warn of runs that expire.
    """

    job = UnicodeAttribute()
    action = UnicodeAttribute(null=True)
    error_action = BooleanAttribute(null=True)
    error_state = UnicodeAttribute()
    reason = UnicodeAttribute(null=True)
    http_status = Integer(null=True)
    text = UnicodeAttribute()
    job_name = UnicodeAttribute(null=True)
    last_message = UnicodeAttribute(null=True)
    collection = UnicodeAttribute()
    first_at = Integer()
    last_at = Integer()
    last_run = UnicodeAttribute()
    notes = UnicodeAttribute(null=True)
    closed_through = Integer(null=True)
    closed_by = UnicodeAttribute(null=True)
    closed_reason = UnicodeAttribute(null=True)
    revision = Integer(default=1)


_THERE: Condition = ErrorGroupItem.pk.exists()
_GROUPS = Codec(
    Group,
    ErrorGroupItem,
    {
        "tenant": TENANT,
        "notes": Column(
            lambda text: tuple(Note(note, by, from_ms(at)) for note, by, at in json.loads(text)),
            lambda notes: to_json([[note.text, note.by, epoch_ms(note.at)] for note in notes]),
        ),
    },
    but="signature",
)


def group_of(item: ErrorGroupItem) -> Group:
    action = item.action or ("errorAction" if item.error_action else "action")
    facts = item.job, action, State(item.error_state), item.reason, item.http_status, item.text
    return _GROUPS.read(item, signature=Signature(*facts))


def read_group(table: Table, tenant: str, group_id: str, *, consistent: bool = True) -> Group | None:
    item = table.get(ErrorGroupItem, keys.errors(tenant), keys.error_group(group_id), consistent=consistent)
    return if_any(group_of, item)


def begin_group(table: Table, group: Group, look_at: datetime, shards: SupportsInt) -> Written | Refused:
    """Creates a group with its first failure, if absent. look_at: when the group wakes."""
    signature = group.signature
    item = _GROUPS.item(
        _key(group),
        group,
        job=signature.job_id,
        action=signature.action,
        error_state=signature.state.value,
        reason=signature.reason,
        http_status=signature.http_status,
        text=signature.text,
        shard=shard_of(group.id, shards),
        next_run_at=epoch_s(look_at),
        sweep=_SWEEP,
    )
    return table.put(item, ErrorGroupItem.pk.does_not_exist())


def seen_again(table: Table, group: Group, run: Run, now: datetime) -> Written | Refused:
    """Notes a later failure of a group, if the group exists."""
    actions = [
        assign(ErrorGroupItem.last_at, epoch_ms(now)),
        assign(ErrorGroupItem.last_run, run.id),
        assign(ErrorGroupItem.last_message, example_of(run)),
    ]
    return table.update(*_key(group), actions, _THERE)


def change_group_op(table: Table, before: Group, after: Group) -> Op:
    """Returns the operation that writes the notes and the archiving of a group [at the revision that was read]."""
    item = _GROUPS.item(_key(before), replace(after, revision=before.revision + 1))
    actions = changes(item, "notes closed_through closed_by closed_reason revision")
    return table.update_op("group", *_key(before), actions, ErrorGroupItem.revision == before.revision)


def check_again(table: Table, group: Group, at: datetime) -> Written | Refused:
    """Sets when a group wakes next, if it exists."""
    return table.update(*_key(group), [assign(ErrorGroupItem.next_run_at, epoch_s(at))], _THERE)


def forget_group(table: Table, group: Group) -> Written | Refused:
    """Deletes a group, unless it has a later failure or a change."""
    as_read = every(ErrorGroupItem.last_at == epoch_ms(group.last_at), ErrorGroupItem.revision == group.revision)
    return table.delete(*_key(group), as_read)


def _key(group: Group) -> tuple[str, str]:
    return keys.errors(group.tenant), keys.error_group(group.id)


# Failed runs


class ErrorRunItem(Item):
    """A failed run in its group. at: absent if the run was run again before it was noted.

    closed_at: when this run alone was archived. rerun_at: when it was run again (epoch ms).
    """

    run_id = UnicodeAttribute()
    at = Integer(null=True)
    rerun_by = UnicodeAttribute(null=True)
    rerun_at = Integer(null=True)
    actor = UnicodeAttribute(null=True)
    operation = UnicodeAttribute(null=True)
    closed_at = Integer(null=True)
    closed_by = UnicodeAttribute(null=True)
    closed_reason = UnicodeAttribute(null=True)


_FAILURES = Codec(
    Failure,
    ErrorRunItem,
    {"uuid": of_key("sk", 1), "expires_at": SECONDS},
    but="archived",
)


def failure_of(item: ErrorRunItem) -> Failure:
    at = from_ms_if_any(item.closed_at)
    return _FAILURES.read(item, archived=at and Archived(at, item.closed_by, item.closed_reason))


def note(table: Table, run: Run, now: datetime) -> Written | Refused:
    """Notes a failed run, unless it was noted or run again before.

    The note expires with the run's row in the ledger.
    """
    item = ErrorRunItem(**_of(run), run_id=run.id, at=epoch_ms(now))
    return table.put(item, ErrorRunItem.pk.does_not_exist())


def rerun_op(table: Table, run: Run, by: str, at: datetime, actor: str | None, operation: str | None) -> Op:
    """Returns the operation that marks a failed run, noted or not, as run again: by whom, and in which operation."""
    key = _of(run)
    actions = [
        assign(ErrorRunItem.run_id, run.id),
        assign(ErrorRunItem.rerun_by, by),
        assign(ErrorRunItem.rerun_at, epoch_ms(at)),
        assign(ErrorRunItem.actor, actor),
        assign(ErrorRunItem.operation, operation),
        assign(ErrorRunItem.expires_at, key["expires_at"]),
    ]
    return table.update_op("error", key["pk"], key["sk"], actions)


def not_rerun_op(table: Table, run: Run, noted_at: datetime, by: str) -> Op:
    """Returns the operation that reopens a failed run, unless a run later than `by` repeats it.

    noted_at: of its note.
    """
    key = _of(run)
    actions = [assign(ErrorRunItem.at, epoch_ms(noted_at)), *removal(ErrorRunItem, "rerun_by rerun_at actor operation")]
    return table.update_op("error", key["pk"], key["sk"], actions, ErrorRunItem.rerun_by == by)


def _of(run: Run) -> dict[str, Any]:
    expires_at = s_if_any(run.expires_at)
    pk = keys.error_runs(run.tenant, signature_of(run).id)
    return {"pk": pk, "sk": keys.run(run.uuid), "expires_at": expires_at}


def runs_of(table: Table, tenant: str, group_id: str, after: str | None, page: int) -> Iterator[Failure]:
    """Yields the failed runs of a group by planned instant, after the uuid `after`."""
    yield from map(failure_of, table.listed(ErrorRunItem, keys.error_runs(tenant, group_id), keys.run, after, page))


def in_ledger(table: Table, tenant: str, runs: Iterable[str]) -> list[Run]:
    """Returns those of these runs (whole ids) that are in the ledger."""
    rows = table.batch_get(
        (keys.runs(tenant, owner), keys.run(uuid)) for owner, uuid in (each.split("_") for each in runs)
    )
    return [run_rows.run_of(RunItem.from_raw_data(row)) for row in rows.values()]


def read_run(table: Table, tenant: str, group_id: str, uuid: str) -> Failure | None:
    return if_any(failure_of, table.get(ErrorRunItem, keys.error_runs(tenant, group_id), keys.run(uuid)))


def archive_run(table: Table, tenant: str, group_id: str, uuid: str, archived: Archived | None) -> Written | Refused:
    """Archives a failed run if its row exists, because an expired row must not come back in part.

    archived: None to reopen the run.
    """
    actions = [
        assign(ErrorRunItem.closed_at, None if archived is None else epoch_ms(archived.at)),
        assign(ErrorRunItem.closed_by, None if archived is None else archived.by),
        assign(ErrorRunItem.closed_reason, None if archived is None else archived.reason),
    ]
    exists: Condition = ErrorRunItem.pk.exists()
    return table.update(keys.error_runs(tenant, group_id), keys.run(uuid), actions, exists)


# Redirects


class RedirectItem(Item):
    """A redirect: failed runs of one job are run again as runs of another."""

    to = UnicodeAttribute()
    actor = UnicodeAttribute(null=True)
    at = Integer()


_REDIRECTS = Codec(Redirect, RedirectItem, {"source": of_key("sk", 1)})
redirect_of = _REDIRECTS.read


def read_redirect(table: Table, tenant: str, job_id: str) -> Redirect | None:
    return if_any(redirect_of, table.get(RedirectItem, keys.errors(tenant), keys.redirect(job_id)))


def put_redirect(table: Table, tenant: str, redirect: Redirect) -> None:
    table.put(_REDIRECTS.item((keys.errors(tenant), keys.redirect(redirect.source)), redirect))


def delete_redirect(table: Table, tenant: str, job_id: str) -> None:
    table.delete(keys.errors(tenant), keys.redirect(job_id))
