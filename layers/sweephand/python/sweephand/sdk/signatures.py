"""Verifies signed calls on the receiver's side, by Standard Webhooks v1. It needs no client and no network."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping

from sweephand.base.errors import SweephandError
from sweephand.base.sources import Clock, SystemClock
from sweephand.sdk.errors import ConfigError, InvalidArgument

TOLERANCE_S = 300
PREFIX = "whsec_"
VERSION = "v1"
LEAST_BYTES = 16
_STAMP = re.compile(r"[0-9]{1,12}", re.ASCII)


class NotSigned(SweephandError):
    """A call that is not signed with one of the secrets, or whose timestamp is out of tolerance. Answer it with 401."""

    code = "NOT_SIGNED"


def verify(
    secrets: str | Iterable[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance_s: int = TOLERANCE_S,
    clock: Clock | None = None,
) -> str:
    """Returns the `webhook-id` of a signed call: the run's id, the same for all attempts. Do the work once for each id.

    secrets: one or, during a rotation, several, as `whsec_...`. headers: with names in any case. body: the bytes as
    received, before anything parses them. tolerance_s: how far the call's time may be from this machine's time.
    Raises NotSigned, whose text has neither secret nor signature; ConfigError for a string that is not a secret.
    """
    if not isinstance(body, bytes | bytearray | memoryview):
        raise InvalidArgument("body", f"must be the bytes as received, not {type(body).__name__}")
    keys = [_key(each) for each in ([secrets] if isinstance(secrets, str) else secrets)]
    if not keys:
        raise ConfigError("no signing secret is given")
    by_name = {name.lower(): value for name, value in headers.items()}
    run, stamp, signatures = (_header(by_name, name) for name in ("id", "timestamp", "signature"))
    _check_time(stamp, (clock or SystemClock()).now().timestamp(), tolerance_s)
    signed = f"{run}.{stamp}.".encode("utf-8", "surrogateescape") + bytes(body)
    if not _fits(keys, signed, signatures):
        raise NotSigned("no signature of the call matches: the secret is another one, or the body was changed")
    return run


def _header(by_name: Mapping[str, str], name: str) -> str:
    value = by_name.get(f"webhook-{name}")
    if not value:
        raise NotSigned(f"the call has no header webhook-{name}")
    return value


def _key(secret: str) -> bytes:
    """Returns the bytes of a secret. The error does not contain the secret."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) < LEAST_BYTES:
        raise ConfigError(f"a signing secret must be {PREFIX} and at least {LEAST_BYTES} bytes in Base64")
    return key


def _check_time(stamp: str, now_s: float, tolerance_s: int) -> None:
    if _STAMP.fullmatch(stamp) is None:
        raise NotSigned("webhook-timestamp must be whole seconds since 1970")
    off_s = now_s - int(stamp)
    if abs(off_s) > tolerance_s:
        where = "before" if off_s > 0 else "after"
        reason = f"webhook-timestamp is {abs(off_s):.0f} s {where} this machine's time"
        raise NotSigned(f"{reason}; {tolerance_s} s are allowed")


def _fits(keys: Iterable[bytes], signed: bytes, signatures: str) -> bool:
    """Compares all pairs, each in constant time, so that the time taken reveals nothing about them."""
    expected = [base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()) for key in keys]
    parts = (each.partition(",") for each in signatures.split(" "))
    sent = [one.encode("utf-8", "surrogateescape") for version, _, one in parts if version == VERSION]
    return True in [hmac.compare_digest(one, other) for one in sent for other in expected]
