"""Job sets and their members: an item per key, written in the transaction of its job, so that both agree."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.domain.job_set import Member
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Refused, Table, if_any
from sweephand.server.store.dynamo.expressions import Condition, assign, every, removal
from sweephand.server.store.dynamo.flat_models import Integer, UnicodeAttribute
from sweephand.server.store.dynamo.table import Item


class JobSetItem(Item):
    """A job set in the list of sets. applied_at: when it last created or changed a job. owner: see JobSet."""

    applied_at = Integer()
    applied_by = UnicodeAttribute(null=True)
    owner = UnicodeAttribute(null=True)


class MemberItem(Item):
    """A job of a set, under its key. digest, revision: see domain.job_set.Member."""

    job_id = UnicodeAttribute()
    digest = UnicodeAttribute(null=True)
    revision = Integer(null=True)


PART = "member"
"""The name of the part of a job's transaction that writes its member."""


@dataclass(frozen=True)
class JobSet:
    """A job set. owner: what applies it, in the caller's words; None if no caller has named it."""

    name: str
    applied_at: datetime
    applied_by: str | None
    owner: str | None = None


def set_of(item: JobSetItem) -> JobSet:
    return JobSet(keys.parts(item.sk)[1], from_ms(item.applied_at), item.applied_by, item.owner)


def read_set(table: Table, tenant: str, name: str) -> JobSet | None:
    return if_any(set_of, table.get(JobSetItem, keys.tenant(tenant), keys.job_set(name)))


def line_op(table: Table, tenant: str, job_set: JobSet) -> Op:
    """Returns the part of a job's transaction that puts its set into the list of sets. An owner of None stays."""
    actions = [assign(JobSetItem.applied_at, epoch_ms(job_set.applied_at))]
    actions.append(assign(JobSetItem.applied_by, job_set.applied_by))
    if job_set.owner is not None:
        actions.append(assign(JobSetItem.owner, job_set.owner))
    return table.update_op("set", keys.tenant(tenant), keys.job_set(job_set.name), actions)


def claim(table: Table, tenant: str, name: str, owner: str) -> None:
    """Names the owner of a set, if the set is still there."""
    row = keys.tenant(tenant), keys.job_set(name)
    table.update(*row, [assign(JobSetItem.owner, owner)], JobSetItem.pk.exists())


def release(table: Table, tenant: str, name: str, owner: str) -> bool:
    """Makes a set belong to nothing, if it belongs to this owner. Returns whether it did."""
    row = keys.tenant(tenant), keys.job_set(name)
    return not isinstance(table.update(*row, removal(JobSetItem, "owner"), JobSetItem.owner == owner), Refused)


def delete_set(table: Table, tenant: str, name: str) -> None:
    table.delete(keys.tenant(tenant), keys.job_set(name))


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
