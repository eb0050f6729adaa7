"""The member `outcome` of targets that only take what they are sent, and the outcomes that all kinds share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sweephand.actions.call import Call
from sweephand.actions.kind import ANSWER_TIMEOUT_S, CALLBACK_TIMEOUT_S, ON_ACCEPTED, member
from sweephand.domain.members import fields as read
from sweephand.domain.members.fields import below
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.errors import Mistakes
from sweephand.json_schema import Members, Schema, answer, one_of, or_null, ref, request, whole

MEMBERS = ("answerTimeoutSeconds", "onAccepted", "callbackTimeoutSeconds")
SHOWN_WAIT: Members = {
    "callbackTimeoutSeconds": or_null(
        whole(
            *CALLBACK_TIMEOUT_S,
            description="Where the action does not say, as its collection or the stack has it now; null in changes.",
        )
    )
}
_SCHEMAS: Members = {
    "answerTimeoutSeconds": whole(*ANSWER_TIMEOUT_S),
    "onAccepted": one_of(ON_ACCEPTED, description="Whether the run is over once the target has it, or waits."),
    "callbackTimeoutSeconds": whole(*CALLBACK_TIMEOUT_S),
}


def schemas(name: str, members: Collection[str] = MEMBERS) -> dict[str, Schema]:
    """Returns the schemas of an outcome of these members, as it is given and as it is shown."""
    own = {each: _SCHEMAS[each] for each in members}
    return {name: request(own), f"Shown{name}": answer({**own, **SHOWN_WAIT})}


@dataclass(frozen=True)
class Rules:
    """on_accepted None: `wait` if the job asks for callback tokens, else `success`.

    callback_timeout_s None: as its collection has it, whenever that changes.
    """

    answer_timeout_s: int = 15
    on_accepted: str | None = None
    callback_timeout_s: int | None = None


def parse(value: object, field: str, members: Collection[str] = MEMBERS) -> Rules:
    """Reads an outcome of these members. Raises InvalidRequest."""
    wrong = Mistakes()
    given = read.members(value, field, members, wrong)
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
    """Returns the stored form."""
    return dict(zip(MEMBERS, (rules.answer_timeout_s, rules.on_accepted, rules.callback_timeout_s), strict=True))


def from_json(stored: Mapping[str, Any]) -> Rules:
    """Returns what `to_json` wrote."""
    on_accepted = stored.get("onAccepted")
    return Rules(stored["answerTimeoutSeconds"], on_accepted, stored["callbackTimeoutSeconds"])


def taken_outcome() -> Any:
    """Declares the member `outcome` of a kind whose targets only take what they are sent."""
    return member(
        "outcome",
        ref("TakenOutcome"),
        lambda value, path, _: parse(value, path),
        shown=ref("ShownTakenOutcome"),
        stored=to_json,
        loaded=from_json,
        default=Rules(),
        kw_only=True,
    )


def taken(
    rules: Rules, call: Call, answer: str | None, http_status: int | None = None, *, told: bool = True
) -> Outcome:
    """Returns the outcome of an accepted message: a success, or a wait for the target's report.

    told: whether the target learned where and by which token it reports. One that did not is waited for only if the
    action says so.
    """
    waits = (rules.on_accepted or (call.on202 if told else "success")) == "wait"
    return Outcome(Verdict.ACCEPTED if waits else Verdict.SUCCEEDED, http_status=http_status, answer=answer)


def failed(reason: Reason, message: str, *, retryable: bool, http_status: int | None = None) -> Outcome:
    """Returns the outcome of an attempt that failed."""
    return Outcome(Verdict.FAILED, reason, http_status=http_status, message=message, retryable=retryable)
