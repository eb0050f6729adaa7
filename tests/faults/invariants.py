"""The invariants that hold at the end of every history: 0 lost, 0 doubled, nothing open, counts equal to the
ledger's.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.domain.schedule import Schedule
from sweephand.server.store.dynamo import keys

if TYPE_CHECKING:
    from tests.faults.play import Expected, Play


def check(at: Play) -> None:
    """Checks that nothing is lost, doubled or open, and that counts equal a fold over the ledger."""
    runs = at.runs()
    for run in runs:
        _run(at, run)
    for schedule, expected in at.expected.values():
        _schedule(at, schedule, expected)
    planned = {
        (run.schedule_id, run.planned_at) for run in runs if run.kind is Kind.SCHEDULED and run.range_count is None
    }
    known = {
        (owner, instant)
        for owner, (_, expected) in at.expected.items()
        for instant in {*expected.ends, *expected.optional, *expected.in_lines}
    }
    assert planned <= known, f"of no plan: {planned - known}"
    _calls(at, runs)
    _rows(at)


def _run(at: Play, run: Run) -> None:
    assert run.finished, f"open: {run}"
    assert (run.lease_owner, run.lease_until, run.wake_at) == (None, None, None), run
    assert run.expires_at is not None, run


def _schedule(at: Play, schedule: Schedule, expected: Expected) -> None:
    runs = at.scene.runs(schedule, Kind.SCHEDULED)
    single = {run.planned_at: run for run in runs if run.range_count is None}
    lost = sorted(expected.ends.keys() - single.keys())
    deleted_before_the_audit = at.purged and expected.state is None
    assert not lost or deleted_before_the_audit, f"lost: {lost}"
    for instant, wanted in expected.ends.items():
        if instant in lost:
            continue
        run, states = single[instant], wanted if isinstance(wanted, frozenset) else {wanted}
        forgiven = run.reason is Reason.EXECUTOR_LOST and any(kind.startswith("crash") for kind in at.faults)
        # Its message went with the queue, and its schedule went before the audit could send it again.
        forgiven |= deleted_before_the_audit and run.reason is Reason.OWNER_GONE
        assert run.state in states or forgiven, f"{instant}: {run.state} {run.reason}, not {wanted}"
    in_lines, wanted = sum(run.range_count or 0 for run in runs), len(expected.in_lines - single.keys())
    fewer = deleted_before_the_audit and in_lines < wanted
    assert in_lines == wanted or fewer, f"{in_lines} in lines, rows {sorted(single)}"
    if expected.state is None:
        return
    stored = at.scene.stored(schedule)
    assert stored.state is expected.state
    totals, fold = at.scene.totals(schedule), at.scene.fold(schedule)
    assert (totals.planned, totals.ended, totals.open) == (fold.rows, fold.ended, 0)
    assert (totals.failed, totals.skipped) == (fold.failed, fold.skipped)


def _calls(at: Play, runs: list[Run]) -> None:
    """Checks that every call belongs to a run, none comes early, and none comes twice unless its executor was lost."""
    by_id = {run.id: run for run in runs}
    calls = Counter(received.run_id for received in at.scene.endpoint.received)
    assert at.scenario.forgets or calls.keys() <= by_id.keys(), "a call without a row"
    for run_id, run in by_id.items():
        assert calls[run_id] <= run.attempt + run.lost, f"called {calls[run_id]} times: {run}"
        assert calls[run_id] or run.state is not State.SUCCESS or "callback" in at.faults, f"never called: {run}"
    for received in at.scene.endpoint.received:
        assert received.at >= received.call.planned_at, "early"


def _rows(at: Play) -> None:
    """Checks that each lean row belongs to an existing job, collections count their jobs, and nobody holds a slot."""
    items = at.scene.items()
    assert not [item["sk"]["S"] for item in items if item["sk"]["S"].startswith("SLOT#")]
    jobs = {item["job_id"]["S"]: item for item in items if item["sk"]["S"] == keys.JOB}
    inside = Counter(job["collection"]["S"] for job in jobs.values())
    assert {name: number for name, number in at.scene.job_counts().items() if number} == inside
    for item in items:
        if "job_id" in item and "kind" not in item:
            assert item["job_id"]["S"] in jobs, item
    assert not at.scene.waiting()
