"""Properties that all things have in common that may be away: applications, consumers and targets. Pure.

Another kind also needs its rows in store.views.tenants and its rules in flow.tenants.absence, one line each.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Protocol


class Watched(Protocol):
    """Something that is watched while something waits for it.

    noun: its kind, in types of events, lists and keys. registered: whether its row exists without a watch.
    watched_since: since when something waits; None while it is not watched. away_at: when it was found to be away.
    waiting: how much waited at the last check.
    """

    noun: ClassVar[str]
    registered: ClassVar[bool]

    @property
    def tenant(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def watched_since(self) -> datetime | None: ...
    @property
    def away_at(self) -> datetime | None: ...
    @property
    def waiting(self) -> int: ...

    @property
    def parts(self) -> tuple[str, ...]:
        """Returns the strings of its row's key, after the noun."""
        ...

    @property
    def event_key(self) -> str:
        """Returns what tells it apart from all others of its kind, in the ids of events."""
        ...

    @property
    def in_events(self) -> Mapping[str, Any]:
        """Returns the members of events that name it."""
        ...

    @property
    def in_lists(self) -> Mapping[str, Any]:
        """Returns the members name, version and waiting of lists of what is away."""
        ...
