"""AWS's Signature Version 4, with credentials of a role that the job names.

The executor's own credentials sign nothing for a job: with them, a job could call the stack's own table. So there is no
signature without a role.
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote, unquote_to_bytes

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from sweephand.domain.run import Reason
from sweephand.server.actions.auth.authentication import Authentication
from sweephand.server.actions.auth.request_auth import NotAuthenticated, RequestAuth, Sending
from sweephand.server.actions.aws.service import not_assumed
from sweephand.server.actions.call import Call
from sweephand.server.security.aws_targets import check_role
from sweephand.server.security.guard import CallFailed, Outbound, Target
from sweephand.server.security.target_roles import RoleNotAssumedError

ADDED = ("Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-SHA256")


def addressed(how: Authentication, target: Target) -> Target:
    """Returns the address in the form in which AWS signs it, so that the signed form is sent.

    A service decodes names and values and encodes them again, every octet except letters, digits and -._~; botocore
    takes the query unchanged. A plus means a space, as in forms and in these services. S3 does the same with the path,
    in which a plus is a plus; other services sign the path's own octets. Pure.
    """
    path, _, query = target.target.partition("?")
    if how.members["service"] == "s3":
        path = _encoded(path, "/")
    parts = (piece.replace("+", " ").partition("=") for piece in query.split("&") if piece)
    asked = "&".join(f"{_encoded(name)}{sign}{_encoded(value)}" for name, sign, value in parts)
    return replace(target, target=f"{path}?{asked}" if asked else path)


def _encoded(text: str, kept: str = "") -> str:
    return quote(unquote_to_bytes(text), safe=kept)


def authenticate(how: Authentication, sending: Sending, call: Call, outbound: Outbound) -> RequestAuth:
    """Signs method, address, headers and body as they will be sent. botocore uses the machine's clock for the time.

    Raises InvalidRequest for a role that the stack no longer allows, NotAuthenticated for one that STS refuses, and
    CallFailed in a function that may not assume roles.
    """
    role = check_role(how.members["roleArn"], outbound.settings.aws)
    if outbound.roles is None:
        raise CallFailed(Reason.GUARD, "this function acts by no roles")
    try:
        temporary = outbound.roles.credentials(role, call.tenant)
    except RoleNotAssumedError as refused:
        raise NotAuthenticated(not_assumed(refused)) from refused
    credentials = Credentials(
        temporary["aws_access_key_id"], temporary["aws_secret_access_key"], temporary["aws_session_token"]
    )
    target = sending.target
    request = AWSRequest(
        method=sending.method,
        url=f"{target.scheme}://{target.host_header}{target.target}",
        data=sending.content or b"",
        headers={"Host": target.host_header, **dict(sending.headers)},
    )
    signer = S3SigV4Auth if how.members["service"] == "s3" else SigV4Auth
    signer(credentials, how.members["service"], how.members["region"]).add_auth(request)
    headers = tuple((name, request.headers[name]) for name in ADDED if name in request.headers)
    return RequestAuth(headers, sent_secrets=(temporary["aws_session_token"], request.headers["Authorization"]))
