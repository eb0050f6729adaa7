"""What an operation of the SAP facade is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sweephand.facades.http import Request, Route
from sweephand.flow.world import World
from sweephand.security.caller import PROVIDER, Caller, Door
from sweephand.security.guard import GuardSettings

FACADE = "sap"


@dataclass(frozen=True)
class Context:
    """caller: verified."""

    world: World
    guard: GuardSettings
    door: Callable[[], Door]
    request: Request
    route: Route
    parameters: Mapping[str, str]
    caller: Caller

    @property
    def tenant(self) -> str:
        """Whose jobs a request touches. Jobs of provider level are a name space of their own, which no tenant has."""
        return self.caller.tenant or PROVIDER

    @property
    def now(self) -> datetime:
        return self.world.clock.now()
