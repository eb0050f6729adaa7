"""The SDK against the whole service on a moved clock: its requests go through the facade as the gateway's do."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sweephand.sdk import AsyncSweephand, Sweephand, TransportError
from sweephand.sdk.transport.request import Answer
from sweephand.testing.sources import SeededChance, VirtualClock
from tests.contract.calls import event
from tests.contract.native.api import Api
from tests.support.stage import TENANT


@dataclass
class Gateway:
    """Carries a request to the service. lost: answers that get lost after the request was carried out."""

    api: Api
    lost: int = 0
    sent: list[str] = field(default_factory=list)

    def send(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, timeout_s: float
    ) -> Answer:
        parts = urlsplit(url)
        self.sent.append(f"{method} {parts.path}")
        named = {name.lower(): value for name, value in headers.items()}
        body = None if content is None else content.decode()
        reply = self.api.send(event(method, parts.path, parts.query, named, body))
        if self.lost:
            self.lost -= 1
            raise TransportError("the answer is lost")
        return Answer(reply.status, reply.headers, reply.text.encode())

    def close(self) -> None: ...


@dataclass
class AsyncGateway:
    gateway: Gateway

    async def send(self, *arguments: object) -> Answer:
        return self.gateway.send(*arguments)

    async def aclose(self) -> None: ...


@dataclass
class ServiceClock:
    """The service's clock. Whoever sleeps lets the service work."""

    clock: VirtualClock
    work: Callable[[float], None]

    def now(self):
        return self.clock.now()

    def monotonic(self) -> float:
        return self.clock.monotonic()

    def sleep(self, seconds: float) -> None:
        self.work(seconds)


class AsyncServiceClock(ServiceClock):
    async def sleep(self, seconds: float) -> None:  # type: ignore[override]
        super().sleep(seconds)


def credential(api: Api, caller: str = TENANT) -> dict[str, str]:
    pair = base64.b64decode(api.credentials[caller].removeprefix("Basic ")).decode()
    client_id, _, secret = pair.partition(":")
    return {"client_id": client_id, "secret": secret}


def connected(api: Api, caller: str = TENANT, **more: object) -> tuple[Sweephand, Gateway]:
    gateway = Gateway(api)
    clock = ServiceClock(api.stage.clock, api.stage.run)
    chance = SeededChance(7)
    made = Sweephand(
        "https://sweephand.example", **credential(api, caller), transport=gateway, clock=clock, chance=chance, **more
    )
    return made, gateway


def connected_async(api: Api) -> AsyncSweephand:
    clock = AsyncServiceClock(api.stage.clock, api.stage.run)
    return AsyncSweephand(
        "https://sweephand.example",
        **credential(api),
        transport=AsyncGateway(Gateway(api)),
        clock=clock,
        chance=SeededChance(8),
    )
