"""The collaborators of all verbs, built once (wiring.py) and passed to each verb. Verbs use no others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sweephand.base.records import dataclass

if TYPE_CHECKING:
    from sweephand.base.sources import Chance, Clock
    from sweephand.domain.run import Outcome
    from sweephand.server.actions.call import Call
    from sweephand.server.messaging.event_bus import EventBus
    from sweephand.server.messaging.run_queue import RunQueue
    from sweephand.server.security.guard import Outbound
    from sweephand.server.settings import Settings
    from sweephand.server.store.dynamo.conditional import Table
    from sweephand.server.store.index.shards import Shards
    from sweephand.server.store.operations.files import Files
    from sweephand.server.store.tenants.callback_keys import CallbackKeys
    from sweephand.server.store.tenants.pointer_keys import PointerKeys
    from sweephand.server.store.tenants.secret_box import SecretBox
    from sweephand.server.store.tenants.tenants import CollectionTerms


K = TypeVar("K")
V = TypeVar("V")


class Remembered(dict[K, V]):
    """A part of a process's memory. It forgets everything when it is full, so that it never grows without limit."""

    most = 10_000

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self.most:
            self.clear()
        super().__setitem__(key, value)


class FlowMemory:
    """The memory of the rooms of flow between runs, for the life of a process: one object of each class."""

    def __init__(self) -> None:
        self._kept: dict[type, Any] = {}

    def of(self, kind: type[K]) -> K:
        """Returns the object of this class, which is made at its first use. Safe for threads."""
        kept: K | None = self._kept.get(kind)
        return self._kept.setdefault(kind, kind()) if kept is None else kept


class Journal(Protocol):
    """Structured log lines and metrics. telemetry.py lists the permitted members of lines and the names of metrics."""

    def info(self, message: str, /, **members: object) -> None: ...
    def warning(self, message: str, /, **members: object) -> None: ...
    def error(self, message: str, /, **members: object) -> None: ...
    def count(self, metric: str, amount: float = 1) -> None: ...
    def measure(self, part: Mapping[str, str] | None = None, /, **values: float | Sequence[float]) -> None: ...


@dataclass(frozen=True)
class World:
    """The collaborators of a verb.

    perform: carries out one attempt of an action of a kind. terms: cached collection settings for the executor's
    gate. callback_keys: keys of callback tokens. pointer_keys: keys of pointers to workers. shards: of the next-run
    index.
    """

    settings: Settings
    clock: Clock
    chance: Chance
    table: Table
    terms: CollectionTerms
    queue: RunQueue
    bus: EventBus
    secrets: SecretBox
    files: Files
    outbound: Outbound
    perform: Callable[[str, Mapping[str, Any], Call, Outbound], Outcome]
    callback_keys: CallbackKeys
    pointer_keys: PointerKeys
    shards: Shards
    journal: Journal
    memory: FlowMemory = field(default_factory=FlowMemory)
