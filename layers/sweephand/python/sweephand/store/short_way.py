"""The short way of a call to DynamoDB or SQS: its arguments, JSON as they are, are signed, sent, and read as JSON.

Of the 0.3 ms of CPU that a call takes, most goes into what such a call never needs: rules for its address, a
walk through its arguments by a schema, two texts of the user agent, copies of headers, a signer made anew. Where to and
under which headers is what botocore made of the first call of an operation; the next are made alike. Only plain answers
come this way; whatever else happens, botocore makes the same request once more its own way, with its waits, its repeats
and its errors. So a lost answer is met as with any repeat of the SDK's (decisions 0042, 0048 and 0049).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from botocore.awsrequest import AWSPreparedRequest, AWSResponse, HeadersDict
from botocore.exceptions import BotoCoreError

from sweephand.sources import Clock

OPERATIONS = (
    "BatchExecuteStatement",
    "BatchGetItem",
    "DeleteItem",
    "GetItem",
    "PutItem",
    "Query",
    "TransactWriteItems",
    "UpdateItem",
)
"""Of which requests and answers hold nothing but texts, numbers and flags: their JSON is what botocore makes of it."""
WITH_TOKEN = frozenset({"TransactWriteItems"})
"""Which botocore gives a token, so that its repeats are one transaction: each of them is made by botocore."""
RESULTS = frozenset({"ConditionalCheckFailedException", "TransactionCanceledException"})
"""Errors that are answers: to ask again would pay for them twice."""
UNSIGNED = frozenset({"user-agent", "x-amzn-trace-id"})
"""Proxies may change them."""
_OK, _BAD_REQUEST = 200, 400

Parsed = dict[str, Any]


@dataclass(frozen=True)
class Like:
    """What all calls of an operation have in common."""

    url: str
    headers: Mapping[str, str]
    region: str


def lay(client: Any, credentials: Any, clock: Clock, operations: Iterable[str] = OPERATIONS) -> ShortWay | None:
    """From now on the client's plain calls of these operations go the short way.

    credentials: of its session; None where there are none. What is used of botocore beside its documented events is
    the client's HTTP session: where another version has none by that name, all calls go the long way, and this is None.
    """
    http = getattr(getattr(client, "_endpoint", None), "http_session", None)
    if http is None or credentials is None:
        return None
    way = ShortWay(client, http, credentials, clock)
    for operation in operations:
        client.meta.events.register(f"before-call.{way.service}.{operation}", way.answer)
    return way


class Shortened:
    """A botocore client of which one operation goes the short way as a whole; all else is its own."""

    def __init__(self, client: Any, way: ShortWay, operation: str) -> None:
        """operation: as in the service's API; of those that the way was laid for."""
        self._client = client
        method = next(name for name, api in client.meta.method_to_api_mapping.items() if api == operation)

        def call(**request: Any) -> Any:
            answer = way.call(operation, request)
            return getattr(client, method)(**request) if answer is None else answer

        setattr(self, method, call)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class ShortWay:
    """Safe for threads."""

    def __init__(self, client: Any, http: Any, credentials: Any, clock: Clock) -> None:
        self.service = client.meta.service_model.service_name
        self._client = client
        self._events = client.meta.events
        self._http = http
        self._credentials = credentials
        self._clock = clock
        self._signer: Signer | None = None
        self._likes: dict[str, Like] = {}

    def call(self, operation: str, request: Mapping[str, Any]) -> Parsed | None:
        """The answer, past botocore; None: botocore makes the call, because it knows better or has yet to show how.

        operation: as in the service's API. Raises ClientError for RESULTS, as botocore does.
        """
        like = self._likes.get(operation)
        if like is None:
            return None
        _, parsed = self._exchange(operation, like, json.dumps(request).encode())
        if parsed is not None and "Error" in parsed:
            raise self._client.exceptions.from_code(parsed["Error"]["Code"])(parsed, operation)
        return parsed

    def answer(self, model: Any, params: Mapping[str, Any], **_: Any) -> tuple[AWSResponse, Parsed] | None:
        """A handler of botocore's `before-call`. None: botocore makes the request."""
        operation = model.name
        if operation in self._likes:
            return None  # `call` has tried already
        region = params.get("context", {}).get("signing", {}).get("region") or self._client.meta.region_name
        like = Like(params["url"], dict(params["headers"]), region)
        if operation not in WITH_TOKEN:
            self._likes[operation] = like
        response, parsed = self._exchange(operation, like, params["body"])
        return None if parsed is None else (response, parsed)

    def _exchange(self, operation: str, like: Like, body: bytes) -> tuple[Any, Parsed | None]:
        request = self._signed(like, body)
        try:
            # As botocore does it, for those who answer in the place of the network.
            given = self._events.emit(f"before-send.{self.service}.{operation}", request=request)
            response = next((each for _, each in given if each is not None), None) or self._http.send(request)
        except BotoCoreError:
            return None, None
        return response, _parsed(response)

    def _signed(self, like: Like, body: bytes) -> AWSPreparedRequest:
        headers = {**like.headers, "Content-Length": str(len(body))}
        headers |= self._current_signer(like.region).headers(like.url, like.headers, body, self._clock.now())
        return AWSPreparedRequest("POST", like.url, HeadersDict(headers), body, stream_output=False, context={})

    def _current_signer(self, region: str) -> Signer:
        """Credentials that expire are fetched anew when asked for; the signer is made anew with them."""
        now = self._credentials.get_frozen_credentials()
        wanted = (now.access_key, now.secret_key, now.token, region)
        signer = self._signer
        if signer is None or signer.of != wanted:
            self._signer = signer = Signer(*wanted, self.service)
        return signer


