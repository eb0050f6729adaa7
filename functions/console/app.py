"""Serves the console: one page for all its addresses, and its files under the hash of their content."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

STATIC = Path(__file__).parent / "static"
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
FILES = {
    path.relative_to(STATIC).as_posix(): path.read_bytes()
    for path in sorted(STATIC.rglob("*"))
    if path.suffix in MEDIA_TYPES
}
PAGE = (STATIC / "index.html").read_bytes()
CONTENT = hashlib.sha256(repr((PAGE, FILES)).encode()).hexdigest()[:16]
BELOW_CONTENT = re.compile(r"/console/([0-9a-f]{16})/(.+)")
AUTHORIZE_URL, TOKEN_URL, CLIENT_ID, SCOPE = [*os.environ.get("SIGN_IN", "").split(","), *[""] * 3][:4]
SIGN_IN = {"authorize_url": AUTHORIZE_URL, "token_url": TOKEN_URL, "client_id": CLIENT_ID, "scope": SCOPE or "openid"}
TOKEN_ORIGIN = "".join(f" {each.scheme}://{each.netloc}" for each in [urlsplit(SIGN_IN["token_url"])] if each.netloc)
FOR_EVERY_ANSWER = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        f"connect-src 'self'{TOKEN_ORIGIN}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "strict-transport-security": "max-age=31536000",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answers a GET of API Gateway (payload 2.0)."""
    path = event["rawPath"]
    packed = "gzip" in event.get("headers", {}).get("accept-encoding", "")
    if path in {"/", "/console/"}:
        asked = event.get("rawQueryString", "")
        answer = _written(302, b"", location=f"/console?{asked}" if asked else "/console")
    else:
        answer = _answer(path, packed=packed)
    print(json.dumps({"level": "INFO", "message": "request", "path": path[:200], "status": answer["statusCode"]}))  # noqa: T201 - a log line
    return answer


def _answer(path: str, *, packed: bool) -> dict[str, Any]:
    found = BELOW_CONTENT.fullmatch(path)
    if found is None:
        return _written(
            200, *_body("", packed=packed), content_type="text/html; charset=utf-8", cache_control="no-store"
        )
    content, name = found.groups()
    if content != CONTENT or name not in FILES:
        return _written(404, b"There is no such file.\n", content_type=MEDIA_TYPES[".txt"], cache_control="no-store")
    kept = {"content_type": MEDIA_TYPES[Path(name).suffix], "cache_control": "public, max-age=31536000, immutable"}
    return _written(200, *_body(name, packed=packed), **kept)


def _page() -> bytes:
    sign_in = html.escape(json.dumps(SIGN_IN if SIGN_IN["authorize_url"] else None))
    return PAGE.replace(b"{content}", CONTENT.encode()).replace(b"{sign_in}", sign_in.encode())


@cache
def _body(name: str, *, packed: bool) -> tuple[bytes, str]:
    """Returns a file, or the page for an empty name, with its encoding."""
    raw = FILES[name] if name else _page()
    return (gzip.compress(raw, 9, mtime=0), "gzip") if packed else (raw, "")


def _written(status: int, body: bytes, encoding: str = "", **headers: str) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    packed = {"content-encoding": encoding} if encoding else {}
    return {
        "statusCode": status,
        "headers": FOR_EVERY_ANSWER | {"vary": "accept-encoding"} | packed | named,
        "body": base64.b64encode(body).decode(),
        "isBase64Encoded": True,
    }
