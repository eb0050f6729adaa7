"""Jobs, schedules, their payloads and secrets: rows and records, and the parts of their transactions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, SupportsInt

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from sweephand.base.ids import shard_of
from sweephand.base.lazy import lazy
from sweephand.domain.instants import epoch_ms, epoch_s, from_ms, from_s, from_s_if_any, s_if_any
from sweephand.domain.job import ActionSpec, Job, Pause, Payload
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.schedule import LIVE, OVER, Lane, Schedule, ScheduleState, names_calendars, names_zone
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Table, if_any
from sweephand.server.store.dynamo.expressions import assign, changes, every
from sweephand.server.store.dynamo.flat_models import (
    JSON,
    SECONDS,
    TENANT,
    TEXTS,
    Codec,
    Column,
    named,
    of_key,
    one_of,
    to_json,
)
from sweephand.server.store.dynamo.table import JobItem, PayloadItem, ScheduleItem, SecretItem

with lazy():
    from sweephand.domain.occurrences import moved
    from sweephand.server.store.calendars import calendars

# Rows and records


def action_of(stored: Mapping[str, Any]) -> ActionSpec:
    return ActionSpec(stored["kind"], stored["params"], stored["retry"], stored.get("payload"))


def action_json(action: ActionSpec) -> dict[str, Any]:
    stored: dict[str, Any] = {"kind": action.kind, "params": dict(action.params), "retry": dict(action.retry)}
    if action.payload_version is not None:
        stored["payload"] = action.payload_version
    return stored


def _pause(text: str) -> Pause:
    said = json.loads(text)
    return Pause(from_ms(said["since"]), said.get("note"), from_s_if_any(said.get("until")))


def _pause_text(pause: Pause) -> str:
    return to_json({"since": epoch_ms(pause.since), "note": pause.note, "until": s_if_any(pause.until)})


_ACTION = Column(lambda text: action_of(json.loads(text)), lambda action: to_json(action_json(action)))
_JOBS = Codec(
    Job,
    JobItem,
    {
        "tenant": TENANT,
        "id": named("job_id"),
        "start_at": SECONDS,
        "end_at": SECONDS,
        "tags": TEXTS,
        "action": _ACTION,
        "error_action": _ACTION,
        "hooks": Column(
            lambda text: {name: action_of(hook) for name, hook in json.loads(text).items()},
            lambda hooks: to_json({name: action_json(hook) for name, hook in hooks.items()}),
        ),
        "policies": JSON,
        "pause": Column(_pause, _pause_text),
        "schedule_ids": TEXTS,
        "attributes": JSON,
    },
    but="schedule_count own_runs",
)
_SCHEDULES = Codec(
    Schedule,
    ScheduleItem,
    {
        "tenant": TENANT,
        "job_id": of_key("pk", 3),
        "id": of_key("sk", 1),
        "timing": JSON,
        "policies": JSON,
        "state": one_of(ScheduleState),
        "ended_at": Column(lambda text: {int(g): at for g, at in json.loads(text).items()}, to_json),
        **dict.fromkeys(
            ("last_planned_at", "next_run_at", "missed_from", "missed_to", "left_out_to", "first_at"), SECONDS
        ),
        "attributes": JSON,
        "still_due": Column(
            lambda text: tuple(map(from_s, json.loads(text))), lambda due: to_json([epoch_s(each) for each in due])
        ),
    },
    but="packed lane misfire collection held_from completed_at newer_packed resumes_at offset_s",
)


def job_of(item: JobItem) -> Job:
    named = len(json.loads(item.schedule_ids)) if item.schedule_ids else 0
    return _JOBS.read(
        item,
        schedule_count=item.schedule_count or named,
        own_runs=item.own_runs is not False,
    )


def schedule_of(item: ScheduleItem) -> Schedule:
    sweep = _sweep(item.sweep)
    over = ScheduleState(item.state) in OVER
    schedule = _SCHEDULES.read(
        item,
        packed=sweep.packed,
        lane=sweep.lane,
        misfire=sweep.misfire,
        collection=sweep.collection,
        held_from=sweep.since if sweep.waits is Waits.HELD else None,
        completed_at=sweep.since if over else None,
        offset_s=item.offset_s,
    )
    return replace(schedule, next_run_at=None) if over else schedule


def _sweep(text: str) -> SweepText:
    """Reads the sweep's string. One that cannot be read must not fail a whole list: only its schedule cannot run."""
    try:
        return SweepText.read(text)
    except (LookupError, ValueError):
        return SweepText(Waits.OCCURRENCE, Lane.FAST, "sap", text)


