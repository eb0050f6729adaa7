"""The short way of a call to DynamoDB: what botocore made of its arguments is signed and sent here, and read as JSON.

Of the 0.3 ms of CPU that a call takes, three quarters go into what a call to DynamoDB never needs: two texts of the
user agent, copies of headers, a signer made anew, answers turned by a schema into what they were before. Only plain
answers come this way; whatever else happens, botocore makes the same request once more its own way, with its waits,
its repeats and its errors. So a lost answer is met as with any repeat of the SDK's (decision 0042).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import zlib
from collections.abc import Mapping
from datetime import datetime
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
RESULTS = frozenset({"ConditionalCheckFailedException", "TransactionCanceledException"})
"""Errors that are answers: to ask again would pay for them twice."""
UNSIGNED = frozenset({"user-agent", "x-amzn-trace-id"})
"""Proxies may change them."""
_OK, _BAD_REQUEST = 200, 400

Parsed = dict[str, Any]


def lay(client: Any, credentials: Any, clock: Clock) -> None:
    """From now on the client's plain calls go the short way.

    credentials: of its session; None where there are none. What is used of botocore beside its documented events is
    the client's HTTP session: where another version has none by that name, all calls go the long way.
    """
    http = getattr(getattr(client, "_endpoint", None), "http_session", None)
    if http is None or credentials is None:
        return
    way = _ShortWay(client, http, credentials, clock)
    for operation in OPERATIONS:
        client.meta.events.register(f"before-call.dynamodb.{operation}", way.answer)


class _ShortWay:
    """Safe for threads."""

    def __init__(self, client: Any, http: Any, credentials: Any, clock: Clock) -> None:
        self._events = client.meta.events
        self._http = http
        self._credentials = credentials
        self._region = client.meta.region_name
        self._clock = clock
        self._signer: Signer | None = None

    def answer(self, model: Any, params: Mapping[str, Any], **_: Any) -> tuple[AWSResponse, Parsed] | None:
        """A handler of botocore's `before-call`. None: botocore makes the request."""
        request = self._signed(params)
        try:
            # As botocore does it, for those who answer in the place of the network.
            given = self._events.emit(f"before-send.dynamodb.{model.name}", request=request)
            response = next((each for _, each in given if each is not None), None) or self._http.send(request)
        except BotoCoreError:
            return None
        parsed = _parsed(response)
        return None if parsed is None else (response, parsed)

    def _signed(self, params: Mapping[str, Any]) -> AWSPreparedRequest:
        url, body = params["url"], params["body"]
        headers = {**params["headers"], "Content-Length": str(len(body))}
        headers |= self._current_signer(params).headers(url, params["headers"], body, self._clock.now())
        return AWSPreparedRequest("POST", url, HeadersDict(headers), body, stream_output=False, context={})

    def _current_signer(self, params: Mapping[str, Any]) -> Signer:
        """Credentials that expire are fetched anew when asked for; the signer is made anew with them."""
        now = self._credentials.get_frozen_credentials()
        region = params.get("context", {}).get("signing", {}).get("region") or self._region
        wanted = (now.access_key, now.secret_key, now.token, region)
        signer = self._signer
        if signer is None or signer.of != wanted:
            self._signer = signer = Signer(*wanted)
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
        self._key_of_day: tuple[str, bytes] = ("", b"")

    def headers(self, url: str, headers: Mapping[str, str], body: bytes, now: datetime) -> dict[str, str]:
        """What is to be added to the headers that will be sent. now: aware UTC."""
        access_key, _, token, region = self.of
        stamp = now.strftime("%Y%m%dT%H%M%SZ")
        added = {"X-Amz-Date": stamp} | ({"X-Amz-Security-Token": token} if token else {})
        parts = urlsplit(url)
        signed = {name.lower(): value.strip() for name, value in {**headers, **added}.items()}
        signed["host"] = parts.netloc
        names = sorted(signed.keys() - UNSIGNED)
        listed = ";".join(names)
        lines = "".join(f"{name}:{signed[name]}\n" for name in names)
        canonical = f"POST\n{parts.path or '/'}\n\n{lines}\n{listed}\n{hashlib.sha256(body).hexdigest()}"
        scope = f"{stamp[:8]}/{region}/{self._service}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = hmac.digest(self._key(stamp[:8]), text.encode(), "sha256").hex()
        credential = f"AWS4-HMAC-SHA256 Credential={access_key}/{scope}"
        return added | {"Authorization": f"{credential}, SignedHeaders={listed}, Signature={signature}"}

    def _key(self, day: str) -> bytes:
        """The same for a day."""
        of_day, key = self._key_of_day
        if of_day != day:
            key = f"AWS4{self.of[1]}".encode()
            for part in (day, self.of[3], self._service, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._key_of_day = day, key
        return key


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
