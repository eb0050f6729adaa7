"""The fields of a client certificate: PKCS#12 or PEM in, one PEM out, which the standard library's TLS can load.

Only the API parses a key, with `cryptography`, a compiled library.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.json_schema import INSTANT, PASSED_OVER, Schema, answer, text
from sweephand.base.members import fields as read
from sweephand.base.members.fields import below
from sweephand.domain.instants import text as instant_text
from sweephand.domain.job import MASK

if TYPE_CHECKING:
    from cryptography import x509

MAX_GIVEN = 65_536
"""The most characters of a given certificate."""
MAX_PEM = 16_384
"""The most bytes that are stored: a key and a chain of a few certificates. `secret_box` encrypts no more."""
GIVEN: Mapping[str, Schema] = {
    "pfx": text(longest=MAX_GIVEN, description="PKCS#12 in Base64."),
    "pem": text(
        longest=MAX_GIVEN,
        description="Instead of `pfx`: key, certificate, chain. Without both in a change: the stored ones.",
    ),
    "password": text(longest=1_024, description="The password of the PKCS#12 file or of the private key. Not stored."),
    "certificate": PASSED_OVER,
}
SHOWN: Mapping[str, Schema] = {
    "pem": {"const": MASK},
    "certificate": answer(
        {
            "subject": text(),
            "notBefore": INSTANT,
            "notAfter": INSTANT,
            "thumbprint": text(pattern="^[0-9A-F]{40}$", description="SHA-1 of the certificate."),
        }
    ),
}
_KEY = re.compile(r"-----BEGIN ((?:[A-Z]+ )?PRIVATE KEY)-----(?:(?!-----)[\s\S])+-----END \1-----", re.ASCII)
"""A private key in PEM. OpenSSL's own form of an encrypted key has headers with hyphens: Proc-Type, DEK-Info."""
_WRONG_PASSWORD = "cannot be read; is it the right password?"  # noqa: S105 - a sentence


def parse(value: Mapping[str, Any], field: str) -> tuple[dict[str, Any], str | None]:
    """Returns the members that may be shown, and the PEM: key without a password, certificate, chain.

    Returns no members and None for the PEM if the stored certificate is meant. `certificate` is part of responses and
    is ignored. Raises InvalidRequest.
    """
    members = read.members(value, field, ("type", *GIVEN))
    forms = [name for name in ("pfx", "pem") if members.get(name, MASK) != MASK]
    if len(forms) == 2:
        raise InvalidRequest(below(field, "pem"), "is given in addition to `pfx`: leave out one of them")
    password = _password(members.get("password", MASK), below(field, "password"))
    if not forms:
        if password is not None:
            raise InvalidRequest(below(field, "password"), "is given without pfx and pem")
        return {}, None
    path = below(field, forms[0])
    blob = read.text(members[forms[0]], path, 1, MAX_GIVEN)
    pem, certificate = _from_pfx(blob, password, path) if forms == ["pfx"] else _from_pem(blob, password, path)
    if len(pem) > MAX_PEM:
        raise InvalidRequest(
            path, f"makes a PEM of more than {MAX_PEM:,} bytes: leave out certificates that the target has"
        )
    return {"certificate": _shown(certificate)}, pem


def _password(value: object, field: str) -> bytes | None:
    if value == MASK:
        return None
    return read.text(value, field, 0, 1_024).encode() or None


def _from_pfx(encoded: str, password: bytes | None, field: str) -> tuple[str, x509.Certificate]:
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - see above
    from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415

    try:
        blob = base64.b64decode("".join(encoded.split()), validate=True)
    except ValueError as wrong:
        raise InvalidRequest(field, "is not Base64") from wrong
    try:
        key, certificate, others = pkcs12.load_key_and_certificates(blob, password)
    except (ValueError, TypeError, UnsupportedAlgorithm) as wrong:
        raise InvalidRequest(field, _WRONG_PASSWORD) from wrong
    if key is None or certificate is None:
        raise InvalidRequest(field, "must contain a private key and its certificate")
    return _written(key, [certificate, *others], field)


def _from_pem(text: str, password: bytes | None, field: str) -> tuple[str, x509.Certificate]:
    from cryptography import x509  # noqa: PLC0415 - see above
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    match = _KEY.search(text)
    if match is None:
        raise InvalidRequest(field, "must contain a private key")
    try:
        key = load_pem_private_key(match[0].encode(), password)
    except (ValueError, TypeError, UnsupportedAlgorithm) as wrong:
        raise InvalidRequest(field, f"the private key {_WRONG_PASSWORD}") from wrong
    try:
        certificates = x509.load_pem_x509_certificates(text.encode())
    except ValueError as wrong:
        raise InvalidRequest(field, "must contain a certificate that can be read") from wrong
    return _written(key, certificates, field)


def _written(key: Any, certificates: list[x509.Certificate], field: str) -> tuple[str, x509.Certificate]:
    """Returns the PEM of the key, its own certificate and the others in their order, and that certificate."""
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
        raise InvalidRequest(field, "contains no certificate of its private key")
    ordered = [own[0], *(each for each in certificates if each is not own[0])]
    pieces = [key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())]
    pieces += [each.public_bytes(Encoding.PEM) for each in ordered]
    return b"".join(pieces).decode("ascii"), own[0]


def _shown(certificate: x509.Certificate) -> dict[str, str]:
    """Returns the members that are shown.

    The thumbprint is SHA-1 in hex, as in Windows and Azure: a name, not a proof.
    """
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - see above

    return {
        "subject": certificate.subject.rfc4514_string(),
        "notBefore": instant_text(certificate.not_valid_before_utc),
        "notAfter": instant_text(certificate.not_valid_after_utc),
        "thumbprint": certificate.fingerprint(hashes.SHA1()).hex().upper(),  # noqa: S303 - no signature depends on it
    }
