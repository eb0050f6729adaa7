"""What the actions on Azure's queues and topics share: one guarded REST call, and what its answer means.

Who left Azure Scheduler still has the queues that its jobs filled. Source: decision 0030.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sweephand.actions.call import Call, run_as_payload
from sweephand.actions.redaction import hidden
from sweephand.actions.rules import Rules, failed, taken
from sweephand.domain.members import fields as read
from sweephand.domain.members.fields import below
from sweephand.domain.members.json_text import dumps
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.domain.runs.retry import is_transient, retry_after_s
from sweephand.errors import InvalidRequest
from sweephand.security.guard import CallFailed, Deadline, GuardSettings, Outbound, check_url

if TYPE_CHECKING:
    from sweephand.security.outbound import Answer

MAX_ANSWER = 16_384
GONE = 410
STORAGE_ACCOUNT = re.compile(r"[A-Za-z0-9]{3,24}", re.ASCII)
STORAGE_QUEUE = re.compile(r"(?=.{3,63}$)[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_HOST_PART = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?", re.ASCII)
_ENTITY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,258}[A-Za-z0-9])?", re.ASCII)


def storage_account(given: Mapping[str, Any], name: str, field: str) -> str:
    """By Azure's rule, in any case: it becomes a part of a host."""
    return _matching(given, name, field, STORAGE_ACCOUNT, "must have 3 to 24 letters and digits")


def storage_queue(given: Mapping[str, Any], name: str, field: str) -> str:
    """By Azure's rule: under another name there can be none."""
    reason = "must have 3 to 63 lower-case letters, digits and single hyphens between them"
    return _matching(given, name, field, STORAGE_QUEUE, reason)


def host_part(given: Mapping[str, Any], name: str, field: str) -> str:
    """A namespace: it becomes a part of a host, so nothing else may stand in it."""
    return _matching(given, name, field, _HOST_PART, "must have 1 to 63 letters, digits and inner hyphens")


def entity(given: Mapping[str, Any], name: str, field: str) -> str:
    """A queue or topic: it becomes a path."""
    path = below(field, name)
    found = _matching(given, name, field, _ENTITY, "must have 1 to 260 letters, digits, and . _ / - between them")
    if ".." in found or "//" in found:
        raise InvalidRequest(path, "has an empty part, or one that leads upwards")
    return found


def _matching(given: Mapping[str, Any], name: str, field: str, pattern: re.Pattern[str], reason: str) -> str:
    path = below(field, name)
    if name not in given:
        raise InvalidRequest(path, "is required")
    if not pattern.fullmatch(read.text(given[name], path, 1, 260)):
        raise InvalidRequest(path, reason)
    return str(given[name])


def base_url(name: str, suffix: str) -> str:
    """Of an account or namespace. suffix: the parameter, which may name a scheme and a port."""
    scheme, marked, host = suffix.rpartition("://")
    return f"{scheme if marked else 'https'}://{name}.{host}"


def check_host(url: str, guard: GuardSettings, field: str) -> None:
    """Raises InvalidRequest where the stack calls no such host: its parameters lead to a private network."""
    try:
        check_url(url, guard)
    except InvalidRequest as wrong:
        raise wrong.within(field) from wrong


def message(call: Call) -> str:
    """The text that is sent: the payload, or the run where there is none."""
    return dumps(run_as_payload(call)) if call.payload is None else call.payload


def post(
    url: str,
    headers: list[tuple[str, str]],
    content: bytes,
    rules: Rules,
    call: Call,
    outbound: Outbound,
    told: Sequence[str],
) -> Outcome:
    """One POST with credentials; whatever becomes of it is an Outcome. told: what opens the door beside the secrets."""
    limit_s = min(rules.answer_timeout_s, call.deadline_s)
    deadline = Deadline(call.clock.monotonic() + limit_s, call.clock.monotonic)
    try:
        target = check_url(url, outbound.settings)
        from sweephand.security.outbound import exchange  # noqa: PLC0415 - 70 ms that only the first such call pays

        answer = exchange(target, "POST", headers, content, outbound, deadline, with_credentials=True)
    except InvalidRequest as refused:
        return failed(Reason.GUARD, refused.reason, retryable=False)
    except CallFailed as failure:
        if failure.timed_out:
            return failed(Reason.NO_ANSWER, f"no answer within {limit_s:g} s", retryable=True)
        return failed(failure.reason, failure.message, retryable=failure.reason is not Reason.GUARD)
    return _judge(answer, rules, call, (*call.confidences, *told))


def _judge(answer: Answer, rules: Rules, call: Call, told: Sequence[str]) -> Outcome:
    """201 is what both services say; every other 2xx is taken for it."""
    text = hidden(answer.body.decode("utf-8", "replace")[:MAX_ANSWER], told)
    said = text.encode()[:MAX_ANSWER].decode("utf-8", "ignore") or None
    if 200 <= answer.status <= 299:
        return taken(rules, call, said, answer.status, told=call.payload is None)
    return Outcome(
        Verdict.FAILED,
        Reason.HTTP_STATUS,
        http_status=answer.status,
        answer=said,
        message=f"the target answered with status {answer.status}",
        retryable=is_transient(answer.status),
        stop=answer.status == GONE,
        retry_after_s=retry_after_s(answer.header("retry-after"), call.clock.now()),
    )
