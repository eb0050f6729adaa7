"""The map of a collection that leads Azure's queues and topics to SQS and SNS, without a change of the jobs.

A key is `account/queue` or `namespace/entity`, without regard to upper and lower case in its first part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sweephand.actions.call import Call
from sweephand.actions.rules import Rules
from sweephand.domain import fields as read
from sweephand.domain.fields import below
from sweephand.domain.run import Outcome
from sweephand.errors import InvalidRequest
from sweephand.security.aws_targets import check_role, check_target
from sweephand.security.guard import GuardSettings, Outbound

MOST = 50
FORMATS = ("envelope", "raw")
MEMBERS = ("targetArn", "roleArn", "format")
_PLACE = re.compile(r"[A-Za-z0-9-]{1,63}/[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,258}[A-Za-z0-9])?", re.ASCII)


def parse(value: object, field: str, guard: GuardSettings) -> dict[str, dict[str, str]]:
    """The map in the API's members, the first part of each key in lower case. Raises InvalidRequest."""
    if not isinstance(value, Mapping):
        raise InvalidRequest(field, "must be an object")
    if len(value) > MOST:
        raise InvalidRequest(field, f"must have at most {MOST} members")
    made: dict[str, dict[str, str]] = {}
    for place, given in value.items():
        path = below(field, place)
        if not _PLACE.fullmatch(place):
            raise InvalidRequest(path, "must be named account/queue or namespace/entity")
        if key_of(place) in made:
            raise InvalidRequest(path, "stands twice (upper and lower case are the same before the slash)")
        made[key_of(place)] = _redirect(given, path, guard)
    return made


def _redirect(value: object, field: str, guard: GuardSettings) -> dict[str, str]:
    given = read.members(value, field, MEMBERS)
    for name in ("targetArn", "roleArn"):
        if name not in given:
            raise InvalidRequest(below(field, name), "is required")
    target = read.text(given["targetArn"], below(field, "targetArn"), 1, 2_048)
    role = read.text(given["roleArn"], below(field, "roleArn"), 1, 2_048)
    try:
        check_target(target, service_of(target), guard.aws)
    except InvalidRequest as wrong:
        raise wrong.within(below(field, "targetArn")) from wrong
    try:
        check_role(role, guard.aws)
    except InvalidRequest as wrong:
        raise wrong.within(below(field, "roleArn")) from wrong
    form = read.one_of(given.get("format", FORMATS[0]), below(field, "format"), FORMATS)
    return {"targetArn": target, "roleArn": role, "format": form}


def key_of(place: str) -> str:
    first, _, rest = place.partition("/")
    return f"{first.lower()}/{rest}"


def service_of(arn: str) -> str:
    """`sns` or, for everything else, `sqs`."""
    return "sns" if arn.split(":")[2:3] == ["sns"] else "sqs"


def instead(place: str, texts: Mapping[str, str], rules: Rules, call: Call, outbound: Outbound) -> Outcome | None:
    """What becomes of a message that the collection redirects; None if it leaves the place as it is.

    texts: the message by format.
    """
    redirect = call.redirects.get(key_of(place))
    if redirect is None:
        return None
    from sweephand.actions import sns, sqs  # noqa: PLC0415 - of collections that redirect
    from sweephand.actions.aws import AwsParams  # noqa: PLC0415

    service = service_of(redirect["targetArn"])
    options: dict[str, Any] = {"messageGroupId": None, "subject": None}
    params = AwsParams(service, redirect["targetArn"], redirect["roleArn"], options, rules)
    told = replace(call, payload=texts[redirect["format"]], payload_is_json=False)
    outcome: Outcome = (sns if service == "sns" else sqs).perform(params, told, outbound)
    return outcome
