from __future__ import annotations

from datetime import timedelta

from sweephand.server.store.dynamo import keys
from sweephand.server.store.tenants.pointer_keys import KEPT, PointerKeys


def another_process(stage):
    return PointerKeys(stage.world.table, stage.clock, stage.world.chance)


def test_all_processes_use_the_key_of_the_first_one(stage):
    first, second = another_process(stage), another_process(stage)

    made = first.current()

    assert len(made) == 32
    assert second.current() == first.current() == made


def test_a_process_that_comes_second_takes_the_key_that_is_there(stage, monkeypatch):
    first, second = another_process(stage), another_process(stage)
    monkeypatch.setattr(second, "_read", lambda: None)
    made = first.current()
    monkeypatch.setattr(second, "_read", first._read)

    assert second._created() == made


def test_a_key_that_was_deleted_is_replaced_within_five_minutes(stage):
    process = another_process(stage)
    before = process.current()
    stage.world.table.delete(keys.STACK_KEYS, keys.POINTER_KEY)

    kept = process.current()
    stage.clock.advance(KEPT / timedelta(seconds=1))

    assert kept == before
    assert process.current() != before


def test_a_process_that_acts_while_the_key_is_read_does_not_wait_for_it(stage, monkeypatch):
    process = another_process(stage)
    read = process._read

    def meanwhile():
        monkeypatch.setattr(process, "_read", read)
        return process.current()

    monkeypatch.setattr(process, "_read", meanwhile)

    assert process.current() == process.current()
