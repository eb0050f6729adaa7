"""The models of the directory of jobs; part of table.py, with the same conventions."""

from __future__ import annotations

from sweephand.store.dynamo.flat_models import Integer, UnicodeAttribute
from sweephand.store.dynamo.table import Item


class EntryItem(Item):
    """A job in its collection by name, under a tag, under a resource. number: its place in the directory."""

    job_id = UnicodeAttribute()
    number = Integer()


class DirectoryItem(Item):
    """The members of a job that filters of lists read, in about 150 bytes. entry: packed, see store.jobs.directory.

    revision: the job's. ended: COMPLETED or FAULTED, if all of its schedules are over. search: only with an integer id;
    packed, see store.tenants.searching.
    """

    entry = UnicodeAttribute()
    revision = Integer()
    ended = UnicodeAttribute(null=True)
    search = UnicodeAttribute(null=True)


class BlockItem(Item):
    """The number of jobs of one facade in a block of the directory; active: those that are switched on."""

    live = Integer(default=0)
    active = Integer(default=0)


class NumberItem(Item):
    """The last number assigned: of a directory, or of the tenants' ordinals."""

    last = Integer(default=0)


class OrdinalItem(Item):
    """A tenant's ordinal, stored twice: with the tenant, and by number in the stack's register."""

    tenant = UnicodeAttribute()
    ordinal = Integer()
