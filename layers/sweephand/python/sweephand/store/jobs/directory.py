"""The directory: one lean row a job, in blocks of 1,000 numbers, and the count of each block.

Lists, filters and totals read it instead of the jobs. Every part is written in the transaction of the job it speaks
of, on the condition of the job's own row, so that a repeat counts once. Source: decision 0019.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pynamodb.expressions.condition import Condition

from sweephand.domain.job import Job, JobState
from sweephand.domain.jobs.job_state import ended_state, state_of
from sweephand.domain.schedule import OVER, Schedule
from sweephand.errors import Unavailable
from sweephand.lazy import lazy
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Op, Refused, Table
from sweephand.store.dynamo.expressions import add, assign
from sweephand.store.jobs.directory_items import BlockItem, DirectoryItem, EntryItem, NumberItem

if TYPE_CHECKING:
    from sweephand.store.tenants.searching import Searched

with lazy():
    from sweephand.store.tenants import searching

BLOCK = 1_000
"""Numbers of a block: its rows are some 150 KB, one page of a query."""
ABSENT: Condition = EntryItem.pk.does_not_exist()


class Entry(NamedTuple):
    """A job as the directory knows it. search: only where it was asked for, see store.tenants.searching."""

    number: int
    job_id: str
    name: str
    collection: str
    active: bool
    paused: bool
    ended: JobState | None
    facade: str
    search: str | None = None

    @property
    def searched(self) -> Searched | None:
        """None where the row does not say: the job itself does."""
        if self.search is None:
            return None
        return searching.unpack(self.search)

    @property
    def state(self) -> JobState:
        return state_of(active=self.active, paused=self.paused, ended=self.ended)


class Block(NamedTuple):
    """How many jobs of a facade a block holds."""

    number: int
    facade: str
    live: int
    active: int


def block_of(number: int) -> int:
    return number // BLOCK


def row_key(tenant: str, number: int) -> tuple[str, str]:
    return keys.directory_block(tenant, block_of(number)), keys.job_entry(number)


def number_of(sk: str) -> int:
    """From the sort key of a row of the directory, of a tag or of a resource."""
    return int(keys.parts(sk)[1])


def entry_of(row: dict[str, dict[str, Any]]) -> Entry:
    """row: in DynamoDB's JSON. Not by the model: thousands are read for one page (docs/benchmarks.md)."""
    job_id, name, collection, active, paused, facade = json.loads(row["entry"]["S"])
    number = int(row["sk"]["S"][4:])
    ended = JobState(row["ended"]["S"]) if "ended" in row else None
    search = row["search"]["S"] if "search" in row else None
    return Entry(number, job_id, name, collection, bool(active), bool(paused), ended, facade, search)


def block_count_of(row: dict[str, Any]) -> Block:
    item = BlockItem.from_raw_data(row)
    _, block, facade = keys.parts(item.sk)
    return Block(int(block), facade, item.live, item.active)


def next_number(table: Table, tenant: str) -> int:
    """A number that no other job of the tenant gets. Outside of any transaction: one that is not used stays a gap."""
    return table.increase(keys.directory(tenant), keys.LAST_NUMBER, NumberItem.last)


def job_id_of(table: Table, tenant: str, number: int) -> str | None:
    """The job with this number."""
    item = table.get(DirectoryItem, *row_key(tenant, number))
    return None if item is None else str(json.loads(item.entry)[0])


# Parts of the job's transaction


def create_ops(table: Table, job: Job, schedules: Sequence[Schedule]) -> list[Op]:
    """The name's part is called `name`: it is refused where the collection has a job of this name."""
    rows = [table.put_op(part, item, _condition(part)) for part, item in entry_items(job).items()]
    row = table.put_op("directory", row_item(job, schedules))
    return [*rows, row, _count_op(table, job, 1, int(job.active))]


def is_name_taken(table: Table, before: Job, after: Job) -> bool:
    """Returns whether another job has the name that a change gives a job in its collection."""
    old, new = (_entry_keys(job)["name"] for job in (before, after))
    return new != old and table.get(EntryItem, *new) is not None


def change_ops(
    table: Table, before: Job, after: Job, were: Sequence[Schedule], schedules: Sequence[Schedule]
) -> list[Op]:
    """were, schedules: of the job before and after the change. Parts as in create_ops, and `old` before what goes."""
    old, new = _entry_keys(before), _entry_keys(after)
    ops = [table.delete_op(f"old {part}", *key) for part, key in old.items() if key not in new.values()]
    items = entry_items(after)
    ops += [table.put_op(part, items[part], _condition(part)) for part, key in new.items() if key not in old.values()]
    ops.append(_change_row_op(table, after, were, schedules))
    if before.active is not after.active:
        ops.append(_count_op(table, after, 0, 1 if after.active else -1))
    return ops


def delete_ops(table: Table, job: Job) -> list[Op]:
    """Afterwards: `drop_if_empty`."""
    rows = [table.delete_op(part, *key) for part, key in _entry_keys(job).items()]
    row = table.delete_op("directory", *row_key(job.tenant, job.number))
    return [*rows, row, _count_op(table, job, -1, -int(job.active))]


def _entry_keys(job: Job) -> dict[str, tuple[str, str]]:
    """Where a job is listed beside the directory: part of the transaction -> key."""
    sk = keys.job_entry(job.number)
    found = {"name": (keys.names(job.tenant, job.collection), keys.name(job.name))}
    if job.resource_id is not None:
        found["resource"] = (keys.resource(job.tenant, job.resource_id), sk)
    return found | {f"tag {tag}": (keys.tag(job.tenant, tag), sk) for tag in job.tags}


def entry_items(job: Job) -> dict[str, EntryItem]:
    """The rows of a job beside the directory, by the parts of its transaction."""
    found = _entry_keys(job).items()
    return {part: EntryItem(pk=pk, sk=sk, job_id=job.id, number=job.number) for part, (pk, sk) in found}


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
    """None where the facade asks for no integer ids."""
    if job.ordinal is None:
        return None
    return searching.pack(job, schedules)


def _packed(job: Job) -> str:
    packed = [job.id, job.name, job.collection, int(job.active), int(job.pause is not None), job.facade]
    return json.dumps(packed, separators=(",", ":"), ensure_ascii=False)


def _condition(part: str) -> Condition | None:
    return ABSENT if part == "name" else None


def _change_row_op(table: Table, job: Job, were: Sequence[Schedule], schedules: Sequence[Schedule]) -> Op:
    """The end stays as it is where a schedule that the change does not touch may come to its own end meanwhile.

    Only a change leaves an end, so what was over when it was read is so still.
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
    return table.update_op("block", *_count_key(job), steps)


def _count_key(job: Job) -> tuple[str, str]:
    return keys.directory(job.tenant), keys.block_count(block_of(job.number), job.facade)


def mark_ended(table: Table, job: Job, ended: JobState) -> bool:
    """All schedules of the job are over [the job's revision as read before them]. False: read them again."""
    same: Condition = DirectoryItem.revision == job.revision
    return not isinstance(
        table.update(*row_key(job.tenant, job.number), [assign(DirectoryItem.ended, ended)], same), Refused
    )


def drop_if_empty(table: Table, job: Job) -> None:
    """After a delete: the count of a block without a job goes [live = 0], so that heads never outgrow what lives.

    One that stays because this was not reached says nothing wrong.
    """
    pk, sk = _count_key(job)
    try:
        there = table.get(BlockItem, pk, sk, consistent=False)
        if there is not None and there.live == 0:
            table.delete(pk, sk, BlockItem.live == 0)
    except Unavailable:
        return  # the job is deleted: that is what the caller must hear
