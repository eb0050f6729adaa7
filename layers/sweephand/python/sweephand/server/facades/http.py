"""HTTP for all facades: requests as API Gateway passes them on (payload 2.0), answers, and the route table."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any
from urllib.parse import unquote_to_bytes

from sweephand.base.errors import InvalidRequest
from sweephand.base.json_text import dumps
from sweephand.base.records import dataclass

RUN_TOKEN_HEADER = "Sweephand-Callback-Token"  # noqa: S105 - the name of a header
LONGEST_PATH = LONGEST_QUERY = 8_192
REPLACED = "\ufffd"
LARGEST_ANSWER = 5_500_000
"""The most bytes of an answer; Lambda returns at most 6 MB."""


@dataclass(frozen=True)
class Request:
    """A request. path: decoded segments. query: decoded, each name once. headers: names in lower case.

    base_url: the address of the API as the caller sees it.
    """

    method: str
    path: tuple[str, ...]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    request_id: str
    base_url: str = ""

    def plain_body(self) -> bytes:
        """Returns the body. Raises InvalidRequest(NOT_JSON) if it is compressed."""
        coding = _coding(self.headers)
        if self.body and coding:
            reason = f"the Content-Encoding {coding[:40]} is not understood: send the body without compression"
            raise InvalidRequest(None, reason, code="NOT_JSON")
        return self.body


@dataclass(frozen=True)
class Answer:
    """An answer. raw: a string that is sent unchanged instead of the body; packed: bytes that are."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"
    raw: str = ""
    packed: bytes = b""

    @cached_property
    def text(self) -> str:
        """Returns the body as JSON; an empty string without one."""
        return self.raw if self.body is None else dumps(self.body)

    @property
    def too_large(self) -> bool:
        """True if Lambda would refuse the answer. Quotes and backslashes count twice in a JSON string."""
        if len(self.text) * 4 <= LARGEST_ANSWER:  # a character has at most four bytes
            return False
        return len(self.text.encode(errors="replace")) + self.text.count('"') + self.text.count("\\") > LARGEST_ANSWER


def read_request(event: Mapping[str, Any], request_id: str) -> Request:
    """Reads a request. Raises InvalidRequest(INVALID_QUERY) if it is not UTF-8 or names a parameter twice.

    API Gateway's HTTP APIs pass the path on decoded, except for `%25`, which is decoded here. A `%2F` has already
    become a slash, and cannot be part of a name.
    """
    http = event["requestContext"]["http"]
    if len(event["rawPath"]) > LONGEST_PATH:
        raise InvalidRequest(None, f"the path is longer than {LONGEST_PATH} characters", code="INVALID_QUERY")
    headers = {name.lower(): value for name, value in event.get("headers", {}).items()}
    domain = event["requestContext"].get("domainName", "")
    return Request(
        method=http["method"].upper(),
        path=tuple(_decoded(piece, None, "the path ") for piece in event["rawPath"].split("/")[1:]),
        query=_query(event.get("rawQueryString", "")),
        headers=headers,
        body=_body(event, headers),
        request_id=request_id,
        base_url=f"https://{domain}" if domain else "",
    )


def _coding(headers: Mapping[str, str]) -> str:
    """Returns the name of a body's compression; an empty string for a plain body."""
    coding = headers.get("content-encoding", "").strip().lower()
    return "" if coding == "identity" else coding


def _body(event: Mapping[str, Any], headers: Mapping[str, str]) -> bytes:
    body = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        if REPLACED in body and not _coding(headers):
            # A decoding gateway puts it in place of bytes that were not UTF-8. The original is lost.
            reason = "the body is not UTF-8 (write the character U+FFFD itself as \\ufffd)"
            raise InvalidRequest(None, reason, position=body.index(REPLACED), code="INVALID_JSON")
        # A decoding gateway can produce a lone surrogate; the parser refuses its bytes.
        return str(body).encode(errors="surrogatepass")
    try:
        return base64.b64decode(body, validate=True)
    except ValueError as wrong:  # a character outside the alphabet, or outside ASCII
        raise InvalidRequest(None, "the body cannot be decoded", code="INVALID_JSON") from wrong


