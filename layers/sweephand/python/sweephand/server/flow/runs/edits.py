"""Edits of single runs: another payload or other headers than the job's, for this run alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.base.errors import Forbidden, InvalidRequest
from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_s
from sweephand.domain.job import TASK_KINDS, ActionDraft, ActionSpec, Payload
from sweephand.domain.run import Run
from sweephand.server import actions
from sweephand.server.actions.headers import is_secret
from sweephand.server.flow.retention import expiry
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op
from sweephand.server.store.dynamo.table import EditItem

LONGEST_OPEN = timedelta(days=600)
"""No run takes longer. The row expires after that."""


@dataclass(frozen=True)
class Edit:
    """An edit of one run. payload: replaces the job's; None keeps it. headers: values by name; None removes a header.

    tasks: whether its sender may set the payload of tasks.
    """

    payload: Payload | None = None
    headers: Mapping[str, str | None] | None = None
    tasks: bool = True


def check(action: ActionSpec | ActionDraft, edit: Edit) -> None:
    """Raises InvalidRequest if the action cannot send this edit, Forbidden if its sender may not set it."""
    if edit.payload is not None and action.kind in TASK_KINDS and not edit.tasks:
        raise Forbidden("the payload of a task needs the scope tasks:write")
    if edit.payload is not None:
        member = "payload" if edit.payload.is_json else "body"
        actions.check_payload(action.kind, action.params, edit.payload, member)
    if edit.headers is None:
        return
    if "headers" not in action.params:
        raise InvalidRequest("headers", "the job's action sends no headers")
    locked = actions.load(action.kind, action.params).own_headers
    for name in edit.headers:
        if name.lower() in locked or is_secret(name):
            raise InvalidRequest(f"headers.{name}", "belongs to the job's secrets and cannot be edited")


def edit_op(world: World, run: Run, edit: Edit, now: datetime) -> Op:
    """Returns the operation that stores the edit, for the transaction that writes the run."""
    headers = None if edit.headers is None else json.dumps(edit.headers, separators=(",", ":"))
    item = EditItem(
        pk=keys.runs(run.tenant, run.schedule_id or run.job_id),
        sk=keys.edit(run.uuid),
        payload=None if edit.payload is None else edit.payload.text,
        is_json=None if edit.payload is None else edit.payload.is_json,
        headers=headers,
        expires_at=epoch_s(kept_until(now)),
    )
    return world.table.put_op("edit", item)


def kept_until(begins_at: datetime) -> datetime:
    """Returns when a row expires that a run needs until it has ended."""
    return expiry(begins_at + LONGEST_OPEN)


def read(world: World, run: Run) -> Edit:
    """Returns the edit of a run; an empty one if none is stored."""
    item = world.table.get(EditItem, keys.runs(run.tenant, run.schedule_id or run.job_id), keys.edit(run.uuid))
    if item is None:
        return Edit()
    payload = None if item.payload is None else Payload(item.payload, is_json=item.is_json is True)
    return Edit(payload, None if item.headers is None else json.loads(item.headers))


def applied(world: World, run: Run, action: ActionSpec, payload: Payload | None) -> tuple[ActionSpec, Payload | None]:
    """Returns the action and the payload with the run's edit applied."""
    edit = read(world, run)
    if edit.headers is not None and "headers" in action.params:
        action = replace(action, params={**action.params, "headers": merged(action.params["headers"], edit.headers)})
    return action, edit.payload or payload


def merged(headers: Mapping[str, str], edited: Mapping[str, str | None]) -> dict[str, str]:
    """Returns the headers after the edit. An edited header replaces that of the same name, whatever its letter case."""
    gone = {name.lower() for name in edited}
    kept = {name: value for name, value in headers.items() if name.lower() not in gone}
    return kept | {name: value for name, value in edited.items() if value is not None}