class Signer:
    """AWS's Signature Version 4 of POST requests to one service in one region. Source: AWS, "Create a signed request".

    token: of temporary credentials. Safe for threads.
    """

    def __init__(
        self, access_key: str, secret_key: str, token: str | None, region: str, service: str = "dynamodb"
    ) -> None:
        self.of = (access_key, secret_key, token, region)
        self._service = service
        self._keyed: tuple[str, hmac.HMAC] | None = None

    def headers(self, url: str, headers: Mapping[str, str], body: bytes, now: datetime) -> dict[str, str]:
        """What is to be added to the headers that will be sent. now: aware UTC."""
        access_key, _, token, region = self.of
        stamp = now.strftime("%Y%m%dT%H%M%SZ")
        added = {"X-Amz-Security-Token": token} if token else {}
        before, after, listed = _frame(url, tuple(headers.items()) + tuple(added.items()))
        canonical = f"{before}{stamp}{after}{hashlib.sha256(body).hexdigest()}"
        scope = f"{stamp[:8]}/{region}/{self._service}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        # Not hmac.digest(), which gives the interpreter away to another thread, for a microsecond.
        signed = self._keyed_of(stamp[:8]).copy()
        signed.update(text.encode())
        credential = f"AWS4-HMAC-SHA256 Credential={access_key}/{scope}"
        added["X-Amz-Date"] = stamp
        return added | {"Authorization": f"{credential}, SignedHeaders={listed}, Signature={signed.hexdigest()}"}

    def _keyed_of(self, day: str) -> hmac.HMAC:
        """Begun with the day's key, and never used but by its copies."""
        if self._keyed is None or self._keyed[0] != day:
            key = f"AWS4{self.of[1]}".encode()
            for part in (day, self.of[3], self._service, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._keyed = day, hmac.new(key, digestmod="sha256")
        return self._keyed[1]


@lru_cache(maxsize=64)
def _frame(url: str, headers: tuple[tuple[str, str], ...]) -> tuple[str, str, str]:
    """Of a request's canonical form what stands before its date, and between that and its body; the signed names."""
    parts = urlsplit(url)
    signed = {name.lower(): value.strip() for name, value in headers} | {"host": parts.netloc, "x-amz-date": "\0"}
    names = sorted(signed.keys() - UNSIGNED)
    listed = ";".join(names)
    lines = "".join(f"{name}:{signed[name]}\n" for name in names)
    before, _, after = f"POST\n{parts.path or '/'}\n\n{lines}\n{listed}\n".partition("\0")
    return before, after, listed


def _parsed(response: AWSResponse) -> Parsed | None:
    """As botocore would have parsed it; None for what it had better see itself."""
    status, content = response.status_code, response.content
    if status not in {_OK, _BAD_REQUEST} or not _whole(content, response.headers.get("x-amz-crc32")):
        return None
    try:
        members = json.loads(content)
    except ValueError:
        return None
    if not isinstance(members, dict):
        return None
    about = {"HTTPStatusCode": status, "RetryAttempts": 0}
    if status == _OK:
        return {**members, "ResponseMetadata": about}
    code = str(members.pop("__type", "")).rpartition("#")[2]
    if code not in RESULTS:
        return None
    error = {"Code": code, "Message": members.pop("message", members.pop("Message", ""))}
    return {**members, "Error": error, "ResponseMetadata": about}


def _whole(content: bytes, checksum: str | None) -> bool:
    """DynamoDB's answers have a checksum, and botocore asks again where it does not fit."""
    return checksum is None or not checksum.isdigit() or zlib.crc32(content) == int(checksum)
