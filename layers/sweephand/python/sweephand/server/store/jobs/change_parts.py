"""Changes of more schedules than one transaction allows: their steps are stored as parts and carried out later.

A part has as many steps as one transaction can carry out, and that transaction deletes it, so each step happens once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, SupportsInt

from sweephand.base.ids import shard_of
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.job import Job, Payload
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.schedule import Lane, Schedule
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Table
from sweephand.server.store.dynamo.flat_models import pack, unpack
from sweephand.server.store.dynamo.table import ChangePartItem, ScheduleItem, WakeItem
from sweephand.server.store.jobs import jobs

if TYPE_CHECKING:
    from sweephand.server.store.jobs.own_hooks import ByName

with lazy():
    from sweephand.server.store.jobs import own_hooks


@dataclass(frozen=True)
class PartStep:
    """A step for the schedule `id`. added: the new schedule. members: values to set; None if it is new or deleted."""

    id: str
    added: Schedule | None = None
    members: Mapping[str, Any] | None = None
    at: datetime | None = None
    payload: Payload | None = None
    hooks: ByName | None = None

    def applied(self, schedule: Schedule) -> Schedule:
        members = dict(self.members or {})
        if "lane" in members:
            members["lane"] = Lane(members["lane"])
        return replace(schedule, **members)


@dataclass(frozen=True)
class Part:
    """A part of a change. resumed_at: set if the change is the end of a pause with an `until`."""

    number: str
    steps: tuple[PartStep, ...]
    resumed_at: datetime | None = None


def wake_op(table: Table, job: Job, sk: str, waits: Waits, at: datetime, shards: SupportsInt) -> Op:
    """Returns the part that writes a job's row in the next-run index."""
    item = WakeItem(
        pk=keys.job(job.tenant, job.id),
        sk=sk,
        shard=shard_of(job.id, shards),
        next_run_at=epoch_s(at),
        sweep=str(SweepText(waits, Lane.FAST)),
    )
    return table.put_op(f"wake {waits.name.lower()}", item)


def part_ops(table: Table, job: Job, parts: Sequence[Sequence[PartStep]], resumed_at: datetime | None) -> list[Op]:
    ops = []
    for n, steps in enumerate(parts):
        body = {"resumedAt": epoch_s(resumed_at) if resumed_at else None, "steps": [_json(step) for step in steps]}
        item = ChangePartItem(
            pk=keys.job(job.tenant, job.id),
            sk=keys.change_part(job.revision, f"{n:04d}"),
            steps=pack(body),
        )
        ops.append(table.put_op(f"part {n}", item))
    return ops


def open_parts(table: Table, tenant: str, job_id: str, revision: int) -> Iterator[Part]:
    """Yields the parts of a change that are left, in order."""
    sort = ChangePartItem.sk.startswith(keys.change_part(revision, ""))
    for row in table.query_all(keys.job(tenant, job_id), sort, consistent=True):
        item = ChangePartItem.from_raw_data(row)
        body = unpack(item.steps)
        resumed_at = body["resumedAt"]
        yield Part(
            keys.parts(item.sk)[2],
            tuple(_step(step) for step in body["steps"]),
            from_s(resumed_at) if resumed_at is not None else None,
        )


def done_op(table: Table, job: Job, part: Part) -> Op:
    """Returns the operation that deletes a part, if it still exists, in the transaction that carries it out."""
    key = keys.job(job.tenant, job.id), keys.change_part(job.revision, part.number)
    return table.delete_op("part", *key, ChangePartItem.pk.exists())


def rows(table: Table, job: Job, part: Part) -> dict[str, Schedule]:
    """Reads the part's schedules as they are now, by id."""
    wanted = [(keys.job(job.tenant, job.id), keys.schedule(step.id)) for step in part.steps]
    texts = (step.added.packed if step.added else (step.members or {}).get("packed", "") for step in part.steps)
    jobs.know_calendars(table, ((job.tenant, text) for text in texts))
    schedules = jobs.schedules_of(table, [ScheduleItem.from_raw_data(row) for row in table.batch_get(wanted).values()])
    return {schedule.id: schedule for schedule in schedules}


def _json(step: PartStep) -> dict[str, Any]:
    return {
        "id": step.id,
        "added": jobs.schedule_item(step.added, 1).serialize() if step.added else None,
        "members": step.members,
        "at": epoch_s(step.at) if step.at else None,
        "payload": [step.payload.text, step.payload.is_json] if step.payload else None,
        **({"hooks": own_hooks.to_json(step.hooks)} if step.hooks else {}),
    }


def _step(members: Mapping[str, Any]) -> PartStep:
    added, at, payload = members["added"], members["at"], members["payload"]
    return PartStep(
        id=members["id"],
        added=jobs.schedule_of(ScheduleItem.from_raw_data(added)) if added else None,
        members=members["members"],
        at=from_s(at) if at is not None else None,
        payload=Payload(payload[0], payload[1]) if payload else None,
        hooks=own_hooks.from_json(members["id"], members["hooks"]) if "hooks" in members else None,
    )
