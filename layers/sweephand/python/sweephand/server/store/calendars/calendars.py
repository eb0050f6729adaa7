"""Calendars: heads, versions, contents and users, and the row that replans the users after a change.

The users are counted in 16 rows (server/store/tenants/counts.py), because each job's transaction that begins to name a
calendar also checks there that the job was planned with the current version. Before a change replans the users, it
puts its version into force in these rows: every job that was planned with an earlier one is a user by then, or is
planned again.

The content of a version never changes, so it is remembered once read (schedules.calendars.calendars.keep). Code that
reads a schedule's row must also read the calendars that it names (`know`), before it computes anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import SupportsInt

from sweephand.base.ids import shard_of
from sweephand.base.lazy import lazy
from sweephand.domain.calendar import Calendar, Version
from sweephand.domain.instants import epoch_s
from sweephand.domain.job import Job
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.schedule import Lane
from sweephand.schedules.calendars import calendars
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Refused, Table, Written, if_any
from sweephand.server.store.dynamo.expressions import Condition, assign, changes, every
from sweephand.server.store.dynamo.flat_models import (
    TENANT,
    BooleanAttribute,
    Codec,
    Integer,
    UnicodeAttribute,
    of_key,
    pack,
    unpack,
)
from sweephand.server.store.dynamo.table import Item, WakeItem

with lazy():
    from sweephand.server.store.tenants import counts

KEPT_BEHIND = timedelta(days=40)
"""Retention of a deleted calendar's content: longer than that of ended plans that name it."""


class CalendarItem(Item):
    """A calendar. open_version: set while some of the jobs that name it still follow an earlier version.

    users: jobs that version 0.1 has counted here.
    """

    name = UnicodeAttribute()
    description = UnicodeAttribute(null=True)
    version = Integer()
    reference = UnicodeAttribute()
    users = Integer(null=True)
    open_version = Integer(null=True)
    created_at = Integer()
    modified_at = Integer()


class CalendarVersionItem(Item):
    """A version of a calendar: who created it, and the reference of its content."""

    reference = UnicodeAttribute()
    at = Integer()
    actor = UnicodeAttribute(null=True)
    description = UnicodeAttribute(null=True)


class CalendarTextItem(Item):
    """The content of a version, which never changes. text: packed JSON with the caller's members and their result."""

    text = UnicodeAttribute()


class CalendarUseItem(Item):
    """A job with schedules that name a calendar. The key contains everything."""


class ReplanItem(WakeItem):
    """The work of replanning the users of a changed calendar.

    cursor: the last job that was replanned. left: whether a job could not be replanned, so that another round follows.
    """

    version = Integer()
    cursor = UnicodeAttribute(null=True)
    left = BooleanAttribute(null=True)


ABSENT: Condition = CalendarItem.pk.does_not_exist()
_CALENDARS = Codec(Calendar, CalendarItem, {"tenant": TENANT}, but="replanning content facts users")
_VERSIONS = Codec(Version, CalendarVersionItem, {"number": of_key("sk", 1, int)})


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
    rows = table.batch_get((pk, keys.CALENDAR_TEXT) for pk in wanted)
    for pk, reference in wanted.items():
        row = rows.get((pk, keys.CALENDAR_TEXT))
        calendars.keep(reference, None if row is None else unpack(CalendarTextItem.from_raw_data(row).text)["facts"])


# Reading


def calendar_of(item: CalendarItem) -> Calendar:
    return _CALENDARS.read(item, replanning=item.open_version is not None, users=item.users or 0)


def read(table: Table, tenant: str, name: str) -> Calendar | None:
    """Reads the head of a calendar: everything but its content and its users."""
    item = table.get(CalendarItem, *_key(tenant, name))
    return None if item is None else _adopted(table, item)


