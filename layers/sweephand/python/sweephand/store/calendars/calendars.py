"""Calendars: heads, versions, contents and users, and the row that replans the users after a change.

The content of a version never changes, so it is remembered once read (schedules.calendars.calendars.keep). Code that
reads a schedule's row must also read the calendars that it names (`know`), before it computes anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from pynamodb.expressions.condition import Condition

from sweephand.domain.calendar import Calendar, Version
from sweephand.domain.instants import epoch_ms, epoch_s, from_ms
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.schedule import Lane
from sweephand.ids import shard_of
from sweephand.schedules.calendars import calendars
from sweephand.store.calendars.calendar_items import (
    CalendarItem,
    CalendarTextItem,
    CalendarUseItem,
    CalendarVersionItem,
    ReplanItem,
)
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.compression import pack, unpack
from sweephand.store.dynamo.conditional import Op, Refused, Table, Written
from sweephand.store.dynamo.expressions import add, assign, every

ABSENT: Condition = CalendarItem.pk.does_not_exist()
KEPT_BEHIND = timedelta(days=40)
"""Retention of a deleted calendar's content: longer than that of ended plans that name it."""


# Contents for computing


def know(table: Table, named: Iterable[tuple[str, str]]) -> None:
    """Reads the contents that packed timings name, each once in the life of the process. Raises Unavailable.

    named: (tenant, string with a packed timing).
    """
    wanted = {
        keys.calendar_text(tenant, reference): reference
        for tenant, packed in named
        for reference in calendars.references(packed)
        if not calendars.known(reference)
    }
    if not wanted:
        return
    found = table.batch_get((pk, keys.CALENDAR_TEXT) for pk in wanted)
    for pk, reference in wanted.items():
        row = found.get((pk, keys.CALENDAR_TEXT))
        calendars.keep(reference, None if row is None else unpack(CalendarTextItem.from_raw_data(row).text)["facts"])


# Reading


def calendar_of(item: CalendarItem) -> Calendar:
    return Calendar(
        tenant=keys.parts(item.pk)[1],
        name=item.name,
        created_at=from_ms(item.created_at),
        modified_at=from_ms(item.modified_at),
        description=item.description,
        version=item.version,
        reference=item.reference,
        users=item.users,
        replanning=item.open_version is not None,
    )


def read(table: Table, tenant: str, name: str) -> Calendar | None:
    """Reads the head of a calendar: all but its content."""
    item = table.get(CalendarItem, keys.tenant(tenant), keys.calendar(name))
    return calendar_of(item) if item else None


def read_many(table: Table, tenant: str, names: Iterable[str]) -> dict[str, Calendar]:
    """Returns the heads that exist, by name."""
    found = table.batch_get((keys.tenant(tenant), keys.calendar(name)) for name in names)
    heads = (calendar_of(CalendarItem.from_raw_data(row)) for row in found.values())
    return {head.name: head for head in heads}


def read_content(table: Table, tenant: str, reference: str) -> Mapping[str, object] | None:
    """Returns the members of a version as the caller wrote them."""
    item = table.get(CalendarTextItem, keys.calendar_text(tenant, reference), keys.CALENDAR_TEXT)
    if item is None:
        return None
    content: Mapping[str, object] = unpack(item.text)["content"]
    return content


def read_version(table: Table, tenant: str, name: str, number: int) -> Version | None:
    item = table.get(CalendarVersionItem, keys.calendar_rows(tenant, name), keys.calendar_version(number))
    return version_of(item) if item else None


def version_of(item: CalendarVersionItem) -> Version:
    number = int(keys.parts(item.sk)[1])
    return Version(number, item.reference, from_ms(item.at), item.actor, item.description)


def users(table: Table, tenant: str, name: str, after: str | None, page: int) -> Iterator[str]:
    """Yields the ids of the jobs that name a calendar, after `after`."""
    sort = CalendarUseItem.sk.between(keys.calendar_use(after or ""), keys.calendar_use("\U0010ffff"))
    for row in table.query_all(keys.calendar_rows(tenant, name), sort, limit=page, consistent=True):
        job_id = keys.parts(row["sk"]["S"])[1]
        if job_id != after:
            yield job_id


# Writing


def create_ops(table: Table, calendar: Calendar, actor: str | None) -> list[Op]:
    """Creates the head, if absent, with its first version and content."""
    item = CalendarItem(
        pk=keys.tenant(calendar.tenant),
        sk=keys.calendar(calendar.name),
        name=calendar.name,
        description=calendar.description,
        version=calendar.version,
        reference=calendar.reference,
        created_at=epoch_ms(calendar.created_at),
        modified_at=epoch_ms(calendar.modified_at),
    )
    return [
        table.put_op("calendar", item, ABSENT),
        _version_op(table, calendar, actor),
        _text_op(table, calendar),
    ]


def change_ops(table: Table, before: Calendar, after: Calendar, actor: str | None, shards: int) -> list[Op]:
    """Writes the next version, if the version is as read; with a new content also a row that replans its users."""
    anew = after.reference != before.reference
    actions = [
        assign(CalendarItem.version, after.version),
        assign(CalendarItem.description, after.description),
        assign(CalendarItem.reference, after.reference),
        assign(CalendarItem.modified_at, epoch_ms(after.modified_at)),
    ]
    if anew:
        actions.append(assign(CalendarItem.open_version, after.version))
    key = keys.tenant(after.tenant), keys.calendar(after.name)
    ops = [
        table.update_op("calendar", *key, actions, CalendarItem.version == before.version),
        _version_op(table, after, actor),
    ]
    if not anew:
        return ops
    row = ReplanItem(
        pk=keys.calendar_rows(after.tenant, after.name),
        sk=keys.replan(after.name),
        shard=shard_of(keys.calendar_rows(after.tenant, after.name), shards),
        next_run_at=epoch_s(after.modified_at),
        sweep=str(SweepText(Waits.REPLAN, Lane.FAST)),
        version=after.version,
    )
    return [*ops, _text_op(table, after), table.put_op("replan", row)]


