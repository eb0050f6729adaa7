"""The errors that the client raises. Their root is `sweephand.base.errors.SweephandError`.

SweephandError
├── ApiError          the service refused: a class for each code, in sweephand.sdk.api_errors
├── TransportError    no answer, or an answer from something other than the service
├── InvalidArgument   a value that no call accepts; nothing was sent
├── OperationFailed   an operation failed, was cancelled or took too long
└── ConfigError       the address or the credential is missing or cannot be used
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, NamedTuple

from sweephand.base.errors import SweephandError
from sweephand.base.lazy import lazy
from sweephand.sdk.model import snake

with lazy():
    from sweephand.sdk import models

MOST_SHOWN = 5
"""How many mistakes of a request the text of an error names."""

ROOT_CODES = {400: 300, 401: 16, 404: 2, 409: 3, 413: 10, 415: 300, 422: 300, 429: 9}
"""Root's error number for an HTTP status. 403 depends on the method, 5xx is 1, all others are 0 (unspecified)."""
ROOT_PERMISSIONS = {"POST": 1000, "GET": 1002, "PUT": 1003, "PATCH": 1003, "DELETE": 1004}
ROOT_SERVER_ERROR, ROOT_TIMEOUT = 1, 12
_PARAMETER = re.compile(r"(?<![?&\w-])(?P<name>[a-z][A-Za-z]*)=(?P<value>\w+)")


class FieldError(NamedTuple):
    """A mistake in a request. field: a path such as `schedules[0].cron`. position: an index in the field's string."""

    field: str
    reason: str
    position: int | None = None


class ConfigError(SweephandError):
    """An address or a credential that is missing or cannot be used. Nothing was sent."""

    code = "CONFIG"
    root_code: ClassVar[int] = 0


class InvalidArgument(SweephandError):
    """A value that no call accepts. Nothing was sent. field: the argument."""

    code = "INVALID_FIELD"
    root_code: ClassVar[int] = 300

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}")
        self.field = field


class TransportError(SweephandError):
    """A call without an answer from the service: no connection, a timeout, or an answer from something else.

    timed_out: True after a timeout. sent: False if the request certainly did not reach the service.
    """

    code = "TRANSPORT"

    def __init__(self, reason: str, *, timed_out: bool = False, sent: bool = True) -> None:
        super().__init__(reason)
        self.timed_out, self.sent = timed_out, sent

    @property
    def root_code(self) -> int:
        """Root's number for this error."""
        return ROOT_TIMEOUT if self.timed_out else ROOT_SERVER_ERROR


class NoAccess(TransportError):
    """A call to AWS without credentials, without permission, or to a queue that does not exist."""


class OperationFailed(SweephandError):
    """An operation that failed, was cancelled or did not end in time. operation: its last known state."""

    code = "OPERATION"
    root_code: ClassVar[int] = ROOT_SERVER_ERROR

    def __init__(self, reason: str, operation: Any) -> None:
        super().__init__(reason)
        self.operation = operation


class ApiError(SweephandError):
    """A refusal by the service.

    status: the HTTP status. errors: the mistakes in the request, field by field. request_id: the request's id in the
    service's log. help: the address of a page with cause and cure. problem: the whole answer, as JSON. tries: how often
    the request was sent; if more than once, an earlier try may have been carried out. retry_after_s: how long the
    service asks the caller to wait. The error's text names parameters as in Python, such as `allow_deletes=12`; detail,
    errors and problem name them as in the API.
    """

    def __init__(
        self,
        *,
        method: str,
        path: str,
        status: int,
        code: str,
        detail: str,
        errors: tuple[FieldError, ...] = (),
        request_id: str | None = None,
        help: str | None = None,  # noqa: A002 - the attribute's name
        retry_after_s: float | None = None,
        tries: int = 1,
        problem: Mapping[str, Any] | None = None,
        parameters: Collection[str] = (),
    ) -> None:
        self.method, self.path, self.status, self.detail = method, path, status, detail
        self.errors, self.request_id, self.help = errors, request_id, help
        self.retry_after_s, self.tries, self.problem = retry_after_s, tries, problem or {}
        super().__init__(in_python(self._text(code), parameters), code=code)

    @property
    def root_code(self) -> int:
        """Root's number for this error."""
        if self.status == 403:
            return ROOT_PERMISSIONS.get(self.method, 0)
        return ROOT_SERVER_ERROR if self.status >= 500 else ROOT_CODES.get(self.status, 0)

    def _text(self, code: str) -> str:
        said = [self.detail]
        if len(self.errors) > 1:
            said = [f"{each.field}: {each.reason}" for each in self.errors[:MOST_SHOWN]]
            left = len(self.errors) - len(said)
            said += [f"and {left} more"] if left else []
        more = [f"{self.tries} tries"] if self.tries > 1 else []
        more += [f"request {self.request_id}"] if self.request_id else []
        more += [f"see {self.help}"] if self.help else []
        return f"{self.method} {self.path}: {self.status} {code}: {'; '.join(said)}" + (
            f" ({', '.join(more)})" if more else ""
        )


def in_python(text: str, parameters: Collection[str]) -> str:
    """Returns a text with `dry_run=True` for `dryRun=true`, for these parameters of the API."""
    literals = {"true": "True", "false": "False"}

    def worded(match: re.Match[str]) -> str:
        if match["name"] not in parameters:
            return match[0]
        return f"{snake(match['name'])}={literals.get(match['value'], match['value'])}"

    return _PARAMETER.sub(worded, text)


class PlanRefused(ApiError):
    """A refusal to apply the list of a job set."""

    @property
    def plan(self) -> models.JobSetPlan | None:
        """The current plan, whose token applies it; None if the answer contains no plan."""
        return models.JobSetPlan.of(self.problem.get("plan"))
