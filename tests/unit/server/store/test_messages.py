"""Messages in the table: revoked only while they wait, and days that the audit forgets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sweephand.domain.posted import Posted
from sweephand.domain.run import TERMINAL, Kind, Run, State
from sweephand.domain.schedule import Lane
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Refused, Table, Written
from sweephand.server.store.runs import ledger, messages
from sweephand.server.store.views import messages as views
from tests.support.stage import Stage
from tests.unit.domain.nouns import NOW, run


@pytest.fixture
def table(stage: Stage) -> Table:
    return stage.world.table


def put(table: Table, state: State) -> Run:
    posted = Posted("mail", NOW, ["http", {}, {}, None, None])
    there = replace(run(state, schedule_id=None, posted=posted), kind=Kind.MESSAGE, wake_at=NOW)
    assert ledger.claim_first(table, there, shards=16, lane=Lane.FAST) == Written()
    return there


def test_a_message_that_waits_is_revoked_and_leaves_the_index(table: Table) -> None:
    there = put(table, State.SCHEDULED)

    assert messages.revoke(table, replace(there, state=State.CANCELLED, finished_at=NOW)) == Written()

    stored = ledger.read(table, there.tenant, there.job_id, there.uuid)
    assert stored is not None
    assert (stored.state, stored.wake_at) == (State.CANCELLED, None)


@pytest.mark.parametrize("state", sorted({*TERMINAL, State.TRIGGERED, State.RETRY_WAIT}))
def test_a_message_that_has_begun_is_not_revoked(table: Table, state: State) -> None:
    there = put(table, state)

    assert isinstance(messages.revoke(table, replace(there, state=State.CANCELLED)), Refused)


def test_a_day_is_listed_after_the_audit_has_forgotten_it(table: Table) -> None:
    there = put(table, State.SCHEDULED)
    messages.note_day(table, there, 16)
    key = keys.message_days(there.tenant), keys.message_day(NOW.date(), there.tenant, "mail")

    messages.forget_day(table, key)

    assert list(views.days(table, there.tenant, None, None)) == [(NOW.date(), ["mail"])]


def test_forgetting_a_day_of_a_deleted_tenant_writes_nothing(table: Table) -> None:
    messages.forget_day(table, (keys.message_days("gone"), keys.message_day(NOW.date(), "gone", "mail")))

    assert list(views.days(table, "gone", None, None)) == []
