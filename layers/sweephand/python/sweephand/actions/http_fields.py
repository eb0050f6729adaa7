"""The fields of an HTTP action that need a grammar of their own: its URL with secrets, its outcome. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sweephand.actions.headers import MASK
from sweephand.actions.kind import ANSWER_TIMEOUT_S, CALLBACK_TIMEOUT_S, ON_ACCEPTED, Reading, within
from sweephand.domain.members import fields as read
from sweephand.domain.members.fields import below
from sweephand.domain.runs import retry
from sweephand.errors import InvalidRequest, Mistakes
from sweephand.json_schema import Members, items, one_of, text, whole
from sweephand.security.guard import check_url

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
QUERY_METHODS = frozenset({"GET", "DELETE", "HEAD"})
"""Methods that carry no body: their payload is an object and becomes the query."""

ON_NO_ANSWER = ("fail", "wait")
OUTCOME: Members = {
    "answerTimeoutSeconds": whole(*ANSWER_TIMEOUT_S),
    "successStatuses": items(text(pattern="^([1-5]xx|[1-5][0-9]{2}(-[1-5][0-9]{2})?)$"), minItems=1, maxItems=20),
    "on202": one_of(ON_ACCEPTED),
    "onNoAnswer": one_of(ON_NO_ANSWER),
    "callbackTimeoutSeconds": whole(*CALLBACK_TIMEOUT_S),
}


@dataclass(frozen=True)
class OutcomeRules:
    """The member `outcome` of an HTTP action. on202 None: `wait` if the job asks for callback tokens, else `success`.

    callback_timeout_s None: as its collection has it, whenever that changes.
    """

    answer_timeout_s: int = 15
    success_statuses: tuple[str, ...] = ("2xx",)
    on202: str | None = None
    on_no_answer: str = "fail"
    callback_timeout_s: int | None = None

    def is_success(self, status: int) -> bool:
        """Says whether a status counts as a success."""
        return retry.holds(self.success_statuses, status)


_QUERY_SECRET = re.compile(
    r"""(?P<name>[?&;](?P<known>
        sig | signature | x-(?:amz|goog|ms)-signature | x-amz-security-token | (?:access|auth|api|id|sas)[-_]?token
        | (?:api|app|access|auth|function|subscription)[-_]?key | (?:client[-_]?)?secret | password | passwd | pwd
        | code | key | token | auth | hmac
        )=)(?P<value>[^&;#]+)
    """,
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
"""Parameters of a query that carry secrets, however short."""


def sealed_url(url: str) -> tuple[str, dict[str, str]]:
    """Returns the URL with `***` for each secret in its query, and the secrets by their names within the action."""
    found: dict[str, str] = {}

    def mask(match: re.Match[str]) -> str:
        name = match["known"].lower()
        count = sum(each.split("#")[0] == f"url.{name}" for each in found)
        found[f"url.{name}" + (f"#{count + 1}" if count else "")] = match["value"]
        return f"{match['name']}{MASK}"

    return _QUERY_SECRET.sub(mask, url), found


def opened_url(url: str, secret_of: Callable[[str], str]) -> str:
    """Returns the URL with its secrets. secret_of: by their names. One that was stored in clear stays as it is."""
    _, found = sealed_url(url)
    values = iter([secret_of(name) if value == MASK else value for name, value in found.items()])

    def put_back(match: re.Match[str]) -> str:
        return f"{match['name']}{next(values)}"

    return _QUERY_SECRET.sub(put_back, url)


def url(value: Any, path: str, reading: Reading) -> str:
    """Reads a URL; the secrets in its query are put away."""
    if not isinstance(value, str):
        raise read.not_a_string(value, path)
    with within(path):
        check_url(value, reading.guard)
    sealed, secrets = sealed_url(value)
    for name, secret in secrets.items():
        reading.keep(name, secret)
    return sealed


def outcome(value: Any, field: str, _: Reading) -> OutcomeRules:
    """Reads an outcome. Raises InvalidRequest."""
    wrong = Mistakes()
    given = read.members(value, field, tuple(OUTCOME), wrong)
    usual = OutcomeRules()
    on202, waits = given.get("on202"), "callbackTimeoutSeconds"
    limit_s = given.get("answerTimeoutSeconds", usual.answer_timeout_s)
    statuses_given = given.get("successStatuses", list(usual.success_statuses))
    silent = given.get("onNoAnswer", usual.on_no_answer)
    rules = OutcomeRules(
        answer_timeout_s=wrong.of(read.whole, limit_s, below(field, "answerTimeoutSeconds"), *ANSWER_TIMEOUT_S),
        success_statuses=wrong.of(_parse_statuses, statuses_given, below(field, "successStatuses")),
        on202=None if on202 is None else wrong.of(read.one_of, on202, below(field, "on202"), ON_ACCEPTED),
        on_no_answer=wrong.of(read.one_of, silent, below(field, "onNoAnswer"), ON_NO_ANSWER),
        callback_timeout_s=wrong.of(read.whole, given[waits], below(field, waits), *CALLBACK_TIMEOUT_S)
        if waits in given
        else None,
    )
    wrong.check()
    return rules


def stored_outcome(rules: OutcomeRules) -> dict[str, Any]:
    """Returns the stored form of an outcome."""
    return {
        "answerTimeoutSeconds": rules.answer_timeout_s,
        "successStatuses": list(rules.success_statuses),
        "on202": rules.on202,
        "onNoAnswer": rules.on_no_answer,
        "callbackTimeoutSeconds": rules.callback_timeout_s,
    }


def loaded_outcome(stored: Mapping[str, Any]) -> OutcomeRules:
    """Returns what `stored_outcome` wrote."""
    return OutcomeRules(
        answer_timeout_s=stored["answerTimeoutSeconds"],
        success_statuses=tuple(stored["successStatuses"]),
        on202=stored["on202"],
        on_no_answer=stored["onNoAnswer"],
        callback_timeout_s=stored["callbackTimeoutSeconds"],
    )


def _parse_statuses(value: object, field: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= 20:
        raise InvalidRequest(field, f'must be a list of 1 to 20 strings such as "2xx", not {read.shown(value)}')
    wrong = Mistakes()
    for position, item in enumerate(value):
        found = retry.bounds(item) if isinstance(item, str) else None
        path = f"{field}[{position}]"
        if found is None:
            reason = f'must be a string such as "2xx", "204" or "200-299", not {read.shown(item)}'
            wrong.add(InvalidRequest(path, reason))
        elif found[0] > found[1]:
            wrong.add(InvalidRequest(path, f"ends before it begins: {read.shown(item)}"))
    wrong.check()
    return tuple(value)
