"""Signatures of what goes out, by Standard Webhooks v1: receivers verify them with any of its libraries. Pure.

A signature covers id, time and body, not address or query. Two secrets may sign at once, for the time of a rotation.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable
from datetime import datetime

from sweephand.domain.instants import epoch_s

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret(chance: bytes) -> str:
    """chance: 32 random bytes. Returns the form in which receivers keep it."""
    assert len(chance) == SECRET_BYTES
    return PREFIX + base64.b64encode(chance).decode()


def headers(secrets: Iterable[str], message_id: str, at: datetime, body: bytes) -> tuple[tuple[str, str], ...]:
    """webhook-timestamp and webhook-signature; none without a secret. at: of this attempt, against replays."""
    stamp = epoch_s(at)
    signed = f"{message_id}.{stamp}.".encode() + body
    signatures = [
        "v1,"
        + base64.b64encode(
            hmac.new(base64.b64decode(secret.removeprefix(PREFIX)), signed, hashlib.sha256).digest()
        ).decode()
        for secret in secrets
    ]
    if not signatures:
        return ()
    return ("webhook-timestamp", str(stamp)), ("webhook-signature", " ".join(signatures))
