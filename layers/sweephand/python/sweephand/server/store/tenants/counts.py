"""Counts of jobs and schedules, each spread over 16 rows that a job's transaction writes one of (decision 0195).

A count without a quota is only added to. Under a quota, each row holds a lease: how many may be added in it. Leases
come from what the quota leaves over, so all rows together never exceed it. Deletes reduce a row's count and not its
lease; the next lease finds what they have freed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import Enum

from sweephand.base.records import dataclass
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Cancelled, Contended, Op, Table
from sweephand.server.store.dynamo.expressions import Action, Condition, add, assign, every
from sweephand.server.store.dynamo.flat_models import Integer
from sweephand.server.store.dynamo.table import CountItem, LeasingItem

STRIPES = 16
"""Rows of a count. One row takes some 50 transactions a second."""
FEW = 1_000
"""Under a smaller quota all additions meet in one row, so that most need no lease."""
LEAST_LEASE = 16
"""The least that is leased at a time, while that much is left over."""


@dataclass(frozen=True)
class Need:
    """Numbers to add to a count; negative ones are taken away."""

    jobs: int = 0
    schedules: int = 0


@dataclass(frozen=True)
class Counted:
    """A count and its quota as read.

    row: the sort key of its 16 rows, and of the row with its quota or content in the tenant's partition. revision: of
    that row. most: the quota by members of Need; without a quota, none. lasts: whether the rows exist from the
    beginning to the end, so that nothing is added to a count that was deleted.
    """

    tenant: str
    row: str
    revision: int = 0
    most: Mapping[str, int] = field(default_factory=dict)
    lasts: bool = False

    @property
    def stripes(self) -> int:
        """Returns how many of the rows take additions."""
        return 1 if min(self.most.values(), default=FEW) < FEW else STRIPES

    def left(self, item: CountItem, name: str) -> int:
        """Returns the rest of a row's lease; leases of an earlier revision of the quota are void."""
        return _left(item, name) or 0 if item.revision == self.revision else 0

    def allows(self, item: CountItem, need: Mapping[str, int]) -> bool:
        """Returns whether a row's lease has as many left. need: by members of Need."""
        return all(self.left(item, name) >= wanted for name, wanted in need.items())


def _left(item: CountItem, name: str) -> int | None:
    left: int | None = item.jobs_left if name == "jobs" else item.schedules_left
    return left


_LEFT = {"jobs": CountItem.jobs_left, "schedules": CountItem.schedules_left}


def _key(counted: Counted, stripe: int) -> tuple[str, str]:
    return keys.stripe(counted.tenant, stripe), counted.row


def _keys(counted: Counted) -> list[tuple[str, str]]:
    return [_key(counted, stripe) for stripe in range(STRIPES)]


def read(table: Table, counted: Counted) -> list[CountItem]:
    """Reads all rows; a row that is not there yet counts nothing."""
    rows = table.batch_get(_keys(counted))
    return [CountItem.from_raw_data(rows.get(key, {})) for key in _keys(counted)]


def totals(table: Table, many: Sequence[Counted]) -> list[Need]:
    """Returns the numbers of several counts: 16 read units for each, a hundred rows in a call."""
    rows = table.batch_get(key for counted in many for key in _keys(counted))
    return [_sum(CountItem.from_raw_data(rows[key]) for key in _keys(counted) if key in rows) for counted in many]


def _sum(items: Iterable[CountItem]) -> Need:
    parts = list(items)
    return Need(sum(each.jobs for each in parts), sum(each.schedules for each in parts))


# Parts of a job's transaction


def count_op(table: Table, part: str, counted: Counted, number: int, need: Need) -> Op:
    """Returns the operation that adds to a count in the row that a number chooses, such as that of `take_room`.

    Any row may count what is taken away. Under a quota, an addition requires the room that `take_room` has found;
    without one, that no later revision is in force (`void`). An empty need only checks this.
    """
    conditions: list[Condition] = [CountItem.pk.exists()] if counted.lasts else []
    steps = [add(CountItem.jobs, need.jobs), add(CountItem.schedules, need.schedules)]
    limited = [name for name in counted.most if getattr(need, name) > 0]
    if "jobs" in limited:
        steps.append(add(CountItem.jobs_left, -need.jobs))
        conditions.append(CountItem.jobs_left >= need.jobs)
    if "schedules" in limited:
        steps.append(add(CountItem.schedules_left, -need.schedules))
        conditions.append(CountItem.schedules_left >= need.schedules)
    if limited:
        conditions.append(CountItem.revision == counted.revision)
    elif min(need.jobs, need.schedules) >= 0:
        conditions.append(CountItem.revision.does_not_exist() | (CountItem.revision <= counted.revision))
    return table.update_op(part, *_key(counted, number % STRIPES), steps, every(*conditions) if conditions else None)


def begin_ops(table: Table, counted: Counted) -> list[Op]:
    """Returns the operations that create the rows of a count that lasts."""
    rows = (CountItem(pk=pk, sk=sk, revision=counted.revision) for pk, sk in _keys(counted))
    return [table.put_op(f"count {row.sk} {row.pk}", row) for row in rows]


def adopt(table: Table, counted: Counted, head: Op, jobs: int) -> None:
    """Adds what version 0.1 counted in the head, and creates the rows that are absent.

    head: the operation that removes the number from the head [as read].
    """
    rows = [
        table.update_op(f"count {n}", *_key(counted, n), [add(CountItem.jobs, 0 if n else jobs)])
        for n in range(STRIPES)
    ]
    table.transact([head, *rows])


