"""Authentication of one request, by the type that its action names. Rare types are loaded on first use."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from sweephand.base.lazy import lazy
from sweephand.domain.run import Reason
from sweephand.server.actions.auth import authentication as auth
from sweephand.server.actions.auth.authentication import Authentication
from sweephand.server.actions.auth.request_auth import RequestAuth, Sending, bearer
from sweephand.server.actions.call import Call
from sweephand.server.security.guard import CallFailed, Deadline, Outbound, Target

with lazy():
    from sweephand.server.actions.auth import client_tls, oauth, sigv4


def addressed(how: Authentication, target: Target) -> Target:
    """Returns the target as it is called. An address that is signed is sent in the exact form that was signed."""
    if how.type != "sigv4":
        return target
    return sigv4.addressed(how, target)


def authenticate(
    how: Authentication,
    sending: Sending,
    call: Call,
    outbound: Outbound,
    deadline: Deadline,
    refused: RequestAuth | None,
) -> RequestAuth:
    """Returns the authentication of one request. refused: the one that the target has just answered with 401.

    Raises CallFailed if a secret is missing, NotAuthenticated if a third party refused.
    """
    match how.type:
        case "none" | "basic" | "bearer" | "apiKey":
            return _by_secret(how, call.secret)
        case "oauth2":
            return oauth.authenticate(how, call, outbound, deadline, refused)
        case "clientCertificate":
            return RequestAuth(ssl_context=client_tls.context(call.secret(auth.PEM), outbound))
        case "sigv4":
            return sigv4.authenticate(how, sending, call, outbound)
        case "sweephand":
            return _own(call, sending.target, outbound, deadline)
    raise CallFailed(Reason.GUARD, f"this version knows no authentication {how.type}")


def derived_secrets(stored: Mapping[str, Any], secrets: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the strings of a call that are derived from its secrets, because its target may echo them later.

    stored: the authentication as it is stored. The token of an OAuth server, fetched for one call, is no longer known.
    """
    how = auth.from_json(stored)
    plain = how.type in {"basic", "bearer", "apiKey"} and all(name in secrets for name in how.secret_fields)
    return _by_secret(how, secrets.__getitem__).sent_secrets if plain else ()


def _by_secret(how: Authentication, secret: Callable[[str], str]) -> RequestAuth:
    match how.type:
        case "none":
            return RequestAuth()
        case "basic":
            both = f"{how.members.get('username', '')}:{secret(auth.PASSWORD)}"
            pair = base64.b64encode(both.encode()).decode()
            return RequestAuth((("Authorization", f"Basic {pair}"),), (pair,))
        case "bearer":
            return bearer(secret(auth.TOKEN))
        case _:
            return RequestAuth(((how.members["header"], secret(auth.VALUE)),))


def _own(call: Call, target: Target, outbound: Outbound, deadline: Deadline) -> RequestAuth:
    """Returns the service's own token. A 401 does not request another one, which would be the same."""
    identity = outbound.identity
    if identity is None:
        raise CallFailed(Reason.GUARD, "this stack has no identity of its own (parameter OutboundIdentity)")
    audience = f"{target.scheme}://{target.host_header}"
    now = call.clock.now()
    token, _ = outbound.tokens.get(
        ("sweephand", call.tenant, audience),
        now,
        lambda: identity.issue(call.tenant, audience, now),
        wait_s=deadline.left(),
    )
    return bearer(token)
