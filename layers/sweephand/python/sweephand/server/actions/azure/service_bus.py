"""The actions `azure_service_bus_queue` and `azure_service_bus_topic`: a message over REST, with a shared access key.

A repetition sends a second message with the same MessageId, which a queue or topic with duplicate detection drops.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import format_datetime
from typing import Any, ClassVar, final
from urllib.parse import quote_plus

from sweephand.base.errors import InvalidRequest
from sweephand.base.json_schema import Members, answer, ref, request, whole
from sweephand.base.json_schema import text as string
from sweephand.base.members import fields as read
from sweephand.base.members.fields import below
from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_s, text
from sweephand.domain.job import MASK
from sweephand.domain.run import Outcome
from sweephand.schedules.text.instants import parse_instant
from sweephand.server.actions.azure import queue_or_topic as azure
from sweephand.server.actions.azure import redirects
from sweephand.server.actions.call import Call
from sweephand.server.actions.headers import MAX_HEADER_BYTES, MAX_HEADERS, MAX_SECRET, check_name
from sweephand.server.actions.kind import Reading, choice, member
from sweephand.server.actions.payloads import message
from sweephand.server.actions.redaction import of_query
from sweephand.server.actions.run_headers import execution_tag, traceparent
from sweephand.server.actions.webhook import Post
from sweephand.server.security.guard import GuardSettings, Outbound

SAS_KEY = "authentication.sasKey"
SIGNED_FOR_S = 300
TRANSPORTS = ("NotSpecified", "NetMessaging", "AMQP")
TEXTS: Mapping[str, int] = {
    **dict.fromkeys(("contentType", "correlationId", "label", "replyTo", "to"), 256),
    **dict.fromkeys(("messageId", "partitionKey", "replyToSessionId", "sessionId", "viaPartitionKey"), 128),
}
"""The longest value of each, in characters: Azure's limits for duplicates, partitions and sessions."""
LONGEST_LIFE_S = 2**31 - 1
PROPERTIES = (*TEXTS, "forcePersistence", "scheduledEnqueueTimeUtc", "timeToLiveSeconds")
OURS = frozenset({"authorization", "brokerproperties", "content-type", "accept", "user-agent"})
_KEY_NAME = re.compile(r"[!-~]{1,256}", re.ASCII)
_CONTENT_TYPE = re.compile(r"[!-~](?:[ -~]*[!-~])?", re.ASCII)


_KEY: Members = {
    "type": {"const": "sharedAccessKey"},
    "sasKeyName": string(1, 256),
    "sasKey": string(longest=MAX_SECRET, description="Encrypted; absent or `***` in a change: the stored one."),
}
_BROKERED: Members = {
    **{name: string(1, longest) for name, longest in TEXTS.items()},
    "forcePersistence": {"type": "boolean"},
    "scheduledEnqueueTimeUtc": string(),
    "timeToLiveSeconds": whole(1, LONGEST_LIFE_S),
}


