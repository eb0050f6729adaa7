"""Members of job sets: each write meets the member that a plan has read, or is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sweephand.domain.job_set import Member
from sweephand.server.store.dynamo.conditional import Cancelled, Table, Written
from sweephand.server.store.job_sets import job_sets
from tests.support.stage import Stage
from tests.unit.domain.nouns import TENANT

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
