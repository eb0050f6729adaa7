"""A client for one side of an import: the API of the old service, or a stack."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any, Self
from urllib.parse import urlsplit

import click
import httpx2

from sweephand.base.sources import Clock
from sweephand.sdk.transport.config import check_secure
from sweephand.server.actions import Allowed
from sweephand.server.security.guard import GuardSettings

TIMEOUT_S = 30.0
TRIES_UNTIL_ALLOWED = 12
"""How often a request that exceeds a rate limit is tried. The windows of such limits are a minute long."""
TRIES = 4
"""How often a request is tried if the server fails or does not answer."""
LONGEST_WAIT_S = 60.0
EVERYWHERE = tuple(ip_network(each) for each in ("0.0.0.0/0", "::/0"))
LENIENT = Allowed(GuardSettings(private=EVERYWHERE, plain_http=True))
"""Actions under the most permissive settings. The stack itself refuses addresses that it does not allow."""


class Failed(Exception):
    """A request that one side refused or did not answer.

    status: of the answer. words: its message. Both are None without an answer.
    """

    def __init__(self, reason: str, status: int | None = None, words: str | None = None) -> None:
        super().__init__(reason)
        self.status, self.words = status, words


@dataclass(frozen=True)
class Access:
    """The address and credentials of one side. token_url: for OAuth client credentials; None for Basic."""

    url: str
    client_id: str
    secret: str = field(repr=False)
    token_url: str | None = None

    @property
    def auth(self) -> httpx2.Auth:
        if self.token_url is None:
            return httpx2.BasicAuth(self.client_id, self.secret)
        return ByToken(self.token_url, self.client_id, self.secret)


class ByToken(httpx2.Auth):
    """Authentication by OAuth client credentials. The token is fetched on first use, and again if it is refused."""

    requires_response_body = True

    def __init__(self, token_url: str, client_id: str, secret: str) -> None:
        path = "/oauth/token" if urlsplit(token_url).path in {"", "/"} else ""
        self._url = token_url.rstrip("/") + path if path else token_url
        self._pair = httpx2.BasicAuth(client_id, secret)
        self._token: str | None = None

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        kept = self._token is not None
        if not kept:
            yield from self._fetch()
        request.headers["Authorization"] = f"Bearer {self._token}"
        answer = yield request
        if answer.status_code == httpx2.codes.UNAUTHORIZED and kept:
            yield from self._fetch()
            request.headers["Authorization"] = f"Bearer {self._token}"
            yield request

    def _fetch(self) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Fetches a token. Raises Failed, or TransportError if another try may succeed."""
        form = {"grant_type": "client_credentials", "response_type": "token"}
        request = httpx2.Request("POST", self._url, data=form, headers={"Accept": "application/json"})
        answer = yield next(self._pair.auth_flow(request))
        if _may_pass(answer.status_code):
            raise httpx2.TransportError(f"{self._url}: {answer.status_code}")
        token = _json(answer).get("access_token") if isinstance(_json(answer), dict) else None
        if not answer.is_success or not isinstance(token, str):
            raise Failed(f"POST {self._url}: {answer.status_code}, and no token", answer.status_code)
        self._token = token


@dataclass(frozen=True)
class Service:
    """A client of one side. base_url: without a trailing slash. clock: for waiting."""

    base_url: str
    client: httpx2.Client
    clock: Clock

    @classmethod
    def at(cls, access: Access, clock: Clock) -> Self:
        """Makes a client. Raises ConfigError if a credential would be sent without TLS to another machine."""
        base_url = access.url.rstrip("/")
        for address in filter(None, (base_url, access.token_url)):
            check_secure(address, os.environ)
        direct = {"http://": None}
        client = httpx2.Client(base_url=base_url, auth=access.auth, timeout=TIMEOUT_S, mounts=direct)
        return cls(base_url, client, clock)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Returns the answer's JSON. Retries temporary errors. Raises Failed with the service's own message."""
        faults = 0
        for _ in range(TRIES_UNTIL_ALLOWED):
            try:
                answer = self.client.request(method, path, json=body, params=query, headers=headers)
            except httpx2.TransportError as error:
                if faults + 1 >= TRIES:
                    raise Failed(f"{self.base_url}: {error}") from error
                wait_s = None
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise Failed(f"{self.base_url}: {error}") from error
            else:
                wait_s = _asked_to_wait(answer)
                if not _may_pass(answer.status_code) or (wait_s is None and faults + 1 >= TRIES):
                    return self._content(method, path, answer)
            if wait_s is None:
                wait_s, faults = 2.0**faults, faults + 1
            self.clock.sleep(wait_s)
        raise Failed(f"{method} {self.base_url}{path}: still over the rate limit after {TRIES_UNTIL_ALLOWED} tries")

    def _content(self, method: str, path: str, answer: httpx2.Response) -> Any:
        content = _json(answer)
        if answer.is_success:
            return content
        error = content.get("error", content) if isinstance(content, dict) else None
        words = error.get("message") or error.get("detail") if isinstance(error, dict) else None
        reason = f"{method} {self.base_url}{path}: {answer.status_code} {words or answer.text[:200]}"
        raise Failed(reason, answer.status_code, words)


def _json(answer: httpx2.Response) -> Any:
    try:
        return answer.json() if answer.content else None
    except ValueError:
        return None


def _may_pass(status: int) -> bool:
    return status in {httpx2.codes.REQUEST_TIMEOUT, httpx2.codes.TOO_MANY_REQUESTS} or status >= 500


def _asked_to_wait(answer: httpx2.Response) -> float | None:
    """Returns the seconds to wait; None if the answer does not say."""
    text = answer.headers.get("retry-after", "")
    if text.isascii() and text.isdigit():
        return min(float(text), LONGEST_WAIT_S)
    return LONGEST_WAIT_S / 4 if answer.status_code == httpx2.codes.TOO_MANY_REQUESTS else None


def access(url: tuple[str, str | None], pair: tuple[str, str | None], token_url: str | None = None) -> Access:
    """Returns address and credentials. url, pair: names and values of options. Raises Failed if a value is missing."""
    for name, value in (url, pair):
        if not value:
            raise Failed(f"{name} is missing")
    client_id, _, secret = (pair[1] or "").partition(":")
    return Access(url[1] or "", client_id, secret, token_url)


def target(options: Any) -> Access:
    """Returns the stack that the options or the environment name. Raises Failed."""
    to = options.to or os.environ.get("SWEEPHAND_URL")
    pair = options.to_credentials or os.environ.get("SWEEPHAND_CREDENTIALS")
    return access(("--to", to), ("--to-credentials", pair))


def target_options() -> list[click.Parameter]:
    """Returns the options that `target` reads."""
    return [
        click.Option(["--to"], metavar="URL", help="Base URL of the stack; default: SWEEPHAND_URL."),
        click.Option(["--to-credentials"], metavar="ID:SECRET", help="For --to; default: SWEEPHAND_CREDENTIALS."),
    ]
