"""Notes which targets do not answer, and keeps their calls away from the fast queue.

The calls wait in the slow queue, where each is also a test: the first answer removes the note. Most runs never load
this module, because the notes are in the row of the tenant, which the gate reads anyway. A tenant's notes concern only
its own calls, even if another tenant calls the same host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from threading import Lock

from sweephand.domain import silence
from sweephand.domain.job import ActionSpec
from sweephand.domain.message import Pointer
from sweephand.domain.run import Outcome, Run
from sweephand.domain.runs.admission import Admission, Defer
from sweephand.domain.runs.run_action import OpenAttempt, issuers_of, targets_of
from sweephand.domain.schedule import Lane
from sweephand.domain.silence import Notes, SilentTarget
from sweephand.server.flow.concurrency import tolerated
from sweephand.server.flow.tenants import absence
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo.conditional import Refused
from sweephand.server.store.tenants import tenants

Answers = Mapping[tuple[str, str], datetime]
"""When a host or an address last answered a call of this process, by tenant."""
TRIES = 3


class SilentCalls(Counter[tuple[str, str]]):
    """How many calls to silent targets are under way, by tenant and target."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = Lock()


def hanging(world: World, action: ActionSpec, notes: Notes) -> str | None:
    """Returns the target of a call, or the issuer of its token, that hangs according to the notes; None if neither."""
    return silence.hanging(notes, (*targets_of(action), *issuers_of(action)), world.clock.now())


def follow(world: World, attempt: OpenAttempt, outcome: Outcome, answers: Answers) -> None:
    """Notes a target or an issuer of tokens that did not answer, or removes the note of one that did. Never raises.

    A host is noted only if no call of this process got an answer from it since this one began; an address likewise. So
    a host that answers most calls is never noted. An action that waits longer than others by its own wish says nothing
    about the other addresses of its host.
    """
    run, action, notes = attempt.run, attempt.action, attempt.terms.silences
    with tolerated(world, "the next call will note whether its target answers", run=run.uuid):
        targets = issuers_of(action) if outcome.apart else targets_of(action)
        reason = silence.did_not_answer(outcome)
        if reason is None:
            answered = (*targets, *(issuers_of(action) if outcome.issuer else ()))
            if silence.has_answered(outcome) and silence.of(notes, answered, world.clock.now()) is not None:
                _change(world, run.tenant, lambda stored: silence.answered(stored, answered))
            return
        target = _unanswered(answers, run, targets if attempt.lane is Lane.FAST else targets[-1:])
        if target is not None:
            now, began = world.clock.now(), run.started_at
            hangs = began is not None and now - began >= silence.HANGS_FROM
            known = silence.of(notes, targets, now) or target
            if silence.noted(notes, known, reason, now, hangs=hangs) != notes:
                _change(world, run.tenant, lambda stored: silence.noted(stored, known, reason, now, hangs=hangs))


def _unanswered(answers: Answers, run: Run, targets: tuple[str, ...]) -> str | None:
    for target in targets:
        at = answers.get((run.tenant, target))
        if at is None or (run.started_at is not None and at < run.started_at):
            return target
    return None


def _change(world: World, tenant: str, change: Callable[[Notes], Notes]) -> None:
    """Changes the notes of a tenant [as read]. Gives up if others are always faster: the next call decides again.

    A target is watched before it is noted: a watch without a note ends itself.
    """
    for _ in range(TRIES):
        stored = tenants.read_tenant(world.table, tenant)
        if stored is None or (after := change(stored.silences)) == stored.silences:
            break
        for name, note in after.items():
            if name not in stored.silences or stored.silences[name].since != note.since:
                absence.watch(world, SilentTarget(tenant, name), note.since)
        if not isinstance(tenants.note_silences(world.table, stored, after), Refused):
            for name in stored.silences.keys() - after.keys():
                absence.check_soon(world, SilentTarget(tenant, name, stored.silences[name].since))
            world.journal.info("silent targets changed", tenant=tenant)
            break
    world.terms.forget(tenant)


@contextmanager
def one_of_few(world: World, pointer: Pointer, target: str, admitted: Admission) -> Iterator[Admission]:
    """Yields the decision if this process may make one more call to a silent target; otherwise to try again later."""
    key, calls = (pointer.tenant, target), world.memory.of(SilentCalls)
    with calls.lock:
        free = calls[key] < silence.AT_ONCE
        calls[key] += free
    try:
        yield admitted if free else Defer(silence.next_try(pointer.instant, world.clock.now()))
    finally:
        with calls.lock:
            calls[key] -= free
            if not calls[key]:
                del calls[key]
