"""Lists of jobs: by creation, by name in a collection, under a tag or a resource; filtered, counted, in pages.

Lists come from small rows only. Then the jobs of a page are read by key. The cost of a page of all jobs does not grow
with its offset. Source: decision 0019.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.job import Job, JobState
from sweephand.domain.jobs.job_state import ended_state, state_of
from sweephand.domain.schedule import Schedule
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import BATCH_GET_MOST, Table
from sweephand.server.store.dynamo.table import Item, JobItem, ScheduleItem
from sweephand.server.store.jobs import directory, jobs
from sweephand.server.store.jobs.directory import (
    Block,
    BlockItem,
    DirectoryItem,
    EntryItem,
)
from sweephand.server.store.jobs.directory import Entry as Entry  # noqa: PLC0414 - part of what is listed
from sweephand.server.store.tenants import tenants as store
from sweephand.server.store.views import tenants

if TYPE_CHECKING:
    from pynamodb.attributes import Attribute

with lazy():
    from sweephand.server import threads

FILTERED_MOST = 50_000
"""How many small rows one request may read: 7.5 MB, some 1,000 read units."""
MOST_SCHEDULES = 500
"""A page of jobs ends with the job whose schedules reach this number. Each costs some 0.2 ms; a page has 500 jobs."""
CHUNK = 10_000
"""Rows of a list whose directory entries are read together, after the first page."""
AT_ONCE = 8

T = TypeVar("T")


class TooMany(Exception):
    """A list that has to be searched has more than FILTERED_MOST jobs."""


@dataclass(frozen=True)
class Filters:
    """The filters of a list; all must match.

    search: part of the name, ignoring case. facade: the job's creator. untagged: only jobs without tags.
    """

    collection: str | None = None
    state: JobState | None = None
    tag: str | None = None
    resource_id: str | None = None
    name: str | None = None
    search: str | None = None
    facade: str | None = None
    untagged: bool = False

    @property
    def all_of_a_facade(self) -> bool:
        """Returns whether only the facade (or nothing) is filtered. Then block counts locate an offset."""
        return self == Filters(facade=self.facade)

    @property
    def by_name(self) -> bool:
        """Returns whether the list is ordered by name; else by creation."""
        return self.collection is not None and self.tag is None and self.resource_id is None

    @property
    def by_key(self) -> bool:
        """Returns whether there is a list that is shorter than the directory."""
        return any(each is not None for each in (self.collection, self.tag, self.resource_id, self.name))

    @property
    def one_key(self) -> bool:
        """Returns whether one list holds exactly these jobs."""
        return self in (Filters(self.collection), Filters(tag=self.tag), Filters(resource_id=self.resource_id))

    def hold(self, entry: Entry) -> bool:
        """Returns whether an entry of the directory matches. Does not check tag and resource, which the entry lacks."""
        return (
            (self.collection is None or entry.collection == self.collection)
            and (self.state is None or entry.state is self.state)
            and self.facade in {None, entry.facade}
            and not (self.untagged and entry.tagged)
            and self.hold_for(entry.name)
        )

    def hold_now(self, job: Job, schedules: Sequence[Schedule]) -> bool:
        """Returns whether the job matches now. Its small rows were read a moment before it."""
        state = state_of(active=job.active, paused=job.pause is not None, ended=ended_state(schedules))
        return (
            self.collection in {None, job.collection}
            and self.resource_id in {None, job.resource_id}
            and (self.tag is None or self.tag in job.tags)
            and not (self.untagged and job.tags)
            and self.hold_for(job.name)
            and self.state in {None, state}
        )

    def hold_for(self, name: str) -> bool:
        return self.name in {None, name} and (self.search is None or self.search.casefold() in name.casefold())


ALL = Filters()


def by_tag(tag: str | None) -> Filters:
    """Returns the filter of a request for a tag: an empty string selects jobs without tags, as Root's null does."""
    return Filters(untagged=True) if tag == "" else Filters(tag=tag)


class Row(NamedTuple):
    """A job of a list. place: its name or its number, whichever the list is ordered by; the next page starts after it.

    entry: its entry of the directory, if that was read.
    """

    place: str
    number: int
    job_id: str
    entry: Entry | None = None


