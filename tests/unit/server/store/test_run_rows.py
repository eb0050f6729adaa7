"""A run and its row."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweephand.domain.instants import from_ms, from_s
from sweephand.domain.occurrences.index_row import SweepText, WaitingRun, Waits
from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.domain.schedule import Lane
from sweephand.server.store.dynamo.table import RunItem
from sweephand.server.store.runs.run_rows import item_of, run_of
from tests.unit.domain.nouns import MINUTE, NOW, run

ms = st.integers(0, 7_000_000_000_000).map(from_ms)
whole = st.integers(0, 7_000_000_000).map(from_s)
text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@settings(max_examples=50)
@given(
    st.builds(
        Run,
        tenant=text,
        job_id=text,
        schedule_id=text,
        uuid=st.uuids().map(str),
        kind=st.sampled_from(Kind),
        state=st.sampled_from(sorted(set(State) - {State.SCHEDULED})),
        planned_at=ms,
        reason=st.none() | st.sampled_from(Reason),
        enqueued_at=st.none() | ms,
        started_at=st.none() | ms,
        finished_at=st.none() | ms,
        first_started_at=st.none() | ms,
        attempt=st.integers(1, 50),
        max_attempts=st.integers(1, 50),
        lease_owner=st.none() | text,
        lease_until=st.none() | ms,
        not_before=st.none() | ms,
        generation=st.integers(0, 1_000),
        http_status=st.none() | st.integers(100, 599),
        answer=st.none() | text,
        message=st.none() | text,
        parent_uuid=st.none() | st.uuids().map(str),
        wake_at=st.none() | whole,
        expires_at=st.none() | whole,
        range_until=st.none() | ms,
        range_count=st.none() | st.integers(1, 10**9),
    )
)
def test_a_run_comes_back_from_its_row_as_it_was(one: Run) -> None:
    raw = item_of(one, shards=16, lane=Lane.SLOW).serialize()

    assert run_of(RunItem.from_raw_data(raw)) == one


def test_a_wake_puts_the_row_into_the_index_with_all_that_its_pointer_needs() -> None:
    one = run(State.QUEUED, kind=Kind.MANUAL, attempt=2, wake_at=NOW + MINUTE)

    item = item_of(one, shards=16, lane=Lane.SLOW)

    assert item.next_run_at == int((NOW + MINUTE).timestamp())
    assert 0 <= item.shard < 16
    assert SweepText.read(item.sweep) == SweepText(Waits.RUN, Lane.SLOW, packed=str(WaitingRun.of(one)))
    quiet = item_of(replace(one, wake_at=None), shards=16, lane=Lane.SLOW)
    assert (quiet.shard, quiet.sweep, quiet.next_run_at) == (None, None, None)


@pytest.mark.parametrize("state", sorted(set(State) - {State.SCHEDULED}))
def test_only_plain_success_and_a_call_under_way_need_no_attention(state: State) -> None:
    item = item_of(run(state), shards=16, lane=Lane.FAST)

    assert (item.attention_day is None) is (state in {State.SUCCESS, State.TRIGGERED})