def with_users(table: Table, calendars: Sequence[Calendar]) -> list[Calendar]:
    """Returns the calendars with the numbers of their users: 16 read units for each."""
    totals = counts.totals(table, [_counted(each) for each in calendars])
    return [replace(each, users=each.users + users.jobs) for each, users in zip(calendars, totals, strict=True)]


def _counted(calendar: Calendar) -> counts.Counted:
    return counts.Counted(calendar.tenant, keys.calendar(calendar.name), calendar.edition, lasts=True)


def read_many(table: Table, tenant: str, names: Iterable[str]) -> dict[str, Calendar]:
    """Returns the heads that exist, by name."""
    rows = table.batch_get((keys.tenant(tenant), keys.calendar(name)) for name in names)
    heads = (_adopted(table, CalendarItem.from_raw_data(row)) for row in rows.values())
    return {head.name: head for head in heads}


def _adopted(table: Table, item: CalendarItem) -> Calendar:
    """Returns the calendar. If it is of version 0.1, moves the number of its users into the rows that count them."""
    head = calendar_of(item)
    if item.users is None:
        return head
    moved = table.update_op(
        "head", item.pk, item.sk, [assign(CalendarItem.users, None)], CalendarItem.users == item.users
    )
    counts.adopt(table, _counted(head), moved, item.users)
    return replace(head, users=0)


def read_content(table: Table, tenant: str, reference: str) -> Mapping[str, object] | None:
    """Returns the members of a version as the caller wrote them."""
    item = table.get(CalendarTextItem, keys.calendar_text(tenant, reference), keys.CALENDAR_TEXT)
    if item is None:
        return None
    content: Mapping[str, object] = unpack(item.text)["content"]
    return content


def read_version(table: Table, tenant: str, name: str, number: int) -> Version | None:
    item = table.get(CalendarVersionItem, keys.calendar_rows(tenant, name), keys.calendar_version(number))
    return if_any(version_of, item)


version_of = _VERSIONS.read


def users(table: Table, tenant: str, name: str, after: str | None, page: int) -> Iterator[str]:
    """Yields the ids of the jobs that name a calendar, after `after`."""
    rows = table.listed(CalendarUseItem, keys.calendar_rows(tenant, name), keys.calendar_use, after, page)
    yield from (keys.parts(row.sk)[1] for row in rows)


# Writing


def _key(tenant: str, name: str) -> tuple[str, str]:
    return keys.tenant(tenant), keys.calendar(name)


def create_ops(table: Table, calendar: Calendar, actor: str | None) -> list[Op]:
    """Returns the operations that create the head, if absent, with its first version and content."""
    item = _CALENDARS.item(_key(calendar.tenant, calendar.name), calendar)
    return [
        table.put_op("calendar", item, ABSENT),
        _version_op(table, calendar, actor),
        _text_op(table, calendar),
        *counts.begin_ops(table, _counted(calendar)),
    ]


def change_ops(table: Table, before: Calendar, after: Calendar, actor: str | None, shards: SupportsInt) -> list[Op]:
    """Returns the operations that write the next version [the version as read].

    If the content is new, they also write a row that replans the calendar's users.
    """
    new_content = after.reference != before.reference
    key = _key(after.tenant, after.name)
    actions = changes(_CALENDARS.item(key, after), "version description reference modified_at")
    if new_content:
        actions.append(assign(CalendarItem.open_version, after.version))
    ops = [
        table.update_op("calendar", *key, actions, CalendarItem.version == before.version),
        _version_op(table, after, actor),
    ]
    if not new_content:
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
    version = Version(calendar.version, calendar.reference, calendar.modified_at, actor, calendar.description)
    key = keys.calendar_rows(calendar.tenant, calendar.name), keys.calendar_version(version.number)
    return table.put_op("version", _VERSIONS.item(key, version))


def _text_op(table: Table, calendar: Calendar) -> Op:
    item = CalendarTextItem(
        pk=keys.calendar_text(calendar.tenant, calendar.reference),
        sk=keys.CALENDAR_TEXT,
        text=pack({"content": calendar.content, "facts": calendar.facts}),
    )
    return table.put_op("content", item)


