"""Writes before sends: each ordering that a crash may cut, seen in a history that has it.

tests/mutants breaks each of them, and expects this test to fail.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.faults.kinds import READS
from tests.faults.play import play
from tests.faults.scenarios import SCENARIOS


@dataclass(frozen=True)
class Ordering:
    """In this scenario, each call at `then` is preceded by one at `first`, with no other write between them."""

    scenario: str
    first: frozenset[str]
    then: str


def _ordering(scenario: str, *first: str, then: str) -> Ordering:
    return Ordering(scenario, frozenset(first), then)


CLAIMS = (
    "store/runs/ledger.claim_first put",
    "store/runs/ledger.claim_again update",
    "store/runs/ledger.take_over update",
)
ENDS = ("store/runs/ledger._with_counts transact", "store/runs/ledger._with_counts carry_out")
NOTED = (
    "store/errors/failures.note put",
    "store/errors/failures.begin_group put",
    "store/errors/failures.seen_again update",
)
"""Effects of a failed end."""
CHANGES = ("flow/jobs/creation._written transact", "flow/jobs/change._commit transact")

ORDERINGS = {
    "create-before-pointers": _ordering("edit", *CHANGES, then="flow/series/replan.send_ahead send"),
    "owed-before-change": _ordering(
        "edit-of-what-is-owed", "flow/series/replan.send_owed send", then="flow/jobs/change._commit transact"
    ),
    "send-before-advance": _ordering(
        "retry", "flow/sweep/sweep._sweep_group send", then="store/index/next_run_index.advance statements"
    ),
    "claim-before-act": _ordering("lost-executors", *CLAIMS, then="flow/runs/perform.act perform"),
    "act-before-end": _ordering("retry", "flow/runs/perform.act perform", then="store/runs/ledger.succeed update"),
    "end-before-effects": _ordering(
        "error-action",
        *ENDS,
        "store/index/next_run_index.advance statements",  # the failing run's own claim
        "store/index/newer_zones.write put",  # likewise: the end of the first tick
        "flow/jobs/completion.complete_if_over update",  # a copy of its message, after the end: the effects once more
        then="store/runs/ledger.claim_first put",
    ),
    "effects-before-drop-wake": _ordering(
        "far-retry", "flow/jobs/completion.complete_if_over update", then="store/runs/ledger.drop_wake update"
    ),
    "retry-row-before-message": _ordering(
        "retry", *ENDS, "flow/runs/settle.send_pointer send_one", then="flow/runs/settle.send_pointer send_one"
    ),
    "deadline-row-before-message": _ordering("near-deadline", *ENDS, then="flow/runs/settle._send_deadline send_one"),
    "error-action-row-before-message": _ordering(
        "error-action", "store/runs/ledger.claim_first put", then="flow/runs/chained_runs.start_reaction send_one"
    ),
    "manual-row-before-message": _ordering(
        "by-hand", "flow/manual/manual._start transact", then="flow/runs/chained_runs.send send_one"
    ),
    "result-before-pointer": _ordering("cancel", *ENDS, then="flow/runs/results.end_from_outside send_one"),
    "line-before-taking-out": _ordering(
        "unreadable", *ENDS, "flow/sweep/sweep.take_out send_one", then="flow/sweep/sweep.take_out update"
    ),
    "kept-before-split": _ordering(
        "catch-up-latest", "flow/series/catch_up.split send", then="flow/series/catch_up.split transact"
    ),
    "stretch-before-cursor": _ordering(
        "catch-up-all", "flow/series/catch_up.send_stretch send", then="flow/series/catch_up.send_stretch update"
    ),
    "end-before-archive": _ordering(
        "dead-letters",
        *ENDS,
        *NOTED,
        "flow/delivery/dead_letters._guarded archive",
        then="flow/delivery/dead_letters._guarded archive",
    ),
}


@pytest.mark.parametrize("name", ORDERINGS)
def test_writes_come_in_the_required_order(name: str) -> None:
    ordering = ORDERINGS[name]
    calls = [met for met in play(SCENARIOS[ordering.scenario]).calls if _writes(met.passing.service, met)]
    sites = [str(met.site) for met in calls]

    before = {first for first, then in zip(["", *sites], sites, strict=False) if then == ordering.then}

    assert before
    assert before <= ordering.first


def _writes(service: str, met: object) -> bool:
    operation = met.passing.operation  # type: ignore[attr-defined]
    return service not in {"kms", "events"} and operation not in READS and operation != "ChangeMessageVisibilityBatch"
