"""The models of calendars. As table.py, of which they are a part."""

from __future__ import annotations

from sweephand.store.dynamo.flat_models import BooleanAttribute, Integer, UnicodeAttribute
from sweephand.store.dynamo.table import Item


class CalendarItem(Item):
    """users: jobs that name it. open_version: there while some of these still go by an earlier one."""

    name = UnicodeAttribute()
    description = UnicodeAttribute(null=True)
    version = Integer()
    reference = UnicodeAttribute()
    users = Integer(default=0)
    open_version = Integer(null=True)
    created_at = Integer()
    modified_at = Integer()


class CalendarVersionItem(Item):
    """One version of a calendar: who made it, and where its content is."""

    reference = UnicodeAttribute()
    at = Integer()
    actor = UnicodeAttribute(null=True)
    description = UnicodeAttribute(null=True)


class CalendarTextItem(Item):
    """The content of a version, which never changes. text: packed JSON, the caller's members and what they come to."""

    text = UnicodeAttribute()


class CalendarUseItem(Item):
    """A job, some of whose schedules name a calendar. All is in its key."""


class ReplanItem(Item):
    """Users of a changed calendar that are to go by its version. cursor: the last job that was seen to. left: one that
    could not be, so that all are looked at once more.
    """

    shard = Integer()
    next_run_at = Integer()
    sweep = UnicodeAttribute()
    version = Integer()
    cursor = UnicodeAttribute(null=True)
    left = BooleanAttribute(null=True)
