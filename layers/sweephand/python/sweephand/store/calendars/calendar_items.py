"""The models of calendars; part of table.py, with the same conventions."""

from __future__ import annotations

from sweephand.store.dynamo.flat_models import BooleanAttribute, Integer, UnicodeAttribute
from sweephand.store.dynamo.table import Item


class CalendarItem(Item):
    """A calendar. users: jobs that name it. open_version: set while some of these still follow an earlier version."""

    name = UnicodeAttribute()
    description = UnicodeAttribute(null=True)
    version = Integer()
    reference = UnicodeAttribute()
    users = Integer(default=0)
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
    """The content of a version, which never changes. text: packed JSON, the caller's members and the result of them."""

    text = UnicodeAttribute()


class CalendarUseItem(Item):
    """A job with schedules that name a calendar; the key says all."""


class ReplanItem(Item):
    """The work of replanning the users of a changed calendar.

    cursor: the last job that was replanned. left: a job could not be replanned, so another round follows.
    """

    shard = Integer()
    next_run_at = Integer()
    sweep = UnicodeAttribute()
    version = Integer()
    cursor = UnicodeAttribute(null=True)
    left = BooleanAttribute(null=True)
