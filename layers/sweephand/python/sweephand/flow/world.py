"""The collaborators of every verb, made once (wiring.py) and given to each: no verb reaches for anything else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from sweephand.actions.call import Call
    from sweephand.domain.flow_keys.circuits import Circuit
    from sweephand.domain.run import Outcome
    from sweephand.flow.flow_keys.turnstiles import Group
    from sweephand.flow.rates import Counters
    from sweephand.flow.tenants.callback_keys import CallbackKeys
    from sweephand.messaging.event_bus import EventBus
    from sweephand.messaging.run_queue import RunQueue
    from sweephand.security.guard import Outbound
    from sweephand.security.secrets import SecretBox
    from sweephand.settings import Settings
    from sweephand.sources import Chance, Clock
    from sweephand.store.dynamo.conditional import Table
    from sweephand.store.operations.files import Files
    from sweephand.store.tenants.collection_cache import Standing


@dataclass
class FlowMemory:
    """What a process remembers between its runs: of flow keys, by a key's tenant and name, and how many runs began.

    lock: for everything in here. runs: of this minute, by tenant. groups: threads that ask a turnstile at the same
    time. moving: who holds it may move the turnstile. placeless: keys that had no places when they were seen last.
    circuits: by key and target, with when they were read (monotonic seconds).
    """

    lock: Lock = field(default_factory=Lock)
    groups: dict[tuple[str, str], Group] = field(default_factory=dict)
    moving: dict[tuple[str, str], Lock] = field(default_factory=dict)
    placeless: set[tuple[str, str]] = field(default_factory=set)
    circuits: dict[tuple[str, str, str], tuple[float, Circuit]] = field(default_factory=dict)
    runs: Counters | None = None


class Journal(Protocol):
    """Structured log lines, every member on the allow-list of telemetry.py; metrics, every name in its METRICS."""

    def info(self, message: str, /, **members: object) -> None: ...
    def warning(self, message: str, /, **members: object) -> None: ...
    def error(self, message: str, /, **members: object) -> None: ...
    def count(self, metric: str, amount: float = 1) -> None: ...
    def measure(self, **values: float | Sequence[float]) -> None: ...


@dataclass(frozen=True)
class World:
    """perform: carries out one attempt of an action of a kind. standing: of collections, for the executor's gate.

    callback_keys: the key of callback tokens. memory: of flow keys, for as long as the process lives.
    """

    settings: Settings
    clock: Clock
    chance: Chance
    table: Table
    standing: Standing
    queue: RunQueue
    bus: EventBus
    secrets: SecretBox
    files: Files
    outbound: Outbound
    perform: Callable[[str, Mapping[str, Any], Call, Outbound], Outcome]
    callback_keys: CallbackKeys
    journal: Journal
    memory: FlowMemory = field(default_factory=FlowMemory)
