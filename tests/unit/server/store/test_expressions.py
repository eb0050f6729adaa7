"""Conditions and actions, as the table understands them."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.server.store.dynamo.conditional import Refused, Table, Written
from sweephand.server.store.dynamo.expressions import add, assign, every
from sweephand.server.store.dynamo.table import AttemptItem, StatsItem
from tests.support.stage import Stage

PK = "TENANT#acme#X"


def item(**members: Any) -> AttemptItem:
    return AttemptItem(pk=PK, sk="a", attempt=1, started_at=0, finished_at=0, reason="j", **members)


@pytest.fixture
def table(stage: Stage) -> Table:
    return stage.world.table


def test_assigning_none_removes_the_attribute(table: Table) -> None:
    table.put(item(message="n", answer="c"))

    table.update(PK, "a", [assign(AttemptItem.message, None), assign(AttemptItem.answer, "d")])

    found = table.get(AttemptItem, PK, "a")
    assert found is not None
    assert (found.message, found.answer) == (None, "d")


def test_every_clause_must_hold(table: Table) -> None:
    table.put(item(message="n"))
    both = every(AttemptItem.reason == "j", AttemptItem.message == "n")
    one = every(AttemptItem.reason == "j", AttemptItem.message == "m")

    assert isinstance(table.update(PK, "a", [assign(AttemptItem.answer, "c")], one), Refused)
    assert table.update(PK, "a", [assign(AttemptItem.answer, "c")], both) == Written()


def test_a_count_in_a_transaction_starts_at_zero(table: Table) -> None:
    op = table.update_op("stats", PK, "s", [add(StatsItem.failed, 2)])

    assert table.transact([op]) == Written()
    assert table.transact([op]) == Written()

    found = table.get(StatsItem, PK, "s")
    assert found is not None
    assert found.failed == 4
