"""The schedules' own hooks: one immutable item per version, with their payloads and sealed secrets.

They are in the job's partition and are deleted with it, because the change log of the job names their versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sweephand.domain.job import ActionSpec, Inline, Payload
from sweephand.domain.jobs.job_state import OwnHooks
from sweephand.domain.schedule import Schedule
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Table
from sweephand.server.store.dynamo.flat_models import pack, unpack
from sweephand.server.store.dynamo.table import OwnHooksItem
from sweephand.server.store.jobs import jobs

ByName = Mapping[str, ActionSpec]
"""Hooks by name, each with its payload and secrets."""


def read(table: Table, schedule: Schedule) -> ByName:
    """Reads a schedule's own hooks, in the version that its row names."""
    return read_all(table, [schedule]).get(schedule.id, {})


def read_all(table: Table, schedules: Iterable[Schedule]) -> dict[str, ByName]:
    """Reads the schedules' own hooks, by schedule id, in one batched read. Reads nothing if no schedule has any."""
    wanted = {key: schedule.id for schedule in schedules if (key := _key(schedule)) is not None}
    rows = table.batch_get(wanted) if wanted else {}
    items = {wanted[key]: OwnHooksItem.from_raw_data(row) for key, row in rows.items()}
    return {schedule_id: from_json(schedule_id, unpack(item.text)) for schedule_id, item in items.items()}


def _key(schedule: Schedule) -> tuple[str, str] | None:
    own = OwnHooks.read(schedule.hooks)
    if own is None:
        return None
    return keys.job(schedule.tenant, schedule.job_id), keys.own_hooks(schedule.id, own.version)


def put_op(table: Table, schedule: Schedule, hooks: ByName) -> Op:
    """Returns the part that writes this version, for the transaction of the schedule's row, which names it."""
    key = _key(schedule)
    assert key is not None
    item = OwnHooksItem(pk=key[0], sk=key[1], text=pack(to_json(hooks)))
    return table.put_op(f"hooks {schedule.id}", item)


def to_json(hooks: ByName) -> dict[str, Any]:
    shown = {}
    for name, hook in hooks.items():
        assert hook.inline is not None
        payload = hook.inline.payload
        sent = None if payload is None else [payload.text, payload.is_json]
        shown[name] = {**jobs.action_json(hook), "sent": sent, "sealed": dict(hook.inline.sealed)}
    return shown


def from_json(schedule_id: str, stored: Mapping[str, Any]) -> ByName:
    return {name: _hook(schedule_id, hook) for name, hook in stored.items()}


def _hook(schedule_id: str, stored: Mapping[str, Any]) -> ActionSpec:
    action, sent = jobs.action_of(stored), stored["sent"]
    payload = None if sent is None else Payload(sent[0], is_json=sent[1])
    return ActionSpec(action.kind, action.params, action.retry, inline=Inline(schedule_id, payload, stored["sealed"]))
