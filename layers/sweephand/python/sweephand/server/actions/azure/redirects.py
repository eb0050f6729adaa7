"""Redirects of a collection: they send messages for Azure's queues and topics to SQS and SNS. The jobs do not change.

A key is `account/queue` or `namespace/entity`. Upper and lower case are the same, as in Azure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.lazy import lazy
from sweephand.base.members import fields as read
from sweephand.base.members.fields import below
from sweephand.domain.run import Outcome
from sweephand.server.actions.call import Call
from sweephand.server.actions.kind import within
from sweephand.server.actions.outcome import Rules
from sweephand.server.actions.payloads import STRANGE
from sweephand.server.actions.run_headers import facts
from sweephand.server.security.aws_targets import check_role, check_target
from sweephand.server.security.guard import GuardSettings, Outbound

with lazy():
    from sweephand.server.actions.aws import sns, sqs

MOST = 50
FORMATS = ("envelope", "raw")
MEMBERS = ("targetArn", "roleArn", "format")
MOST_ATTRIBUTES = 10
"""The most attributes of an SQS message. An SNS message with more is lost on its way to a queue with raw delivery."""
_ATTRIBUTE = re.compile(r"(?!(?i:aws|amazon)\.)[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*", re.ASCII)
_PLACE = re.compile(r"[A-Za-z0-9-]{1,63}/[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,258}[A-Za-z0-9])?", re.ASCII)


def parse(value: object, field: str, guard: GuardSettings) -> dict[str, dict[str, str]]:
    """Reads the map of redirects, its keys in lower case. Raises InvalidRequest."""
    value = read.an_object(value, field)
    if len(value) > MOST:
        raise InvalidRequest(field, f"must have at most {MOST} members")
    made: dict[str, dict[str, str]] = {}
    for place, redirect in value.items():
        path = below(field, place)
        if not _PLACE.fullmatch(place):
            raise InvalidRequest(path, "must be named account/queue or namespace/entity")
        if place.lower() in made:
            raise InvalidRequest(path, "appears twice (upper and lower case are the same)")
        made[place.lower()] = _redirect(redirect, path, guard)
    return made


def _redirect(value: object, field: str, guard: GuardSettings) -> dict[str, str]:
    members = read.members(value, field, MEMBERS)
    arns = [read.required(members, name, field) for name in ("targetArn", "roleArn")]
    target = read.text(arns[0], below(field, "targetArn"), 1, 2_048)
    role = read.text(arns[1], below(field, "roleArn"), 1, 2_048)
    with within(below(field, "targetArn")):
        check_target(target, service_of(target), guard.aws)
    with within(below(field, "roleArn")):
        check_role(role, guard.aws)
    form = read.one_of(members.get("format", FORMATS[0]), below(field, "format"), FORMATS)
    return {"targetArn": target, "roleArn": role, "format": form}


def service_of(arn: str) -> str:
    """Returns `sns` or, for everything else, `sqs`."""
    return "sns" if arn.split(":")[2:3] == ["sns"] else "sqs"


def message_attributes(broker: Mapping[str, Any], custom: Mapping[str, str], call: Call) -> dict[str, str]:
    """Returns the properties of a Service Bus message as attributes of SQS or SNS.

    broker: the broker's properties, as JSON in BrokerProperties; no attribute if there are none. custom: the sender's
    properties, each under its own name if all fit and all can be attributes, else all of them as JSON in
    CustomMessageProperties. A message has ten attributes. The room for these is the same for all runs of a job, with or
    without a schedule.
    """
    made = {"BrokerProperties": json.dumps(broker, separators=(",", ":"))} if broker else {}
    room = MOST_ATTRIBUTES - len(made) - len(facts(call)) - (call.schedule_id is None)
    fit = all(_ATTRIBUTE.fullmatch(name) and value and not STRANGE.search(value) for name, value in custom.items())
    if len(custom) <= room and fit:
        return made | dict(custom)
    return made | {"CustomMessageProperties": json.dumps(custom, separators=(",", ":"))}


def instead(
    place: str,
    texts: Mapping[str, str],
    rules: Rules,
    call: Call,
    outbound: Outbound,
    *,
    attributes: Mapping[str, str] | None = None,
    session: str | None = None,
) -> Outcome | None:
    """Sends a message to the target to which its collection redirects it; returns None if there is no redirect.

    texts: the message by format. attributes: in addition to those of the run. session: the group within a FIFO queue or
    topic if it is valid as one; else the group is the job's id.
    """
    redirects = {key.lower(): redirect for key, redirect in call.redirects.items()}
    redirect = redirects.get(place.lower())
    if redirect is None:
        return None
    action = (sns.Sns if service_of(redirect["targetArn"]) == "sns" else sqs.Sqs)(
        redirect["targetArn"],
        redirect["roleArn"],
        outcome=rules,
        group=session if sqs.GROUP.fullmatch(session or "") else None,
        attributes=attributes or {},
    )
    return action.perform(replace(call, payload=texts[redirect["format"]], payload_is_json=False), outbound)