def job_item(job: Job) -> JobItem:
    count = job.schedule_count if job.many_schedules else None
    return _JOBS.item((keys.job(job.tenant, job.id), keys.JOB), job, schedule_count=count, own_runs=job.own_runs)


def schedule_item(schedule: Schedule, shards: SupportsInt) -> ScheduleItem:
    return _SCHEDULES.item(
        (keys.job(schedule.tenant, schedule.job_id), keys.schedule(schedule.id)),
        schedule,
        shard=shard_of(schedule.id, shards),
        schedule_id=schedule.id if schedule.state in LIVE else None,
        sweep=sweep_text(schedule),
        offset_s=_offset_of(schedule.packed, schedule.unsent_from),
    )


def next_at_actions(packed: str, at: datetime) -> list[Action]:
    """Sets the earliest unsent instant of a schedule. packed: its timing."""
    return [
        assign(ScheduleItem.next_run_at, epoch_s(at)),
        assign(ScheduleItem.offset_s, _offset_of(packed, at)),
    ]


def _offset_of(packed: str, at: datetime | None) -> int | None:
    """Returns the offset of the timing's zone at an instant. Most timings have no zone, and load nothing for it."""
    return moved.offset_of(packed, at) if names_zone(packed) else None


def sweep_text(schedule: Schedule) -> str:
    return str(sweep_of(schedule))


def sweep_of(schedule: Schedule) -> SweepText:
    """Returns the members of a schedule that the sweeper reads."""
    waits, since = Waits.OCCURRENCE, None
    if schedule.state is ScheduleState.ENDING:
        waits = Waits.END
    elif schedule.state in OVER and schedule.completed_at is not None:
        waits, since = Waits.ENDED, schedule.completed_at
    elif schedule.state is ScheduleState.ACTIVE and schedule.held_from is not None:
        waits, since = Waits.HELD, schedule.held_from
    return SweepText(waits, schedule.lane, schedule.misfire, schedule.packed, schedule.collection, since)


# Reading


def read_job(table: Table, tenant: str, job_id: str) -> Job | None:
    return if_any(job_of, table.get(JobItem, keys.job(tenant, job_id), keys.JOB))


def read_schedule(table: Table, tenant: str, job_id: str, schedule_id: str) -> Schedule | None:
    item = table.get(ScheduleItem, keys.job(tenant, job_id), keys.schedule(schedule_id))
    return schedules_of(table, [item])[0] if item is not None else None


def read_schedules(table: Table, tenant: str, job_id: str) -> list[Schedule]:
    """Reads all schedules of a job, by creation."""
    sort = ScheduleItem.sk.startswith("SCH#")
    rows = table.query_all(keys.job(tenant, job_id), sort, consistent=True)
    return schedules_of(table, [ScheduleItem.from_raw_data(row) for row in rows])


def schedules_of(table: Table, items: Sequence[ScheduleItem]) -> list[Schedule]:
    """Converts rows to schedules, and reads the calendars that they name."""
    schedules = [schedule_of(item) for item in items]
    know_calendars(table, ((schedule.tenant, schedule.packed) for schedule in schedules))
    return schedules


def schedules_at(table: Table, places: Sequence[tuple[str, str]]) -> list[Schedule]:
    """Reads schedules by the keys of their rows, at most 100. Leaves out what is gone."""
    rows = table.batch_get(places)
    return schedules_of(table, [ScheduleItem.from_raw_data(rows[place]) for place in places if place in rows])


def know_calendars(table: Table, texts: Iterable[tuple[str, str]]) -> None:
    """Reads the calendars that packed timings name, which loading them requires. Most name none.

    texts: (tenant, string with a packed timing).
    """
    named = [(tenant, packed) for tenant, packed in texts if names_calendars(packed)]
    if named:
        calendars.know(table, named)


def read_payload(table: Table, tenant: str, job_id: str, owner: str, version: int) -> Payload | None:
    item = table.get(PayloadItem, keys.job(tenant, job_id), keys.payload(owner, version))
    return Payload(item.text, item.is_json) if item is not None else None


