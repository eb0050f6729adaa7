"""Messages through the whole local stack: sent by the SDK, received by a server, one time each."""

from __future__ import annotations

import json
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from sweephand.sdk import Sweephand, http
from sweephand.sdk.api_errors import StateConflict
from tests.local_stack.waiting import CLOCK, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.local_stack.conftest import LocalStack

pytestmark = pytest.mark.emulator


class Receiver(ThreadingHTTPServer):
    """A server that keeps what it receives: when, the headers and the payload."""

    def __init__(self) -> None:
        self.received: list[tuple[datetime, dict[str, str], Any]] = []
        super().__init__(("127.0.0.1", 0), _Keep)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class _Keep(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.received.append((CLOCK.now(), dict(self.headers), json.loads(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_messages_arrive_once_at_their_instants(stack: LocalStack, receiver: Receiver) -> None:
    with Sweephand.local(stack.folder.root / "stack.json", tenant="acme") as sh:
        action = http.post(receiver.url)
        sent = [sh.messages.send(action, payload={"n": n}, delay_seconds=n, resource_id="one") for n in range(4)]
        revoked = sh.messages.send(action, payload={"n": -1}, delay_seconds=20)
        sh.messages.revoke(revoked)
        many = sh.messages.send_many([{"action": action, "payload": {"n": n}} for n in range(10, 35)])

        until(lambda: len(receiver.received), lambda count: count == 29)
        ends = until(
            lambda: [sh.messages.get(each) for each in sent],
            lambda found: {each.state for each in found} == {"SUCCESS"},
        )
        listed = list(sh.runs.list(resource_id="one"))
        with pytest.raises(StateConflict):
            sh.messages.revoke(sent[0])

    assert sorted(payload["n"] for _, _, payload in receiver.received) == [0, 1, 2, 3, *range(10, 35)]
    assert {each.status for each in many.items} == {202}
    assert {run.id for run in listed} == {each.id for each in sent}
    for at, headers, payload in receiver.received:
        named = {name.lower(): value for name, value in headers.items()}
        assert "sweephand-job-id" not in named
        if payload["n"] < 10:
            message = ends[payload["n"]]
            assert named["webhook-id"] == named["idempotency-key"] == named["sweephand-run-id"] == message.id
            assert at >= message.planned_at