def _authentication(value: Any, path: str, reading: Reading) -> str:
    """Reads the key's name, and the key if it was given."""
    members = read.members(read.an_object(value, path, secret=True), path, ("type", "sasKeyName", "sasKey"))
    read.one_of(members.get("type"), below(path, "type"), ("sharedAccessKey",), secret=True)
    name = read.text(read.required(members, "sasKeyName", path), below(path, "sasKeyName"), 1, 256)
    if not _KEY_NAME.fullmatch(name):
        raise InvalidRequest(below(path, "sasKeyName"), "must be visible ASCII without spaces")
    if members.get("sasKey", MASK) != MASK:
        reading.keep({SAS_KEY: read.text(members["sasKey"], below(path, "sasKey"), 1, MAX_SECRET // 4)})
    return name


def _properties(value: Any, field: str, _: Reading) -> dict[str, Any]:
    members = read.members(value, field, PROPERTIES)
    made: dict[str, Any] = {
        name: read.text(members[name], below(field, name), 1, longest)
        for name, longest in TEXTS.items()
        if name in members
    }
    if not _CONTENT_TYPE.fullmatch(made.get("contentType", "-")):
        raise InvalidRequest(below(field, "contentType"), "must be visible ASCII, without spaces at its ends")
    if "forcePersistence" in members:
        made["forcePersistence"] = read.flag(members["forcePersistence"], below(field, "forcePersistence"))
    if "scheduledEnqueueTimeUtc" in members:
        at = parse_instant(members["scheduledEnqueueTimeUtc"], below(field, "scheduledEnqueueTimeUtc"))
        made["scheduledEnqueueTimeUtc"] = text(at)
    if "timeToLiveSeconds" in members:
        path = below(field, "timeToLiveSeconds")
        made["timeToLiveSeconds"] = read.whole(members["timeToLiveSeconds"], path, 1, LONGEST_LIFE_S)
    return made


def _custom(value: Any, field: str, _: Reading) -> dict[str, str]:
    """Reads the sender's properties, which become headers, in the caller's spelling."""
    value = read.an_object(value, field)
    if len(value) > MAX_HEADERS:
        raise InvalidRequest(field, f"must have at most {MAX_HEADERS} members")
    for name, content in value.items():
        path = below(field, name)
        check_name(name, path)
        if name.lower() in OURS:
            raise InvalidRequest(path, f"{name} is set by the service or the connection; leave it out")
        if "\r" in read.text(content, path, 0, MAX_HEADER_BYTES) or "\n" in content:
            raise InvalidRequest(path, "contains a line break, which a header cannot contain")
    if len({name.lower() for name in value}) < len(value):
        raise InvalidRequest(field, "has a name twice (upper and lower case are the same)")
    if sum(len(name) + len(json.dumps(content)) + 4 for name, content in value.items()) > MAX_HEADER_BYTES:
        raise InvalidRequest(field, f"must have at most {MAX_HEADER_BYTES:,} bytes together")
    return dict(value)


def _entity(name: str) -> Any:
    """Declares the queue or topic. The name of the member differs by kind."""
    return member(name, string(1, 260, pattern="^[A-Za-z0-9._/-]+$"), azure.entity)


@dataclass(frozen=True)
class ServiceBus(azure.AzureAction):
    """A message to a queue or topic. properties: of the broker. custom: of the sender. Both have the API's names.

    transport is stored and shown, but has no effect: the message is always sent over HTTP.
    """

    namespace: str = member("namespace", string(1, 63, pattern="^[A-Za-z0-9-]+$"), azure.host)
    entity: str = _entity("queueName")
    key_name: str = member(
        "authentication",
        ref("SharedAccessKey"),
        _authentication,
        shown=ref("ShownSharedAccessKey"),
        stored=lambda name: {"type": "sharedAccessKey", "sasKeyName": name, "sasKey": MASK},
        loaded=lambda stored: stored["sasKeyName"],
    )
    transport: str = choice(
        "transportType", TRANSPORTS, more={"description": "Kept; all messages go by HTTP."}, default=TRANSPORTS[0]
    )
    properties: Mapping[str, Any] = member(
        "brokeredMessageProperties",
        ref("BrokeredMessageProperties"),
        _properties,
        shown=ref("ShownBrokeredMessageProperties"),
        stored=dict,
        default_factory=dict,
    )
    custom: Mapping[str, str] = member(
        "customMessageProperties",
        {"type": "object", "additionalProperties": string(), "maxProperties": MAX_HEADERS},
        _custom,
        stored=dict,
        default_factory=dict,
    )

    components: ClassVar = {
        "SharedAccessKey": request(_KEY, ("type", "sasKeyName")),
        "ShownSharedAccessKey": answer({**_KEY, "sasKey": {"const": MASK}}),
        "BrokeredMessageProperties": request(_BROKERED),
        "ShownBrokeredMessageProperties": answer(_BROKERED, _BROKERED),
    }
    host_member = "namespace"
    moved = "the destination or the name of the key"

    @property
    def secret_fields(self) -> tuple[str, ...]:
        return (SAS_KEY,)

    @property
    def destination(self) -> tuple[str, str, str]:
        """Returns the namespace and the entity to which the key gives access, and the name of the key."""
        return self.namespace.lower(), self.entity, self.key_name

    def redirected(self, call: Call, outbound: Outbound) -> Outcome | None:
        texts = dict.fromkeys(redirects.FORMATS, message(call))
        attributes = redirects.message_attributes(self._with_content_type(call), self.custom, call)
        session, where = self.properties.get("sessionId"), f"{self.namespace}/{self.entity}"
        return redirects.instead(where, texts, self.outcome, call, outbound, attributes=attributes, session=session)

    def post(self, call: Call, settings: GuardSettings) -> Post:
        """Returns the message with its signature and properties."""
        url = self.url(settings)
        signature = signed(url.removesuffix("/messages"), self.key_name, call.secret(SAS_KEY), call)
        headers = [
            ("Authorization", signature),
            ("Content-Type", self.properties.get("contentType", "text/plain; charset=utf-8")),
            ("User-Agent", "Sweephand"),
            ("BrokerProperties", json.dumps(self._brokered(call), separators=(",", ":"))),
            *((name, json.dumps(value)) for name, value in self._custom(call).items()),
        ]
        secrets = of_query(signature.partition(" ")[2])
        return Post(url, headers, message(call).encode(), [signature, *secrets])

    def _brokered(self, call: Call) -> dict[str, Any]:
        """Returns the properties in Service Bus's spelling.

        If the job sets no MessageId, it is the run's id, which repetitions share.
        """
        made: dict[str, Any] = {"MessageId": execution_tag(call)}
        for name, value in self.properties.items():
            match name:
                case "contentType":
                    continue
                case "timeToLiveSeconds":
                    made["TimeToLive"] = value
                case "scheduledEnqueueTimeUtc":
                    made["ScheduledEnqueueTimeUtc"] = format_datetime(datetime.fromisoformat(value), usegmt=True)
                case _:
                    made[name[0].upper() + name[1:]] = value
        return made

    def _custom(self, call: Call) -> Mapping[str, str]:
        """Returns the sender's properties, with the run's trace unless the sender gives one."""
        traced = any(name.lower() == "traceparent" for name in self.custom)
        return self.custom if traced else {**self.custom, "traceparent": traceparent(call)}

    def _with_content_type(self, call: Call) -> dict[str, Any]:
        """Returns the properties for a receiver of a redirected message; none if the job sets none."""
        if not self.properties:
            return {}
        content_type = self.properties.get("contentType")
        return self._brokered(call) | ({} if content_type is None else {"ContentType": content_type})

    def url(self, settings: GuardSettings) -> str:
        base = azure.base_url(self.namespace.lower(), settings.azure_service_bus_suffix)
        return f"{base}/{self.entity}/messages"


@final
@dataclass(frozen=True)
class ServiceBusQueue(ServiceBus):
    """A message to a queue."""

    kind = "azure_service_bus_queue"


@final
@dataclass(frozen=True)
class ServiceBusTopic(ServiceBus):
    """A message to a topic."""

    entity: str = _entity("topicPath")

    kind = "azure_service_bus_topic"


def signed(resource: str, key_name: str, key: str, call: Call) -> str:
    """Returns the Authorization of a shared access signature.

    The key is used as a string, although it looks like Base64.
    """
    quoted = quote_plus(resource.lower())
    until = epoch_s(call.clock.now()) + SIGNED_FOR_S
    digest = hmac.new(key.encode(), f"{quoted}\n{until}".encode(), hashlib.sha256).digest()
    signature = quote_plus(base64.b64encode(digest))
    return f"SharedAccessSignature sr={quoted}&sig={signature}&se={until}&skn={quote_plus(key_name)}"
