"""Calls to the API, with credential, idempotency key, retries and errors."""

from __future__ import annotations

import base64
import json
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from sweephand import __version__
from sweephand.base.lazy import lazy
from sweephand.base.sources import Chance
from sweephand.sdk.aio.http import AsyncTransport
from sweephand.sdk.errors import InvalidArgument, TransportError
from sweephand.sdk.transport.clocks import AsyncClock
from sweephand.sdk.transport.config import Access
from sweephand.sdk.transport.request import Answer, Request, header
from sweephand.sdk.transport.retries import Retries, fault_allows, retry_after_s, status_allows

with lazy():
    from sweephand.sdk.transport import refusals, skew

LEAST_S = 0.001


class AsyncCaller:
    """A stack, called with one credential. tenant: the tenant for which a provider's credential acts."""

    def __init__(
        self,
        access: Access,
        transport: AsyncTransport,
        *,
        clock: AsyncClock,
        chance: Chance,
        retries: Retries,
        tenant: str | None,
    ) -> None:
        self.clock = clock
        self._access, self._transport, self._chance = access, transport, chance
        self._latest: tuple[Answer, datetime] | None = None
        self._retries, self._tenant = retries, None if tenant is None else header("tenant", tenant)

    async def json(self, request: Request) -> Any:
        """Returns the JSON of the answer; None if it has no body. Raises ApiError or TransportError."""
        answer = await self.answer(request)
        if not answer.content:
            return None
        try:
            return json.loads(answer.content)
        except ValueError as wrong:
            raise self._not_a_stack(request, answer) from wrong

    async def answer(self, request: Request) -> Answer:
        """Sends the request, several times if necessary, and returns its answer. Raises ApiError or TransportError."""
        began = self.clock.monotonic()
        url, headers, content = self._written(request)
        for tried in range(1, self._retries.tries + 1):
            left_s = began + self._retries.deadline_s - self.clock.monotonic()
            asked_s: float | None = None
            try:
                timeout_s = max(min(self._retries.timeout_s, left_s), LEAST_S)
                answer = await self._transport.send(request.method, url, headers, content, timeout_s)
            except TransportError as fault:
                error: Exception = fault
                again = fault_allows(fault, repeatable=request.repeatable)
            else:
                self._latest = answer, self.clock.now()
                if 200 <= answer.status < 300:
                    return answer
                asked_s = retry_after_s(answer.headers, self.clock.now())
                again = status_allows(answer.status, repeatable=request.repeatable)
                error = self._refusal(request, answer, asked_s, tried)
            wait_s = self._retries.wait_s(tried, asked_s, self._chance)
            left_s = began + self._retries.deadline_s - self.clock.monotonic()
            if not again or tried == self._retries.tries or wait_s >= left_s:
                raise error
            await self.clock.sleep(wait_s)
        raise AssertionError("a last try returns or raises")

    @property
    def clock_ahead_s(self) -> int | None:
        """How many seconds the clock of this machine is ahead of the service's, by the latest answer."""
        return None if self._latest is None else skew.ahead_s(self._latest[0].headers, self._latest[1])

    def _refusal(self, request: Request, answer: Answer, asked_s: float | None, tried: int) -> Exception:
        if refusals.of_something_else(answer.status, answer.content):
            return self._not_a_stack(request, answer)
        return refusals.api_error(
            request.method,
            request.path,
            answer.status,
            answer.content,
            base_url=self._access.url,
            request_id=answer.headers.get("x-request-id") or answer.headers.get("apigw-requestid"),
            retry_after_s=asked_s,
            tries=tried,
            parameters=request.query.keys(),
        )

    def _not_a_stack(self, request: Request, answer: Answer) -> TransportError:
        kind = answer.headers.get("content-type", "no content type")
        leads = f", leads to {answer.headers['location']}" if "location" in answer.headers else ""
        got = f"{request.method} {request.path}: {answer.status}, {kind}{leads}"
        return TransportError(
            f"{self._access.url} does not answer as a stack does ({got}); use the address in the stack's output ApiUrl"
        )

    def _written(self, request: Request) -> tuple[str, dict[str, str], bytes | None]:
        """Returns the address, the headers and the body, which are the same for each try."""
        pair = f"{self._access.client_id}:{self._access.secret}".encode()
        headers = {
            "Accept": "application/json",
            "Authorization": f"Basic {base64.b64encode(pair).decode()}",
            "User-Agent": f"sweephand-python/{__version__}",
        }
        content, etag = _content(request), request.etag()
        if content is not None:
            headers["Content-Type"] = "application/json"
        if etag is not None:
            headers["If-Match"] = etag
        if request.keyed:
            headers["Idempotency-Key"] = header("idempotency_key", request.key or self._chance.new_id(self.clock.now()))
        if request.reason is not None:
            headers["Sweephand-Reason"] = header("reason", request.reason)
        if request.acting and self._tenant is not None:
            headers["Sweephand-Tenant"] = self._tenant
        try:
            query = urlencode(request.query_strings())
        except UnicodeEncodeError as wrong:
            raise InvalidArgument("query", f"must be Unicode: {wrong}") from wrong
        return f"{self._access.url}{request.path}" + (f"?{query}" if query else ""), headers, content

    async def aclose(self) -> None:
        """Closes the transport."""
        await self._transport.aclose()


def _content(request: Request) -> bytes | None:
    """Returns the body as it is sent. Raises InvalidArgument for a value that JSON cannot represent."""
    try:
        body = request.json()
        if body is None:
            return None
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except RecursionError as deep:
        raise InvalidArgument("body", "cannot be sent as JSON: it is nested too deeply") from deep
    except (TypeError, ValueError) as wrong:
        raise InvalidArgument("body", f"cannot be sent as JSON: {wrong}") from wrong
