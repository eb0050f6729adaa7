"""A request that needs authentication, and its authentication: headers or a client certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from sweephand.base.records import dataclass
from sweephand.domain.run import Outcome
from sweephand.server.security.guard import Target

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True)
class Sending:
    """A request that is about to be made, without its authentication. headers: as they will be sent."""

    method: str
    target: Target
    headers: Sequence[tuple[str, str]]
    content: bytes | None


@dataclass(frozen=True)
class RequestAuth:
    """Authentication of one request.

    headers: to be added. sent_secrets: secrets that are sent to the target, which may echo them. kept: whether it was
    made for an earlier call, so that it is worth making a new one after a refusal. ssl_context: replaces the shared
    one.
    """

    headers: tuple[tuple[str, str], ...] = ()
    sent_secrets: tuple[str, ...] = field(default=(), repr=False)
    kept: bool = False
    ssl_context: ssl.SSLContext | None = None


class NotAuthenticated(Exception):
    """A request that was not sent, because its authentication could not be obtained. outcome: of the attempt."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


def bearer(token: str, *, kept: bool = False) -> RequestAuth:
    """Returns the authentication with a bearer token."""
    return RequestAuth((("Authorization", f"Bearer {token}"),), (token,), kept)