def listed(table: Table, tenant: str, filters: Filters, after: str | None, page: int, skip: int = 0) -> Iterator[Row]:
    """Yields the jobs that match the filters, after the place `after`, without the first `skip` of them.

    page: how many the caller will probably take. Raises TooMany.
    """
    if filters.all_of_a_facade:
        return _directory(table, tenant, filters.facade, int(after or 0), page, skip)
    if not filters.by_key:
        return islice(_searched(table, tenant, filters, int(after or 0)), skip, None)
    wanted = page + skip if filters.one_key else max(page + skip, directory.BLOCK)
    rows = _bounded(_keyed(table, tenant, filters, after, wanted))
    if filters.by_name and filters.state is None and not filters.untagged:
        rows = (row for row in rows if filters.hold_for(row.place))
    elif not filters.one_key:
        rows = _filtered(table, tenant, filters, rows, page + skip)
    return islice(rows, skip, None)


def count(table: Table, tenant: str, filters: Filters) -> int:
    """Returns how many jobs match the filters. Raises TooMany."""
    known = _counted(table, tenant, filters)
    return sum(1 for _ in listed(table, tenant, filters, None, CHUNK)) if known is None else known


def _counted(table: Table, tenant: str, filters: Filters) -> int | None:
    """Returns a count that is stored; None if the jobs must be searched."""
    if filters.all_of_a_facade:
        return sum(block.live for block in blocks(table, tenant) if filters.facade in {None, block.facade})
    if filters.one_key and filters.collection is not None:
        collection = store.read_collection(table, tenant, filters.collection)
        return store.job_counts(table, [collection])[0] if collection else 0
    return None


def page_and_count(
    table: Table, tenant: str, filters: Filters, after: str | None, page: int, skip: int = 0
) -> tuple[list[Row], int]:
    """Returns the first `page` rows as `listed` yields them, and how many jobs match. Raises TooMany.

    If both need a search of all jobs, it is made once.
    """
    known = _counted(table, tenant, filters)
    if known is not None:
        return list(islice(listed(table, tenant, filters, after, page, skip), page)), known
    every = list(listed(table, tenant, filters, None, CHUNK))
    rest = [row for row in every if after is None or _comes_after(filters, row, after)]
    return rest[skip : skip + page], len(every)


def _comes_after(filters: Filters, row: Row, place: str) -> bool:
    return row.place > place if filters.by_name else row.number > int(place)


# The directory


def blocks(table: Table, tenant: str) -> list[Block]:
    """Returns the job counts of each block, one per facade, in order.

    Reads consistently: if the counts were older than the directory, an offset into the next block would skip a job.
    """
    parts = threads.at_once(lambda part: _counts(table, tenant, part), range(directory.SPREAD))
    sums: dict[tuple[int, str], tuple[int, int]] = {}
    for each in (block for some in parts for block in some):
        live, active = sums.get((each.number, each.facade), (0, 0))
        sums[each.number, each.facade] = live + each.live, active + each.active
    return [Block(*block, *sums[block]) for block in sorted(sums) if sums[block][0] > 0]


def _live(blocks: Iterable[Block]) -> dict[int, int]:
    """Returns how many jobs each block has, in order."""
    live: dict[int, int] = {}
    for each in blocks:
        live[each.number] = live.get(each.number, 0) + each.live
    return live


def _counts(table: Table, tenant: str, part: int) -> list[Block]:
    rows = table.query_all(keys.directory_counts(tenant, part), BlockItem.sk.startswith("BLOCK#"), consistent=True)
    return [directory.block_count_of(row) for row in rows]


def _directory(table: Table, tenant: str, facade: str | None, after: int, page: int, skip: int) -> Iterator[Row]:
    """Yields all jobs (of a facade) by creation. The counts of the blocks locate the block of an offset.

    That block is read from its beginning. If the offset were counted from its end, the page would shift with every
    later job that is created or deleted after the counts were read.
    """
    first = directory.block_of(after + 1)
    for number, grouped in groupby(blocks(table, tenant), key=lambda block: block.number):
        lines = list(grouped)
        live = sum(line.live for line in lines if facade in {None, line.facade})
        if number < first or live == 0:
            continue
        if skip >= live and not after:
            skip -= live
            continue
        most = skip + page if facade is None or len(lines) == 1 else None
        whole_block = sum(line.live for line in lines)
        for entry in _of_facade(_block(table, tenant, number, after, most, live=whole_block), facade):
            if skip:
                skip -= 1
            else:
                yield _row(entry)


