"""A transport that answers by a script, and clients over it. No test sleeps."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from sweephand.sdk import AsyncSweephand, Sweephand
from sweephand.sdk.transport.request import Answer
from sweephand.testing.sources import SeededChance, VirtualClock

URL = "https://sweephand.example"


@dataclass(frozen=True)
class Sent:
    """A request as the transport was given it."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None
    timeout_s: float

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.url).query, keep_blank_values=True))

    @property
    def json(self) -> Any:
        return None if self.content is None else json.loads(self.content)


@dataclass
class Script:
    """Gives one step after the other: an answer, an exception, or a function of the request. takes_s: of each try."""

    steps: list[Answer | Exception | Callable[[Sent], Answer]]
    clock: VirtualClock = field(default_factory=VirtualClock)
    takes_s: float = 0.0
    sent: list[Sent] = field(default_factory=list)
    closed: bool = False

    def send(self, method: str, url: str, headers: Any, content: bytes | None, timeout_s: float) -> Answer:
        self.sent.append(Sent(method, url, dict(headers), content, timeout_s))
        self.clock.advance(self.takes_s)
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step(self.sent[-1]) if callable(step) else step

    def close(self) -> None:
        self.closed = True


@dataclass
class AsyncScript:
    script: Script

    async def send(self, *arguments: Any) -> Answer:
        return self.script.send(*arguments)

    async def aclose(self) -> None:
        self.script.close()


class AsyncVirtualClock(VirtualClock):
    async def sleep(self, seconds: float) -> None:  # type: ignore[override]
        super().sleep(seconds)


def reply(body: Any = None, status: int = 200, **headers: str) -> Answer:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    content = b"" if body is None else json.dumps(body).encode()
    return Answer(status, {"content-type": "application/json", **told}, content)


def problem(code: str, status: int, detail: str = "no", **members: Any) -> Answer:
    body = {"type": "/problems/" + code.lower().replace("_", "-"), "title": "t", "status": status, "code": code}
    return reply({**body, "detail": detail, "requestId": "r-1", **members}, status)


def client(*steps: Any, takes_s: float = 0.0, **more: Any) -> tuple[Sweephand, Script]:
    script = Script(list(steps), takes_s=takes_s)
    chance = SeededChance()
    made = Sweephand(URL, client_id="me", secret="s3cret", transport=script, clock=script.clock, chance=chance, **more)
    return made, script


def async_client(*steps: Any) -> tuple[AsyncSweephand, Script]:
    script = Script(list(steps), AsyncVirtualClock())
    made = AsyncSweephand(
        URL,
        client_id="me",
        secret="s3cret",
        transport=AsyncScript(script),
        clock=script.clock,
        chance=SeededChance(),
    )
    return made, script
