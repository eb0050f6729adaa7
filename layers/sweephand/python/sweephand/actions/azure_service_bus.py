"""The actions `azure_service_bus_queue` and `azure_service_bus_topic`: a message by REST, with a shared access key.

A repeat sends a second message with the same MessageId, which a queue or topic with duplicate detection drops.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from typing import Any
from urllib.parse import quote_plus

from sweephand.actions import azure, redirects
from sweephand.actions import rules as outcome_rules
from sweephand.actions.call import Call
from sweephand.actions.headers import MASK, MAX_HEADER_BYTES, MAX_HEADERS, MAX_SECRET, check_name
from sweephand.actions.payloads import check_size, parse_payload
from sweephand.actions.proof import secret as secret_of
from sweephand.actions.redaction import of_query
from sweephand.actions.rules import Rules, failed
from sweephand.domain.instants import epoch_s, text
from sweephand.domain.job import Payload
from sweephand.domain.members import fields as read
from sweephand.domain.members.fields import below
from sweephand.domain.run import Outcome
from sweephand.errors import InvalidRequest, Mistakes
from sweephand.schedules.text.instants import parse_instant
from sweephand.security.guard import CallFailed, GuardSettings, Outbound

__all__ = ["carried_over", "check_payload", "from_json", "kept_secrets", "parse", "perform", "to_json"]

QUEUE, TOPIC = "azure_service_bus_queue", "azure_service_bus_topic"
ENTITY = {QUEUE: "queueName", TOPIC: "topicPath"}
"""What the entity is called, by kind."""
SAS_KEY = "authentication.sasKey"
SIGNED_FOR_S = 300
TRANSPORTS = ("NotSpecified", "NetMessaging", "AMQP")
TEXTS: Mapping[str, int] = {
    **dict.fromkeys(("contentType", "correlationId", "label", "replyTo", "to"), 256),
    **dict.fromkeys(("messageId", "partitionKey", "replyToSessionId", "sessionId", "viaPartitionKey"), 128),
}
"""The longest of each, in characters. Of what decides on duplicates, partitions and sessions Azure takes no more."""
LONGEST_LIFE_S = 2**31 - 1
PROPERTIES = (*TEXTS, "forcePersistence", "scheduledEnqueueTimeUtc", "timeToLiveSeconds")
OURS = frozenset({"authorization", "brokerproperties", "content-type", "accept", "user-agent"})
_SHARED = ("type", "namespace", "authentication", "transportType", "brokeredMessageProperties")
_MEMBERS = (*_SHARED, "customMessageProperties", "payload", "body", "outcome", "retry")
_KEY_NAME = re.compile(r"[!-~]{1,256}", re.ASCII)
_CONTENT_TYPE = re.compile(r"[!-~](?:[ -~]*[!-~])?", re.ASCII)


@dataclass(frozen=True)
class BusParams:
    """properties: of the broker, custom: of the sender, both under the API's names; instants as RFC 3339.

    payload and secrets are only there after `parse`.
    """

    kind: str
    namespace: str
    entity: str
    key_name: str
    transport: str = TRANSPORTS[0]
    properties: Mapping[str, Any] = field(default_factory=dict)
    custom: Mapping[str, str] = field(default_factory=dict)
    rules: Rules = field(default_factory=Rules)
    payload: Payload | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


def parse(fields: object, *, field: str, guard: GuardSettings) -> BusParams:
    """transportType is kept and shown: whatever it says, the message goes by HTTP."""
    kind = str(fields["type"]) if isinstance(fields, Mapping) else ""
    wrong = Mistakes()
    given = read.members(fields, field, (*_MEMBERS, ENTITY[kind]), wrong)
    brought = wrong.of(parse_payload, given, field)
    shown = wrong.of(_authentication, given.get("authentication"), below(field, "authentication"))
    transport, told = given.get("transportType", TRANSPORTS[0]), given.get("brokeredMessageProperties", {})
    found: dict[str, Any] = {
        "namespace": wrong.of(azure.host_part, given, "namespace", field),
        "entity": wrong.of(azure.entity, given, ENTITY[kind], field),
        "transport": wrong.of(read.one_of, transport, below(field, "transportType"), TRANSPORTS),
        "properties": wrong.of(_properties, told, below(field, "brokeredMessageProperties")),
        "custom": wrong.of(_custom, given.get("customMessageProperties", {}), below(field, "customMessageProperties")),
        "rules": wrong.of(outcome_rules.parse, given.get("outcome", {}), below(field, "outcome")),
    }
    wrong.check()
    (where, payload), (key_name, secrets) = brought, shown
    params = BusParams(kind=kind, key_name=key_name, payload=payload, secrets=secrets, **found)
    azure.check_host(_url(params, guard), guard, below(field, "namespace"))
    check_payload(params, payload, where)
    return params


def _authentication(value: object, field: str) -> tuple[str, dict[str, str]]:
    """The key's name, and the key if it was given."""
    if value is None:
        raise InvalidRequest(field, "is required")
    given = read.members(value, field, ("type", "sasKeyName", "sasKey"))
    read.one_of(given.get("type"), below(field, "type"), ("sharedAccessKey",))
    if "sasKeyName" not in given:
        raise InvalidRequest(below(field, "sasKeyName"), "is required")
    name = read.text(given["sasKeyName"], below(field, "sasKeyName"), 1, 256)
    if not _KEY_NAME.fullmatch(name):
        raise InvalidRequest(below(field, "sasKeyName"), "must be visible ASCII without blanks")
    if given.get("sasKey", MASK) == MASK:
        return name, {}
    return name, {SAS_KEY: read.text(given["sasKey"], below(field, "sasKey"), 1, MAX_SECRET // 4)}


def _properties(value: object, field: str) -> dict[str, Any]:
    given = read.members(value, field, PROPERTIES)
    made: dict[str, Any] = {
        name: read.text(given[name], below(field, name), 1, longest) for name, longest in TEXTS.items() if name in given
    }
    if not _CONTENT_TYPE.fullmatch(made.get("contentType", "-")):
        raise InvalidRequest(below(field, "contentType"), "must be visible ASCII, without blanks at its ends")
    if "forcePersistence" in given:
        made["forcePersistence"] = read.flag(given["forcePersistence"], below(field, "forcePersistence"))
    if "scheduledEnqueueTimeUtc" in given:
        at = parse_instant(given["scheduledEnqueueTimeUtc"], below(field, "scheduledEnqueueTimeUtc"))
        made["scheduledEnqueueTimeUtc"] = text(at)
    if "timeToLiveSeconds" in given:
        path = below(field, "timeToLiveSeconds")
        made["timeToLiveSeconds"] = read.whole(given["timeToLiveSeconds"], path, 1, LONGEST_LIFE_S)
    return made


def _custom(value: object, field: str) -> dict[str, str]:
    """They become headers, in the caller's spelling."""
    if not isinstance(value, Mapping):
        raise InvalidRequest(field, f"must be an object, not {read.shown(value)}")
    if len(value) > MAX_HEADERS:
        raise InvalidRequest(field, f"must have at most {MAX_HEADERS} members")
    for name, content in value.items():
        path = below(field, name)
        check_name(name, path)
        if name.lower() in OURS:
            raise InvalidRequest(path, "is set by the service or the connection")
        if "\r" in read.text(content, path, 0, MAX_HEADER_BYTES) or "\n" in content:
            raise InvalidRequest(path, "holds a line break, which no header can")
    if len({name.lower() for name in value}) < len(value):
        raise InvalidRequest(field, "has a name twice (upper and lower case are the same)")
    if sum(len(name) + len(json.dumps(content)) + 4 for name, content in value.items()) > MAX_HEADER_BYTES:
        raise InvalidRequest(field, f"must have at most {MAX_HEADER_BYTES:,} bytes together")
    return dict(value)


def check_payload(params: BusParams, payload: Payload | None, field: str) -> None:  # noqa: ARG001 - one interface for all kinds
    if payload is not None:
        check_size(payload, field)


def to_json(params: BusParams) -> dict[str, Any]:
    return {
        "type": params.kind,
        "namespace": params.namespace,
        ENTITY[params.kind]: params.entity,
        "authentication": {"type": "sharedAccessKey", "sasKeyName": params.key_name, "sasKey": MASK},
        "transportType": params.transport,
        "brokeredMessageProperties": dict(params.properties),
        "customMessageProperties": dict(params.custom),
        "outcome": outcome_rules.to_json(params.rules),
    }


def from_json(stored: Mapping[str, Any]) -> BusParams:
    return BusParams(
        kind=stored["type"],
        namespace=stored["namespace"],
        entity=stored[ENTITY[stored["type"]]],
        key_name=stored["authentication"]["sasKeyName"],
        transport=stored["transportType"],
        properties=stored["brokeredMessageProperties"],
        custom=stored["customMessageProperties"],
        rules=outcome_rules.from_json(stored["outcome"]),
    )


def kept_secrets(
    new: BusParams,
    old: BusParams | None,
    *,
    field: str,
    guard: GuardSettings,  # noqa: ARG001 - one interface for all kinds
) -> frozenset[str]:
    """The key stays while namespace, entity and the key's name stay."""
    if SAS_KEY in new.secrets:
        return frozenset()
    if old is None:
        raise InvalidRequest(below(field, SAS_KEY), "is required")
    if (new.namespace.lower(), new.entity, new.key_name) != (old.namespace.lower(), old.entity, old.key_name):
        reason = "is required: the destination, or the key's name, is another one than it was given for"
        raise InvalidRequest(below(field, SAS_KEY), reason)
    return frozenset({SAS_KEY})


def carried_over(new: BusParams, _old: BusParams, _kept: frozenset[str]) -> BusParams:
    return new


def perform(params: BusParams, call: Call, outbound: Outbound) -> Outcome:
    if call.redirects:
        texts = dict.fromkeys(redirects.FORMATS, azure.message(call))
        brought = redirects.brought(_with_content_type(params, call), params.custom, call)
        session = params.properties.get("sessionId")
        where = f"{params.namespace}/{params.entity}"
        elsewhere = redirects.instead(where, texts, params.rules, call, outbound, attributes=brought, session=session)
        if elsewhere is not None:
            return elsewhere
    url = _url(params, outbound.settings)
    try:
        signature = signed(url.removesuffix("/messages"), params.key_name, secret_of(call.secrets, SAS_KEY), call)
    except CallFailed as missing:
        return failed(missing.reason, missing.message, retryable=False)
    headers = [
        ("Authorization", signature),
        ("Content-Type", params.properties.get("contentType", "text/plain; charset=utf-8")),
        ("User-Agent", "Sweephand"),
        ("BrokerProperties", json.dumps(_broker_properties(params, call), separators=(",", ":"))),
        *((name, json.dumps(value)) for name, value in params.custom.items()),
    ]
    told = of_query(signature.partition(" ")[2])
    return azure.post(url, headers, azure.message(call).encode(), params.rules, call, outbound, [signature, *told])


def signed(resource: str, key_name: str, key: str, call: Call) -> str:
    """The Authorization of a shared access signature. The key is taken as text, though it looks like Base64."""
    quoted = quote_plus(resource.lower())
    until = epoch_s(call.clock.now()) + SIGNED_FOR_S
    digest = hmac.new(key.encode(), f"{quoted}\n{until}".encode(), hashlib.sha256).digest()
    signature = quote_plus(base64.b64encode(digest))
    return f"SharedAccessSignature sr={quoted}&sig={signature}&se={until}&skn={quote_plus(key_name)}"


def _broker_properties(params: BusParams, call: Call) -> dict[str, Any]:
    """In Service Bus's spelling. Without a MessageId of the job's it is the run's, which repeats share."""
    made: dict[str, Any] = {"MessageId": call.run_id.rpartition("_")[2].replace("-", "")}
    for name, value in params.properties.items():
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


def _with_content_type(params: BusParams, call: Call) -> dict[str, Any]:
    """The properties of the broker, for a receiver that finds them elsewhere; none where the job names none."""
    if not params.properties:
        return {}
    content_type = params.properties.get("contentType")
    return _broker_properties(params, call) | ({} if content_type is None else {"ContentType": content_type})


def _url(params: BusParams, settings: GuardSettings) -> str:
    base = azure.base_url(params.namespace.lower(), settings.azure_service_bus_suffix)
    return f"{base}/{params.entity}/messages"
