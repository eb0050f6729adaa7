"""The collaborators of all verbs, built once (wiring.py) and passed to each verb. Verbs use no others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from sweephand.base.records import dataclass

if TYPE_CHECKING:
    from sweephand.base.sources import Chance, Clock
    from sweephand.domain.consumer import Consumer
    from sweephand.domain.flow_keys.circuits import Circuit
    from sweephand.domain.run import Outcome
    from sweephand.server.actions.call import Call
    from sweephand.server.flow.flow_keys.turnstiles import Group
    from sweephand.server.flow.jobs.load_ahead import Kept
    from sweephand.server.flow.rates import Counters, RateMeter
    from sweephand.server.flow.tenants.callback_keys import CallbackKeys
    from sweephand.server.flow.tenants.secret_box import SecretBox
    from sweephand.server.messaging.event_bus import EventBus
    from sweephand.server.messaging.run_queue import RunQueue
    from sweephand.server.security.guard import Outbound
    from sweephand.server.settings import Settings
    from sweephand.server.store.dynamo.conditional import Table
    from sweephand.server.store.index.shards import Shards
    from sweephand.server.store.operations.files import Files
    from sweephand.server.store.tenants.pointer_keys import PointerKeys
    from sweephand.server.store.tenants.tenants import CollectionTerms


REMEMBERED = 10_000


@dataclass
class FlowMemory:
    """State that a process keeps between runs: of flow keys and consumers, and how many runs have begun.

    lock: guards all of it. runs: runs begun in this minute, by tenant. groups: threads that ask a turnstile at the same
    time. moving: the lock of the thread that may move the turnstile. placeless: keys that did not limit parallel calls
    when they were last read. circuits: by key and target, with the time of reading (monotonic seconds). consumers: by
    tenant and name, likewise. answers: when a host or an address last answered, by tenant. silent_calls: how many calls
    to silent targets are under way, likewise. loads: what flow.jobs.load_ahead last computed, by tenant. requests:
    meters of tenants' requests, by who sends them.
    """

    lock: Lock = field(default_factory=Lock)
    groups: dict[tuple[str, str], Group] = field(default_factory=dict)
    moving: dict[tuple[str, str], Lock] = field(default_factory=dict)
    placeless: set[tuple[str, str]] = field(default_factory=set)
    circuits: dict[tuple[str, str, str], tuple[float, Circuit]] = field(default_factory=dict)
    consumers: dict[tuple[str, str], tuple[float, Consumer]] = field(default_factory=dict)
    loads: dict[str, Kept] = field(default_factory=dict)
    answers: dict[tuple[str, str], datetime] = field(default_factory=dict)
    silent_calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    runs: Counters | None = None
    requests: dict[str, RateMeter] = field(default_factory=dict)

    def answered(self, tenant: str, targets: Sequence[str], now: datetime) -> None:
        """Notes that these targets have answered."""
        with self.lock:
            if len(self.answers) >= REMEMBERED:
                self.answers.clear()
            self.answers.update({(tenant, target): now for target in targets})


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
    index. memory: kept for the life of the process.
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
