"""The directory: one small row per job, in blocks of 1,000 numbers, and the counts of each block.

Lists, filters and totals read it instead of the jobs. Each row is written in the transaction of its job, under the
condition of the job's own row, so that a repetition counts once. Jobs that are created one after another write
different rows of counts, and a few hundred at most write one partition. Source: decisions 0019 and 0195.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pynamodb.expressions.condition import Condition

from sweephand.base.errors import Unavailable
from sweephand.base.lazy import lazy
from sweephand.domain.job import Job, JobState
from sweephand.domain.jobs.job_state import ended_state, state_of
from sweephand.domain.schedule import OVER, Schedule
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Refused, Table
from sweephand.server.store.dynamo.expressions import add, assign
from sweephand.server.store.dynamo.flat_models import Integer, UnicodeAttribute, to_json
from sweephand.server.store.dynamo.table import Item

if TYPE_CHECKING:
    from sweephand.server.store.tenants.searching import Searched

with lazy():
    from sweephand.server.store.tenants import searching

BLOCK = 1_000
"""Numbers per block, the finest place that counts lead to."""
PART = 250
"""Numbers per partition. A new job writes 2 units there, so they cannot exceed its 1,000 units a second."""
STRIPES, SPREAD = 16, 2
"""Rows of each count of a block, by the job's number; and the partitions of all these rows."""


class EntryItem(Item):
    """An entry of a job: by name in its collection, under a tag or under a resource.

    number: its place in the directory.
    """

    job_id = UnicodeAttribute()
    number = Integer()


class DirectoryItem(Item):
    """The members of a job that filters of lists read, in about 150 bytes. entry: packed, see _packed.

    revision: of the job. ended: COMPLETED or FAULTED, if all of its schedules are over. search: packed, see
    store.tenants.searching; only if the job has an integer id.
    """

    entry = UnicodeAttribute()
    revision = Integer()
    ended = UnicodeAttribute(null=True)
    search = UnicodeAttribute(null=True)


class BlockItem(Item):
    """One of the rows that count the jobs of one facade in a block; active: those that are switched on."""

    live = Integer(default=0)
    active = Integer(default=0)


class NumberItem(Item):
    """The last number assigned: of a directory, or of the tenants' ordinals."""

    last = Integer(default=0)


ABSENT: Condition = EntryItem.pk.does_not_exist()
CONDITIONS = {"name": ABSENT}
"""The conditions of the parts that write a job's entries."""


class Entry(NamedTuple):
    """A job's entry in the directory. search: only if requested, see store.tenants.searching.

    tagged: whether the job has tags; None in rows that were written before this member was added.
    """

    number: int
    job_id: str
    name: str
    collection: str
    active: bool
    paused: bool
    ended: JobState | None
    facade: str
    search: str | None = None
    tagged: bool | None = None

    @property
    def searched(self) -> Searched | None:
        """Returns the searched members; None if the row lacks them and the job itself must be read."""
        return None if self.search is None else searching.unpack(self.search)

    @property
    def state(self) -> JobState:
        return state_of(active=self.active, paused=self.paused, ended=self.ended)


class Block(NamedTuple):
    """The number of jobs of a facade in a block, or the part of it that one row counts."""

    number: int
    facade: str
    live: int
    active: int


def block_of(number: int) -> int:
    return number // BLOCK


def row_key(tenant: str, number: int) -> tuple[str, str]:
    return keys.directory_part(tenant, part_of(number)), keys.job_entry(number)


def part_of(number: int) -> int:
    """Returns the number of the partition that a job's row is in."""
    return number // PART


