"""What shows a target who calls: headers or a certificate, made for one request. Rare kinds are imported when met."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sweephand.actions import authentication as auth
from sweephand.actions.authentication import Authentication
from sweephand.actions.call import Call
from sweephand.domain.run import Outcome, Reason
from sweephand.security.guard import CallFailed, Deadline, Outbound, Target

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True)
class Sending:
    """A request that is about to be made, but for its proof. headers: as they will go out."""

    method: str
    target: Target
    headers: Sequence[tuple[str, str]]
    content: bytes | None


@dataclass(frozen=True)
class Proof:
    """headers: to be added. told: what the target hears in confidence and must not be kept if it says it back.

    kept: it was made for an earlier call, so that a refusal is worth another one. ssl_context: instead of the usual.
    """

    headers: tuple[tuple[str, str], ...] = ()
    told: tuple[str, ...] = field(default=(), repr=False)
    kept: bool = False
    ssl_context: ssl.SSLContext | None = None


class NotProven(Exception):
    """Nothing was sent to the target, because what shows it who calls could not be had. outcome: of the attempt."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


def addressed(how: Authentication, target: Target) -> Target:
    """The target as it is called: where the address is signed, it goes out in the one form that signatures have."""
    if how.type != "sigv4":
        return target
    from sweephand.actions import sigv4  # noqa: PLC0415 - of few jobs

    return sigv4.addressed(how, target)


def prove(
    how: Authentication, sending: Sending, call: Call, outbound: Outbound, deadline: Deadline, refused: Proof | None
) -> Proof:
    """The proof for one request. refused: what the target just answered with 401.

    Raises CallFailed where a secret is missing, NotProven where somebody else had to be asked and did not give.
    """
    match how.type:
        case "none" | "basic" | "bearer" | "apiKey":
            return _by_secret(how, call.secrets)
        case "oauth2":
            from sweephand.actions import oauth  # noqa: PLC0415 - of few jobs

            return oauth.prove(how, call, outbound, deadline, refused)
        case "clientCertificate":
            from sweephand.actions import client_tls  # noqa: PLC0415 - of few jobs

            return Proof(ssl_context=client_tls.context(secret(call.secrets, auth.PEM), outbound))
        case "sigv4":
            from sweephand.actions import sigv4  # noqa: PLC0415 - of few jobs

            return sigv4.prove(how, sending, call, outbound)
        case "sweephand":
            return _own(call, sending.target, outbound, deadline)
    raise CallFailed(Reason.GUARD, f"this version knows no authentication {how.type}")


def told_by_secret(stored: Mapping[str, Any], secrets: Mapping[str, str]) -> tuple[str, ...]:
    """What a call by this authentication says beside the secrets themselves, as it may be said back later.

    stored: the authentication as it is kept. Whatever is fetched for a call (the token of an OAuth server) is not known
    any more.
    """
    how = auth.from_json(stored)
    plain = how.type in {"basic", "bearer", "apiKey"} and all(name in secrets for name in how.secret_fields)
    return _by_secret(how, secrets).told if plain else ()


def _by_secret(how: Authentication, secrets: Mapping[str, str]) -> Proof:
    match how.type:
        case "none":
            return Proof()
        case "basic":
            both = f"{how.members.get('username', '')}:{secret(secrets, auth.PASSWORD)}"
            pair = base64.b64encode(both.encode()).decode()
            return Proof((("Authorization", f"Basic {pair}"),), (pair,))
        case "bearer":
            return bearer(secret(secrets, auth.TOKEN))
        case _:
            return Proof(((how.members["header"], secret(secrets, auth.VALUE)),))


def _own(call: Call, target: Target, outbound: Outbound, deadline: Deadline) -> Proof:
    """The service's own token. Never asked for again after a 401: another one would say the same."""
    identity = outbound.identity
    if identity is None:
        raise CallFailed(Reason.GUARD, "this stack has no identity of its own (parameter OutboundIdentity)")
    audience = f"{target.scheme}://{target.host_header}"
    now = call.clock.now()
    token, _ = outbound.passes.get(
        ("sweephand", call.tenant, audience),
        now,
        lambda: identity.issue(call.tenant, audience, now),
        wait_s=deadline.left(),
    )
    return bearer(token)


def bearer(token: str, *, kept: bool = False) -> Proof:
    return Proof((("Authorization", f"Bearer {token}"),), (token,), kept)


def secret(secrets: Mapping[str, str], name: str) -> str:
    if name not in secrets:
        raise CallFailed(Reason.GUARD, f"the secret {name} of this job is missing")
    return secrets[name]
