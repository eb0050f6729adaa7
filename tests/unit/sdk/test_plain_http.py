"""No credential leaves this machine without TLS, whichever way an address comes to the SDK and the command line."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sweephand.base.sources import SystemClock
from sweephand.cli.app import run
from sweephand.cli.imports.service import Access, Service
from sweephand.sdk import AsyncSweephand, Sweephand
from sweephand.sdk.errors import ConfigError, TransportError
from sweephand.sdk.transport.config import PLAIN_HTTP, access, check_secure, of_local_stack

STRANGERS = [
    "http://public.example.com",
    "HTTP://public.example.com",
    "http://127.0.0.1.example.com",
    "http://localhost.example.com",
    "http://10.0.0.1:3000",
    "http://[2001:db8::1]",
    "http://0.0.0.0",
    "http://169.254.169.254",
]
OWN = [
    "https://public.example.com",
    "http://localhost:3000",
    "http://acme.localhost",
    "http://127.0.0.1",
    "http://127.8.9.1:8080",
    "http://[::1]:3000",
]
WORDS = "must begin with https://, not http://"


def stored(path: Path, url: str) -> str:
    tenant = {"tenant": "acme", "clientId": "acme.a", "secret": "s"}
    path.write_text(json.dumps({"baseUrl": url, "tenants": [tenant]}))
    return str(path)


WAYS: dict[str, Callable[[str, Path], Any]] = {
    "argument": lambda url, _: Sweephand(url, client_id="acme.a", secret="s"),
    "asynchronous": lambda url, _: AsyncSweephand(url, client_id="acme.a", secret="s"),
    "variable": lambda url, _: access(None, None, None, ENVIRONMENT | {"SWEEPHAND_URL": url}),
    "stack.json": lambda url, path: of_local_stack(stored(path / "stack.json", url), "acme"),
    "import": lambda url, _: Service.at(Access(url, "a", "s"), SystemClock()),
    "token of an import": lambda url, _: Service.at(Access("https://e.org", "a", "s", url), SystemClock()),
}
ENVIRONMENT = {"SWEEPHAND_CLIENT_ID": "acme.a", "SWEEPHAND_SECRET": "s"}


@pytest.mark.parametrize("url", STRANGERS)
@pytest.mark.parametrize("way", WAYS)
def test_an_address_without_tls_is_refused_unless_it_is_this_machine(way: str, url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=WORDS):
        WAYS[way](url, tmp_path)


@pytest.mark.parametrize("url", OWN)
@pytest.mark.parametrize("way", WAYS)
def test_tls_and_this_machine_are_accepted(way: str, url: str, tmp_path: Path) -> None:
    WAYS[way](url, tmp_path)


@pytest.mark.parametrize("options", [["--url", STRANGERS[0]], []], ids=["option", "variable"])
@pytest.mark.parametrize("command", [["jobs", "list"], ["whoami"], ["runs", "list"], ["api", "GET", "/v1/jobs"]])
def test_no_command_sends_a_credential_without_tls(
    command: list[str], options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (ENVIRONMENT | {"SWEEPHAND_URL": STRANGERS[0]}).items():
        monkeypatch.setenv(name, value)

    assert run([*command, *options]) != 0

    assert WORDS in capsys.readouterr().err


def test_the_option_is_explicit_and_nothing_but_the_word_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    check_secure(STRANGERS[0], {PLAIN_HTTP: "allow"})
    for other in ("", "1", "true", "ALLOW"):
        with pytest.raises(ConfigError, match=PLAIN_HTTP):
            check_secure(STRANGERS[0], {PLAIN_HTTP: other})
    monkeypatch.setenv(PLAIN_HTTP, "allow")
    Sweephand(STRANGERS[0], client_id="acme.a", secret="s")


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str | None]]]:
    """A server that redirects to itself by another name, or acts as a proxy, and the credentials that it was sent."""
    seen: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["Authorization"])
            self.send_response(307)
            self.send_header("Location", f"http://localhost:{self.server.server_address[1]}/v1/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_GET  # noqa: N815 - the name that the server calls

        def log_message(self, *_: Any) -> None:
            """Writes nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", seen
    server.shutdown()
    server.server_close()


def _asked(url: str) -> None:
    with Sweephand(url, client_id="acme.a", secret="s") as client, pytest.raises(TransportError):
        client.jobs.get("01998f3e-0000-7000-8000-000000000000")


async def _asked_asynchronously(url: str) -> None:
    async with AsyncSweephand(url, client_id="acme.a", secret="s") as client:
        with pytest.raises(TransportError):
            await client.jobs.get("01998f3e-0000-7000-8000-000000000000")


def _ask(url: str) -> None:
    _asked(url)
    asyncio.run(_asked_asynchronously(url))


def test_a_redirect_does_not_take_the_credential_along(listener: tuple[str, list[str | None]]) -> None:
    url, seen = listener

    _ask(url)

    assert len(seen) == 2


def test_a_proxy_of_the_environment_gets_no_credential_without_tls(
    listener: tuple[str, list[str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, seen = listener
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy)

    with Sweephand("http://127.0.0.1:9", client_id="acme.a", secret="s") as client, pytest.raises(TransportError):
        client.jobs.get("01998f3e-0000-7000-8000-000000000000")

    assert seen == []
