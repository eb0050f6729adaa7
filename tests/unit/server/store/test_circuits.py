"""Circuits in the table: each condition of their writes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sweephand.server.store.dynamo.conditional import Refused, Table, Written
from sweephand.server.store.flow_keys.circuits import (
    close_circuit,
    count_failure,
    open_circuit,
    read_circuit,
    take_probe,
)
from tests.support.stage import TENANT
from tests.unit.server.flow.common import NOON

SECOND = timedelta(seconds=1)


@pytest.fixture
def table(stage) -> Table:
    return stage.world.table


def circuit(table):
    return read_circuit(table, TENANT, "k", "there")


def failed(table) -> int:
    return count_failure(table, TENANT, "k", "there", "CONNECT", NOON)


def test_a_circuit_is_opened_once_and_only_while_its_failures_stand(table):
    assert isinstance(open_circuit(table, TENANT, "k", "there", NOON, NOON), Refused)
    assert failed(table) == 1

    assert open_circuit(table, TENANT, "k", "there", NOON, NOON + SECOND) == Written()
    assert isinstance(open_circuit(table, TENANT, "k", "there", NOON + SECOND, NOON), Refused)
    assert (circuit(table).opened_at, circuit(table).probe_at) == (NOON, NOON + SECOND)


def test_one_call_tries_an_open_circuit_when_it_may_be_tried(table):
    failed(table)
    assert isinstance(take_probe(table, TENANT, "k", "there", NOON, NOON), Refused)
    open_circuit(table, TENANT, "k", "there", NOON, NOON + SECOND)

    assert isinstance(take_probe(table, TENANT, "k", "there", NOON, NOON + 9 * SECOND), Refused)
    assert take_probe(table, TENANT, "k", "there", NOON + SECOND, NOON + 6 * SECOND) == Written()
    assert isinstance(take_probe(table, TENANT, "k", "there", NOON + SECOND, NOON + 6 * SECOND), Refused)


def test_only_the_writer_that_closes_an_open_circuit_learns_it(table):
    failed(table)
    assert close_circuit(table, TENANT, "k", "there") is None

    failed(table)
    open_circuit(table, TENANT, "k", "there", NOON, NOON)
    opened = circuit(table)
    assert close_circuit(table, TENANT, "k", "there") == opened
    assert close_circuit(table, TENANT, "k", "there") is None
    assert circuit(table).failures == 0
