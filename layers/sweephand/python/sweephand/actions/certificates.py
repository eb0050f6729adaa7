"""The fields of a client certificate: PKCS#12 or PEM in, one PEM out, which the standard library's TLS can load.

Only here a key is parsed, by `cryptography`: a compiled library that the API function has and the executors do not.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sweephand.actions.headers import MASK
from sweephand.domain.instants import text as instant_text
from sweephand.domain.members import fields as read
from sweephand.domain.members.fields import below
from sweephand.errors import InvalidRequest

if TYPE_CHECKING:
    from cryptography import x509

MAX_GIVEN = 65_536
"""Characters of what comes in."""
MAX_PEM = 16_384
"""Bytes of what is stored: a key and a chain of a few certificates; security.secrets seals no more."""
_MEMBERS = ("type", "pfx", "pem", "password", "certificate")
_KEY = re.compile(r"-----BEGIN ((?:[A-Z]+ )?PRIVATE KEY)-----(?:(?!-----)[\s\S])+-----END \1-----", re.ASCII)
"""OpenSSL's own form of an encrypted key has headers, and hyphens in them: Proc-Type, DEK-Info."""
_WRONG_PASSWORD = "cannot be read; is it the right password?"  # noqa: S105 - a sentence


def parse(value: Mapping[str, Any], field: str) -> tuple[dict[str, Any], str | None]:
    """What may be shown of the certificate, and the PEM: key without a password, certificate, chain.

    PEM None, and nothing to show: the stored one is meant. `certificate` is of answers, and passed over.
    """
    given = read.members(value, field, _MEMBERS)
    brought = [name for name in ("pfx", "pem") if given.get(name, MASK) != MASK]
    if len(brought) == 2:
        raise InvalidRequest(below(field, "pem"), "stands beside pfx; one of them is used")
    password = _password(given.get("password", MASK), below(field, "password"))
    if not brought:
        if password is not None:
            raise InvalidRequest(below(field, "password"), "stands without pfx and pem")
        return {}, None
    path = below(field, brought[0])
    text = read.text(given[brought[0]], path, 1, MAX_GIVEN)
    pem, certificate = _from_pfx(text, password, path) if brought == ["pfx"] else _from_pem(text, password, path)
    if len(pem) > MAX_PEM:
        raise InvalidRequest(path, f"makes a PEM of more than {MAX_PEM:,} bytes: leave out what the target has itself")
    return {"certificate": _shown(certificate)}, pem


def _password(value: object, field: str) -> bytes | None:
    if value == MASK:
        return None
    return read.text(value, field, 0, 1_024).encode() or None


def _from_pfx(text: str, password: bytes | None, field: str) -> tuple[str, x509.Certificate]:
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - see above
    from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415

    try:
        blob = base64.b64decode("".join(text.split()), validate=True)
    except ValueError as wrong:
        raise InvalidRequest(field, "is not Base64") from wrong
    try:
        key, certificate, others = pkcs12.load_key_and_certificates(blob, password)
    except (ValueError, TypeError, UnsupportedAlgorithm) as wrong:
        raise InvalidRequest(field, _WRONG_PASSWORD) from wrong
    if key is None or certificate is None:
        raise InvalidRequest(field, "must hold a private key and its certificate")
    return _written(key, [certificate, *others], field)


def _from_pem(text: str, password: bytes | None, field: str) -> tuple[str, x509.Certificate]:
    from cryptography import x509  # noqa: PLC0415 - see above
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    found = _KEY.search(text)
    if found is None:
        raise InvalidRequest(field, "must hold a private key")
    try:
        key = load_pem_private_key(found[0].encode(), password)
    except (ValueError, TypeError, UnsupportedAlgorithm) as wrong:
        raise InvalidRequest(field, f"the private key {_WRONG_PASSWORD}") from wrong
    try:
        certificates = x509.load_pem_x509_certificates(text.encode())
    except ValueError as wrong:
        raise InvalidRequest(field, "must hold a certificate that can be read") from wrong
    return _written(key, certificates, field)


def _written(key: Any, certificates: list[x509.Certificate], field: str) -> tuple[str, x509.Certificate]:
    """Key, its own certificate, the others in their order."""
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - see above
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    def public(holder: Any) -> bytes:
        blob: bytes = holder.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return blob

    own = [each for each in certificates if public(each) == public(key)]
    if not own:
        raise InvalidRequest(field, "holds no certificate of its private key")
    ordered = [own[0], *(each for each in certificates if each is not own[0])]
    pieces = [key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())]
    pieces += [each.public_bytes(Encoding.PEM) for each in ordered]
    return b"".join(pieces).decode("ascii"), own[0]


def _shown(certificate: x509.Certificate) -> dict[str, str]:
    """thumbprint: SHA-1 of the certificate in hex, as Windows and Azure write it; it names the certificate only."""
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - see above

    return {
        "subject": certificate.subject.rfc4514_string(),
        "notBefore": instant_text(certificate.not_valid_before_utc),
        "notAfter": instant_text(certificate.not_valid_after_utc),
        "thumbprint": certificate.fingerprint(hashes.SHA1()).hex().upper(),  # noqa: S303 - no signature hangs on it
    }
