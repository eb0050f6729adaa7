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
    "server/store/runs/ledger.claim_first put",
    "server/store/runs/ledger.claim_again update",
    "server/store/runs/ledger.take_over update",
)
ENDS = ("server/store/runs/ledger._with_counts transact", "server/store/runs/ledger._with_counts carry_out")
NOTED = (
    "server/store/errors/failures.note put",
    "server/store/errors/failures.begin_group put",
    "server/store/errors/failures.seen_again update",
)
"""Effects of a failed end."""
CHANGES = ("server/flow/jobs/creation._written transact", "server/flow/jobs/change._commit transact")

ORDERINGS = {
    "create-before-pointers": _ordering("edit", *CHANGES, then="server/flow/series/replan.send_ahead send"),
    "owed-before-change": _ordering(
        "edit-of-what-is-owed",
        "server/flow/series/replan.send_owed send",
        then="server/flow/jobs/change._commit transact",
    ),
    "send-before-advance": _ordering(
        "retry",
        "server/flow/sweep/sweep._sweep_group send",
        then="server/store/index/next_run_index.advance statements",
    ),
    "claim-before-act": _ordering("lost-executors", *CLAIMS, then="server/flow/runs/perform.act perform"),
    "act-before-end": _ordering(
        "retry", "server/flow/runs/perform.act perform", then="server/store/runs/ledger.succeed update"
    ),
    "end-before-effects": _ordering(
        "error-action",
        *ENDS,
        "server/store/index/next_run_index.advance statements",  # the failing run's own claim
        "server/store/index/newer_zones.write put",  # likewise: the end of the first tick
        "server/flow/jobs/completion.complete_if_over update",  # a copy of its message after the end: the effects again
        then="server/store/runs/ledger.claim_first put",
    ),
    "effects-before-drop-wake": _ordering(
        "far-retry",
        "server/flow/jobs/completion.complete_if_over update",
        then="server/store/runs/ledger.drop_wake update",
    ),
    "retry-row-before-message": _ordering(
        "retry",
        *ENDS,
        "server/flow/runs/settle.send_pointer send_one",
        then="server/flow/runs/settle.send_pointer send_one",
    ),
    "deadline-row-before-message": _ordering(
        "near-deadline", *ENDS, then="server/flow/runs/settle._send_deadline send_one"
    ),
    "error-action-row-before-message": _ordering(
        "error-action",
        "server/store/runs/ledger.claim_first put",
        then="server/flow/runs/chained_runs.start_reaction send_one",
    ),
    "manual-row-before-message": _ordering(
        "by-hand", "server/flow/manual/manual._start transact", then="server/flow/runs/chained_runs.send send_one"
    ),
    "result-before-pointer": _ordering("cancel", *ENDS, then="server/flow/runs/results.end_from_outside send_one"),
    "line-before-taking-out": _ordering(
        "unreadable",
        *ENDS,
        "server/flow/sweep/broken_rows.take_out send_one",
        then="server/flow/sweep/broken_rows.take_out update",
    ),
    "kept-before-split": _ordering(
        "catch-up-latest", "server/flow/series/catch_up.split send", then="server/flow/series/catch_up.split transact"
    ),
    "stretch-before-cursor": _ordering(
        "catch-up-all",
        "server/flow/series/catch_up.send_stretch send",
        then="server/flow/series/catch_up.send_stretch update",
    ),
    "end-before-archive": _ordering(
        "dead-letters",
        *ENDS,
        *NOTED,
        "server/flow/delivery/dead_letters._guarded archive",
        then="server/flow/delivery/dead_letters._guarded archive",
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
