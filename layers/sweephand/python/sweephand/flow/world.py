"""The collaborators of every verb, made once (wiring.py) and given to each: no verb reaches for anything else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from sweephand.actions.call import Call
    from sweephand.domain.run import Outcome
    from sweephand.messaging.event_bus import EventBus
    from sweephand.messaging.run_queue import RunQueue
    from sweephand.security.guard import Outbound
    from sweephand.security.secrets import SecretBox
    from sweephand.security.tokens import StackKeys
    from sweephand.settings import Settings
    from sweephand.sources import Chance, Clock
    from sweephand.store.conditional import Table
    from sweephand.store.standing import Standing


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

    stack_keys: what is derived from the stack's secret; raises Unavailable if that cannot be read.
    """

    settings: Settings
    clock: Clock
    chance: Chance
    table: Table
    standing: Standing
    queue: RunQueue
    bus: EventBus
    secrets: SecretBox
    outbound: Outbound
    perform: Callable[[str, Mapping[str, Any], Call, Outbound], Outcome]
    stack_keys: Callable[[], StackKeys]
    journal: Journal