def _version_op(table: Table, calendar: Calendar, actor: str | None) -> Op:
    item = CalendarVersionItem(
        pk=keys.calendar_rows(calendar.tenant, calendar.name),
        sk=keys.calendar_version(calendar.version),
        reference=calendar.reference,
        at=epoch_ms(calendar.modified_at),
        actor=actor,
        description=calendar.description,
    )
    return table.put_op("version", item)


def _text_op(table: Table, calendar: Calendar) -> Op:
    item = CalendarTextItem(
        pk=keys.calendar_text(calendar.tenant, calendar.reference),
        sk=keys.CALENDAR_TEXT,
        text=pack({"content": calendar.content, "facts": calendar.facts}),
    )
    return table.put_op("content", item)


def forget_version(table: Table, calendar: Calendar, version: Version, now: datetime) -> None:
    """Deletes an earlier version of a calendar about to be deleted. Its content expires later."""
    table.delete(keys.calendar_rows(calendar.tenant, calendar.name), keys.calendar_version(version.number))
    if version.reference != calendar.reference:
        expires = [assign(CalendarTextItem.expires_at, epoch_s(now + KEPT_BEHIND))]
        pk = keys.calendar_text(calendar.tenant, version.reference)
        table.update(pk, keys.CALENDAR_TEXT, expires, CalendarTextItem.pk.exists())


def delete_ops(table: Table, calendar: Calendar, now: datetime) -> list[Op]:
    """Deletes the head, if the version is as read and nothing names it, its last version, and a replan row."""
    unused = every(CalendarItem.version == calendar.version, CalendarItem.users == 0)
    rows = keys.calendar_rows(calendar.tenant, calendar.name)
    expires = [assign(CalendarTextItem.expires_at, epoch_s(now + KEPT_BEHIND))]
    return [
        table.delete_op("calendar", keys.tenant(calendar.tenant), keys.calendar(calendar.name), unused),
        table.delete_op("version", rows, keys.calendar_version(calendar.version)),
        table.delete_op("replan", rows, keys.replan(calendar.name)),
        table.update_op(
            "content", keys.calendar_text(calendar.tenant, calendar.reference), keys.CALENDAR_TEXT, expires
        ),
    ]


# Users: parts of a job's transaction

PART = "calendar "
"""The prefix of the names of these parts."""


def take_ops(table: Table, calendar: Calendar, job_id: str) -> list[Op]:
    """Adds a job to the users, if the calendar is at the version by which its schedules were planned."""
    use = CalendarUseItem(pk=keys.calendar_rows(calendar.tenant, calendar.name), sk=keys.calendar_use(job_id))
    key = keys.tenant(calendar.tenant), keys.calendar(calendar.name)
    one_more = [add(CalendarItem.users, 1)]
    return [
        table.update_op(PART + calendar.name, *key, one_more, _is_at(calendar)),
        table.put_op("use of a calendar", use),
    ]


def keep_op(table: Table, calendar: Calendar) -> Op:
    """Requires, for a user that was replanned, that the calendar is still at the version that it was planned by."""
    key = keys.tenant(calendar.tenant), keys.calendar(calendar.name)
    same = [assign(CalendarItem.reference, calendar.reference)]  # a mere check would need a permission of its own
    return table.update_op(PART + calendar.name, *key, same, _is_at(calendar))


def _is_at(calendar: Calendar) -> Condition:
    same: Condition = CalendarItem.reference == calendar.reference
    return same


def leave_ops(table: Table, tenant: str, name: str, job_id: str) -> list[Op]:
    """Removes a job from the users."""
    key = keys.tenant(tenant), keys.calendar(name)
    return [
        table.update_op("old calendar", *key, [add(CalendarItem.users, -1)], CalendarItem.pk.exists()),
        table.delete_op("old use of a calendar", keys.calendar_rows(tenant, name), keys.calendar_use(job_id)),
    ]


# Replanning the users of a changed calendar


def read_replan(table: Table, tenant: str, name: str) -> ReplanItem | None:
    return table.get(ReplanItem, keys.calendar_rows(tenant, name), keys.replan(name))


def go_on(table: Table, item: ReplanItem, *, cursor: str | None, left: bool, at: datetime) -> Written | Refused:
    """Writes the progress, if it is as read. left: some jobs need another round; at: when the row wakes next."""
    actions = [
        assign(ReplanItem.cursor, cursor),
        assign(ReplanItem.left, True if left else None),
        assign(ReplanItem.next_run_at, epoch_s(at)),
    ]
    return table.update(item.pk, item.sk, actions, _as_read(item))


def finish(table: Table, tenant: str, name: str, item: ReplanItem) -> None:
    """Ends the work, if it is as read: all users follow the version."""
    key = keys.tenant(tenant), keys.calendar(name)
    table.transact(
        [
            table.delete_op("replan", item.pk, item.sk, _as_read(item)),
            table.update_op(
                "calendar",
                *key,
                [assign(CalendarItem.open_version, None)],
                CalendarItem.open_version == item.version,
            ),
        ]
    )


def _as_read(item: ReplanItem) -> Condition:
    cursor: Condition = ReplanItem.cursor.does_not_exist() if item.cursor is None else ReplanItem.cursor == item.cursor
    return every(ReplanItem.version == item.version, cursor)
