"""The key of callback tokens: made once, read by everybody, and bound to its place."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sweephand.base.errors import Unavailable
from sweephand.server.security.key_service import SECRETS
from sweephand.server.security.tokens import CallbackKey
from sweephand.server.store.dynamo import keys
from sweephand.server.store.tenants import callback_keys
from sweephand.server.store.tenants.callback_keys import CallbackKeyItem, CallbackKeys
from tests.support.stage import STACK_SECRET, Stage


def another(stage: Stage) -> CallbackKeys:
    """Makes another process of the same stack."""
    world = stage.world
    return CallbackKeys(world.table, world.callback_keys._key_service, world.clock, world.chance)


def test_the_first_use_creates_the_callback_key_and_all_others_read_it(stage: Stage) -> None:
    made = stage.world.callback_keys.current()
    stage.clock.advance(86_400)

    assert len(made.secret) == 32
    assert another(stage).current() == made
    assert stage.world.callback_keys.current() == made


def test_two_concurrent_makers_both_use_the_first_key(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The late one looks before the other one has written."""
    other, put = another(stage), callback_keys.put_first
    first: list[CallbackKey] = []

    def put_late(*row: Any) -> None:
        monkeypatch.undo()
        first.append(stage.world.callback_keys.current())
        put(*row)

    monkeypatch.setattr(callback_keys, "put_first", put_late)

    assert other.current() == first[0] == another(stage).current()


def test_the_table_holds_neither_the_key_nor_anything_derived_from_the_stacks_secret(stage: Stage) -> None:
    made = stage.world.callback_keys.current()

    (row,) = [item for item in stage.items() if item["pk"]["S"] == keys.STACK_KEYS]

    assert made.secret.hex() not in str(row)
    assert STACK_SECRET not in str(row)
    assert row.keys() == {"pk", "sk", "sealed", "created_at"}


def test_a_row_sealed_for_another_purpose_is_not_accepted_as_the_key(stage: Stage) -> None:
    sealed = stage.world.callback_keys._key_service.encrypt("acme", SECRETS, b"x" * 32)
    stage.world.table.put(CallbackKeyItem(pk=keys.STACK_KEYS, sk=keys.CALLBACK_KEY, sealed=sealed, created_at=0))

    with pytest.raises(Unavailable):
        stage.world.callback_keys.current()


def test_a_key_whose_row_was_deleted_is_replaced_within_five_minutes(stage: Stage) -> None:
    made = stage.world.callback_keys.current()
    stage.world.table.delete(keys.STACK_KEYS, keys.CALLBACK_KEY)

    assert stage.world.callback_keys.current() == made
    stage.clock.advance(timedelta(minutes=5).total_seconds())
    assert stage.world.callback_keys.current() != made
