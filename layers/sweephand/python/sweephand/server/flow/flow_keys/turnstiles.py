"""Moves turnstiles: one write answers all threads of a process that ask at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import field
from threading import Lock

from sweephand.base.records import dataclass
from sweephand.domain.flow_keys import flow_keys
from sweephand.domain.flow_keys.flow_keys import Answer, Ask, Go, Turnstile
from sweephand.server.flow.concurrency import too_many
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo.conditional import Refused
from sweephand.server.store.flow_keys import flow_keys as store

TRIES = 20
TURN_BYTES = 9
LONGEST_WAIT_S = 1.0


Name = tuple[str, str]
"""A flow key's tenant and name."""


@dataclass
class Group:
    """The threads that ask a turnstile at the same time. One of them moves it for all."""

    asks: list[Ask] = field(default_factory=list)
    answers: Future[list[Answer]] = field(default_factory=Future)


@dataclass
class Turnstiles:
    """The knowledge about turnstiles that the threads of this process share. lock: guards all of it.

    groups: threads that ask at the same time. moving: the lock of the thread that may move a turnstile. placeless: keys
    that did not limit parallel calls when they were last read.
    """

    lock: Lock = field(default_factory=Lock)
    groups: dict[Name, Group] = field(default_factory=dict)
    moving: dict[Name, Lock] = field(default_factory=dict)
    placeless: set[Name] = field(default_factory=set)


def ask(world: World, tenant: str, name: str, asked: Ask) -> Answer:
    """Asks the turnstile and returns its answer. A key that does not exist lets all calls pass. Raises Unavailable."""
    shared, key = world.memory.of(Turnstiles), (tenant, name)
    with shared.lock:
        group = shared.groups.get(key)
        first = group is None
        if group is None:
            group = shared.groups[key] = Group()
            moving = shared.moving.setdefault(key, Lock())
        mine = len(group.asks)
        group.asks.append(asked)
    if first:
        _answer(world, key, group, moving)
    return group.answers.result()[mine]


def _answer(world: World, key: Name, group: Group, moving: Lock) -> None:
    """Answers the whole group. More threads may join it while another group of this process gets its answer.

    A group that hangs does not block the next one for long, because the table decides.
    """
    waited = moving.acquire(timeout=LONGEST_WAIT_S)
    try:
        shared = world.memory.of(Turnstiles)
        with shared.lock:
            shared.groups.pop(key, None)
        group.answers.set_result(move(world, key, group.asks))
    except BaseException as failed:
        group.answers.set_exception(failed)
        raise
    finally:
        if waited:
            moving.release()


def move(world: World, key: Name, asks: Sequence[Ask]) -> list[Answer]:
    """Moves the turnstile once for all of these. Raises Unavailable after too many concurrent moves."""
    turnstile = store.read_stile(world.table, *key)
    for tries in range(TRIES):
        now = world.clock.now()
        if turnstile is None:
            return [Go(now) if isinstance(each, flow_keys.Enter) else False for each in asks]
        _remember(world, key, turnstile)
        after, answers = flow_keys.answer(turnstile, asks, now)
        if after == turnstile and not any(isinstance(each, flow_keys.Join) for each in asks):
            return answers
        turn = new_turn(world)
        written = store.move(world.table, turnstile, after, turn, shards=world.shards)
        if not isinstance(written, Refused):
            return answers
        turnstile = store.stile_in(written)
        if turnstile is not None and turnstile.turn == turn:
            return answers  # this move was written, and its answer was lost
        if tries:
            world.clock.sleep(world.chance.uniform(0.0, min(0.2, 0.005 * 2**tries)))
    raise too_many("calls under this flow key")


def new_turn(world: World) -> str:
    return world.chance.token(TURN_BYTES).hex()


def _remember(world: World, key: Name, turnstile: Turnstile) -> None:
    shared = world.memory.of(Turnstiles)
    with shared.lock:
        if turnstile.terms.parallelism is None:
            shared.placeless.add(key)
        else:
            shared.placeless.discard(key)


def has_places(world: World, tenant: str, name: str) -> bool:
    """Returns False if the key had no limit of parallel calls when this process last passed it."""
    return (tenant, name) not in world.memory.of(Turnstiles).placeless