def forget_version(table: Table, calendar: Calendar, version: Version, now: datetime) -> None:
    """Deletes an earlier version of a calendar that is about to be deleted. Its content expires later."""
    table.delete(keys.calendar_rows(calendar.tenant, calendar.name), keys.calendar_version(version.number))
    if version.reference != calendar.reference:
        expires = [assign(CalendarTextItem.expires_at, epoch_s(now + KEPT_BEHIND))]
        pk = keys.calendar_text(calendar.tenant, version.reference)
        table.update(pk, keys.CALENDAR_TEXT, expires, CalendarTextItem.pk.exists())


def delete_ops(table: Table, calendar: Calendar, now: datetime) -> list[Op]:
    """Returns the operations that delete the head [version as read], its last version and a replan row [no users]."""
    rows = keys.calendar_rows(calendar.tenant, calendar.name)
    expires = [assign(CalendarTextItem.expires_at, epoch_s(now + KEPT_BEHIND))]
    return [
        table.delete_op("calendar", *_key(calendar.tenant, calendar.name), CalendarItem.version == calendar.version),
        *counts.end_ops(table, _counted(calendar)),
        table.delete_op("version", rows, keys.calendar_version(calendar.version)),
        table.delete_op("replan", rows, keys.replan(calendar.name)),
        table.update_op(
            "content", keys.calendar_text(calendar.tenant, calendar.reference), keys.CALENDAR_TEXT, expires
        ),
    ]


# Users: parts of a job's transaction

PART = "calendar "
"""The prefix of the names of these parts."""


def take_ops(table: Table, calendar: Calendar, job: Job) -> list[Op]:
    """Returns the operations that add a job to the users [no later version is in force]."""
    use = CalendarUseItem(pk=keys.calendar_rows(calendar.tenant, calendar.name), sk=keys.calendar_use(job.id))
    return [_use_op(table, calendar, job, 1), table.put_op("use of a calendar", use)]


def keep_op(table: Table, calendar: Calendar, job: Job) -> Op:
    """Returns the operation that checks that no later version is in force than a user was replanned with."""
    return _use_op(table, calendar, job, 0)


def _use_op(table: Table, calendar: Calendar, job: Job, more: int) -> Op:
    return counts.count_op(table, PART + calendar.name, _counted(calendar), job.number, counts.Need(more))


def leave_ops(table: Table, name: str, job: Job) -> list[Op]:
    """Returns the operations that remove a job from the users."""
    left = counts.Counted(job.tenant, keys.calendar(name))
    rows = keys.calendar_rows(job.tenant, name)
    return [
        counts.count_op(table, "old calendar", left, job.number, counts.Need(-1)),
        table.delete_op("old use of a calendar", rows, keys.calendar_use(job.id)),
    ]


def enforce(table: Table, calendar: Calendar) -> None:
    """Puts a version into force: jobs that were planned with an earlier one are refused from now on."""
    counts.void(table, _counted(calendar))


# Replanning the users of a changed calendar


def read_replan(table: Table, tenant: str, name: str) -> ReplanItem | None:
    return table.get(ReplanItem, keys.calendar_rows(tenant, name), keys.replan(name))


def go_on(table: Table, item: ReplanItem, *, cursor: str | None, left: bool, at: datetime) -> Written | Refused:
    """Writes the progress, if it is as read.

    left: whether some jobs need another round. at: when the row wakes next.
    """
    actions = [
        assign(ReplanItem.cursor, cursor),
        assign(ReplanItem.left, True if left else None),
        assign(ReplanItem.next_run_at, epoch_s(at)),
    ]
    return table.update(item.pk, item.sk, actions, _as_read(item))


def finish(table: Table, tenant: str, name: str, item: ReplanItem) -> None:
    """Ends the work, if it is as read: all users follow the version."""
    key = _key(tenant, name)
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