def _of_facade(entries: Iterable[Entry], facade: str | None) -> Iterator[Entry]:
    return (entry for entry in entries if facade in {None, entry.facade})


def _row(entry: Entry) -> Row:
    return Row(str(entry.number), entry.number, entry.job_id, entry)


def _block(
    table: Table,
    tenant: str,
    block: int,
    after: int = 0,
    limit: int | None = None,
    *,
    live: int | None = None,
    search: bool = False,
) -> Iterator[Entry]:
    """Yields the block's jobs with a number above `after`. live, limit: as for _block_rows.

    search: includes the members that a search reads.
    """
    only = (DirectoryItem.sk, DirectoryItem.entry, DirectoryItem.ended, *([DirectoryItem.search] if search else []))
    yield from map(directory.entry_of, _block_rows(table, tenant, block, after, limit=limit, live=live, only=only))


def _block_rows(
    table: Table,
    tenant: str,
    block: int,
    after: int = 0,
    *,
    only: Sequence[Attribute[Any]],
    limit: int | None = None,
    live: int | None = None,
) -> Iterator[dict[str, Any]]:
    """Yields the rows of a block's partitions with a number above `after`, reading them as they are needed.

    live: the number of jobs in the whole block; after that many, the other partitions are not read.
    """
    seen = 0
    for part in directory.parts_of(block):
        first = directory.part_of(after + 1)
        if part < first or (live is not None and seen >= live):
            continue
        sort = Item.sk >= keys.job_entry(after + 1) if part == first and after else None
        for row in table.query_all(keys.directory_part(tenant, part), sort, limit=limit, only=only):
            seen += 1
            yield row


def whole(table: Table, tenant: str, facade: str, *, search: bool = False) -> Iterator[Entry]:
    """Yields all jobs of a facade by creation. search: includes the members that a search reads. Raises TooMany."""
    every_block = blocks(table, tenant)
    live = _live(every_block)
    wanted = [block for block in every_block if block.facade == facade]
    if sum(block.live for block in wanted) > FILTERED_MOST:
        raise TooMany

    def read(block: Block) -> list[Entry]:
        return list(_block(table, tenant, block.number, live=live[block.number], search=search))

    for entries in threads.at_once(read, wanted):
        yield from _of_facade(entries, facade)


def _searched(table: Table, tenant: str, filters: Filters, after: int) -> Iterator[Row]:
    """Searches the directory after a number: one block first, then several at a time."""
    live = _live(blocks(table, tenant))
    if sum(live.values()) > FILTERED_MOST:
        raise TooMany
    wanted = [block for block in live if block >= directory.block_of(after + 1)]

    def read(block: int) -> list[Entry]:
        return list(_block(table, tenant, block, after, live=live[block]))

    for some in [wanted[:1], *(wanted[n : n + AT_ONCE] for n in range(1, len(wanted), AT_ONCE))]:
        for entries in threads.at_once(read, some):
            yield from map(_row, _holding(table, tenant, filters, entries))


class Known(NamedTuple):
    """A job as the directory knows it, which is enough to notice a change."""

    job_id: str
    revision: int
    state: JobState


def known(table: Table, tenant: str, most: int) -> tuple[list[Known], int]:
    """Returns the first jobs of a tenant by creation, and how many there are. Costs some 20 read units per thousand.

    most: how many jobs are read, rounded up to whole blocks.
    """
    live = _live(blocks(table, tenant))
    numbers: list[int] = []
    read = 0
    for number, jobs_in_it in live.items():
        if read >= most:
            break
        numbers.append(number)
        read += jobs_in_it
    of_blocks = threads.at_once(lambda number: _known(table, tenant, number, live[number]), numbers)
    return [each for some in of_blocks for each in some], sum(live.values())


def _known(table: Table, tenant: str, block: int, live: int) -> list[Known]:
    only = (DirectoryItem.sk, DirectoryItem.entry, DirectoryItem.ended, DirectoryItem.revision)
    rows = _block_rows(table, tenant, block, live=live, only=only)
    entries = ((directory.entry_of(row), int(row["revision"]["N"])) for row in rows)
    return [Known(entry.job_id, revision, entry.state) for entry, revision in entries]