def parts_of(block: int) -> range:
    """Returns the numbers of a block's partitions."""
    return range(block * BLOCK // PART, (block + 1) * BLOCK // PART)


def number_of(sk: str) -> int:
    """Returns the number in the sort key of a row of the directory, of a tag or of a resource."""
    return int(keys.parts(sk)[1])


def entry_of(row: dict[str, dict[str, Any]]) -> Entry:
    """Reads an entry from DynamoDB's JSON. Avoids the model, because a page may need thousands (docs/benchmarks.md)."""
    job_id, name, collection, active, paused, facade, *rest = json.loads(row["entry"]["S"])
    number = int(row["sk"]["S"][4:])
    ended = JobState(row["ended"]["S"]) if "ended" in row else None
    search = row["search"]["S"] if "search" in row else None
    tagged = bool(rest[0]) if rest else None
    return Entry(number, job_id, name, collection, bool(active), bool(paused), ended, facade, search, tagged)


def block_count_of(row: dict[str, Any]) -> Block:
    item = BlockItem.from_raw_data(row)
    _, block, facade, _ = keys.parts(item.sk)
    return Block(int(block), facade, item.live, item.active)


def next_number(table: Table, tenant: str) -> int:
    """Returns a number that no other job of the tenant gets.

    No transaction covers it, so an unused one leaves a gap.
    """
    return table.increase(keys.directory(tenant), keys.LAST_NUMBER, NumberItem.last)


def job_id_of(table: Table, tenant: str, number: int) -> str | None:
    """Returns the id of the job with this number."""
    item = table.get(DirectoryItem, *row_key(tenant, number))
    return None if item is None else str(json.loads(item.entry)[0])


# Parts of the job's transaction


def create_ops(table: Table, job: Job, schedules: Sequence[Schedule]) -> list[Op]:
    """Returns the operations that add a job. The part `name` is refused if the collection has a job with this name."""
    rows = [table.put_op(part, item, CONDITIONS.get(part)) for part, item in entry_items(job).items()]
    row = table.put_op("directory", row_item(job, schedules))
    return [*rows, row, _count_op(table, job, 1, int(job.active))]


def is_name_taken(table: Table, before: Job, after: Job) -> bool:
    """Returns whether another job has the name that a change gives a job in its collection."""
    old, new = (_entry_keys(job)["name"] for job in (before, after))
    return new != old and table.get(EntryItem, *new) is not None


def named(table: Table, tenant: str, places: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Returns the ids of the jobs that have these names, by (collection, name); names that are free are left out."""
    wanted = {(keys.names(tenant, collection), keys.name(name)): (collection, name) for collection, name in places}
    rows = table.batch_get(wanted) if wanted else {}
    return {wanted[key]: EntryItem.from_raw_data(row).job_id for key, row in rows.items()}


def change_ops(
    table: Table, before: Job, after: Job, were: Sequence[Schedule], schedules: Sequence[Schedule]
) -> list[Op]:
    """Returns the operations that change a job's rows. were, schedules: before and after.

    The parts are named as in create_ops; deletes are named `old ...`.
    """
    old, new = _entry_keys(before), _entry_keys(after)
    ops = [table.delete_op(f"old {part}", *key) for part, key in old.items() if key not in new.values()]
    items = entry_items(after)
    ops += [
        table.put_op(part, items[part], CONDITIONS.get(part)) for part, key in new.items() if key not in old.values()
    ]
    ops.append(_change_row_op(table, after, were, schedules))
    if before.active is not after.active:
        ops.append(_count_op(table, after, 0, 1 if after.active else -1))
    return ops


def delete_ops(table: Table, job: Job) -> list[Op]:
    """Returns the operations that delete a job's rows. Call `drop_if_empty` afterwards."""
    rows = [table.delete_op(part, *key) for part, key in _entry_keys(job).items()]
    row = table.delete_op("directory", *row_key(job.tenant, job.number))
    return [*rows, row, _count_op(table, job, -1, -int(job.active))]


def _entry_keys(job: Job) -> dict[str, tuple[str, str]]:
    """Returns the keys of a job's rows outside the directory, by the parts of its transaction."""
    sk = keys.job_entry(job.number)
    entry_keys = {"name": (keys.names(job.tenant, job.collection), keys.name(job.name))}
    if job.resource_id is not None:
        entry_keys["resource"] = (keys.resource(job.tenant, job.resource_id), sk)
    return entry_keys | {f"tag {tag}": (keys.tag(job.tenant, tag), sk) for tag in job.tags}


def entry_items(job: Job) -> dict[str, EntryItem]:
    """Returns a job's rows outside the directory, by the parts of its transaction."""
    keys_of_parts = _entry_keys(job).items()
    return {part: EntryItem(pk=pk, sk=sk, job_id=job.id, number=job.number) for part, (pk, sk) in keys_of_parts}


def row_item(job: Job, schedules: Sequence[Schedule]) -> DirectoryItem:
    pk, sk = row_key(job.tenant, job.number)
    return DirectoryItem(
        pk=pk,
        sk=sk,
        entry=_packed(job),
        revision=job.revision,
        ended=ended_state(schedules),
        search=_search(job, schedules),
    )


def _search(job: Job, schedules: Sequence[Schedule]) -> str | None:
    """Returns the searched members; None for a job without an integer id."""
    return None if job.ordinal is None else searching.pack(job, schedules)


def _packed(job: Job) -> str:
    active, paused, tagged = int(job.active), int(job.pause is not None), int(bool(job.tags))
    return to_json([job.id, job.name, job.collection, active, paused, job.facade, tagged])


def _change_row_op(table: Table, job: Job, were: Sequence[Schedule], schedules: Sequence[Schedule]) -> Op:
    """Returns the operation that changes the entry.

    It leaves `ended` as it is if a schedule that the change does not touch may end meanwhile. Only a change can undo an
    end, so a schedule that was over when it was read still is.
    """
    actions = [assign(DirectoryItem.entry, _packed(job)), assign(DirectoryItem.revision, job.revision)]
    if job.ordinal is not None:
        actions.append(assign(DirectoryItem.search, _search(job, schedules)))
    untouched = {each.id: each.generation for each in were if each.state not in OVER}
    alive = [each for each in schedules if each.state not in OVER]
    if not alive or any(untouched.get(each.id) != each.generation for each in alive):
        actions.append(assign(DirectoryItem.ended, ended_state(schedules)))
    return table.update_op("directory", *row_key(job.tenant, job.number), actions)


def _count_op(table: Table, job: Job, live: int, active: int) -> Op:
    steps = [add(BlockItem.live, live), add(BlockItem.active, active)]
    return table.update_op("block", *count_key(job.tenant, job.number, job.facade), steps)


def count_key(tenant: str, number: int, facade: str) -> tuple[str, str]:
    """Returns the key of the row that counts the job with this number."""
    stripe = number % STRIPES
    return keys.directory_counts(tenant, stripe % SPREAD), keys.block_count(block_of(number), facade, stripe)


def mark_ended(table: Table, job: Job, ended: JobState) -> bool:
    """Marks a job as ended, if its revision is still the one read before its schedules. Returns False if not."""
    same: Condition = DirectoryItem.revision == job.revision
    return not isinstance(
        table.update(*row_key(job.tenant, job.number), [assign(DirectoryItem.ended, ended)], same), Refused
    )


def drop_if_empty(table: Table, job: Job) -> None:
    """Deletes an empty row of counts after a delete, so that counts never outnumber the jobs.

    If a crash prevents this, the remaining count is still correct.
    """
    pk, sk = count_key(job.tenant, job.number, job.facade)
    try:
        block = table.get(BlockItem, pk, sk, consistent=False)
        if block is not None and block.live == 0:
            table.delete(pk, sk, BlockItem.live == 0)
    except Unavailable:
        return  # the job is deleted, so the caller must see success