def end_ops(table: Table, counted: Counted) -> list[Op]:
    """Returns the operations that delete the rows [jobs as read, no job in all of them].

    The part `count` is refused if there are jobs.
    """
    rows = read(table, counted)
    empty = _sum(rows).jobs == 0
    ops = []
    for (pk, sk), row in zip(_keys(counted), rows, strict=True):
        as_read: Condition = CountItem.jobs == row.jobs if empty else CountItem.pk.does_not_exist()
        ops.append(table.delete_op("count", pk, sk, as_read))
    return ops


def void(table: Table, counted: Counted) -> None:
    """Ends all leases of earlier revisions, and additions that have read such a revision.

    Call it after the write of a new quota, so that the quota holds for all requests that begin after its answer.
    """
    later = CountItem.revision.does_not_exist() | (CountItem.revision < counted.revision)
    condition = every(CountItem.pk.exists(), later) if counted.lasts else later
    actions = [assign(CountItem.revision, counted.revision), *(assign(left, None) for left in _LEFT.values())]
    for pk, sk in _keys(counted):
        table.carry_out(table.update_op("void", pk, sk, actions, condition))


# Leases


class NoRoom(Enum):
    """The reasons why nothing can be added. JOBS, SCHEDULES: the quota that allows no more."""

    MOVED = "moved"
    """Another request has changed the leases meanwhile."""
    JOBS = "jobs"
    SCHEDULES = "schedules"


def take_room(table: Table, counted: Counted, number: int, need: Need) -> int | NoRoom:
    """Returns the row that has room for what is needed: usually the one that the number chooses.

    Costs nothing without a quota, usually one read with one. If that row's lease is used up, it gets a share of what
    the quota has left over. Once that is little, what the other rows have left is used first.
    """
    limited = {name: getattr(need, name) for name in counted.most if getattr(need, name) > 0}
    first: int = number % (counted.stripes if limited else STRIPES)
    if not limited:
        return first
    own = table.get(CountItem, *_key(counted, first))
    if own is not None and counted.allows(own, limited):
        return first
    # Read before the rows: a lease that was granted in between makes this one fail.
    leasing = table.get(LeasingItem, keys.tenant(counted.tenant), counted.row)
    if leasing is None or leasing.revision != counted.revision:
        return NoRoom.MOVED
    rows = read(table, counted)
    left = {name: [counted.left(row, name) for row in rows] for name in counted.most}
    free = {name: most - getattr(_sum(rows), name) - sum(left[name]) for name, most in counted.most.items()}
    if any(free[name] < LEAST_LEASE * counted.stripes for name in limited):
        others = [(first + n) % STRIPES for n in range(STRIPES)]
        for stripe in others:
            if counted.allows(rows[stripe], limited):
                return stripe
    for name, wanted in limited.items():
        if free[name] + sum(left[name]) < wanted:
            return NoRoom(name)
        _move(left[name], first, wanted - left[name][first], free[name], counted.stripes)
    return first if _leased(table, counted, leasing, first, rows, left) else NoRoom.MOVED


def _move(left: list[int], stripe: int, short: int, free: int, stripes: int) -> None:
    """Gives a row what it is short of or more, from what is free; else from the rows that have most left."""
    if short <= 0:
        return
    share = free if stripes == 1 else max(LEAST_LEASE, free // (2 * stripes))
    granted = min(max(0, free), max(short, share))
    for other in sorted(range(len(left)), key=lambda n: -left[n]):
        if granted < short and other != stripe:
            taken = min(left[other], short - granted)
            left[other] -= taken
            granted += taken
    left[stripe] += granted


def _leased(
    table: Table,
    counted: Counted,
    leasing: LeasingItem,
    stripe: int,
    rows: Sequence[CountItem],
    left: Mapping[str, Sequence[int]],
) -> bool:
    """Writes the leases. Returns False if another request has changed them since they were read."""
    ops = [_lease_op(table, leasing)]
    for n, row in enumerate(rows):
        wished = {name: lefts[n] for name, lefts in left.items()}
        if n == stripe or any(counted.left(row, name) != value for name, value in wished.items()):
            ops.append(_row_op(table, counted, n, row, wished))
    try:
        return not isinstance(table.transact(ops, most=1), Cancelled)
    except Contended:
        return False


def _lease_op(table: Table, leasing: LeasingItem) -> Op:
    """Returns the operation that lets one lease at a time be granted [the quota and the last lease as read]."""
    as_read = every(_same(LeasingItem.revision, leasing.revision), _same(LeasingItem.leases, leasing.leases))
    return table.update_op("leasing", leasing.pk, leasing.sk, [add(LeasingItem.leases, 1)], as_read)


def _row_op(table: Table, counted: Counted, stripe: int, row: CountItem, left: Mapping[str, int]) -> Op:
    as_read = every(
        _same(CountItem.revision, row.revision),
        _same(CountItem.jobs_left, row.jobs_left),
        _same(CountItem.schedules_left, row.schedules_left),
    )
    actions: list[Action] = [assign(CountItem.revision, counted.revision)]
    actions += [assign(attribute, left.get(name)) for name, attribute in _LEFT.items()]
    return table.update_op(f"count {stripe}", *_key(counted, stripe), actions, as_read)


def _same(attribute: Integer, value: int | None) -> Condition:
    same: Condition = attribute.does_not_exist() if value is None else attribute == value
    return same
