"""A receiver that accepts only signed calls: Standard Webhooks v1 with nothing but the standard library.

    SECRET=whsec_... python3 receiver.py --port 9000

In a program of your own, use `sweephand.sdk.verify` or a library for Standard Webhooks instead of `verified`.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
import os
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE_S = 300


def verified(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """Says whether this call was signed with the secret within five minutes of now.

    headers: with their names in lower case. Verify the bytes as they came, before anything parses them.
    """
    message, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not (stamp.isdecimal() and len(stamp) < 13) or abs(now - int(stamp)) > TOLERANCE_S:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, f"{message}.{stamp}.".encode() + body, hashlib.sha256).digest())
    # During a rotation there are two signatures, separated by a space; one of them must match.
    given = headers.get("webhook-signature", "").split(" ")
    return any(
        version == "v1" and hmac.compare_digest(signature.encode(), expected)
        for version, _, signature in (each.partition(",") for each in given)
    )


class Receiver(BaseHTTPRequestHandler):
    """A receiver that answers 200 to signed calls and 401 to others. Do the work of each `webhook-id` only once."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        good = verified(os.environ["SECRET"], headers, body, time.time())
        print(headers.get("webhook-id"), "signed" if good else "REFUSED", flush=True)
        self.send_response(200 if good else 401)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9000, help="(default 9000)")
    ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Receiver).serve_forever()