# Lists by key


def _keyed(table: Table, tenant: str, filters: Filters, after: str | None, page: int) -> Iterator[Row]:
    """Returns the shortest list that the filters allow."""
    if filters.name is not None:
        return iter(_named(table, tenant, filters, filters.name, after))
    if filters.resource_id is not None:
        return _by_creation(table, keys.resource(tenant, filters.resource_id), int(after or 0), page)
    if filters.tag is not None:
        return _by_creation(table, keys.tag(tenant, filters.tag), int(after or 0), page)
    assert filters.collection is not None
    return by_name(table, tenant, filters.collection, after, page)


def _by_creation(table: Table, pk: str, after: int, page: int) -> Iterator[Row]:
    sort = Item.sk >= keys.job_entry(after + 1) if after else None
    for row in table.query_all(pk, sort, limit=page, only=(EntryItem.sk, EntryItem.job_id)):
        number = directory.number_of(row["sk"]["S"])
        yield Row(str(number), number, row["job_id"]["S"])


def by_name(table: Table, tenant: str, collection: str, after: str | None, page: int) -> Iterator[Row]:
    """Yields all of a collection's jobs by name, after the name `after`."""
    sort = Item.sk >= keys.name(after) if after is not None else None
    only = (EntryItem.sk, EntryItem.job_id, EntryItem.number)
    for row in table.query_all(keys.names(tenant, collection), sort, limit=page, only=only):
        name = keys.parts(row["sk"]["S"])[1]
        if name != after:
            yield Row(name, int(row["number"]["N"]), row["job_id"]["S"])


def _named(table: Table, tenant: str, filters: Filters, name: str, after: str | None) -> list[Row]:
    """Returns the jobs with this name: at most one in each collection."""
    if filters.collection is not None:
        collections: Iterable[str] = (filters.collection,)
    else:
        collections = (each.name for each in tenants.collections(table, tenant, None, BATCH_GET_MOST))
    entry_rows = table.batch_get(
        ((keys.names(tenant, each), keys.name(name)) for each in collections), consistent=False
    )
    items = sorted((EntryItem.from_raw_data(row) for row in entry_rows.values()), key=lambda item: item.number)
    if filters.by_name:
        return [Row(name, item.number, item.job_id) for item in items if after is None or name > after]
    return [Row(str(item.number), item.number, item.job_id) for item in items if item.number > int(after or 0)]


def _bounded(rows: Iterator[T]) -> Iterator[T]:
    for looked_at, row in enumerate(rows):
        if looked_at == FILTERED_MOST:
            raise TooMany
        yield row


def _filtered(table: Table, tenant: str, filters: Filters, rows: Iterator[Row], page: int) -> Iterator[Row]:
    """Yields the rows that match all filters. Checks one page first, then many rows at a time."""
    size = page
    while some := list(islice(rows, size)):
        entries = _entries(table, tenant, [row.number for row in some])
        held = {each.number for each in _holding(table, tenant, filters, entries.values())}
        some = [row for row in some if row.number in held]
        tagged = [keys.tag(tenant, filters.tag)] if filters.tag is not None else []
        owned = [keys.resource(tenant, filters.resource_id)] if filters.resource_id is not None else []
        for pk in (*tagged, *owned):
            entry_rows = table.batch_get(((pk, keys.job_entry(row.number)) for row in some), consistent=False)
            some = [row for row in some if (pk, keys.job_entry(row.number)) in entry_rows]
        yield from some
        size = CHUNK


def _holding(table: Table, tenant: str, filters: Filters, entries: Iterable[Entry]) -> list[Entry]:
    """Returns the entries that match. If an entry does not say whether its job has tags, reads the job."""
    held = [each for each in entries if filters.hold(each)]
    unsure = [each.job_id for each in held if each.tagged is None] if filters.untagged else []
    tagged = {job.id for job in named_jobs(table, tenant, unsure).values() if job.tags} if unsure else set()
    return [each for each in held if each.job_id not in tagged]


