"""An issuer of tokens on loopback, with real keys, which can rotate them, go away, or answer what no issuer should."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

AUDIENCE = "https://sweephand.example"
CURVES = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
KEYS = "/keys"
DISCOVERY = "/.well-known/openid-configuration"


@cache
def private_key(algorithm: str, number: int = 1, bits: int = 2_048) -> Any:
    """Returns a key, which is made once a process: an RSA key takes a tenth of a second. number: tells keys of one kind
    apart.
    """
    curve = CURVES.get(algorithm)
    return ec.generate_private_key(curve) if curve else rsa.generate_private_key(65_537, bits)


def public_jwk(key: Any, kid: str, **members: Any) -> dict[str, Any]:
    write = RSAAlgorithm.to_jwk if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm.to_jwk
    return {**write(key.public_key(), as_dict=True), "kid": kid, "use": "sig", **members}


def text(members: Mapping[str, Any]) -> Callable[[BaseHTTPRequestHandler], None]:
    """Answers this JSON."""
    return raw(json.dumps(members).encode())


def raw(body: bytes, status: int = 200, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)

    return answer


class Issuer:
    """url: its own name. asked: paths in the order of the requests. answers: by path, what it says there."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[str] = []
        self.answers: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.over = threading.Event()
        self.publish({"k1": private_key("RS256")})

    @property
    def keys_url(self) -> str:
        return self.url + KEYS

    def publish(self, keys: Mapping[str, Any]) -> None:
        """Publishes these keys, by kid, in the place of those before."""
        self.publish_raw([public_jwk(key, kid) for kid, key in keys.items()])

    def publish_raw(self, jwks: list[Any]) -> None:
        self.answers[DISCOVERY] = text({"issuer": self.url, "jwks_uri": self.keys_url})
        self.answers[KEYS] = text({"keys": jwks})

    def hang(self, path: str) -> None:
        """Takes requests there and says nothing."""
        self.answers[path] = lambda _: self.over.wait(30) and None

    def fail(self) -> None:
        """Makes the issuer fail, as in an outage."""
        self.answers[DISCOVERY] = self.answers[KEYS] = raw(b"{}", 503)

    def token(
        self,
        now: datetime,
        *,
        algorithm: str = "RS256",
        kid: str | None = "k1",
        key: Any = None,
        head: Mapping[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """Returns a token of the tenant acme that is valid at `now`. claims: in its place; None leaves one out."""
        at = int(now.timestamp())
        members = {
            "iss": self.url,
            "sub": "alice",
            "aud": AUDIENCE,
            "iat": at,
            "nbf": at,
            "exp": at + 300,
            "tenant": "acme",
            "scope": "jobs:read jobs:write",
            **claims,
        }
        payload = {name: value for name, value in members.items() if value is not None}
        headers = {**({} if kid is None else {"kid": kid}), **(head or {})}
        return jwt.encode(payload, key or private_key(algorithm), algorithm=algorithm, headers=headers)


@contextmanager
def issuer() -> Iterator[Issuer]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            serving.asked.append(self.path)
            serving.answers.get(self.path, raw(b"", 404))(self)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    server.daemon_threads = True
    serving = Issuer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield serving
    finally:
        serving.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


NOW = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
