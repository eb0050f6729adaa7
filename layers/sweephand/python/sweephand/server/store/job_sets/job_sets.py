"""Job sets and their members: an item per key, written in the transaction of its job, so that both agree.

The row of a set is written once for each list that is applied (decision 0186), not with each job.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.domain.job_set import Member
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Refused, Table, Written, if_any
from sweephand.server.store.dynamo.expressions import Condition, add, assign, every, removal
from sweephand.server.store.dynamo.flat_models import Integer, UnicodeAttribute
from sweephand.server.store.dynamo.table import Item


class JobSetItem(Item):
    """A job set in the list of sets. The attributes are those of JobSet."""

    applied_at = Integer()
    applied_by = UnicodeAttribute(null=True)
    owner = UnicodeAttribute(null=True)
    began = Integer(null=True)
    ended = Integer(null=True)


class MemberItem(Item):
    """A job of a set, under its key. digest, revision: see domain.job_set.Member."""

    job_id = UnicodeAttribute()
    digest = UnicodeAttribute(null=True)
    revision = Integer(null=True)


PART = "member"
"""The name of the part of a job's transaction that writes its member."""


LONGEST = timedelta(seconds=60)
"""No request that applies a list takes longer."""


@dataclass(frozen=True)
class JobSet:
    """A job set. applied_at: when a list that creates or changes jobs was last applied.

    owner: what applies it, in the caller's words; None if no caller has named it. began, ended: how many such lists
    have begun to be applied, and how many have come to an end.
    """

    name: str
    applied_at: datetime
    applied_by: str | None
    owner: str | None = None
    began: int = 0
    ended: int = 0

    def is_applied(self, now: datetime) -> bool:
        """Returns whether a list may still be creating jobs. One that crashed is over after LONGEST."""
        return self.began > self.ended and self.applied_at > now - LONGEST


def set_of(item: JobSetItem) -> JobSet:
    return JobSet(keys.parts(item.sk)[1], from_ms(item.applied_at), item.applied_by, item.owner, *_counts(item))


def _counts(item: JobSetItem) -> tuple[int, int]:
    return item.began or 0, item.ended or 0


def read_set(table: Table, tenant: str, name: str) -> JobSet | None:
    return if_any(set_of, table.get(JobSetItem, keys.tenant(tenant), keys.job_set(name)))


def begin(table: Table, tenant: str, name: str, at: datetime, by: str | None, owner: str | None) -> bool:
    """Puts a set into the list of sets before it gets jobs. Returns whether it is new. An owner of None stays."""
    row = keys.tenant(tenant), keys.job_set(name)
    actions = [assign(JobSetItem.applied_at, epoch_ms(at)), assign(JobSetItem.applied_by, by)]
    if owner is not None:
        actions.append(assign(JobSetItem.owner, owner))
    stored = read_set(table, tenant, name)
    if stored is None:
        if table.update(*row, [*actions, assign(JobSetItem.began, 1)], JobSetItem.pk.does_not_exist()) == Written():
            return True
    elif stored.began > stored.ended and not stored.is_applied(at):
        crashed = [assign(JobSetItem.ended, stored.began), assign(JobSetItem.began, stored.began + 1)]
        if table.update(*row, [*actions, *crashed], JobSetItem.began == stored.began) == Written():
            return False
    table.update(*row, [*actions, add(JobSetItem.began, 1)])
    return False


def end(table: Table, tenant: str, name: str) -> None:
    """Notes that a list which `begin` has noted creates no more jobs [the set is there].

    The number is written, not added: a repeated write ends no other list. If two are written at once, one is lost,
    and a list counts as being applied until LONGEST is over.
    """
    stored = read_set(table, tenant, name)
    if stored is not None:
        ended = assign(JobSetItem.ended, stored.ended + 1)
        table.update(keys.tenant(tenant), keys.job_set(name), [ended], JobSetItem.pk.exists())


def claim(table: Table, tenant: str, name: str, owner: str) -> None:
    """Names the owner of a set, if the set is still there."""
    row = keys.tenant(tenant), keys.job_set(name)
    table.update(*row, [assign(JobSetItem.owner, owner)], JobSetItem.pk.exists())


def release(table: Table, tenant: str, name: str, owner: str) -> bool:
    """Makes a set belong to nothing, if it belongs to this owner. Returns whether it did."""
    row = keys.tenant(tenant), keys.job_set(name)
    return not isinstance(table.update(*row, removal(JobSetItem, "owner"), JobSetItem.owner == owner), Refused)


def delete_set(table: Table, tenant: str, job_set: JobSet) -> bool:
    """Removes a set from the list [no list has begun since it was read]. Returns whether it did."""
    same = JobSetItem.began == job_set.began if job_set.began else JobSetItem.began.does_not_exist()
    return table.delete(keys.tenant(tenant), keys.job_set(job_set.name), same) == Written()


def members(table: Table, tenant: str, name: str) -> Iterator[Member]:
    """Yields the members by key: a thousand are about 150 KB, one page."""
    for row in table.query_all(keys.job_set_rows(tenant, name), MemberItem.sk.startswith("MEMBER#"), consistent=True):
        yield _member_of(MemberItem.from_raw_data(row))


def read_member(table: Table, tenant: str, name: str, key: str) -> Member | None:
    return if_any(_member_of, table.get(MemberItem, *_place(tenant, name, key)))


def _member_of(item: MemberItem) -> Member:
    return Member(keys.parts(item.sk)[1], item.job_id, item.digest, item.revision)


def _place(tenant: str, name: str, key: str) -> tuple[str, str]:
    return keys.job_set_rows(tenant, name), keys.member(key)


# Parts of a job's transaction


def is_as_read(member: Member | None) -> Condition:
    """Requires that the member is as the plan read it: no caller has changed or deleted its job since."""
    if member is None:
        absent: Condition = MemberItem.pk.does_not_exist()
        return absent
    same: Condition = MemberItem.job_id == member.job_id
    if member.revision is None:
        return every(same, MemberItem.revision.does_not_exist())
    return every(same, MemberItem.revision == member.revision)


def put_op(table: Table, tenant: str, name: str, member: Member, condition: Condition | None = None) -> Op:
    pk, sk = _place(tenant, name, member.key)
    item = MemberItem(pk=pk, sk=sk, job_id=member.job_id, digest=member.digest, revision=member.revision)
    return table.put_op(PART, item, condition)


def delete_op(table: Table, tenant: str, name: str, member: Member, part: str = PART) -> Op:
    return table.delete_op(part, *_place(tenant, name, member.key), is_as_read(member))


def forget(table: Table, tenant: str, name: str, member: Member) -> None:
    """Removes the member of a deleted job, if it is as read."""
    table.delete(*_place(tenant, name, member.key), is_as_read(member))
