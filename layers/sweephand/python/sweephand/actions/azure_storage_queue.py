"""The action `azure_storage_queue`: a message to a queue of an Azure storage account, in Azure Scheduler's envelope.

A repeat sends a second message with the same ExecutionTag.
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from xml.sax import saxutils

from sweephand.actions import azure, redirects
from sweephand.actions import rules as outcome_rules
from sweephand.actions.call import Call
from sweephand.actions.headers import MASK, MAX_SECRET
from sweephand.actions.payloads import STRANGE, parse_payload
from sweephand.actions.proof import secret as secret_of
from sweephand.actions.redaction import of_query
from sweephand.actions.rules import Rules, failed
from sweephand.domain.job import Payload
from sweephand.domain.members import fields as read
from sweephand.domain.members.fields import below
from sweephand.domain.run import Outcome
from sweephand.errors import InvalidRequest, Mistakes
from sweephand.security.guard import CallFailed, GuardSettings, Outbound

__all__ = ["carried_over", "check_payload", "from_json", "kept_secrets", "parse", "perform", "to_json"]

SAS_TOKEN = "sasToken"  # noqa: S105 - the name of a field
MAX_MESSAGE = 47_000
"""Bytes within the envelope: with it, and in Base64, no more than the 64 KB that a message may have."""
_MEMBERS = ("type", "storageAccount", "queueName", SAS_TOKEN, "region", "payload", "body", "outcome", "retry")
_TOKEN = re.compile(r"[A-Za-z0-9%&=._~:+/*,;!-]+", re.ASCII)
_NAMESPACES = 'xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'


@dataclass(frozen=True)
class StorageParams:
    """region: what the envelope says of it. payload and secrets are only there after `parse`."""

    account: str
    queue: str
    region: str | None = None
    rules: Rules = field(default_factory=Rules)
    payload: Payload | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


def parse(fields: object, *, field: str, guard: GuardSettings) -> StorageParams:
    wrong = Mistakes()
    given = read.members(fields, field, _MEMBERS, wrong)
    brought = wrong.of(parse_payload, given, field)
    secret = wrong.of(_token, given[SAS_TOKEN], below(field, SAS_TOKEN)) if SAS_TOKEN in given else MASK
    params = StorageParams(
        account=wrong.of(azure.storage_account, given, "storageAccount", field),
        queue=wrong.of(azure.storage_queue, given, "queueName", field),
        region=wrong.of(read.text, given["region"], below(field, "region"), 1, 64) if "region" in given else None,
        rules=wrong.of(outcome_rules.parse, given.get("outcome", {}), below(field, "outcome")),
        secrets={} if secret == MASK else {SAS_TOKEN: secret},
    )
    wrong.check()
    where, payload = brought
    params = replace(params, payload=payload)
    azure.check_host(_url(params, guard), guard, below(field, "storageAccount"))
    check_payload(params, payload, where)
    return params


def _token(value: object, field: str) -> str:
    """Without what stands before its question mark: users paste the whole address."""
    text = read.text(value, field, 1, MAX_SECRET)
    if text == MASK:
        return text
    token = text.partition("?")[2] if "?" in text else text
    if not _TOKEN.fullmatch(token):
        raise InvalidRequest(field, "must be the query of an address: sv=...&sig=...")
    return token


def check_payload(params: StorageParams, payload: Payload | None, field: str) -> None:  # noqa: ARG001 - one interface for all kinds
    if payload is None:
        return
    strange = STRANGE.search(payload.text)
    if strange:
        raise InvalidRequest(field, "holds a control character, which the envelope cannot", position=strange.start())
    if len(_escaped(payload.text).encode()) > MAX_MESSAGE:
        raise InvalidRequest(field, f"must have at most {MAX_MESSAGE:,} bytes as XML")


def to_json(params: StorageParams) -> dict[str, Any]:
    return {
        "type": "azure_storage_queue",
        "storageAccount": params.account,
        "queueName": params.queue,
        SAS_TOKEN: MASK,
        "region": params.region,
        "outcome": outcome_rules.to_json(params.rules),
    }


def from_json(stored: Mapping[str, Any]) -> StorageParams:
    return StorageParams(
        stored["storageAccount"], stored["queueName"], stored["region"], outcome_rules.from_json(stored["outcome"])
    )


def kept_secrets(
    new: StorageParams,
    old: StorageParams | None,
    *,
    field: str,
    guard: GuardSettings,  # noqa: ARG001 - one interface for all kinds
) -> frozenset[str]:
    """The token stays while it leads to the queue that it was given for."""
    if SAS_TOKEN in new.secrets:
        return frozenset()
    if old is None:
        raise InvalidRequest(below(field, SAS_TOKEN), "is required")
    if (new.account.lower(), new.queue) != (old.account.lower(), old.queue):
        raise InvalidRequest(below(field, SAS_TOKEN), "is required: the queue is another one than it was given for")
    return frozenset({SAS_TOKEN})


def carried_over(new: StorageParams, _old: StorageParams, _kept: frozenset[str]) -> StorageParams:
    return new


def perform(params: StorageParams, call: Call, outbound: Outbound) -> Outcome:
    if call.redirects:
        texts = {"envelope": envelope(params, call), "raw": azure.message(call)}
        elsewhere = redirects.instead(f"{params.account}/{params.queue}", texts, params.rules, call, outbound)
        if elsewhere is not None:
            return elsewhere
    try:
        token = secret_of(call.secrets, SAS_TOKEN)
    except CallFailed as missing:
        return failed(missing.reason, missing.message, retryable=False)
    text = base64.b64encode(envelope(params, call).encode()).decode()
    return azure.post(
        f"{_url(params, outbound.settings)}?{token}",
        [("Content-Type", "application/xml"), ("Accept", "application/xml"), ("User-Agent", "Sweephand")],
        f"<QueueMessage><MessageText>{text}</MessageText></QueueMessage>".encode(),
        params.rules,
        call,
        outbound,
        of_query(token),
    )


def envelope(params: StorageParams, call: Call) -> str:
    """As Azure Scheduler's receivers parse it. It says utf-16 though it is sent as UTF-8: .NET reads it as a string."""
    run = call.run_id.rpartition("_")[2]
    members = {
        "ExecutionTag": run.replace("-", ""),
        "ClientRequestId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{run}/{call.attempt}")),
        "ExpectedExecutionTime": f"{call.planned_at:%Y-%m-%dT%H:%M:%S}",
        "SchedulerJobId": call.job_name,
        "SchedulerJobCollectionId": call.collection,
        "Region": params.region or "",
        "Message": azure.message(call),
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
    """A carriage return as a reference: whoever parses XML takes a bare one for a line feed, or drops it."""
    return saxutils.escape(text, {"\r": "&#13;"})


def _url(params: StorageParams, settings: GuardSettings) -> str:
    base = azure.base_url(f"{params.account.lower()}.queue", settings.azure_storage_suffix)
    return f"{base}/{params.queue}/messages"
