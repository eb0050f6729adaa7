"""The proofs that show a target who calls, through the whole local stack: KMS signs, the API publishes, the target
reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jwt
import pytest

from sweephand.local import control
from tests.local_stack.conftest import start
from tests.local_stack.test_other_issuers import place
from tests.local_stack.waiting import CLOCK, until
from tests.unit.endpoints import answering, listening
from tests.unit.server.security.test_signing import RECEIVER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.emulator

ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"


def received(requests: list[bytes]) -> tuple[dict[str, str], bytes]:
    """Returns the first request: its headers, with names in lower case, and its body."""
    head, _, body = until(lambda: requests)[0].partition(b"\r\n\r\n")
    pairs = (line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    return {name.lower(): value for name, value in pairs}, body


def test_a_target_verifies_caller_and_body_and_reports_with_the_token_it_was_sent(tmp_path: Path) -> None:
    requests: list[bytes] = []
    wanted = place(tmp_path, OutboundIdentity="on")
    running, stack = start(wanted)
    try:
        with listening(answering(ACCEPTED, requests)) as endpoint:
            client = stack.client()
            key = client.post("/v1/collections/default/signing-keys").json()
            action = {
                "type": "http",
                "url": endpoint.url("/run"),
                "payload": {"report": 1},
                "authentication": {"type": "sweephand"},
            }
            made = client.post("/v1/jobs", json={"action": action, "policies": {"callbackToken": True}})
            assert made.status_code == 201, made.text
            run = client.post(f"/v1/jobs/{made.json()['id']}/run").json()["runId"]
            headers, body = received(requests)

            anyone = stack.anonymous()
            published = anyone.get("/.well-known/openid-configuration").json()
            keys = jwt.PyJWKSet.from_dict(anyone.get("/.well-known/jwks.json").json())
            token = headers["authorization"].removeprefix("Bearer ")
            signed_by = keys[jwt.get_unverified_header(token)["kid"]]
            origin = endpoint.url("")
            claims = jwt.decode(token, signed_by, algorithms=["RS256"], audience=origin, issuer=published["issuer"])
            assert claims["sub"] == "acme"

            receiver: dict[str, object] = {"__name__": "receiver"}
            exec(compile(RECEIVER.read_text(), RECEIVER, "exec"), receiver)
            verified = receiver["verified"]
            assert callable(verified)
            assert verified(key["secret"], headers, body, CLOCK.now().timestamp())

            told = {"sweephand-callback-token": headers["sweephand-callback-token"]}
            report = anyone.put(f"/v1/runs/{run}/result", json={"success": True, "message": "42 rows"}, headers=told)
            assert (report.status_code, report.json()["state"]) == (200, "SUCCESS"), report.text
    finally:
        stack.close()
        control.release(running, wanted, CLOCK)
