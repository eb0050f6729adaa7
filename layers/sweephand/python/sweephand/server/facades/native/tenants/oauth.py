"""Tokens for client credentials, and refusals in the form of OAuth 2.0 (RFC 6749, 5.2)."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

from sweephand.base.errors import Forbidden, InvalidRequest, RateLimited, Unauthenticated
from sweephand.base.members.fields import shown
from sweephand.server.facades.http import Answer, Request
from sweephand.server.facades.native.context import Context
from sweephand.server.flow import rates
from sweephand.server.flow.tenants import tenancy
from sweephand.server.security.caller import Caller, ClientSecret, client_id_parts, client_secret, parse_authorization

LARGEST_FORM = 16_384
_ONLY_IN_FORM = {"client_id", "client_secret"}
"""Parameters that must not be in the query, because addresses are logged (RFC 6749, 2.3.1)."""
NO_FORM = "the body must be a form (Content-Type: application/x-www-form-urlencoded) that names each parameter once"
IN_ADDRESS = "client_id and client_secret belong in the body, because addresses are logged"
TWICE = "a parameter is both in the query and in the body: give it once"
NO_GRANT = "grant_type is missing: it must be client_credentials"
TWO_METHODS = "the client must authenticate in one way: by the header Authorization, or in the body"
UNKNOWN_CLIENT = "the client id or its secret is wrong, or the credential was deleted"


class _Refused(Exception):
    def __init__(self, error: str, why: str) -> None:
        super().__init__(why)
        self.error = error
        self.why = why


def token(ctx: Context) -> Answer:
    """Issues a token for OAuth 2.0 client credentials (RFC 6749, 4.4), sent with Basic or in the form.

    All members except client_id and client_secret may be in the query, where SAP's clients send them.
    """
    try:
        return _issued(ctx, _parameters(ctx))
    except RateLimited as over:
        body = {"error": "temporarily_unavailable", "error_description": over.reason}
        return Answer(429, body, {"Cache-Control": "no-store", "Retry-After": str(over.retry_after_s)})
    except _Refused as refused:
        unknown = refused.error == "invalid_client"
        challenge = {"WWW-Authenticate": 'Basic realm="sweephand"'} if unknown else {}
        body = {"error": refused.error, "error_description": refused.why}
        return Answer(401 if unknown else 400, body, {"Cache-Control": "no-store", **challenge})


def _issued(ctx: Context, parameters: Mapping[str, str]) -> Answer:
    caller = _client(ctx, parameters)
    token_id = ctx.world.chance.new_id(ctx.now).replace("-", "")
    try:
        issued, scopes = ctx.door().issue(caller, ctx.now, parameters.get("scope", "").split(), token_id)
    except InvalidRequest as wrong:
        raise _Refused("invalid_scope", f"scope must be some of {' '.join(sorted(caller.scopes))}") from wrong
    except Forbidden as forbidden:
        raise _Refused("invalid_scope", f"the client lacks a scope: {forbidden.reason}") from forbidden
    body = {
        "access_token": issued,
        "token_type": "bearer",
        "expires_in": 3_600,
        "scope": " ".join(sorted(scopes)),
        "jti": token_id,
    }
    return Answer(200, body, {"Cache-Control": "no-store"})


def _parameters(ctx: Context) -> dict[str, str]:
    form, query = _form(ctx.request), ctx.request.query
    if query.keys() & _ONLY_IN_FORM:
        raise _Refused("invalid_request", IN_ADDRESS)
    if query.keys() & form.keys():
        raise _Refused("invalid_request", TWICE)
    parameters = {**query, **form}
    if "grant_type" not in parameters:
        raise _Refused("invalid_request", NO_GRANT)
    if parameters["grant_type"] != "client_credentials":
        reason = f"grant_type must be client_credentials, not {shown(parameters['grant_type'])}"
        raise _Refused("unsupported_grant_type", reason)
    return parameters


def _form(request: Request) -> dict[str, str]:
    if not request.body:
        return {}
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise _Refused("invalid_request", "the body must not be compressed")
    if media != "application/x-www-form-urlencoded" or len(request.body) > LARGEST_FORM:
        raise _Refused("invalid_request", NO_FORM)
    try:
        pairs = parse_qsl(request.body.decode(), keep_blank_values=True, strict_parsing=True, max_num_fields=20)
    except ValueError as wrong:
        raise _Refused("invalid_request", NO_FORM) from wrong
    if len(dict(pairs)) != len(pairs):
        raise _Refused("invalid_request", NO_FORM)
    return dict(pairs)


def _client(ctx: Context, parameters: Mapping[str, str]) -> Caller:
    header = ctx.request.headers.get("authorization")
    try:
        shown = parse_authorization(header) if header is not None else None
        if shown is not None and not _one_method(shown, parameters):
            raise _Refused("invalid_request", TWO_METHODS)
        if shown is None:
            shown = client_secret(parameters.get("client_id", ""), parameters.get("client_secret", ""))
        if not isinstance(shown, ClientSecret):
            raise _Refused("invalid_client", "a token needs a client id and its secret")
        caller = ctx.door().by_secret(shown, ctx.now)
        rates.let_in(ctx.world, caller.tenant)
        caller = tenancy.admitted(ctx.world, caller)
    except Unauthenticated as nobody:
        raise _Refused("invalid_client", UNKNOWN_CLIENT) from nobody
    except Forbidden as forbidden:
        raise _Refused("unauthorized_client", forbidden.reason) from forbidden
    return caller


def named_client(request: Request) -> str | None:
    """Returns the client id in the form of a token request, if it is well-formed."""
    try:
        named = _form(request).get("client_id", "")
    except _Refused:
        return None
    return named if client_id_parts(named) else None


def _one_method(shown: object, parameters: Mapping[str, str]) -> bool:
    """Refuses two ways of authentication (RFC 6749, 2.3). A client_id alone may repeat that of the header."""
    if "client_secret" in parameters:
        return False
    named = client_id_parts(parameters["client_id"]) if "client_id" in parameters else None
    return "client_id" not in parameters or (isinstance(shown, ClientSecret) and named == (shown.tenant, shown.id))
