"""AWS that answers at once, below HTTP: requests are made, signed and parsed in full, and no network is in between."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from unittest import mock

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.httpsession import URLLib3Session

Answer = Callable[[bytes], str]
"""From a request's body to the answer's."""


@dataclass
class Stub:
    """answers: by operation. own_s: CPU seconds that the stub itself has used, not to be counted."""

    answers: dict[str, Answer]
    own_s: float = 0.0
    calls: dict[str, int] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        began = time.thread_time()
        target = request.headers["X-Amz-Target"]
        operation = (target if isinstance(target, str) else target.decode()).rpartition(".")[2]
        body = request.body if isinstance(request.body, bytes) else str(request.body).encode()
        content = self.answers[operation](body).encode()
        response = AWSResponse(request.url, 200, {"Content-Type": "application/x-amz-json-1.0"}, None)
        response._content = content
        with self._lock:
            self.calls[operation] = self.calls.get(operation, 0) + 1
            self.own_s += time.thread_time() - began
        return response


@contextmanager
def stubbed(answers: dict[str, Answer]) -> Iterator[Stub]:
    """Answers every botocore client of this process by the stub."""
    stub = Stub(answers)
    with mock.patch.object(URLLib3Session, "send", stub.send):
        yield stub


def sent(body: bytes) -> str:
    """Answers SendMessageBatch: all went out."""
    return json.dumps(
        {
            "Successful": [
                {"Id": str(n), "MessageId": f"{n:036d}", "MD5OfMessageBody": "0" * 32}
                for n in range(body.count(b'"MessageBody"'))
            ]
        }
    )


def advanced(body: bytes) -> str:
    """Answers BatchExecuteStatement: each condition held."""
    return json.dumps({"Responses": [{"TableName": "bench"}] * body.count(b'"Statement"')})


def pages(rows: Sequence[dict[str, Any]], size: int) -> list[str]:
    """Answers Query: the answers, page by page, each but the last with where to go on."""
    found = []
    for begin in range(0, max(1, len(rows)), size):
        page = rows[begin : begin + size]
        answer: dict[str, Any] = {"Items": page, "Count": len(page), "ScannedCount": len(page)}
        if begin + size < len(rows):
            answer["LastEvaluatedKey"] = {"pk": {"S": "page"}, "sk": {"S": str(begin // size + 1)}}
        found.append(json.dumps(answer))
    return found
