"""A small client of the public API, like one that any user could write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sweephand.local.stack_file import Credential

PAGE = 200
TIMEOUT_S = 30.0


class Refused(Exception):
    """An answer other than 2xx. code: of the problem document, empty without one."""

    def __init__(self, method: str, path: str, response: httpx2.Response) -> None:
        problem = _json(response)
        self.status = response.status_code
        self.code = str(problem.get("code", "")) if isinstance(problem, dict) else ""
        super().__init__(f"{method} {path}: {response.status_code} {response.text[:500]}")


class Unreachable(Exception):
    """No answer: the stack has stopped or is stopping."""


def _json(response: httpx2.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


class Api:
    """A client with one credential. Safe for threads."""

    def __init__(self, base_url: str, credential: Credential, *, for_tenant: str | None = None) -> None:
        """Creates a client. for_tenant: the tenant that a provider-level credential acts for."""
        headers = {} if for_tenant is None else {"Sweephand-Tenant": for_tenant}
        auth = httpx2.BasicAuth(credential.client_id, credential.secret)
        self._client = httpx2.Client(
            base_url=base_url, auth=auth, headers=headers, timeout=TIMEOUT_S, trust_env=False, follow_redirects=False
        )

    def call(self, method: str, path: str, body: Any = None, *, query: Mapping[str, str | int] | None = None) -> Any:
        """Returns the answer's JSON, None without any. Raises Refused, Unreachable."""
        try:
            response = self._client.request(method, path, json=body, params=query)
        except httpx2.TransportError as error:
            raise Unreachable(f"{method} {path}: {error}") from error
        if not response.is_success:
            raise Refused(method, path, response)
        return _json(response)

    def pages(
        self, path: str, *, limit: int = PAGE, query: Mapping[str, str | int] | None = None
    ) -> Iterator[list[Any]]:
        """Yields the pages of a list on demand."""
        cursor: str | None = None
        while True:
            more = {} if cursor is None else {"cursor": cursor}
            page = self.call("GET", path, query={"limit": limit, **(query or {}), **more})
            yield page["items"]
            cursor = page.get("nextCursor")
            if cursor is None:
                return

    def items(self, path: str, *, query: Mapping[str, str | int] | None = None) -> Iterator[Any]:
        """Yields every item of a list."""
        for page in self.pages(path, query=query):
            yield from page

    def close(self) -> None:
        self._client.close()
