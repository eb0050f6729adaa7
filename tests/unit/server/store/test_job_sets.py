"""Members of job sets: each write meets the member that a plan has read, or is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from sweephand.domain.instants import epoch_ms
from sweephand.domain.job_set import Member
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Cancelled, Table, Written
from sweephand.server.store.job_sets import job_sets
from sweephand.testing.taps import Act, Fault, Passing
from tests.support.stage import Stage
from tests.unit.domain.nouns import MINUTE, NOW, TENANT

A = Member("a", "job-a", "1", 1)


@pytest.fixture
def table(stage: Stage) -> Table:
    return stage.world.table


def write(table: Table, seen: Member | None, wanted: Member = A) -> Written | Cancelled:
    return table.transact([job_sets.put_op(table, TENANT, "s", wanted, job_sets.is_as_read(seen))])


def test_a_key_is_taken_once(table: Table) -> None:
    assert write(table, None) == Written()
    assert isinstance(write(table, None), Cancelled)


@pytest.mark.parametrize("seen", [replace(A, job_id="job-b"), replace(A, revision=2), replace(A, revision=None)])
def test_a_member_is_changed_as_it_was_read(table: Table, seen: Member) -> None:
    write(table, None)

    assert isinstance(write(table, seen), Cancelled)
    assert write(table, A, replace(A, revision=2)) == Written()


@pytest.mark.parametrize("there", [replace(A, job_id="job-b", revision=None), A])
def test_the_member_of_a_deleted_job_is_changed_as_it_was_read(table: Table, there: Member) -> None:
    write(table, None, there)

    assert isinstance(write(table, replace(A, digest=None, revision=None)), Cancelled)


def test_a_deleted_member_that_is_as_it_was_read_is_changed(table: Table) -> None:
    gone = replace(A, digest=None, revision=None)
    write(table, None, gone)

    assert write(table, gone) == Written()


def test_members_and_sets_are_read_as_they_were_written(table: Table) -> None:
    written = [A, Member("b#%", "job-b", None, 3), Member("c", "job-c", None, None)]
    for each in written:
        write(table, None, each)

    assert list(job_sets.members(table, TENANT, "s")) == written
    assert list(job_sets.members(table, TENANT, "other")) == []
    assert job_sets.read_member(table, TENANT, "s", "b#%") == written[1]


def begin(table: Table, at: datetime = NOW) -> bool:
    return job_sets.begin(table, TENANT, "s", at, "me", None)


def counts(table: Table) -> tuple[int, int] | None:
    stored = job_sets.read_set(table, TENANT, "s")
    return None if stored is None else (stored.began, stored.ended)


def after(other: Callable[[], Any]) -> Fault:
    """Returns a fault that lets something else be written just before a call."""

    def fault(_passing: Passing, act: Act) -> Any:
        other()
        return act()

    return fault


@pytest.mark.parametrize(("crashed", "counted"), [(False, (2, 0)), (True, (3, 1))])
def test_two_lists_that_begin_at_once_both_count(stage: Stage, table: Table, crashed: bool, counted: Any) -> None:
    """crashed: whether an earlier list has begun and not ended."""
    assert not crashed or begin(table, NOW - 2 * job_sets.LONGEST)

    with stage.taps.once("dynamodb.UpdateItem", after(lambda: begin(table))):
        assert not begin(table)

    assert counts(table) == counted


def test_the_end_of_a_list_creates_no_set(stage: Stage, table: Table) -> None:
    begin(table)
    row = keys.tenant(TENANT), keys.job_set("s")

    with stage.taps.once("dynamodb.UpdateItem", after(lambda: table.delete(*row))):
        job_sets.end(table, TENANT, "s")

    assert counts(table) is None


@pytest.mark.parametrize("counted", [True, False])
def test_a_set_is_deleted_only_if_no_list_has_begun_since_it_was_read(table: Table, counted: bool) -> None:
    """counted: whether its row has counts, which a version before did not write."""
    if counted:
        begin(table)
    else:
        table.put(job_sets.JobSetItem(pk=keys.tenant(TENANT), sk=keys.job_set("s"), applied_at=epoch_ms(NOW)))
    stored = job_sets.read_set(table, TENANT, "s")
    assert stored is not None
    begin(table)

    assert not job_sets.delete_set(table, TENANT, stored)
    stored = job_sets.read_set(table, TENANT, "s")
    assert stored is not None
    assert job_sets.delete_set(table, TENANT, stored)


def test_a_list_is_applied_until_it_ends_or_a_minute_is_over(table: Table) -> None:
    begin(table)
    stored = job_sets.read_set(table, TENANT, "s")
    assert stored is not None

    assert [stored.is_applied(NOW + each) for each in (0 * MINUTE, MINUTE)] == [True, False]
    job_sets.end(table, TENANT, "s")
    assert counts(table) == (1, 1)
