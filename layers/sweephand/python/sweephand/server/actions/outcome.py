"""The member `outcome` of targets that only accept messages, and the outcomes that all kinds share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sweephand.base.errors import Mistakes
from sweephand.base.json_schema import Schema, answer, or_null, ref, request, whole
from sweephand.base.members import fields as read
from sweephand.base.members.fields import below
from sweephand.base.records import dataclass
from sweephand.domain.collection import LONGEST_CALLBACK_S
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.domain.runs.retry import is_transient, retry_after_s
from sweephand.server.actions.call import Call
from sweephand.server.actions.kind import Reading, choice, loaded_members, member, members_of, number, stored_members

if TYPE_CHECKING:
    from sweephand.server.security.guard import CallFailed
    from sweephand.server.security.outbound import Answer

R = TypeVar("R")
ON_ACCEPTED = ("success", "wait")
GONE = 410
_CALLBACK = "callbackTimeoutSeconds"
_SHOWN_CALLBACK = or_null(
    whole(
        1,
        LONGEST_CALLBACK_S,
        description="Where the action does not say, as its collection or the stack has it now; null in changes.",
    )
)


def answer_timeout() -> Any:
    """Declares how long to wait for an answer."""
    return number("answerTimeoutSeconds", 1, 60, default=15)


def callback_timeout() -> Any:
    """Declares how long to wait for a report. None follows the collection's value, even if that changes."""
    return number(_CALLBACK, 1, LONGEST_CALLBACK_S, default=None)


@dataclass(frozen=True)
class TaskRules:
    """The rules of a target that always reports its end."""

    answer_timeout_s: int = answer_timeout()
    callback_timeout_s: int | None = callback_timeout()


@dataclass(frozen=True)
class Rules:
    """The rules of an outcome. on_accepted: None means `wait` if the job requests callback tokens, else `success`."""

    answer_timeout_s: int = answer_timeout()
    on_accepted: str | None = choice(
        "onAccepted",
        ON_ACCEPTED,
        more={"description": "Whether the run is over once the target has it, or waits."},
        default=None,
    )
    callback_timeout_s: int | None = callback_timeout()


def schemas(name: str, rules: type[Any]) -> dict[str, Schema]:
    """Returns the schemas of an outcome with these rules, in requests and in responses."""
    own = {each.name: each.schema for each in members_of(rules).values()}
    return {name: request(own), f"Shown{name}": answer({**own, _CALLBACK: _SHOWN_CALLBACK})}


def outcome_of(rules: type[Any], name: str) -> Any:
    """Declares the member `outcome` with these rules. name: the name of its schema."""
    return member(
        "outcome",
        ref(name),
        partial(read_record, rules),
        shown=ref(f"Shown{name}"),
        stored=stored_members,
        loaded=partial(loaded_members, rules),
        default=rules(),
        kw_only=True,
    )


def read_record(rules: type[R], value: object, field: str, reading: Reading) -> R:
    """Reads a member that is an object with members of its own. Raises InvalidRequest with all mistakes."""
    wrong = Mistakes()
    members = {each.name: (attribute, each) for attribute, each in members_of(rules).items()}
    sent: Mapping[str, Any] = read.members(value, field, members, wrong)
    made = {
        attribute: wrong.of(each.read, sent[name], below(field, name), reading)
        for name, (attribute, each) in members.items()
        if name in sent
    }
    wrong.check()
    return rules(**made)


def taken_outcome() -> Any:
    """Declares the member `outcome` of a kind whose targets only accept messages."""
    return outcome_of(Rules, "TakenOutcome")


def taken(
    rules: Rules, call: Call, answer: str | None, http_status: int | None = None, *, can_report: bool = True
) -> Outcome:
    """Returns the outcome of an accepted message: a success, or a wait for the target's report.

    can_report: whether the target learned where and with which token to report. If it did not, the run waits only if
    the action says so.
    """
    waits = (rules.on_accepted or (call.on202 if can_report else "success")) == "wait"
    return Outcome(Verdict.ACCEPTED if waits else Verdict.SUCCEEDED, http_status=http_status, answer=answer)


def failed(reason: Reason, message: str, *, retryable: bool, http_status: int | None = None) -> Outcome:
    """Returns the outcome of an attempt that failed."""
    return Outcome(Verdict.FAILED, reason, http_status=http_status, message=message, retryable=retryable)


def refused(answer: Answer, shown: str | None, call: Call) -> Outcome:
    """Returns the outcome of an answer whose status is not a success. shown: its body without secrets."""
    return Outcome(
        Verdict.FAILED,
        Reason.HTTP_STATUS,
        http_status=answer.status,
        answer=shown,
        message=f"the target answered with status {answer.status}",
        retryable=is_transient(answer.status),
        stop=answer.status == GONE,
        retry_after_s=retry_after_s(answer.header("retry-after"), call.clock.now()),
    )


def unanswered(failure: CallFailed, limit_s: float) -> Outcome:
    """Returns the outcome of a call without an answer. limit_s: how long the call waited."""
    if failure.timed_out:
        return failed(Reason.NO_ANSWER, f"no answer within {limit_s:g} s", retryable=True)
    return failed(failure.reason, failure.message, retryable=failure.reason is not Reason.GUARD)
