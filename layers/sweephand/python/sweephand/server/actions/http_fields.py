"""The fields of an HTTP action that have their own grammar: its URL with secrets, its outcome. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.json_schema import items, text
from sweephand.base.members import fields as read
from sweephand.base.records import dataclass
from sweephand.domain.job import MASK
from sweephand.domain.runs import retry
from sweephand.server.actions.kind import Reading, choice, member, within
from sweephand.server.actions.outcome import ON_ACCEPTED, answer_timeout, callback_timeout
from sweephand.server.security.guard import check_url

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
QUERY_METHODS = frozenset({"GET", "DELETE", "HEAD"})
"""Methods without a body: their payload is an object and becomes the query."""

ON_NO_ANSWER = ("fail", "wait")
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
    values_by_field: dict[str, str] = {}

    def mask(match: re.Match[str]) -> str:
        name = match["known"].lower()
        count = sum(each.split("#")[0] == f"url.{name}" for each in values_by_field)
        values_by_field[f"url.{name}" + (f"#{count + 1}" if count else "")] = match["value"]
        return f"{match['name']}{MASK}"

    return _QUERY_SECRET.sub(mask, url), values_by_field


def opened_url(url: str, secret_of: Callable[[str], str]) -> str:
    """Returns the URL with its secrets.

    secret_of: returns them by name. A secret stored in clear text stays as it is.
    """
    _, values_by_field = sealed_url(url)
    values = iter([secret_of(name) if value == MASK else value for name, value in values_by_field.items()])

    def put_back(match: re.Match[str]) -> str:
        return f"{match['name']}{next(values)}"

    return _QUERY_SECRET.sub(put_back, url)


def url(value: Any, path: str, reading: Reading) -> str:
    """Reads a URL. Keeps the secrets in its query separately."""
    if not isinstance(value, str):
        raise read.not_a_string(value, path)
    with within(path):
        check_url(value, reading.guard)
    sealed, secrets = sealed_url(value)
    reading.keep(secrets)
    return sealed


def _statuses(value: object, field: str, _: Reading) -> tuple[str, ...]:
    wrong, listed = Mistakes(), read.listed(value, field, 20, 'a list of strings such as "2xx"', least=1)
    for position, item in enumerate(listed):
        span = retry.bounds(item) if isinstance(item, str) else None
        path = f"{field}[{position}]"
        if span is None:
            reason = f'must be a string such as "2xx", "204" or "200-299", not {read.shown(item)}'
            wrong.add(InvalidRequest(path, reason))
        elif span[0] > span[1]:
            wrong.add(InvalidRequest(path, f"ends before it begins: {read.shown(item)}"))
    wrong.check()
    return tuple(listed)


@dataclass(frozen=True)
class OutcomeRules:
    """The rules of an HTTP action. on202: None means `wait` if the job requests callback tokens, else `success`."""

    answer_timeout_s: int = answer_timeout()
    success_statuses: tuple[str, ...] = member(
        "successStatuses",
        items(text(pattern="^([1-5]xx|[1-5][0-9]{2}(-[1-5][0-9]{2})?)$"), minItems=1, maxItems=20),
        _statuses,
        stored=list,
        loaded=tuple,
        default=("2xx",),
    )
    on202: str | None = choice("on202", ON_ACCEPTED, default=None)
    on_no_answer: str = choice("onNoAnswer", ON_NO_ANSWER, default="fail")
    callback_timeout_s: int | None = callback_timeout()

    def is_success(self, status: int) -> bool:
        """Returns whether a status counts as a success."""
        return retry.holds(self.success_statuses, status)
