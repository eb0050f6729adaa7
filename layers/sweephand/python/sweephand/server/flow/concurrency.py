"""Conflicts and outages: repeats a verb whose rows have changed, checks `If-Match`, leaves work to a later repair."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from sweephand.base.errors import PreconditionFailed, Unavailable
from sweephand.server.flow.world import World

TRIES = 5
LONGEST_WAIT_S = 0.32

P = ParamSpec("P")
T = TypeVar("T")
Verb = Callable[Concatenate[World, P], T]


class Moved(Exception):
    """Another writer has changed what was read."""


def until_unmoved(changes: str, tries: int = TRIES, wait_s: float = 0.0) -> Callable[[Verb[P, T]], Verb[P, T]]:
    """Decorates a verb that raises Moved: it is called again, up to `tries` times, then Unavailable is raised.

    changes: names the changes in the reason. wait_s: the longest random wait after the first try; it doubles each time.
    """

    def decorated(verb: Verb[P, T]) -> Verb[P, T]:
        @wraps(verb)
        def repeated(world: World, /, *args: P.args, **kwargs: P.kwargs) -> T:
            for tried in range(tries):
                try:
                    return verb(world, *args, **kwargs)
                except Moved:
                    if wait_s:
                        world.clock.sleep(world.chance.uniform(0.0, min(LONGEST_WAIT_S, wait_s * 2**tried)))
            raise too_many(changes)

        return repeated

    return decorated


def too_many(changes: str) -> Unavailable:
    return Unavailable(f"too many concurrent {changes}; try again")


def require_revision(if_match: int | None, revision: int, what: str = "the job is at revision") -> None:
    """Raises PreconditionFailed if the caller expects a revision other than the stored one."""
    if if_match is not None and revision != if_match:
        raise PreconditionFailed(f"{what} {revision}, not at that of If-Match: read it again first")


@contextmanager
def tolerated(world: World, warning: str, **members: object) -> Iterator[None]:
    """Logs a warning if the block raises Unavailable: a wake row or the next tick makes up for it."""
    try:
        yield
    except Unavailable as unavailable:
        world.journal.warning(warning, reason=unavailable.reason, **members)
