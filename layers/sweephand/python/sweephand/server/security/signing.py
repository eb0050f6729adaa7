"""Signatures of outgoing calls by Standard Webhooks v1, which receivers verify with any of its libraries. Pure.

A signature covers id, time and body, not address or query. Two secrets may sign together during a rotation.
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
    """Returns a secret in the form that receivers store. chance: 32 random bytes."""
    assert len(chance) == SECRET_BYTES
    return PREFIX + base64.b64encode(chance).decode()


def headers(secrets: Iterable[str], message_id: str, at: datetime, body: bytes) -> tuple[tuple[str, str], ...]:
    """Returns webhook-timestamp and webhook-signature; nothing without a secret.

    at: the time of this attempt, not of the first one, against replays.
    """
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
