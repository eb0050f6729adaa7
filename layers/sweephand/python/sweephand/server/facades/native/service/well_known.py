"""The keys with which receivers verify the service's own tokens. They are open to all."""

from __future__ import annotations

from typing import Any

from sweephand.base.errors import NotFound
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native.context import KEYS_PATH, Context

KEPT = {"Cache-Control": "public, max-age=3600"}


def read_keys(ctx: Context) -> Answer:
    """Returns the public keys (RFC 7517). Raises NotFound if the stack has no identity."""
    identity = ctx.world.outbound.identity
    if identity is None:
        raise NotFound("this stack has no identity of its own (parameter OutboundIdentity)")
    return Answer(200, identity.key_set(), KEPT)


def read_configuration(ctx: Context) -> Answer:
    """Returns the address of the keys in the form of OpenID Connect Discovery 1.0, of which no more is supported."""
    if ctx.world.outbound.identity is None:
        raise NotFound("this stack has no identity of its own (parameter OutboundIdentity)")
    issuer = ctx.world.settings.public_base_url or ctx.request.base_url
    said: dict[str, Any] = {
        "issuer": issuer,
        "jwks_uri": issuer + KEYS_PATH,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }
    return Answer(200, said, KEPT)