def _query(raw: str) -> dict[str, str]:
    if len(raw) > LONGEST_QUERY:
        raise InvalidRequest(None, f"the query is longer than {LONGEST_QUERY} characters", code="INVALID_QUERY")
    parameters: dict[str, str] = {}
    for pair in filter(None, raw.split("&")):
        name, _, value = pair.partition("=")
        name = _decoded(name.replace("+", " "), None, "the name of a parameter ")
        if name in parameters:
            raise InvalidRequest(name[:100], "is given twice", code="INVALID_QUERY")
        parameters[name] = _decoded(value.replace("+", " "), name)
    return parameters


def _decoded(text: str, name: str | None, subject: str = "") -> str:
    """Decodes a value. subject: its name in error messages, if it is not a parameter."""
    try:
        decoded = unquote_to_bytes(text).decode()
    except (UnicodeDecodeError, UnicodeEncodeError) as wrong:
        raise InvalidRequest(name and name[:100], f"{subject}is not UTF-8", code="INVALID_QUERY") from wrong
    if any(character < " " or character == "\x7f" for character in decoded):
        raise InvalidRequest(name and name[:100], f"{subject}contains a control character", code="INVALID_QUERY")
    return decoded


Operation = Callable[..., Answer]


@dataclass(frozen=True)
class Route:
    """One operation. path: `/v1/jobs/{job}`, optionally with a fixed ending `{job}:verb`. scope None: open to all.

    also: other scopes, each of which is enough. run_token: the token of the run in its path is also enough. query: the
    parameters that it knows; required: those that a request must have. creates: True for a PUT that answers 201 if
    it creates. body: whether it reads one (`required`, `optional`, `none`, `form`). headers: those that
    it reads in addition to Authorization. takes, gives: names of the schemas of its body and of its answer with
    `status`. media: the media types of the answer. several: the schema of the 207 answer to several things. begins: the
    schema of the 202 answer if the request starts an operation.
    """

    method: str
    path: str
    operation: Operation
    scope: str | None
    query: tuple[str, ...] = ()
    body: str = "none"
    summary: str = ""
    tenant: bool = True
    headers: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    takes: str = ""
    gives: str = ""
    status: int = 200
    run_token: bool = False
    begins: str = ""
    required: tuple[str, ...] = ()
    creates: bool = False
    several: str = ""
    media: tuple[str, ...] = ("application/json",)

    @property
    def gives_access(self) -> bool:
        """True if it changes credentials, keys or tenants. The caller is then identified again, without the cache."""
        return self.method not in {"GET", "HEAD"} and self.scope in {"admin", "provider:admin"}

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes, each of which is enough."""
        return tuple(filter(None, (self.scope, *self.also)))


class Routes:
    """The table of routes. It finds the route of a request, or the methods that a path has, for 405.

    any_case: the fixed parts of paths match in upper and lower case.
    """

    any_case = False

    def __init__(self, routes: Sequence[Route]) -> None:
        self.all = tuple(routes)
        self._patterns = [(tuple(route.path.split("/")[1:]), route) for route in self.all]

    def find(self, method: str, path: Sequence[str]) -> tuple[Route, dict[str, str]] | frozenset[str]:
        """Returns the route and its path parameters, or else the methods that the path has (none: no such path).

        HEAD finds the route of GET (RFC 9110, 9.3.2).
        """
        methods: set[str] = set()
        for pattern, route in self._patterns:
            parameters = _match(pattern, path, any_case=self.any_case)
            if parameters is not None:
                own = {"GET", "HEAD"} if route.method == "GET" else {route.method}
                if method in own:
                    return route, parameters
                methods |= own
        return frozenset(methods)

    def of_length(self, path: Sequence[str]) -> frozenset[str]:
        """Returns the paths with the same number of segments, with the given segments in place of parameters."""
        return frozenset(
            "/".join(own if _PARAMETER.fullmatch(wanted) else wanted for wanted, own in zip(pattern, path, strict=True))
            for pattern, _ in self._patterns
            if len(pattern) == len(path)
        )


_PARAMETER = re.compile(r"\{([a-z_]+)\}", re.ASCII)


def _match(pattern: Sequence[str], path: Sequence[str], *, any_case: bool) -> dict[str, str] | None:
    if len(pattern) != len(path):
        return None
    parameters: dict[str, str] = {}
    for wanted, segment in zip(pattern, path, strict=True):
        parameter = _PARAMETER.fullmatch(wanted)
        if parameter is not None:
            if not segment:
                return None
            parameters[parameter[1]] = segment
        elif wanted != segment and not (any_case and wanted.lower() == segment.lower()):
            return None
    return parameters
