"""Whatever a target is told in confidence stays between it and the executor: here it says all of it back, and fails.

Looked at afterwards is all that leaves the process: answers of the API, log lines, metrics, events, messages, rows.
"""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sweephand.domain.collection import Events
from sweephand.server import actions
from sweephand.server.flow.tenants import signing
from sweephand.server.security.guard import Outbound
from tests.contract.calls import CANARY
from tests.contract.native.api import api as api_of
from tests.support.acting import ROLE, SETTINGS, Roles
from tests.support.stage import TENANT
from tests.unit.endpoints import Authority, listening, read_request
from tests.unit.server.actions.test_http import LOCAL

GUARDED = replace(LOCAL, aws=SETTINGS, identity=True)
IN_CONFIDENCE = re.compile(
    r"^(?:authorization|x-api-key|x-amz-security-token|sweephand-callback-token): (?:basic |bearer )?(.+)$",
    re.IGNORECASE | re.MULTILINE,
)
RETRY = {"type": "fixed", "maxRetries": 1, "delaySeconds": 1, "retryOn": "any"}


@dataclass
class Target:
    """Answers 500 with the whole request, twice: as it came, and as JSON."""

    heard: list[str] = field(default_factory=list)

    def echo(self, connection, _):
        request = read_request(connection).decode()
        self.heard += [value.strip() for value in IN_CONFIDENCE.findall(request.replace("\r\n", "\n"))]
        body = (request + json.dumps({"you": request})).encode()
        head = f"HTTP/1.1 500 X\r\nX-Echo: a\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)

    def token(self, connection, _):
        read_request(connection)
        body = json.dumps({"access_token": f"{CANARY}-access-token", "token_type": "bearer"}).encode()
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


def _pem(authority):
    key, certificate = authority.client("me", days=3_650)  # by the test's clock too
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return (private + certificate.public_bytes(Encoding.PEM)).decode()


@pytest.fixture
def told(tmp_path):
    """An API whose jobs really call: (api, target, url by scheme, authentications)."""
    target, authority = Target(), Authority(tmp_path)
    with ExitStack() as stack:
        there = stack.enter_context(api_of(guarded=GUARDED))
        secured = stack.enter_context(listening(target.echo, tls=authority.server("127.0.0.1")))
        url = {
            "http": stack.enter_context(listening(target.echo)).url("/run"),
            "https": secured.url("/run", scheme="https"),
        }
        token_url = stack.enter_context(listening(target.token)).url("/token")
        world = there.stage.world
        outbound = Outbound(GUARDED, authorities=authority.pem, roles=Roles(), identity=world.outbound.identity)
        world = replace(world, perform=actions.perform, outbound=outbound)
        there.stage.world = there.facade.world = world
        yield (
            there,
            target,
            url,
            {
                "none": {},
                "basic": {"username": "me", "password": f"{CANARY}-password"},
                "bearer": {"token": f"{CANARY}-token"},
                "apiKey": {"header": "X-Api-Key", "value": f"{CANARY}-value"},
                "oauth2": {"tokenUrl": token_url, "clientId": "me", "secret": f"{CANARY}-secret"},
                "clientCertificate": {"pem": _pem(authority)},
                "sigv4": {"service": "execute-api", "region": "eu-west-1", "roleArn": ROLE},
                "sweephand": {},
            },
        )


def test_secrets_for_a_target_appear_nowhere_else(told):
    api, target, url, authentications = told
    api.stage.tell(Events.ALL)
    _, signing_secret = signing.create(api.stage.world, TENANT, "default")
    answers = []
    for kind, members in authentications.items():
        place = url["https" if kind == "clientCertificate" else "http"]
        action = {"type": "http", "url": place, "authentication": {"type": kind, **members}, "retry": RETRY}
        if kind == "none":
            action["headers"] = {"Authorization": f"{CANARY}-header"}
        made = api.create(
            action=action,
            errorAction=action | {"retry": {"type": "none"}},
            hooks={"onFailure": action | {"retry": {"type": "none"}}},
            policies={"callbackToken": True, "keepAnswer": "all"},
            schedules=[
                {
                    "at": "2027-03-01T12:00:10Z",
                    "hooks": {"onFailure": action | {"retry": {"type": "none"}}} if kind != "none" else {},
                }
            ],
        )
        answers.append(json.dumps(made))
        action["authentication"] = made["action"]["authentication"]
        answers.append(api("PATCH", f"/v1/jobs/{made['id']}", {"action": {"method": "PUT"}}).text)

    api.stage.run(120)

    jobs = api.get("/v1/jobs", query={"limit": 50}).json["items"]
    for job in jobs:
        place = f"/v1/jobs/{job['id']}"
        answers += [api.get(place).text, api.get(f"{place}/changes", query={"include": "before"}).text]
        for run in api.get("/v1/runs", query={"jobId": job["id"]}).json["items"]:
            answers.append(api.get(f"/v1/runs/{run['id']}").text)
    everywhere = {
        "answers": "\n".join(answers),
        "log": str(api.stage.journal.lines),
        "metrics": str(api.stage.journal.measures),
        "events": str(api.stage.bus.told),
        "rows and messages": "\n".join(api.picture()),
    }
    # Each job was called four times (two attempts, an error action, a hook), and the echo was kept.
    assert len(target.heard) >= 4 * (len(authentications) + 5)
    assert everywhere["answers"].count("HTTP_STATUS") >= 2 * len(authentications)
    assert "***" in everywhere["answers"]
    confidential = {*target.heard, signing_secret, CANARY, "PRIVATE KEY"}
    assert len(confidential) >= 8 + 2 * len(authentications)
    for where, text in everywhere.items():
        found = [word[:12] for word in confidential if word in text]
        assert not found, f"{where} tell {found}"
