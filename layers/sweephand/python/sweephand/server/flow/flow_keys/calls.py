"""Calls under a flow key: a claimed run passes the key's turnstile before it acts, or waits in the key's line.

A run waits as a QUEUED row with an entry in the line. The key wakes the run: through the key's row in the next-run
index while runs wait, and whenever a run frees a place. So ten thousand waiting runs cost no polling. A place is held
until the lease of its run is over, so that a crash frees it. Error actions are exempt: they call another target, and
are needed when the first target fails. (Decision 0039.)
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.base.errors import Unavailable
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.flow_keys import circuits, flow_keys
from sweephand.domain.flow_keys.circuits import Circuit, Sign, target_of
from sweephand.domain.flow_keys.flow_key_lines import Patience
from sweephand.domain.flow_keys.flow_keys import Enter, Go, Holds, Join, Leave, Stay, Wait, Why, holder
from sweephand.domain.occurrences.lateness import Policy
from sweephand.domain.run import WAITS, Kind, Outcome, Reason, Run, State
from sweephand.domain.runs.admission import MAX_AGE, End
from sweephand.domain.runs.run_action import OpenAttempt
from sweephand.server.flow.concurrency import tolerated
from sweephand.server.flow.flow_keys import turnstiles
from sweephand.server.flow.flow_keys.waiting_line import call_next
from sweephand.server.flow.verdict import AGAIN, DONE, Verdict
from sweephand.server.flow.world import Remembered, World
from sweephand.server.store.dynamo.conditional import Refused
from sweephand.server.store.flow_keys import circuits as circuit_rows
from sweephand.server.store.flow_keys import flow_key_lines as lines
from sweephand.server.store.flow_keys import flow_keys as store
from sweephand.server.store.runs import ledger

with lazy():
    from sweephand.server.flow import events


# Passing


def stopped(world: World, attempt: OpenAttempt) -> Verdict | End | None:
    """Returns None if the claimed run may call now, a verdict if it waits in the line, an End if it is too late.

    Raises Unavailable. Then the lease expires, and another delivery takes over.
    """
    mine = attempt.run
    assert mine.flow_key is not None
    order = _place_in_line(attempt.before, mine.flow_key)
    target = target_of(attempt.job.action)
    circuit = _circuit(world, mine.tenant, mine.flow_key, target)
    if order:
        if circuit.opened_at is not None:  # it may have closed since: somebody called this run
            circuit = _know(world, mine.tenant, mine.flow_key, target)
        late = _too_late(_patience(attempt), circuit, world.clock.now())
        if late is not None:
            return End(*late, f"it waited under the flow key {mine.flow_key}")
    why = _pass(world, mine, circuit, order)
    if why is None:
        if order:
            with suppress(Unavailable):  # the next check of the line removes an entry that is left over
                lines.drop(world.table, mine.tenant, mine.flow_key, [order])
        return None
    return _join(world, attempt, target, why)


def _place_in_line(before: Run | None, name: str) -> str:
    """Returns the order of the run's entry before its claim; "" if it has none in this key's line."""
    if before is None or before.line_at is None or before.flow_key != name:
        return ""
    return lines.order_of(before) if before.state in {State.QUEUED, State.TRIGGERED} else ""


def _pass(world: World, mine: Run, circuit: Circuit, order: str) -> Why | None:
    """Waits until the call may begin and returns None, or returns why it may not."""
    assert mine.flow_key is not None
    assert mine.lease_until is not None
    tenant, name = mine.tenant, mine.flow_key
    if circuit.opened_at is not None and not (circuit.probe_at is None or circuit.probe_at <= world.clock.now()):
        return Why.CIRCUIT
    said = turnstiles.ask(world, tenant, name, Enter(holder(mine.uuid), mine.lease_until, order))
    if isinstance(said, Wait):
        return said.why
    if circuit.opened_at is not None and not _takes_probe(world, tenant, name, circuit):
        turnstiles.ask(world, tenant, name, Leave(holder(mine.uuid), own=True))
        return Why.CIRCUIT
    if isinstance(said, Go) and said.at > world.clock.now():
        world.clock.sleep((said.at - world.clock.now()).total_seconds())
    return None


def _join(world: World, attempt: OpenAttempt, target: str, why: Why) -> Verdict:
    mine, before, patience = attempt.run, attempt.before, _patience(attempt)
    assert mine.flow_key is not None
    stands = _place_in_line(before, mine.flow_key) != ""
    waiting = replace(
        mine,
        state=State.QUEUED,
        reason=Reason.CIRCUIT_OPEN if why is Why.CIRCUIT else None,
        message=f"waits for the flow key {mine.flow_key}: {why}",
        started_at=before.started_at if before else None,
        first_started_at=before.first_started_at if before else None,
        line_at=before.line_at if before is not None and stands else world.clock.now(),
    )
    circuit = circuit_rows.target_hash(target)
    if isinstance(lines.join(world.table, waiting, before, circuit, attempt.lane, patience), Refused):
        current = ledger.read(world.table, mine.tenant, mine.schedule_id or mine.job_id, mine.uuid)
        if current is None or not current.in_line or current.line_at != waiting.line_at:
            return AGAIN  # ended, or taken over: its next delivery continues
    world.journal.info("waits", run=mine.uuid, reason=why.name)
    joined = Join(holder(mine.uuid), lines.order_of(waiting), stands)
    if turnstiles.ask(world, mine.tenant, mine.flow_key, joined):
        call_next(world, mine.tenant, mine.flow_key)
    return DONE


def _patience(attempt: OpenAttempt) -> Patience:
    """Returns how long the run waits. An occurrence waits as long as its misfire policy allows.

    While a circuit is open, a run waits as long as its retry policy would retry; without a limit, four days.
    """
    mine, schedule, until = attempt.run, attempt.schedule, None
    if mine.kind is Kind.SCHEDULED and schedule is not None and mine.attempt == 1:
        with suppress(ValueError):  # the sweep takes a schedule with an unreadable policy out of service
            most_s = Policy.read(schedule.misfire).max_lateness_s
            until = None if most_s is None else mine.planned_at + timedelta(seconds=most_s)
    tries_s = attempt.job.action.retry.get("maxAgeSeconds")
    return Patience(until, mine.planned_at + (MAX_AGE if tries_s is None else timedelta(seconds=tries_s)))


def _too_late(patience: Patience, circuit: Circuit, now: datetime) -> tuple[State, Reason] | None:
    if patience.over_at(now, shut=False) is not None:
        return State.EXPIRED, Reason.MAX_LATENESS
    shut = circuit.opened_at is not None
    return (State.ERROR, Reason.CIRCUIT_OPEN) if patience.over_at(now, shut=shut) is not None else None


# After the call


@dataclass(frozen=True)
class Turned:
    """A circuit that has just opened or closed. circuit: the open circuit, as it is or was."""

    circuit: Circuit
    closed: bool


def answered(world: World, attempt: OpenAttempt, outcome: Outcome, due_at: Callable[[], datetime]) -> Turned | None:
    """Notes whether the target works, and keeps the place of a run that waits for its result.

    Must be called before the outcome is written. due_at: returns the instant until which such a run waits. Returns the
    change of a circuit. Publish it after the outcome is written, because a slow bus must not use up the lease. Never
    raises: a write that fails here only makes other runs wait.
    """
    mine, turned = attempt.run, None
    assert mine.flow_key is not None
    with suppress(Unavailable):
        turned = _note(world, mine, outcome, target_of(attempt.job.action))
    if outcome.verdict in WAITS and turnstiles.has_places(world, mine.tenant, mine.flow_key):
        until = due_at() + flow_keys.AWAITS_BEYOND
        with suppress(Unavailable):
            turnstiles.ask(world, mine.tenant, mine.flow_key, Stay(holder(mine.uuid), until))
    return turned


def stay(world: World, tenant: str, name: str, uuid: str, until: datetime) -> None:
    """Keeps the place of a run whose worker has extended its lease. Never raises: the next heartbeat repeats it."""
    if turnstiles.has_places(world, tenant, name):
        with suppress(Unavailable):
            turnstiles.ask(world, tenant, name, Stay(holder(uuid), until, Holds.CALL))


def publish_circuit(world: World, turned: Turned, attempt: OpenAttempt) -> None:
    """Publishes that a circuit opened or closed. If this fails, nobody repeats it."""
    assert attempt.run.flow_key is not None
    events.circuit_changed(world, turned.circuit, attempt.run.flow_key, attempt.job, closed=turned.closed)


def leave(world: World, run: Run, *, own: bool) -> None:
    """Releases the place that the run held. own: whether the caller made the run's call itself.

    Never raises: a place that is not released now becomes free when its lease is over.
    """
    assert run.flow_key is not None
    if own and not turnstiles.has_places(world, run.tenant, run.flow_key):
        return
    with tolerated(world, "a place becomes free when its lease is over", run=run.uuid):
        order = "" if own else _leave_line(world, run, run.flow_key)
        if turnstiles.ask(world, run.tenant, run.flow_key, Leave(holder(run.uuid), own=own, order=order)):
            call_next(world, run.tenant, run.flow_key)


def _leave_line(world: World, run: Run, name: str) -> str:
    """Removes the entry of a run that ended while it waited.

    Returns the entry's order if the run may have had a turn, which is now free. A run that was called because its time
    was over had none.
    """
    in_vain = run.state is State.EXPIRED or run.reason is Reason.CIRCUIT_OPEN
    if run.line_at is None or not (in_vain or run.started_at is None or run.started_at < run.line_at):
        return ""
    order = lines.order_of(run)
    entries = lines.entries(world.table, flow_keys.Turnstile(run.tenant, name), [order])
    lines.drop(world.table, run.tenant, name, [entry.order for entry in entries])
    now, shut = world.clock.now(), run.reason is Reason.CIRCUIT_OPEN
    return order if any(entry.patience.over_at(now, shut=shut) is None for entry in entries) else ""


# Circuits


class _Circuits(Remembered[tuple[str, str, str], tuple[float, Circuit]]):
    """Circuits by tenant, key and target, each with the monotonic second of its reading."""


def _circuit(world: World, tenant: str, name: str, target: str) -> Circuit:
    """Returns the circuit as it was at most 5 s ago."""
    known = world.memory.of(_Circuits).get((tenant, name, target))
    if known is not None and world.clock.monotonic() - known[0] < circuits.READ_EACH_S:
        return known[1]
    return _know(world, tenant, name, target)


def _know(world: World, tenant: str, name: str, target: str, circuit: Circuit | None = None) -> Circuit:
    """Remembers the circuit and returns it. circuit: if None, it is read."""
    now = world.clock.monotonic()
    known = circuit or circuit_rows.read_circuit(world.table, tenant, name, target)
    world.memory.of(_Circuits)[tenant, name, target] = now, known
    return known


def _takes_probe(world: World, tenant: str, name: str, circuit: Circuit) -> bool:
    rule = _rule(world, tenant, name)
    if rule is None:
        return True
    now = world.clock.now()
    probe_at = circuits.next_probe(rule, now)
    taken = circuit_rows.take_probe(world.table, tenant, name, circuit.target, now, probe_at)
    if isinstance(taken, Refused) and taken.old is None:
        return True  # it has closed since it was read
    _know(world, tenant, name, circuit.target, replace(circuit, probe_at=probe_at))
    return not isinstance(taken, Refused)


def _rule(world: World, tenant: str, name: str) -> flow_keys.CircuitRule | None:
    turnstile = store.read_stile(world.table, tenant, name)
    return None if turnstile is None else turnstile.terms.circuit


def _note(world: World, mine: Run, outcome: Outcome, target: str) -> Turned | None:
    assert mine.flow_key is not None
    tenant, name = mine.tenant, mine.flow_key
    circuit = _circuit(world, tenant, name, target)
    match circuits.sign_of(outcome):
        case Sign.FAILED:
            return _failed(world, tenant, name, target, outcome.reason or Reason.NO_ANSWER)
        case Sign.ALIVE if circuit.failures or circuit.opened_at is not None:
            opened = circuit_rows.close_circuit(world.table, tenant, name, target)
            _know(world, tenant, name, target, Circuit(target))
            if opened is None:
                return None
            world.journal.info("circuit closed", tenant=tenant)
            with suppress(Unavailable):  # otherwise the key's row in the index calls the waiting runs
                store.call_all_again(world.table, tenant, name, turnstiles.new_turn(world))
                call_next(world, tenant, name)
            return Turned(opened, closed=True)
    return None


def _failed(world: World, tenant: str, name: str, target: str, reason: Reason) -> Turned | None:
    rule = _rule(world, tenant, name)
    if rule is None:
        return None
    now = world.clock.now()
    failures = circuit_rows.count_failure(world.table, tenant, name, target, reason, now)
    turned = False
    if circuits.opens(failures, rule):
        opened = circuit_rows.open_circuit(world.table, tenant, name, target, now, circuits.next_probe(rule, now))
        turned = not isinstance(opened, Refused)
    circuit = _know(world, tenant, name, target)
    if not turned:
        return None
    world.journal.warning("circuit opened", tenant=tenant)
    return Turned(circuit, closed=False) if circuit.opened_at is not None else None  # it has closed again meanwhile
