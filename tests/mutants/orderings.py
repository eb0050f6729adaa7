"""Breaks each ordering of tests/faults/test_orderings.py: the later step is done once before it may be."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.conditions import PACKAGE

SEND = "world.queue.send_one(Delivery(ledger.pointer_to({run}), now, {lane}))"


@dataclass(frozen=True)
class TooEarly:
    """A step that is made too early. statement: put before the one that contains `anchor`, in this function.

    outer: whether it is put before the block that contains that statement.
    """

    path: str
    function: str
    anchor: str
    statement: str
    outer: bool = False


BROKEN = {
    "create-before-pointers": TooEarly(
        "server/flow/jobs/creation.py", "_create_job", "_written(world, ops", "replan.send_ahead(world, schedules)"
    ),
    "owed-before-change": TooEarly(
        "server/flow/jobs/change.py", "_commit", "replan.send_owed(", "world.table.transact(ops)"
    ),
    "send-before-advance": TooEarly(
        "server/flow/sweep/sweep.py",
        "_sweep_group",
        "world.queue.send(",
        "_advance(world, [step.advance for step in steps], deadline)",
    ),
    "claim-before-act": TooEarly("server/flow/runs/execute.py", "_claim_and_begin", "_claim(", "act(world, attempt)"),
    "act-before-end": TooEarly(
        "server/flow/runs/execute.py", "_act_and_settle", "act(world,", "ledger.succeed(world.table, attempt.run)"
    ),
    "end-before-effects": TooEarly(
        "server/flow/runs/conclusion.py",
        "_settle",
        "settle.settle(",
        "effects.after(world, replace(attempt.run, state=State.REQUEST_ERROR), attempt.job, attempt.schedule)",
    ),
    "effects-before-drop-wake": TooEarly(
        "server/flow/runs/effects.py",
        "after",
        "completion.after_run(",
        "ledger.drop_wake(world.table, run)",
        outer=True,
    ),
    "retry-row-before-message": TooEarly(
        "server/flow/runs/settle.py", "settle", "= _write(", "send_pointer(world, attempt.lane, after)"
    ),
    "deadline-row-before-message": TooEarly(
        "server/flow/runs/settle.py",
        "settle",
        "= _write(",
        "after.deadline_at and _send_deadline(world, attempt.lane, after)",
    ),
    "error-action-row-before-message": TooEarly(
        "server/flow/runs/chained_runs.py",
        "start_reaction",
        "ledger.claim_first(",
        SEND.format(run="started", lane="own_lane"),
    ),
    "manual-row-before-message": TooEarly(
        "server/flow/manual/manual.py",
        "_start",
        "world.table.transact(ops)",
        "send(world, run, run_action.lane_of(job.action, job.tenant))",
    ),
    "result-before-pointer": TooEarly(
        "server/flow/runs/results.py",
        "end_from_outside",
        "ledger.finish_from_outside(",
        SEND.format(run="ended", lane="lane"),
    ),
    "line-before-taking-out": TooEarly(
        "server/flow/sweep/broken_rows.py",
        "take_out",
        "ledger.finish_without_attempt(",
        "world.table.update(row.pk, row.sk, [assign(ScheduleItem.state_reason, None)])",
    ),
    "kept-before-split": TooEarly(
        "server/flow/series/catch_up.py", "split", "if deliveries and", "world.table.transact([])", outer=True
    ),
    "stretch-before-cursor": TooEarly(
        "server/flow/series/catch_up.py",
        "send_stretch",
        "world.queue.send(",
        "world.table.update(row.pk, row.sk, [assign(CatchUpItem.next_run_at, epoch_s(now))])",
    ),
    "end-before-archive": TooEarly(
        "server/flow/delivery/dead_letters.py", "_guarded", "_settled(", "world.queue.archive(message.body)"
    ),
}


def path_of(name: str) -> Path:
    return PACKAGE / BROKEN[name].path


def broken(name: str, source: str) -> ast.Module:
    """Returns the module with that ordering broken. Raises LookupError if the code no longer has the place."""
    wanted = BROKEN[name]
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == wanted.function and _insert(node.body, wanted):
            return ast.fix_missing_locations(tree)
    raise LookupError(f"{name}: {wanted.function} of {wanted.path} does not contain {wanted.anchor!r}")


def _insert(block: list[ast.stmt], wanted: TooEarly) -> bool:
    for number, statement in enumerate(block):
        if wanted.anchor not in ast.unparse(statement):
            continue
        inner = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
        if not wanted.outer and any(_insert(each, wanted) for each in inner if each):
            return True
        (early,) = ast.parse(wanted.statement).body
        for node in ast.walk(early):
            if isinstance(node, ast.expr | ast.stmt):
                ast.copy_location(node, statement)
        block.insert(number, early)
        return True
    return False