def _entries(table: Table, tenant: str, numbers: Iterable[int]) -> dict[int, Entry]:
    """Returns the directory's entries of these numbers, by key, or by whole partitions if there are many in one."""
    by_part = {part: list(some) for part, some in groupby(sorted(numbers), key=directory.part_of)}
    dense = [part for part, some in by_part.items() if len(some) > BATCH_GET_MOST]
    wanted = [directory.row_key(tenant, each) for part, some in by_part.items() if part not in dense for each in some]
    sparse = [wanted[n : n + BATCH_GET_MOST] for n in range(0, len(wanted), BATCH_GET_MOST)]

    def by_key(some: Sequence[tuple[str, str]]) -> list[Entry]:
        return [directory.entry_of(row) for row in table.batch_get(some, consistent=False).values()]

    def whole_part(part: int) -> list[Entry]:
        only = (DirectoryItem.sk, DirectoryItem.entry, DirectoryItem.ended)
        return [directory.entry_of(row) for row in table.query_all(keys.directory_part(tenant, part), only=only)]

    of_blocks = [
        *threads.at_once(by_key, sparse),
        *threads.at_once(whole_part, dense),
    ]
    return {entry.number: entry for entries in of_blocks for entry in entries}


# The jobs of a page


def named_jobs(table: Table, tenant: str, ids: Iterable[str]) -> dict[str, Job]:
    """Returns the jobs that exist, by id: half a read unit each."""
    rows = table.batch_get(jobs.job_keys(tenant, list(ids)), consistent=False)
    listed = (jobs.job_of(JobItem.from_raw_data(row)) for row in rows.values())
    return {job.id: job for job in listed}


def page_with_schedules(
    table: Table, tenant: str, rows: Sequence[Row], limit: int
) -> tuple[list[tuple[Job, list[Schedule]]], Row | None]:
    """Returns the jobs of a page with their schedules, and its last row if more follow.

    rows: more than `limit` if more follow. A page ends early once its jobs have MOST_SCHEDULES.
    """
    by_id = named_jobs(table, tenant, [row.job_id for row in rows[:limit]])
    end = counted = 0
    while end < min(limit, len(rows)) and counted < MOST_SCHEDULES:
        job = by_id.get(rows[end].job_id)
        counted += 0 if job is None else job.schedule_count
        end += 1
    shown = _with_schedules(table, tenant, [job for row in rows[:end] if (job := by_id.get(row.job_id))])
    return shown, rows[end - 1] if end < len(rows) else None


def jobs_with_schedules(
    table: Table, tenant: str, ids: Sequence[str], *, consistent: bool = False
) -> list[tuple[Job, list[Schedule]]]:
    """Returns jobs in the given order with their schedules: two batched reads, and one query per large job."""
    job_rows = _rows(table, jobs.job_keys(tenant, ids), consistent=consistent)
    listed = [
        jobs.job_of(JobItem.from_raw_data(row)) for key in jobs.job_keys(tenant, ids) if (row := job_rows.get(key))
    ]
    return _with_schedules(table, tenant, listed, consistent=consistent)


def _with_schedules(
    table: Table, tenant: str, listed: Sequence[Job], *, consistent: bool = False
) -> list[tuple[Job, list[Schedule]]]:
    wanted = [(keys.job(tenant, job.id), keys.schedule(sid)) for job in listed for sid in job.schedule_ids]
    rows = _rows(table, wanted, consistent=consistent)
    result = []
    for job in listed:
        if job.many_schedules:
            result.append((job, jobs.read_schedules(table, tenant, job.id)))
            continue
        own = [rows.get((keys.job(tenant, job.id), keys.schedule(sid))) for sid in job.schedule_ids]
        result.append((job, [jobs.schedule_of(ScheduleItem.from_raw_data(row)) for row in own if row]))
    jobs.know_calendars(table, ((each.tenant, each.packed) for _, schedules in result for each in schedules))
    return result


def _rows(
    table: Table, wanted: Sequence[tuple[str, str]], *, consistent: bool
) -> dict[tuple[str, str], dict[str, Any]]:
    """Reads rows by key, many at the same time."""
    some = [wanted[n : n + BATCH_GET_MOST] for n in range(0, len(wanted), BATCH_GET_MOST)]
    batches = threads.at_once(lambda keys: table.batch_get(keys, consistent=consistent), some)
    return {key: row for rows in batches for key, row in rows.items()}
