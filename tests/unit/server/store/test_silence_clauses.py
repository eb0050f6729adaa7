"""The clauses under which the silences of a tenant are written."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from sweephand.domain.collection import Silence
from sweephand.server.store.dynamo.conditional import Refused, Written
from sweephand.server.store.tenants import tenants
from tests.support.stage import TENANT, Stage


def silence(stage: Stage) -> Silence:
    now = stage.clock.now().replace(microsecond=0)
    return Silence(now, now + timedelta(hours=1), "NO_ANSWER", hangs=True)


def test_notes_are_read_as_they_were_written_and_removed_whole(stage: Stage) -> None:
    table, before = stage.world.table, tenants.read_tenant(stage.world.table, TENANT)
    assert before is not None
    noted = {"https://b.example": silence(stage), "https://a.example": replace(silence(stage), hangs=False)}

    assert isinstance(tenants.note_silences(table, before, noted), Written)

    after = tenants.read_tenant(table, TENANT)
    assert after is not None
    assert after.silences == noted
    assert isinstance(tenants.note_silences(table, after, {}), Written)
    assert tenants.read_tenant(table, TENANT) == before


def test_notes_that_another_process_has_changed_are_not_overwritten(stage: Stage) -> None:
    table, before = stage.world.table, tenants.read_tenant(stage.world.table, TENANT)
    assert before is not None
    first, second = {"https://a.example": silence(stage)}, {"https://b.example": silence(stage)}
    tenants.note_silences(table, before, first)

    refused = tenants.note_silences(table, before, second)
    emptied = tenants.note_silences(table, replace(before, silences=second), {})

    assert isinstance(refused, Refused)
    assert isinstance(emptied, Refused)
    after = tenants.read_tenant(table, TENANT)
    assert after is not None
    assert after.silences == first


def test_a_tenant_that_was_purged_meanwhile_gets_no_row_by_a_note(stage: Stage) -> None:
    table, before = stage.world.table, tenants.read_tenant(stage.world.table, TENANT)
    assert before is not None
    gone = replace(before, name="gone")

    refused = tenants.note_silences(table, gone, {"https://a.example": silence(stage)})

    assert isinstance(refused, Refused)
    assert tenants.read_tenant(table, "gone") is None
