"""The action `azure_storage_queue`: a message to a queue of an Azure storage account, in Azure Scheduler's envelope.

A repetition sends a second message with the same ExecutionTag.
"""

from __future__ import annotations

import base64
import re
from typing import Any, final
from xml.sax import saxutils

from sweephand.base.errors import InvalidRequest
from sweephand.base.json_schema import text
from sweephand.base.members import fields as read
from sweephand.base.records import dataclass
from sweephand.domain.job import MASK, Payload
from sweephand.domain.run import Outcome
from sweephand.server.actions.azure import queue_or_topic as azure
from sweephand.server.actions.azure import redirects
from sweephand.server.actions.call import Call
from sweephand.server.actions.headers import MAX_SECRET
from sweephand.server.actions.kind import Reading, member, string
from sweephand.server.actions.payloads import STRANGE, message
from sweephand.server.actions.redaction import of_query
from sweephand.server.actions.run_headers import attempt_uuid, execution_tag
from sweephand.server.actions.webhook import Post
from sweephand.server.security.guard import GuardSettings, Outbound

SAS_TOKEN = "sasToken"  # noqa: S105 - the name of a field
MAX_MESSAGE = 47_000
"""The most bytes within the envelope. With the envelope and in Base64, a message may have 64 KB."""
_TOKEN = re.compile(r"[A-Za-z0-9%&=._~:+/*,;!-]+", re.ASCII)
_NAMESPACES = 'xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'


def _token(value: Any, path: str, reading: Reading) -> str:
    """Reads a token without anything before its question mark, because users paste the whole address."""
    text = read.text(value, path, 1, MAX_SECRET)
    token = text.partition("?")[2] if "?" in text else text
    if text != MASK and not _TOKEN.fullmatch(token):
        raise InvalidRequest(path, "must be the query of an address: sv=...&sig=...")
    reading.keep({SAS_TOKEN: token})
    return MASK


@final
@dataclass(frozen=True)
class StorageQueue(azure.AzureAction):
    """A message to a queue of a storage account. region: the region that the envelope names."""

    account: str = member("storageAccount", text(1, 63, pattern="^[A-Za-z0-9-]+$"), azure.host)
    queue: str = member("queueName", text(1, 260, pattern="^[A-Za-z0-9._/-]+$"), azure.entity)
    token: str = member(
        SAS_TOKEN,
        text(longest=MAX_SECRET, description="Encrypted; absent or `***` in a change: the stored one."),
        _token,
        shown={"const": MASK},
        default=MASK,
    )
    region: str | None = string(
        "region", 1, 64, more={"description": "The region that Azure Scheduler's envelope names."}, default=None
    )

    kind = "azure_storage_queue"
    host_member = "storageAccount"
    moved = "the queue"

    @property
    def secret_fields(self) -> tuple[str, ...]:
        return (SAS_TOKEN,)

    @property
    def destination(self) -> tuple[str, str]:
        """Returns the queue to which the token gives access."""
        return self.account.lower(), self.queue

    def check_payload(self, payload: Payload, field: str) -> None:
        """Raises InvalidRequest for a payload that the envelope cannot contain."""
        strange = STRANGE.search(payload.text)
        if strange:
            why = "contains a control character, which the envelope cannot contain"
            raise InvalidRequest(field, why, position=strange.start())
        if len(_escaped(payload.text).encode()) > MAX_MESSAGE:
            raise InvalidRequest(field, f"must have at most {MAX_MESSAGE:,} bytes as XML")

    def redirected(self, call: Call, outbound: Outbound) -> Outcome | None:
        texts = {"envelope": envelope(self, call), "raw": message(call)}
        return redirects.instead(f"{self.account}/{self.queue}", texts, self.outcome, call, outbound)

    def post(self, call: Call, settings: GuardSettings) -> Post:
        """Returns the message in its envelope."""
        token = call.secret(SAS_TOKEN)
        content = base64.b64encode(envelope(self, call).encode()).decode()
        return Post(
            f"{self.url(settings)}?{token}",
            [("Content-Type", "application/xml"), ("Accept", "application/xml"), ("User-Agent", "Sweephand")],
            f"<QueueMessage><MessageText>{content}</MessageText></QueueMessage>".encode(),
            of_query(token),
        )

    def url(self, settings: GuardSettings) -> str:
        base = azure.base_url(f"{self.account.lower()}.queue", settings.azure_storage_suffix)
        return f"{base}/{self.queue}/messages"


def envelope(action: StorageQueue, call: Call) -> str:
    """Returns the message as Azure Scheduler's receivers parse it.

    It declares utf-16 although it is sent as UTF-8, because .NET reads it as a string.
    """
    members = {
        "ExecutionTag": execution_tag(call),
        "ClientRequestId": attempt_uuid(call),
        "ExpectedExecutionTime": f"{call.planned_at:%Y-%m-%dT%H:%M:%S}",
        "SchedulerJobId": call.job_name,
        "SchedulerJobCollectionId": call.collection,
        "Region": action.region or call.region or "",
        "Message": message(call),
    }
    return "\n".join(
        [
            '<?xml version="1.0" encoding="utf-16"?>',
            f"<StorageQueueMessage {_NAMESPACES}>",
            *(f"  <{name}>{_escaped(value)}</{name}>" for name, value in members.items()),
            "</StorageQueueMessage>",
        ]
    )


def _escaped(text: str) -> str:
    """Escapes text for XML.

    A carriage return becomes a reference: parsers read a bare one as a line feed or drop it.
    """
    return saxutils.escape(text, {"\r": "&#13;"})
