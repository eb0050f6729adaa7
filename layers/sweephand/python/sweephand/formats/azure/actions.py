"""Converts Azure's actions to actions of the domain."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.members.fields import below, must_be
from sweephand.base.records import dataclass
from sweephand.domain.job import ActionDraft, ActionSpec, Payload, needed_again
from sweephand.formats.actions import Actions
from sweephand.formats.azure.members import FACADE, TARGETS
from sweephand.formats.azure.shapes import seconds_of

METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS")
MOST_HEADERS, MOST_HEADER_CHARACTERS = 50, 4_096
ANSWERS_WITHIN_S = 60
OUTCOME = {"answerTimeoutSeconds": ANSWERS_WITHIN_S, "successStatuses": ["2xx"], "on202": "success"}
RETRY_S, RETRIES = 30, 4
"""The defaults, which also apply without a retryPolicy (decision 0120)."""
LOGIN = "https://login.microsoftonline.com"
_TENANT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,98}[A-Za-z0-9])?", re.ASCII)
_NAMES = {
    "url": "uri",
    "body": "message",
    "authentication.pem": "authentication.pfx",
    "authentication.tokenUrl": "authentication.tenant",
    "authentication.resource": "authentication.audience",
    "brokeredMessageProperties.timeToLiveSeconds": "brokeredMessageProperties.timeToLive",
}
"""Azure's names for members of the domain's actions."""
Target = Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """The context of an action.

    path: of its members in messages. stored: the action that a change replaces. usual_retry_s: the default interval.
    """

    path: str
    kinds: Actions
    stored: ActionSpec | None
    usual_retry_s: int = RETRY_S


def draft(action: Mapping[str, Any], asked: Asked, retry_policy: Mapping[str, Any] | None) -> ActionDraft:
    """Returns the draft of an action that was read by its table. retry_policy: used if the action has none."""
    kind = action["type"]
    member = TARGETS[kind]
    path = below(asked.path, member)
    if member not in action:
        raise InvalidRequest(path, f"is required: the type is {kind}")
    target = action[member]
    members = _READERS[member](target, path, kind)
    retry = _retry(action.get("retryPolicy", retry_policy), asked.usual_retry_s)
    stored = asked.stored
    _check_audience(members.get("authentication", {}), stored, path)
    try:
        made = asked.kinds.draft({**members, "retry": retry}, field="", stored=stored)
    except InvalidRequest as wrong:
        raise InvalidRequest(below(path, _NAMES.get(wrong.field or "", wrong.field or "")), wrong.reason) from wrong
    if member != "request":
        return made
    payload = Payload(target["body"], is_json=False) if target.get("body") else None
    return replace(made, params={**made.params, "dialect": FACADE}, payload=payload)


def _check_audience(proof: Mapping[str, Any], stored: ActionSpec | None, path: str) -> None:
    """Raises InvalidRequest if a kept secret would be used for another audience. The domain checks the rest."""
    before = {} if stored is None else stored.params.get("authentication", {})
    if "resource" in before and proof.get("resource") not in {None, before["resource"]} and "secret" not in proof:
        raise needed_again(below(path, "authentication.secret"), "the audience")


def _retry(policy: Mapping[str, Any] | None, usual_s: int) -> dict[str, Any]:
    policy = policy or {}
    retries = policy.get("retryCount", RETRIES)
    if policy.get("retryType") == "None" or retries == 0:
        return {"type": "none"}
    delay_s = seconds_of(policy["retryInterval"]) if "retryInterval" in policy else usual_s
    return {"type": "fixed", "maxRetries": retries, "delaySeconds": delay_s, "retryOn": "any"}


def _request(target: Target, path: str, kind: str) -> dict[str, Any]:
    method, headers = target["method"].upper(), target.get("headers", {})
    if method not in METHODS:
        raise must_be(below(path, "method"), f"one of {', '.join(METHODS)}", target["method"])
    if kind == "Https" and not target["uri"].lower().startswith("https://"):
        raise InvalidRequest(below(path, "uri"), "must begin with https://: the type is Https")
    if len(headers) > MOST_HEADERS or sum(map(len, (*headers, *headers.values()))) > MOST_HEADER_CHARACTERS:
        reason = f"must have at most {MOST_HEADERS} members and {MOST_HEADER_CHARACTERS:,} characters in total"
        raise InvalidRequest(below(path, "headers"), reason)
    made = {"type": "http", "url": target["uri"], "method": method, "headers": headers, "outcome": OUTCOME}
    proof = target.get("authentication")
    return made if proof is None else made | {"authentication": _authentication(proof, below(path, "authentication"))}


def _authentication(proof: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Returns the domain's authentication. A secret that was not sent keeps the stored one."""
    match proof["type"]:
        case "Basic":
            return {"type": "basic", **_some(proof, path, "username", password=None)}
        case "ClientCertificate":
            parts = ("pfx", "password") if {"pfx", "password"} & proof.keys() else ()
            return {"type": "clientCertificate", **_some(proof, path, *parts)}
        case _:
            oauth = _some(proof, path, "tenant", "audience", "clientId", secret=None)
            if not _TENANT.fullmatch(oauth["tenant"]):
                raise InvalidRequest(below(path, "tenant"), "must consist of letters, digits, dots and hyphens")
            return {
                "type": "oauth2",
                "tokenUrl": f"{LOGIN}/{oauth.pop('tenant')}/oauth2/token",
                "resource": oauth.pop("audience"),
                "credentialsIn": "body",
                **oauth,
            }


def _some(proof: Mapping[str, Any], path: str, *required: str, **optional: None) -> dict[str, Any]:
    """Returns the named members that are present. Raises InvalidRequest for a missing required one."""
    for name in required:
        if name not in proof:
            raise InvalidRequest(below(path, name), "is required")
    return {name: proof[name] for name in (*required, *optional) if name in proof}


def _queue_message(target: Target, _path: str, _kind: str) -> dict[str, Any]:
    rest = {name: value for name, value in target.items() if name != "message"}
    return {"type": "azure_storage_queue", **rest, "body": target["message"]}


def _service_bus(kind: str) -> Callable[[Target, str, str], dict[str, Any]]:
    def read(target: Target, _path: str, _kind: str) -> dict[str, Any]:
        made = {name: value for name, value in target.items() if name != "message"}
        made |= {"type": kind, "body": target["message"]}
        made["authentication"] = {**target["authentication"], "type": "sharedAccessKey"}
        properties = {name: each for name, each in target.get("brokeredMessageProperties", {}).items() if each != ""}
        if "timeToLive" in properties:
            properties["timeToLiveSeconds"] = seconds_of(properties.pop("timeToLive"))
        return made | {"brokeredMessageProperties": properties}

    return read


_READERS: Mapping[str, Callable[[Target, str, str], dict[str, Any]]] = {
    "request": _request,
    "queueMessage": _queue_message,
    "serviceBusQueueMessage": _service_bus("azure_service_bus_queue"),
    "serviceBusTopicMessage": _service_bus("azure_service_bus_topic"),
}
