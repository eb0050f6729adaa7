"""Compares what openapi.json says of an exchange with the exchange itself."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import unquote

import jsonschema
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from sweephand.server.facades.native.document import FILE
from tests.support.judged_once import OnceValidator

DOCUMENT: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
JSON = {"application/json", "application/problem+json"}
_HOME = "urn:openapi"
_REGISTRY = Registry().with_resource(_HOME, Resource(DOCUMENT, DRAFT202012))
_EVERYWHERE = {
    *("content-type", "cache-control", "x-content-type-options"),
    *("strict-transport-security", "cross-origin-resource-policy"),
}
"""Headers that every answer has and the document need not name."""


def check(event: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    """Raises AssertionError where the document does not allow the answer, or an accepted request."""
    method = event["requestContext"]["http"]["method"].upper()
    found = operation(method, event["rawPath"])
    status, headers = str(answer["statusCode"]), answer["headers"]
    if event["rawPath"] == "/console/":
        assert status == "302", status  # the console's address, no path of the API
        return
    if found is None:
        assert status in {"400", "401", "404", "405", "429"}, status
        validate("/components/schemas/Problem", json.loads(answer["body"] or "null"), method)
        return
    where, described = found
    assert status in described["responses"], f"{status} of {where} is not described: {answer['body']}"
    pointer, response = _followed(f"{where}/responses/{status}")
    strangers = headers.keys() - {name.lower() for name in response.get("headers", ())} - _EVERYWHERE
    assert not strangers, f"{where} {status}: {strangers}"
    for name, header in response.get("headers", {}).items():
        if name.lower() in headers:
            validate(f"{_followed_header(header)}/schema", headers[name.lower()], method="GET")
    _check_body(f"{pointer}/content", response.get("content", {}), answer, method)
    if status[0] == "2" and method != "HEAD":
        _check_request(where, described, event)


def _plain(answer: Mapping[str, Any]) -> str:
    """Returns the body as text, however it was encoded."""
    if not answer["isBase64Encoded"]:
        return str(answer["body"])
    raw = base64.b64decode(answer["body"])
    return (gzip.decompress(raw) if answer["headers"].get("content-encoding") == "gzip" else raw).decode()


def _followed_header(header: Mapping[str, str]) -> str:
    return header["$ref"].removeprefix("#")


def _check_body(pointer: str, content: Mapping[str, Any], answer: Mapping[str, Any], method: str) -> None:
    if not content:
        assert answer["body"] == ""
        return
    media = answer["headers"]["content-type"]
    assert media in content, f"{pointer}: {media}"
    if method != "HEAD":
        body = _plain(answer)
        validate(f"{pointer}/{_escaped(media)}/schema", json.loads(body) if media in JSON else body, method)


def _check_request(where: str, described: Mapping[str, Any], event: Mapping[str, Any]) -> None:
    body = event.get("body") or ""
    raw = base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()
    if not raw or "requestBody" not in described:
        return
    media = event["headers"]["content-type"].partition(";")[0].strip().lower()
    assert media in described["requestBody"]["content"], media
    if media != "application/x-www-form-urlencoded":
        validate(f"{where}/requestBody/content/{_escaped(media)}/schema", json.loads(raw), "request")


def operation(method: str, path: str) -> tuple[str, dict[str, Any]] | None:
    """Returns the pointer of the operation that a request meets, and the operation. HEAD meets GET's."""
    method = "get" if method == "HEAD" else method.lower()
    for template, operations in DOCUMENT["paths"].items():
        if method in operations and _pattern(template).fullmatch(unquote(path, errors="replace")):
            return f"/paths/{_escaped(template)}/{method}", operations[method]
    return None


@cache
def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(
        "".join("[^/]+" if piece[:1] == "{" else re.escape(piece) for piece in re.split(r"(\{.*?\})", template))
    )


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _followed(pointer: str) -> tuple[str, dict[str, Any]]:
    there = at(pointer)
    return _followed(there["$ref"].removeprefix("#")) if "$ref" in there else (pointer, there)


def at(pointer: str) -> Any:
    there: Any = DOCUMENT
    for piece in pointer.split("/")[1:]:
        there = there[piece.replace("~1", "/").replace("~0", "~")]
    return there


def validate(pointer: str, value: Any, method: str) -> None:
    """Validates the value by the schema at a pointer into the document."""
    if method == "HEAD":
        return
    if not _validator(pointer, OnceValidator).is_valid(value):
        errors = _validator(pointer).iter_errors(value)
        error = jsonschema.exceptions.best_match(errors)
        raise AssertionError(f"{pointer}: {error.json_path}: {error.message}\n{json.dumps(value)[:2_000]}")


@cache
def _validator(pointer: str, kind: Any = jsonschema.Draft202012Validator) -> Any:
    # "~" and "{" of a JSON Pointer are escaped once more as it stands in a URI.
    fragment = pointer.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
    return kind({"$ref": f"{_HOME}#{fragment}"}, registry=_REGISTRY)
