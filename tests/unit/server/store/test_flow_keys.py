"""Flow keys in the table: each condition of their writes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from sweephand.domain.flow_keys.flow_keys import Enter, FlowKey, Place, Turnstile, answer
from sweephand.server.store.dynamo.conditional import Cancelled, Refused, Table, Written
from sweephand.server.store.flow_keys import flow_keys as store
from tests.support.stage import TENANT
from tests.unit.server.flow.common import NOON

SECOND = timedelta(seconds=1)
KEY = FlowKey(TENANT, "k", NOON, NOON, parallelism=1)


@pytest.fixture
def table(stage) -> Table:
    return stage.world.table


@pytest.fixture
def key(table) -> FlowKey:
    assert table.transact(store.create_ops(table, KEY, "t0")) == Written()
    return KEY


def test_a_key_is_created_once(table, key):
    done = table.transact(store.create_ops(table, replace(key, parallelism=9), "t1"))

    assert isinstance(done, Cancelled)
    assert store.find(table, TENANT, "k") == key


def test_a_change_is_of_the_revision_that_was_read(table, key):
    after = replace(key, parallelism=2, revision=2)
    assert table.transact(store.change_ops(table, key, after, "t1")) == Written()

    late = table.transact(store.change_ops(table, key, replace(key, parallelism=3, revision=2), "t2"))

    assert isinstance(late, Cancelled)
    assert store.find(table, TENANT, "k") == after
    assert store.read_stile(table, TENANT, "k").terms.parallelism == 2


def test_a_key_goes_as_it_was_read_and_only_if_nobody_names_it(table, key):
    assert table.transact(store.use_ops(table, TENANT, None, "k")) == Written()
    assert isinstance(table.transact(store.delete_ops(table, key)), Cancelled)
    assert table.transact(store.use_ops(table, TENANT, "k", None)) == Written()
    after = replace(key, parallelism=2, revision=2)
    assert table.transact(store.change_ops(table, key, after, "t1")) == Written()

    assert isinstance(table.transact(store.delete_ops(table, key)), Cancelled)
    assert table.transact(store.delete_ops(table, after)) == Written()


def test_nobody_names_a_key_that_is_not_there(table):
    assert isinstance(table.transact(store.use_ops(table, TENANT, None, "k")), Cancelled)


def test_a_turnstile_is_moved_from_where_it_was_read(table, key):
    before = store.read_stile(table, TENANT, "k")
    first, _ = answer(before, [Enter("a", NOON + SECOND)], NOON)
    second, _ = answer(before, [Enter("b", NOON + SECOND)], NOON)

    assert store.move(table, before, first, "t1", shards=2) == Written()
    refused = store.move(table, before, second, "t2", shards=2)

    assert isinstance(refused, Refused)
    assert store.stile_in(refused) == replace(first, turn="t1") == store.read_stile(table, TENANT, "k")


def test_a_stored_turnstile_comes_back_unchanged(table, key):
    before = store.read_stile(table, TENANT, "k")
    after = Turnstile(
        *(TENANT, "k", before.terms, "t1"),
        next_at=NOON + timedelta(microseconds=7),
        places={"a": Place(NOON, "c"), "b": Place(NOON + SECOND, "r")},
        wake_at=NOON,
        look_at=NOON + timedelta(milliseconds=3),
        called="1#a",
        called_to=NOON,
        mark="0#b",
        mark_at=NOON,
        late=("0#c", "0#d"),
    )

    store.move(table, before, after, "t1", shards=2)

    assert store.read_stile(table, TENANT, "k") == after


def test_a_key_that_is_gone_is_not_called_anew(stage, table):
    store.call_all_again(table, TENANT, "k", "t1")

    assert [item for item in stage.items() if "KEY#" in item["pk"]["S"]] == []
