"""The stack's own tokens as a receiver sees them: with nothing but what the stack publishes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import jwt
import pytest

from sweephand.server.actions.auth.authentication import Authentication
from sweephand.server.actions.http import Http
from sweephand.server.security.guard import GuardSettings, Outbound, networks
from sweephand.testing.service import BASE_URL
from sweephand.testing.sources import START
from tests.contract.native.api import api as api_of
from tests.unit.endpoints import answering, listening
from tests.unit.server.actions.test_http import CALL

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "authentication.md"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
LOCAL = GuardSettings(private=networks("127.0.0.0/8"), plain_http=True, identity=True)


@pytest.fixture
def api():
    with api_of() as there:
        yield there


def sent(api, tenant="acme"):
    """Returns what a target received: (its own origin, the token)."""
    requests: list[bytes] = []
    with listening(answering(OK, requests)) as endpoint:
        made = Http(endpoint.url("/run"), authentication=Authentication("sweephand"))
        call = replace(CALL, tenant=tenant, clock=api.stage.clock)
        made.perform(call, Outbound(LOCAL, identity=api.stage.world.outbound.identity))
        origin = endpoint.url("")
    (request,) = requests
    header = next(line for line in request.decode().split("\r\n") if line.startswith("Authorization: Bearer "))
    return origin, header.rpartition(" ")[2]


def test_a_receiver_can_verify_the_token_by_discovery_alone(api):
    origin, token = sent(api)

    found = api.get("/.well-known/openid-configuration", caller=None).json
    keys = api.get(found["jwks_uri"].removeprefix(found["issuer"]), caller=None)
    key = jwt.PyJWKSet.from_dict(keys.json)[jwt.get_unverified_header(token)["kid"]]
    claims = jwt.decode(
        token,
        key,
        algorithms=["RS256"],
        audience=origin,
        issuer=found["issuer"],
        options={"verify_exp": False, "verify_iat": False},
    )

    begin = int(START.timestamp())
    assert claims == {"iss": BASE_URL, "sub": "acme", "aud": origin, "iat": begin, "exp": begin + 43_200}
    assert keys.headers["cache-control"] == "public, max-age=3600"


def test_the_program_of_the_guide_runs(api, monkeypatch):
    (program,) = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert "https://api.example.com" in program
    origin, token = sent(api)
    fetched = lambda keys: api.get(keys.uri.removeprefix(BASE_URL), caller=None).json  # noqa: E731
    monkeypatch.setattr(jwt.PyJWKClient, "fetch_data", fetched)
    on_the_moved_clock = {"verify_exp": False, "verify_iat": False}
    decode = jwt.decode
    monkeypatch.setattr(jwt, "decode", lambda *given, **more: decode(*given, **more, options=on_the_moved_clock))
    known = {"jwt": jwt, "ISSUER": BASE_URL, "token": token}

    exec(compile(program.replace("https://api.example.com", origin), "authentication.md", "exec"), known)

    assert known["claims"]["aud"] == origin
    with pytest.raises(jwt.InvalidAudienceError):
        exec(compile(program, "authentication.md", "exec"), known)


def test_a_stack_without_an_identity_publishes_none_and_refuses_jobs_that_need_it(api):
    api.stage.world.outbound.__dict__["identity"] = None
    api.facade.guard = GuardSettings()

    for path in ("jwks.json", "openid-configuration"):
        assert api.get(f"/.well-known/{path}", caller=None).status == 404
    action = {"type": "http", "url": "https://x.org/", "authentication": {"type": "sweephand"}}
    reply = api("POST", "/v1/jobs", {"action": action})

    assert (reply.status, reply.fields) == (422, ["action.authentication.type"])
    assert "OutboundIdentity" in reply.text
