"""What an action says of its outcome where the target only takes what it is sent: `outcome` of all kinds but HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweephand.actions.call import Call
from sweephand.domain.collection import LONGEST_CALLBACK_S
from sweephand.domain.members import fields as read
from sweephand.domain.members.fields import below
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.errors import Mistakes
from sweephand.security.guard import GuardSettings

MEMBERS = ("answerTimeoutSeconds", "onAccepted", "callbackTimeoutSeconds")
ANSWER_TIMEOUT_S = (1, 60)
CALLBACK_TIMEOUT_S = (1, LONGEST_CALLBACK_S)
ON_ACCEPTED = ("success", "wait")


@dataclass(frozen=True)
class Rules:
    """on_accepted None: `wait` if the job asks for callback tokens, else `success`.

    callback_timeout_s None: as its collection has it, whenever that changes.
    """

    answer_timeout_s: int = 15
    on_accepted: str | None = None
    callback_timeout_s: int | None = None


def parse(value: object, field: str) -> Rules:
    wrong = Mistakes()
    given = read.members(value, field, MEMBERS, wrong)
    usual = Rules()
    on_accepted, waits = given.get("onAccepted"), "callbackTimeoutSeconds"
    rules = Rules(
        wrong.of(
            read.whole,
            given.get("answerTimeoutSeconds", usual.answer_timeout_s),
            below(field, "answerTimeoutSeconds"),
            *ANSWER_TIMEOUT_S,
        ),
        None if on_accepted is None else wrong.of(read.one_of, on_accepted, below(field, "onAccepted"), ON_ACCEPTED),
        wrong.of(read.whole, given[waits], below(field, waits), *CALLBACK_TIMEOUT_S) if waits in given else None,
    )
    wrong.check()
    return rules


def to_json(rules: Rules) -> dict[str, Any]:
    return dict(zip(MEMBERS, (rules.answer_timeout_s, rules.on_accepted, rules.callback_timeout_s), strict=True))


def from_json(stored: Mapping[str, Any]) -> Rules:
    return Rules(*(stored[name] for name in MEMBERS))


def kept_secrets(_new: object, _old: object, *, field: str, guard: GuardSettings) -> frozenset[str]:  # noqa: ARG001 - one interface for all kinds
    """Of the kinds that have no secrets."""
    return frozenset()


def tells_its_run(kind: str, options: Mapping[str, Any], *, with_payload: bool) -> bool:
    """Is the target of such an action told where and by which token it reports? options: of the action.

    Some have no place for it but the payload; an asynchronous function is not given its context (AWS, Invoke).
    """
    if kind == "event":
        return False
    if kind == "lambda" and (options.get("invocation") == "sync" or options.get("envelope") is True):
        return True
    return not with_payload or not (kind in {"lambda", "events", "states"} or kind.startswith("azure_"))


def taken(
    rules: Rules, call: Call, answer: str | None, http_status: int | None = None, *, told: bool = True
) -> Outcome:
    """The target has it. Then the run is a success, or waits for what the target will report.

    told: where and by which token. Who was not told does not report unless the action says that it does.
    """
    waits = (rules.on_accepted or (call.on202 if told else "success")) == "wait"
    return Outcome(Verdict.ACCEPTED if waits else Verdict.SUCCEEDED, http_status=http_status, answer=answer)


def failed(reason: Reason, message: str, *, retryable: bool, http_status: int | None = None) -> Outcome:
    return Outcome(Verdict.FAILED, reason, http_status=http_status, message=message, retryable=retryable)
