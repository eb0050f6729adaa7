"""Moving a turnstile: threads of a process that ask at the same time are answered by one write."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock

from sweephand.domain.flow_keys import flow_keys
from sweephand.domain.flow_keys.flow_keys import Answer, Ask, Go, Turnstile
from sweephand.errors import Unavailable
from sweephand.flow.world import World
from sweephand.store.dynamo.conditional import Refused
from sweephand.store.flow_keys import flow_keys as store

TRIES = 20
TURN_BYTES = 9
LONGEST_WAIT_S = 1.0


Name = tuple[str, str]
"""Of a key: its tenant's, and its own."""


@dataclass
class Group:
    """Threads that ask a turnstile at the same time: one of them moves it for all."""

    asks: list[Ask] = field(default_factory=list)
    answers: Future[list[Answer]] = field(default_factory=Future)


def ask(world: World, tenant: str, name: str, asked: Ask) -> Answer:
    """The turnstile's answer. A key that is not there lets everybody pass. Raises Unavailable."""
    memory, key = world.memory, (tenant, name)
    with memory.lock:
        group = memory.groups.get(key)
        first = group is None
        if group is None:
            group = memory.groups[key] = Group()
            moving = memory.moving.setdefault(key, Lock())
        mine = len(group.asks)
        group.asks.append(asked)
    if first:
        _answer(world, key, group, moving)
    return group.answers.result()[mine]


def _answer(world: World, key: Name, group: Group, moving: Lock) -> None:
    """For all of the group. While another group of this process is answered, more may join it; one that is stuck holds
    up nobody, because the table decides.
    """
    waited = moving.acquire(timeout=LONGEST_WAIT_S)
    try:
        with world.memory.lock:
            world.memory.groups.pop(key, None)
        group.answers.set_result(move(world, key, group.asks))
    except BaseException as failed:
        group.answers.set_exception(failed)
        raise
    finally:
        if waited:
            moving.release()


def move(world: World, key: Name, asks: Sequence[Ask]) -> list[Answer]:
    """One move for all of these. Raises Unavailable if others move it all the time."""
    stile = store.read_stile(world.table, *key)
    for tries in range(TRIES):
        now = world.clock.now()
        if stile is None:
            return [Go(now) if isinstance(each, flow_keys.Enter) else False for each in asks]
        _remember(world, key, stile)
        after, answers = flow_keys.answer(stile, asks, now)
        if after == stile and not any(isinstance(each, flow_keys.Join) for each in asks):
            return answers
        turn = new_turn(world)
        met = store.move(world.table, stile, after, turn, shards=world.settings.shards)
        if not isinstance(met, Refused):
            return answers
        stile = store.stile_in(met)
        if stile is not None and stile.turn == turn:
            return answers  # this very move, its answer lost
        if tries:
            world.clock.sleep(world.chance.uniform(0.0, min(0.2, 0.005 * 2**tries)))
    raise Unavailable("the flow key was passed by others all the time")


def new_turn(world: World) -> str:
    return world.chance.token(TURN_BYTES).hex()


def _remember(world: World, key: Name, stile: Turnstile) -> None:
    with world.memory.lock:
        if stile.terms.parallelism is None:
            world.memory.placeless.add(key)
        else:
            world.memory.placeless.discard(key)


def has_places(world: World, tenant: str, name: str) -> bool:
    """False: when it was passed last by this process, no call of it held a place."""
    return (tenant, name) not in world.memory.placeless
