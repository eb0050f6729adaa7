"""Endpoints that misbehave on purpose, on real sockets of this machine."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Script = Callable[[socket.socket, threading.Event], None]
"""The behaviour of the endpoint with one connection; the event is set when the test is over."""


@dataclass
class Endpoint:
    port: int
    requests: list[bytes] = field(default_factory=list)

    def url(self, path: str = "/", *, scheme: str = "http", host: str = "127.0.0.1") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


def read_request(connection: socket.socket) -> bytes:
    """Reads one request: head, and a body as long as its Content-Length says."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65_536)
        if not piece:
            return received
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
    )
    while len(body) < length:
        piece = connection.recv(65_536)
        if not piece:
            break
        body += piece
    return head + b"\r\n\r\n" + body


@contextlib.contextmanager
def listening(script: Script, *, tls: ssl.SSLContext | None = None, family: int = socket.AF_INET) -> Iterator[Endpoint]:
    """Makes an endpoint on a free port of loopback; each connection gets the script, in a separate thread."""
    over = threading.Event()
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
    listener.listen(16)
    threads: list[threading.Thread] = []

    def serve(connection: socket.socket) -> None:
        # Whatever the client does to its end is part of the test.
        with contextlib.suppress(OSError), connection:
            connection.settimeout(10)
            if tls is None:
                script(connection, over)
            else:
                with tls.wrap_socket(connection, server_side=True) as secured:
                    script(secured, over)

    def accept() -> None:
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=serve, args=(connection,), daemon=True)
            threads.append(thread)
            thread.start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield Endpoint(listener.getsockname()[1])
    finally:
        over.set()
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in (accepting, *threads):
            thread.join(10)


def answering(answer: bytes, endpoint_requests: list[bytes] | None = None) -> Script:
    """Reads a request, sends these bytes, closes."""

    def script(connection: socket.socket, _: threading.Event) -> None:
        request = read_request(connection)
        if endpoint_requests is not None:
            endpoint_requests.append(request)
        connection.sendall(answer)

    return script


def dripping(start: bytes, drop: bytes, every_s: float) -> Script:
    """Sends `start`, then `drop` again and again."""

    def script(connection: socket.socket, over: threading.Event) -> None:
        read_request(connection)
        connection.sendall(start)
        while not over.wait(every_s):
            connection.sendall(drop)

    return script


def silent(connection: socket.socket, over: threading.Event) -> None:
    """Reads and never answers."""
    read_request(connection)
    over.wait(10)


def unused_port() -> int:
    """Returns a port of loopback where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class Authority:
    """A certificate authority of the test, and what it issues."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self._now = dt.datetime.now(dt.UTC)  # noqa: TID251 - OpenSSL judges certificates by the real clock
        certificate = (
            self._builder(self._name, self._key.public_key(), days=2)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.KeyUsage(*[False] * 5, True, True, False, False), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.pem = certificate.public_bytes(serialization.Encoding.PEM).decode()

    def server(self, *names: str, days: int = 1, clients_of: Authority | None = None) -> ssl.SSLContext:
        """Makes a server's context with a certificate for these names and addresses, for so many days from yesterday.

        clients_of: only who shows a certificate of this authority may speak.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            self._builder(x509.Name([]), key.public_key(), days=days)
            .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        path = self._folder / f"{names[0]}.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        if clients_of is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=clients_of.pem)
        return context

    def client(self, name: str, days: int = 1, key: Any = None) -> tuple[Any, x509.Certificate]:
        """Makes a key and its certificate for a client of this name."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        certificate = (
            self._builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key.public_key(), days=days)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return key, certificate

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, days: int) -> x509.CertificateBuilder:
        begin = self._now - dt.timedelta(days=1, hours=1)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(begin + dt.timedelta(days=1 + days))
        )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
