"""The models of the directory: what lists, names and numbers are found by. As table.py, of which they are a part."""

from __future__ import annotations

from sweephand.store.dynamo.flat_models import Integer, UnicodeAttribute
from sweephand.store.dynamo.table import Item


class EntryItem(Item):
    """A job in its collection by name, under a tag, under a resource. number: its place in the directory."""

    job_id = UnicodeAttribute()
    number = Integer()


class DirectoryItem(Item):
    """All that filters of lists look at, in about 150 bytes. entry: packed, see store.jobs.directory.

    revision: the job's. ended: COMPLETED or FAULTED, present where all of its schedules are over. search: of a job with
    an integer id, packed, see store.tenants.searching.
    """

    entry = UnicodeAttribute()
    revision = Integer()
    ended = UnicodeAttribute(null=True)
    search = UnicodeAttribute(null=True)


class BlockItem(Item):
    """How many jobs of one facade a block of the directory holds; active: those that are switched on."""

    live = Integer(default=0)
    active = Integer(default=0)


class NumberItem(Item):
    """The last number that was given out: of a directory, or of the tenants' ordinals."""

    last = Integer(default=0)


class OrdinalItem(Item):
    """A tenant's ordinal, twice: beside the tenant, and in the stack's register, by its number."""

    tenant = UnicodeAttribute()
    ordinal = Integer()
