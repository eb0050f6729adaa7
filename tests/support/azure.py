"""Azure's storage queues and Service Bus as a small server that believes nobody: it checks each signature."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlsplit
from xml.etree import ElementTree as ET

from sweephand.server.security.guard import GuardSettings, Outbound, networks

STORAGE_TOKEN = "sv=2021-08-06&sp=a&se=2099-01-01T00:00:00Z&sig=c2lnbmF0dXJlCg%3D%3D"
KEYS = {"QPolicy": "s3cret-Sas-key-canary"}


@dataclass
class AzureServer:
    """storage: the envelopes that arrived, member by member, by account and queue; bus: (broker, custom, text).

    heard: the signature and what it stands with, of what was last refused.

    hangs: cleared, it does not answer until it is set.
    """

    port: int = 0
    entities: set[str] = field(default_factory=lambda: {"acme/orders", "acmebus/orders", "acmebus/news"})
    storage: list[dict[str, str]] = field(default_factory=list)
    bus: list[tuple[dict[str, Any], dict[str, str], str]] = field(default_factory=list)
    answers: int = 201
    heard: str = ""
    hangs: threading.Event = field(default_factory=threading.Event)
    now: Callable[[], float] = time.time  # noqa: TID251 - as Azure judges signatures

    @property
    def guard(self) -> GuardSettings:
        return GuardSettings(
            private=networks("127.0.0.0/8"),
            plain_http=True,
            azure_storage_suffix=f"http://core.localhost:{self.port}",
            azure_service_bus_suffix=f"http://servicebus.localhost:{self.port}",
        )

    @property
    def outbound(self) -> Outbound:
        def lookup(_host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
            return [(2, 1, 6, "", ("127.0.0.1", port))]

        return Outbound(self.guard, lookup=lookup)

    def take(self, host: str, target: str, headers: Mapping[str, str], body: bytes) -> int:
        """Returns the status of the answer."""
        self.hangs.wait(10)
        if self.answers != 201:
            return self.answers
        url = urlsplit(target)
        entity, slash, verb = url.path[1:].rpartition("/")
        name, _, kind = host.partition(".")
        if not slash or verb != "messages" or f"{name}/{entity}" not in self.entities:
            return 404
        if kind.startswith("queue.core."):
            return self._to_storage(url.query, headers, body)
        return self._to_bus(f"http://{host}/{entity}", headers, body)

    def quoted(self, authorization: str | None, target: str, body: bytes) -> bytes:
        """Returns everything that it received, as it came and taken apart."""
        self.heard = urlsplit(target).query or str(authorization).partition(" ")[2]
        parts = json.dumps(parse_qs(self.heard))
        text = base64.b64decode(ET.fromstring(body)[0].text or "") if body.startswith(b"<QueueMessage>") else body
        return f"<Error>{authorization} {target} {parts} {text.decode()}</Error>".encode()

    def _to_storage(self, query: str, headers: Mapping[str, str], body: bytes) -> int:
        wanted, sent = parse_qs(STORAGE_TOKEN), parse_qs(query)
        if sent != wanted or "a" not in sent["sp"][0] or "authorization" in headers:
            return 403
        if headers["content-type"] != "application/xml" or len(body) > 65_536:
            return 400
        outer = ET.fromstring(body)
        assert (outer.tag, [child.tag for child in outer]) == ("QueueMessage", ["MessageText"])
        text = base64.b64decode(outer[0].text or "", validate=True).decode()
        declaration, _, envelope = text.partition("\n")
        assert declaration == '<?xml version="1.0" encoding="utf-16"?>'
        inner = ET.fromstring(envelope)
        assert inner.tag == "StorageQueueMessage"
        self.storage.append({child.tag: child.text or "" for child in inner})
        return 201

    def _to_bus(self, resource: str, headers: Mapping[str, str], body: bytes) -> int:
        scheme, _, rest = headers.get("authorization", "").partition(" ")
        parts = dict(pair.partition("=")[::2] for pair in rest.split("&"))
        key = KEYS.get(unquote_plus(parts.get("skn", "")))
        if scheme != "SharedAccessSignature" or key is None:
            return 401
        signed = hmac.new(key.encode(), (parts["sr"] + "\n" + parts["se"]).encode(), hashlib.sha256)
        good = hmac.compare_digest(base64.b64encode(signed.digest()), unquote_plus(parts["sig"]).encode())
        fresh = 0 < int(parts["se"]) - self.now() <= 600
        if not good or not fresh or unquote_plus(parts["sr"]) != resource.lower():
            return 401
        own = {"host", "connection", "content-length", "user-agent", "authorization", "content-type"}
        custom = {name: json.loads(value) for name, value in headers.items() if name not in own | {"brokerproperties"}}
        broker = json.loads(headers["brokerproperties"]) | {"ContentType": headers["content-type"]}
        self.bus.append((broker, custom, body.decode()))
        return 201


@contextmanager
def azure() -> Iterator[AzureServer]:
    azure_server = AzureServer()
    azure_server.hangs.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = azure_server.take(headers["host"], self.path, headers, body)
            said = b"" if status == 201 else azure_server.quoted(headers.get("authorization"), self.path, body)
            self.send_response(status)
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            with suppress(OSError):  # who waited no longer is part of the test
                self.wfile.write(said)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    azure_server.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield azure_server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