def read_payloads(table: Table, tenant: str, job_id: str, versions: Mapping[str, int]) -> dict[str, Payload]:
    """Reads several payloads by owner, in one batched read."""
    wanted = {(keys.job(tenant, job_id), keys.payload(owner, n)): owner for owner, n in versions.items()}
    rows = table.batch_get(wanted)
    items = {wanted[key]: PayloadItem.from_raw_data(row) for key, row in rows.items()}
    return {owner: Payload(item.text, item.is_json) for owner, item in items.items()}


def read_secrets(table: Table, tenant: str, job_id: str, version: int) -> dict[str, str]:
    """Returns the ciphertexts of a job's secrets by field."""
    item = table.get(SecretItem, keys.job(tenant, job_id), keys.secret(version))
    return json.loads(item.sealed) if item is not None else {}


def note_own_runs(table: Table, job: Job) -> None:
    """Marks a job before its first run without a schedule is written.

    Writes the mark once per job, and only if the job exists.
    """
    if not job.own_runs:
        exists: Condition = JobItem.pk.exists()
        table.update(keys.job(job.tenant, job.id), keys.JOB, [assign(JobItem.own_runs, True)], exists)


# Parts of transactions

ABSENT: Condition = JobItem.pk.does_not_exist()


def revision_is(number: int) -> Condition:
    return JobItem.revision == number


def job_as_read(job: Job) -> Condition:
    """Requires the revision that was read, and that the job was not marked as having own runs since."""
    if job.own_runs:
        return revision_is(job.revision)
    return every(revision_is(job.revision), JobItem.own_runs == False)  # noqa: E712 - a condition of DynamoDB


def open_change_is(number: int) -> Condition:
    return JobItem.open_change == number


def as_read(schedule: Schedule) -> Condition:
    """Requires that generation and next_run_at are as read: neither the sweeper nor a change has moved it since."""
    same: Condition = ScheduleItem.generation == schedule.generation
    if schedule.state in OVER:
        return same  # next_run_at says when its job is deleted: no sweep moves it
    if schedule.next_run_at is None:
        return every(same, ScheduleItem.next_run_at.does_not_exist())
    return every(same, ScheduleItem.next_run_at == epoch_s(schedule.next_run_at))


def reach_as_read(schedule: Schedule) -> Condition:
    """Requires that the streak is as read: no attempt has noted since that its target fails or answers again."""
    if schedule.unreachable is None:
        return ScheduleItem.unreachable.does_not_exist()
    return ScheduleItem.unreachable == schedule.unreachable


def payload_op(table: Table, tenant: str, job_id: str, owner: str, version: int, payload: Payload) -> Op:
    item = PayloadItem(
        pk=keys.job(tenant, job_id), sk=keys.payload(owner, version), text=payload.text, is_json=payload.is_json
    )
    return table.put_op(f"payload {owner}", item)


def secret_op(table: Table, tenant: str, job_id: str, version: int, sealed: Mapping[str, str]) -> Op:
    item = SecretItem(pk=keys.job(tenant, job_id), sk=keys.secret(version), sealed=to_json(sealed))
    return table.put_op("secret", item)


def schedule_update_actions(schedule: Schedule, shards: SupportsInt) -> list[Action]:
    """Sets every attribute that a change may touch.

    The schedule stays in the catalogue or returns to it. The audit removes one that is off once everything is settled.
    """
    item = schedule_item(schedule, shards)
    item.schedule_id = schedule.id
    return changes(
        item,
        "shard next_run_at schedule_id sweep name timing policies active state state_reason generation ended_at"
        " planned_total last_planned_at first_at still_due missed_to off_times offset_s unreachable hooks"
        " payload_version attributes modified_at",
    )


def description_actions(schedule: Schedule) -> list[Action]:
    """Sets the attributes that may change without a new generation. The sweeper reads none of them.

    timing: the same rule may be written in another way.
    """
    return changes(schedule_item(schedule, 1), "name timing policies hooks payload_version attributes modified_at")


def packed_actions(schedule: Schedule) -> list[Action]:
    """Sets the packed timing of a schedule that is over; the row's place in the index stays."""
    return [assign(ScheduleItem.sweep, sweep_text(schedule))]


def job_keys(tenant: str, job_ids: Iterable[str]) -> list[tuple[str, str]]:
    return [(keys.job(tenant, job_id), keys.JOB) for job_id in job_ids]
