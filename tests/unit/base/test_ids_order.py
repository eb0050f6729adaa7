"""The number by which the attention index sorts runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.ids import first_order_at, instant_ms_of_order, order_of, run_uuid

instants = st.integers(0, 7_258_118_399_000)


@given(st.lists(st.tuples(instants, st.text(max_size=5)), min_size=2, max_size=20))
def test_runs_sort_by_their_number_as_by_their_text(runs: list[tuple[int, str]]) -> None:
    uuids = [run_uuid("acme", "schedule", at, "scheduled", key) for at, key in runs]

    assert sorted(uuids, key=order_of) == sorted(uuids)
    assert len(set(map(order_of, uuids))) == len(set(uuids))


@given(instants)
def test_the_number_tells_the_instant_and_fits_dynamodb(at: int) -> None:
    order = order_of(run_uuid("acme", "schedule", at, "scheduled"))

    assert instant_ms_of_order(order) == at
    assert first_order_at(at) <= order < first_order_at(at + 1)
    assert len(str(order)) <= 38
