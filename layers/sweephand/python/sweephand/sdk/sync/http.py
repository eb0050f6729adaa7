# Generated from aio/http.py by `make sdk`. Do not edit.
"""The transport: the only module of this half that imports httpx2 (decision 0130)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sweephand.base.lazy import lazy
from sweephand.sdk.errors import ConfigError, TransportError
from sweephand.sdk.transport.request import Answer

with lazy():
    import httpx2

CONNECTIONS = 20


class Transport(Protocol):
    """A transport: sends a request to the service and returns its answer, or raises TransportError if there is none."""

    def send(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, timeout_s: float
    ) -> Answer: ...
    def close(self) -> None: ...


class HttpTransport:
    """HTTP by httpx2, with persistent connections. Redirects are not followed: they would forward the credential.

    Requests without TLS never go through a proxy of the environment, which could read the credential.
    """

    def __init__(self) -> None:
        limits = httpx2.Limits(max_connections=CONNECTIONS)
        self._client = httpx2.Client(limits=limits, follow_redirects=False, mounts={"http://": None})

    def send(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, timeout_s: float
    ) -> Answer:
        """Sends a request once. Raises TransportError, or ConfigError for an address that cannot be read."""
        try:
            answer = self._client.request(method, url, headers=headers, content=content, timeout=timeout_s)
        except (httpx2.ConnectTimeout, httpx2.PoolTimeout) as fault:
            reason = f"{method} {url}: no connection in {timeout_s:g} s"
            raise TransportError(reason, timed_out=True, sent=False) from fault
        except httpx2.TimeoutException as fault:
            raise TransportError(f"{method} {url}: no answer in {timeout_s:g} s", timed_out=True) from fault
        except httpx2.ConnectError as fault:
            raise TransportError(f"{method} {url}: no connection: {fault}", sent=False) from fault
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as fault:
            raise ConfigError(f"the address {url!r} cannot be used: {fault}") from fault
        except httpx2.HTTPError as fault:
            raise TransportError(f"{method} {url}: {fault or type(fault).__name__}") from fault
        received = {name.lower(): value for name, value in answer.headers.items()}
        return Answer(answer.status_code, received, answer.content)

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()
