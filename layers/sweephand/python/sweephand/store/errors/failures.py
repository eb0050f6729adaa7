"""Groups of failures, the failed runs in them, and redirects of jobs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from sweephand.domain.failure import Archived, Failure, Group, Note, Redirect, Signature, signature_of
from sweephand.domain.instants import (
    epoch_ms,
    epoch_s,
    from_ms,
    from_ms_if_any,
    from_s_if_any,
    ms_if_any,
    s_if_any,
)
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.run import Run, State
from sweephand.domain.schedule import Lane
from sweephand.ids import shard_of
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Op, Refused, Table, Written
from sweephand.store.dynamo.expressions import Condition, assign, every
from sweephand.store.dynamo.table import RunItem
from sweephand.store.errors.failure_items import ErrorGroupItem, ErrorRunItem, RedirectItem
from sweephand.store.runs import run_rows

_SWEEP = str(SweepText(Waits.ERRORS, Lane.OPERATIONS))
_THERE: Condition = ErrorGroupItem.pk.exists()


def group_of(item: ErrorGroupItem) -> Group:
    return Group(
        tenant=keys.parts(item.pk)[1],
        signature=Signature(
            item.job,
            item.action or ("errorAction" if item.error_action else "action"),
            State(item.error_state),
            item.reason,
            item.http_status,
            item.text,
        ),
        collection=item.collection,
        first_at=from_ms(item.first_at),
        last_at=from_ms(item.last_at),
        last_run=item.last_run,
        notes=tuple(Note(text, by, from_ms(at)) for text, by, at in json.loads(item.notes or "[]")),
        closed_through=from_ms_if_any(item.closed_through),
        closed_by=item.closed_by,
        closed_reason=item.closed_reason,
        revision=item.revision,
        job_name=item.job_name,
    )


def read_group(table: Table, tenant: str, group_id: str, *, consistent: bool = True) -> Group | None:
    item = table.get(ErrorGroupItem, keys.errors(tenant), keys.error_group(group_id), consistent=consistent)
    return None if item is None else group_of(item)


def begin_group(table: Table, group: Group, look_at: datetime, shards: int) -> Written | Refused:
    """Creates a group with its first failure, if absent. look_at: when it wakes."""
    signature = group.signature
    item = ErrorGroupItem(
        pk=keys.errors(group.tenant),
        sk=keys.error_group(group.id),
        job=signature.job_id,
        action=signature.action,
        error_state=signature.state.value,
        reason=signature.reason,
        http_status=signature.http_status,
        text=signature.text,
        job_name=group.job_name,
        collection=group.collection,
        first_at=epoch_ms(group.first_at),
        last_at=epoch_ms(group.last_at),
        last_run=group.last_run,
        shard=shard_of(group.id, shards),
        next_run_at=epoch_s(look_at),
        sweep=_SWEEP,
    )
    return table.put(item, ErrorGroupItem.pk.does_not_exist())


def seen_again(table: Table, group: Group, run: Run, now: datetime) -> Written | Refused:
    """Notes a later failure of a group, if the group exists."""
    actions = [assign(ErrorGroupItem.last_at, epoch_ms(now)), assign(ErrorGroupItem.last_run, run.id)]
    return table.update(*_key(group), actions, _THERE)


def change_group(table: Table, before: Group, after: Group) -> Written | Refused:
    """Writes the notes and the archiving of a group, at the revision that was read."""
    notes = [[note.text, note.by, epoch_ms(note.at)] for note in after.notes]
    closed = ms_if_any(after.closed_through)
    actions = [
        assign(ErrorGroupItem.notes, json.dumps(notes, ensure_ascii=False) if notes else None),
        assign(ErrorGroupItem.closed_through, closed),
        assign(ErrorGroupItem.closed_by, after.closed_by),
        assign(ErrorGroupItem.closed_reason, after.closed_reason),
        assign(ErrorGroupItem.revision, before.revision + 1),
    ]
    return table.update(*_key(before), actions, ErrorGroupItem.revision == before.revision)


def look_again(table: Table, group: Group, at: datetime) -> Written | Refused:
    """Sets when a group wakes next, if it exists."""
    return table.update(*_key(group), [assign(ErrorGroupItem.next_run_at, epoch_s(at))], _THERE)


def forget_group(table: Table, group: Group) -> Written | Refused:
    """Deletes a group, unless it has a later failure or a change."""
    as_read = every(ErrorGroupItem.last_at == epoch_ms(group.last_at), ErrorGroupItem.revision == group.revision)
    return table.delete(*_key(group), as_read)


def _key(group: Group) -> tuple[str, str]:
    return keys.errors(group.tenant), keys.error_group(group.id)


# Failed runs


def note(table: Table, run: Run, now: datetime) -> Written | Refused:
    """Notes a failed run, unless it is noted or run again already. It expires with its row in the ledger."""
    item = ErrorRunItem(**_of(run), run_id=run.id, at=epoch_ms(now))
    return table.put(item, ErrorRunItem.pk.does_not_exist())


def rerun_op(table: Table, run: Run, by: str, at: datetime, actor: str | None, operation: str | None) -> Op:
    """Marks a failed run as run again, noted or not: by whom, and in which operation."""
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
    """Reopens a failed run, unless a run later than `by` repeats it. noted_at: the new instant of its note."""
    key = _of(run)
    actions = [
        assign(ErrorRunItem.at, epoch_ms(noted_at)),
        assign(ErrorRunItem.rerun_by, None),
        assign(ErrorRunItem.rerun_at, None),
        assign(ErrorRunItem.actor, None),
        assign(ErrorRunItem.operation, None),
    ]
    return table.update_op("error", key["pk"], key["sk"], actions, ErrorRunItem.rerun_by == by)


def _of(run: Run) -> dict[str, Any]:
    expires_at = s_if_any(run.expires_at)
    pk = keys.error_runs(run.tenant, signature_of(run).id)
    return {"pk": pk, "sk": keys.run(run.uuid), "expires_at": expires_at}


def runs_of(table: Table, tenant: str, group_id: str, after: str | None, page: int) -> Iterator[Failure]:
    """Yields the failed runs of a group by planned instant, after the uuid `after`."""
    sort = ErrorRunItem.sk.between(keys.run(after or ""), keys.run("g"))
    for row in table.query_all(keys.error_runs(tenant, group_id), sort, limit=page, consistent=True):
        failure = failure_of(ErrorRunItem.from_raw_data(row))
        if failure.uuid != after:
            yield failure


def failure_of(item: ErrorRunItem) -> Failure:
    closed_at = item.closed_at
    return Failure(
        run_id=item.run_id,
        uuid=keys.parts(item.sk)[1],
        expires_at=from_s_if_any(item.expires_at),
        at=from_ms_if_any(item.at),
        rerun_by=item.rerun_by,
        rerun_at=from_ms_if_any(item.rerun_at),
        actor=item.actor,
        operation=item.operation,
        archived=None if closed_at is None else Archived(from_ms(closed_at), item.closed_by, item.closed_reason),
    )


def in_ledger(table: Table, tenant: str, runs: Iterable[str]) -> list[Run]:
    """Returns those of these runs (whole ids) that are in the ledger."""
    found = table.batch_get(
        (keys.runs(tenant, owner), keys.run(uuid)) for owner, uuid in (each.split("_") for each in runs)
    )
    return [run_rows.run_of(RunItem.from_raw_data(row)) for row in found.values()]


def read_run(table: Table, tenant: str, group_id: str, uuid: str) -> Failure | None:
    item = table.get(ErrorRunItem, keys.error_runs(tenant, group_id), keys.run(uuid))
    return None if item is None else failure_of(item)


def archive_run(table: Table, tenant: str, group_id: str, uuid: str, archived: Archived | None) -> Written | Refused:
    """Archives a failed run, or reopens it (None), if its row exists: an expired row must not come back in part."""
    actions = [
        assign(ErrorRunItem.closed_at, None if archived is None else epoch_ms(archived.at)),
        assign(ErrorRunItem.closed_by, None if archived is None else archived.by),
        assign(ErrorRunItem.closed_reason, None if archived is None else archived.reason),
    ]
    there: Condition = ErrorRunItem.pk.exists()
    return table.update(keys.error_runs(tenant, group_id), keys.run(uuid), actions, there)


# Redirects


def redirect_of(item: RedirectItem) -> Redirect:
    return Redirect(keys.parts(item.sk)[1], item.to, item.actor, from_ms(item.at))


def read_redirect(table: Table, tenant: str, job_id: str) -> Redirect | None:
    item = table.get(RedirectItem, keys.errors(tenant), keys.redirect(job_id))
    return None if item is None else redirect_of(item)


def put_redirect(table: Table, tenant: str, redirect: Redirect) -> None:
    item = RedirectItem(
        pk=keys.errors(tenant),
        sk=keys.redirect(redirect.source),
        to=redirect.to,
        actor=redirect.actor,
        at=epoch_ms(redirect.at),
    )
    table.put(item)


def delete_redirect(table: Table, tenant: str, job_id: str) -> None:
    table.delete(keys.errors(tenant), keys.redirect(job_id))
