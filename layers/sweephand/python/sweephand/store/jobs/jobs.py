"""Jobs, schedules, their payloads and secrets: rows to nouns and back, and the parts of their transactions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from sweephand.domain.instants import epoch_ms, epoch_s, from_ms, from_s, from_s_if_any, s_if_any
from sweephand.domain.job import ActionSpec, Job, Pause, Payload
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.schedule import LIVE, OVER, Lane, Schedule, ScheduleState, names_calendars
from sweephand.ids import shard_of
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Op, Table
from sweephand.store.dynamo.expressions import assign, every
from sweephand.store.dynamo.table import JobItem, PayloadItem, ScheduleItem, SecretItem

# Rows to nouns


def job_of(item: JobItem) -> Job:
    pause = json.loads(item.pause) if item.pause else None
    error = json.loads(item.error_action) if item.error_action else None
    schedule_ids = tuple(json.loads(item.schedule_ids)) if item.schedule_ids else ()
    return Job(
        tenant=keys.parts(item.pk)[1],
        id=item.job_id,
        collection=item.collection,
        name=item.name,
        action=action_of(json.loads(item.action)),
        created_at=from_ms(item.created_at),
        modified_at=from_ms(item.modified_at),
        description=item.description,
        facade=item.facade,
        active=item.active,
        start_at=from_s_if_any(item.start_at),
        end_at=from_s_if_any(item.end_at),
        resource_id=item.resource_id,
        tags=tuple(json.loads(item.tags)) if item.tags else (),
        error_action=action_of(error) if error else None,
        hooks={name: action_of(hook) for name, hook in json.loads(item.hooks).items()} if item.hooks else {},
        policies=json.loads(item.policies),
        secret_version=item.secret_version,
        revision=item.revision,
        pause=Pause(from_ms(pause["since"]), pause.get("note"), from_s_if_any(pause.get("until"))) if pause else None,
        state_reason=item.state_reason,
        schedule_ids=schedule_ids,
        many_schedules=bool(item.many_schedules),
        schedule_count=item.schedule_count or len(schedule_ids),
        open_change=item.open_change,
        number=item.number or 0,
        ordinal=item.ordinal,
        attributes=json.loads(item.attributes) if item.attributes else {},
        own_runs=item.own_runs is not False,
    )


def schedule_of(item: ScheduleItem) -> Schedule:
    _, tenant, _, job_id = keys.parts(item.pk)
    sweep = _sweep(item.sweep)
    state = ScheduleState(item.state)
    return Schedule(
        tenant=tenant,
        job_id=job_id,
        id=keys.parts(item.sk)[1],
        name=item.name,
        timing=json.loads(item.timing),
        packed=sweep.packed,
        lane=sweep.lane,
        misfire=sweep.misfire,
        created_at=from_ms(item.created_at),
        modified_at=from_ms(item.modified_at),
        active=item.active,
        state=state,
        state_reason=item.state_reason,
        generation=item.generation,
        ended_at={int(g): at for g, at in json.loads(item.ended_at).items()} if item.ended_at else {},
        planned_total=item.planned_total,
        last_planned_at=from_s_if_any(item.last_planned_at),
        payload_version=item.payload_version,
        policies=json.loads(item.policies) if item.policies else {},
        next_run_at=None if state in OVER else from_s_if_any(item.next_run_at),
        missed_from=from_s_if_any(item.missed_from),
        missed_to=from_s_if_any(item.missed_to),
        left_out_to=from_s_if_any(item.left_out_to),
        first_at=from_s_if_any(item.first_at),
        collection=sweep.collection,
        held_from=sweep.since if sweep.waits is Waits.HELD else None,
        completed_at=sweep.since if state in OVER else None,
        unreachable=item.unreachable,
        hooks=item.hooks,
        attributes=json.loads(item.attributes) if item.attributes else {},
        still_due=tuple(map(from_s, json.loads(item.still_due))) if item.still_due else (),
        off_times=item.off_times,
    )


def _sweep(text: str) -> SweepText:
    """A text that cannot be read is a schedule that cannot fire: reading it must not fail the whole list."""
    try:
        return SweepText.read(text)
    except (LookupError, ValueError):
        return SweepText(Waits.OCCURRENCE, Lane.FAST, "sap", text)


def job_item(job: Job) -> JobItem:
    return JobItem(
        pk=keys.job(job.tenant, job.id),
        sk=keys.JOB,
        job_id=job.id,
        collection=job.collection,
        name=job.name,
        description=job.description,
        facade=job.facade,
        active=job.active,
        start_at=s_if_any(job.start_at),
        end_at=s_if_any(job.end_at),
        resource_id=job.resource_id,
        tags=_json(job.tags) if job.tags else None,
        action=_json(action_json(job.action)),
        error_action=_json(action_json(job.error_action)) if job.error_action else None,
        hooks=_json({name: action_json(hook) for name, hook in job.hooks.items()}) if job.hooks else None,
        policies=_json(job.policies),
        secret_version=job.secret_version,
        revision=job.revision,
        pause=_json(_pause_json(job.pause)) if job.pause else None,
        state_reason=job.state_reason,
        schedule_ids=_json(job.schedule_ids) if job.schedule_ids else None,
        many_schedules=True if job.many_schedules else None,
        schedule_count=job.schedule_count if job.many_schedules else None,
        open_change=job.open_change,
        number=job.number or None,
        ordinal=job.ordinal,
        attributes=_json(job.attributes) if job.attributes else None,
        own_runs=job.own_runs,
        created_at=epoch_ms(job.created_at),
        modified_at=epoch_ms(job.modified_at),
    )


def schedule_item(schedule: Schedule, shards: int) -> ScheduleItem:
    live = schedule.state in LIVE
    return ScheduleItem(
        pk=keys.job(schedule.tenant, schedule.job_id),
        sk=keys.schedule(schedule.id),
        shard=shard_of(schedule.id, shards),
        next_run_at=s_if_any(schedule.next_run_at),
        schedule_id=schedule.id if live else None,
        sweep=sweep_text(schedule),
        name=schedule.name,
        timing=_json(schedule.timing),
        policies=_json(schedule.policies) if schedule.policies else None,
        active=schedule.active,
        state=schedule.state.value,
        state_reason=schedule.state_reason,
        generation=schedule.generation,
        ended_at=_json(schedule.ended_at) if schedule.ended_at else None,
        planned_total=schedule.planned_total,
        last_planned_at=s_if_any(schedule.last_planned_at),
        missed_from=s_if_any(schedule.missed_from),
        missed_to=s_if_any(schedule.missed_to),
        left_out_to=s_if_any(schedule.left_out_to),
        first_at=s_if_any(schedule.first_at),
        unreachable=schedule.unreachable,
        hooks=schedule.hooks,
        payload_version=schedule.payload_version,
        attributes=_json(schedule.attributes) if schedule.attributes else None,
        still_due=_json([epoch_s(each) for each in schedule.still_due]) if schedule.still_due else None,
        off_times=schedule.off_times,
        created_at=epoch_ms(schedule.created_at),
        modified_at=epoch_ms(schedule.modified_at),
    )


def sweep_text(schedule: Schedule) -> str:
    return str(sweep_of(schedule))


def sweep_of(schedule: Schedule) -> SweepText:
    """What the sweeper is told of a schedule."""
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
    item = table.get(JobItem, keys.job(tenant, job_id), keys.JOB)
    return job_of(item) if item is not None else None


def read_schedule(table: Table, tenant: str, job_id: str, schedule_id: str) -> Schedule | None:
    item = table.get(ScheduleItem, keys.job(tenant, job_id), keys.schedule(schedule_id))
    return schedules_of(table, [item])[0] if item is not None else None


def read_schedules(table: Table, tenant: str, job_id: str) -> list[Schedule]:
    """All schedules of a job, by creation."""
    sort = ScheduleItem.sk.startswith("SCH#")
    rows = table.query_all(keys.job(tenant, job_id), sort, consistent=True)
    return schedules_of(table, [ScheduleItem.from_raw_data(row) for row in rows])


def schedules_of(table: Table, items: Sequence[ScheduleItem]) -> list[Schedule]:
    """Rows to schedules, with the calendars that they name read along."""
    found = [schedule_of(item) for item in items]
    know_calendars(table, ((schedule.tenant, schedule.packed) for schedule in found))
    return found


def know_calendars(table: Table, texts: Iterable[tuple[str, str]]) -> None:
    """What packed timings (tenant, text) name must be known before these are loaded; most name nothing."""
    named = [(tenant, packed) for tenant, packed in texts if names_calendars(packed)]
    if named:
        from sweephand.store.calendars import calendars  # noqa: PLC0415 - where a schedule names one

        calendars.know(table, named)


def read_payload(table: Table, tenant: str, job_id: str, owner: str, version: int) -> Payload | None:
    item = table.get(PayloadItem, keys.job(tenant, job_id), keys.payload(owner, version))
    return Payload(item.text, item.is_json) if item is not None else None


def read_payloads(table: Table, tenant: str, job_id: str, versions: Mapping[str, int]) -> dict[str, Payload]:
    """Several payloads by owner in one batched read."""
    wanted = {(keys.job(tenant, job_id), keys.payload(owner, n)): owner for owner, n in versions.items()}
    found = table.batch_get(wanted)
    items = {wanted[key]: PayloadItem.from_raw_data(row) for key, row in found.items()}
    return {owner: Payload(item.text, item.is_json) for owner, item in items.items()}


def read_secrets(table: Table, tenant: str, job_id: str, version: int) -> dict[str, str]:
    """field -> ciphertext."""
    item = table.get(SecretItem, keys.job(tenant, job_id), keys.secret(version))
    return json.loads(item.sealed) if item is not None else {}


def note_own_runs(table: Table, job: Job) -> None:
    """Marks a job that is about to get its first run without a schedule, before that run is written.

    The mark is written once for each job. A job that is gone stays gone.
    """
    if not job.own_runs:
        there: Condition = JobItem.pk.exists()
        table.update(keys.job(job.tenant, job.id), keys.JOB, [assign(JobItem.own_runs, True)], there)


# Parts of transactions

ABSENT: Condition = JobItem.pk.does_not_exist()


def revision_is(number: int) -> Condition:
    return JobItem.revision == number


def job_as_read(job: Job) -> Condition:
    """[the revision that was read, and whether it has had runs of its own]: a change loses neither."""
    if job.own_runs:
        return revision_is(job.revision)
    return every(revision_is(job.revision), JobItem.own_runs == False)  # noqa: E712 - a condition of DynamoDB


def open_change_is(number: int) -> Condition:
    return JobItem.open_change == number


def as_read(schedule: Schedule) -> Condition:
    """[the generation and next_run_at that were read]: the sweeper has not moved it, nobody else changed it."""
    same: Condition = ScheduleItem.generation == schedule.generation
    if schedule.state in OVER:
        return same  # next_run_at says when its job goes: no sweep moves it
    if schedule.next_run_at is None:
        return every(same, ScheduleItem.next_run_at.does_not_exist())
    return every(same, ScheduleItem.next_run_at == epoch_s(schedule.next_run_at))


def reach_as_read(schedule: Schedule) -> Condition:
    """[the streak as read]: no attempt has noted since that its target is out of reach, or answers again."""
    if schedule.unreachable is None:
        return ScheduleItem.unreachable.does_not_exist()
    return ScheduleItem.unreachable == schedule.unreachable


def payload_op(table: Table, tenant: str, job_id: str, owner: str, version: int, payload: Payload) -> Op:
    item = PayloadItem(
        pk=keys.job(tenant, job_id), sk=keys.payload(owner, version), text=payload.text, is_json=payload.is_json
    )
    return table.put_op(f"payload {owner}", item)


def secret_op(table: Table, tenant: str, job_id: str, version: int, sealed: Mapping[str, str]) -> Op:
    item = SecretItem(pk=keys.job(tenant, job_id), sk=keys.secret(version), sealed=_json(sealed))
    return table.put_op("secret", item)


def schedule_update_actions(schedule: Schedule, shards: int) -> list[Action]:
    """Every attribute that a change may touch, as it shall be.

    It stays in the catalogue, or comes back: the audit takes one out that is off, once all that it owed is settled.
    """
    item = schedule_item(schedule, shards)
    item.schedule_id = schedule.id
    names = (
        "shard next_run_at schedule_id sweep name timing policies active state state_reason generation ended_at"
        " planned_total last_planned_at first_at still_due off_times unreachable hooks payload_version attributes"
        " modified_at"
    )
    return [assign(getattr(ScheduleItem, name), getattr(item, name)) for name in names.split()]


def description_actions(schedule: Schedule) -> list[Action]:
    """What a change may touch without a new generation: nothing that the sweeper reads.

    timing: the same rule may be spelled in another way.
    """
    item = schedule_item(schedule, 1)
    names = "name timing policies hooks payload_version attributes modified_at"
    return [assign(getattr(ScheduleItem, name), getattr(item, name)) for name in names.split()]


def packed_actions(schedule: Schedule) -> list[Action]:
    """The timing of a schedule that is over: the row's place in the index stays."""
    return [assign(ScheduleItem.sweep, sweep_text(schedule))]


def job_keys(tenant: str, job_ids: Iterable[str]) -> list[tuple[str, str]]:
    return [(keys.job(tenant, job_id), keys.JOB) for job_id in job_ids]


# JSON inside attributes


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def action_of(stored: Mapping[str, Any]) -> ActionSpec:
    return ActionSpec(stored["kind"], stored["params"], stored["retry"], stored.get("payload"))


def action_json(action: ActionSpec) -> dict[str, Any]:
    stored: dict[str, Any] = {"kind": action.kind, "params": dict(action.params), "retry": dict(action.retry)}
    if action.payload_version is not None:
        stored["payload"] = action.payload_version
    return stored


def _pause_json(pause: Pause) -> dict[str, Any]:
    return {"since": epoch_ms(pause.since), "note": pause.note, "until": s_if_any(pause.until)}
