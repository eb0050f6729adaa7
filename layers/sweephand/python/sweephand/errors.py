"""The one tree of errors.

SweephandError                what every deliberate refusal is
├── InvalidRequest            the caller's input cannot be read or breaks a rule: nothing was written
├── Unauthenticated           nobody, or nobody we know
├── Forbidden                 known, but without the scope, or of a disabled tenant
├── NotFound                  unknown, or not the caller's: the two look alike
├── Conflict                  the state of what is there forbids it
│   └── QuotaExceeded         a limit of the collection or the tenant
├── PreconditionFailed        If-Match or expectedCount named another state
├── RateLimited               too much at once: retry_after_s says when
└── Unavailable               a dependency did not answer in time: the same call may succeed later

Each has a stable `code` and no HTTP number: a facade maps codes to its own answers.
A failed action of a job is not an error but an Outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


class SweephandError(Exception):
    code = "ERROR"

    def __init__(self, reason: str, *, code: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        if code is not None:
            self.code = code


class InvalidRequest(SweephandError):
    """field: a path as the caller wrote it, `schedules[0].cron`; None where the request as a whole cannot be read.
    position: index in the text of the field. others: further mistakes of the same body.

    Codes: INVALID_JSON INVALID_QUERY INVALID_CURSOR TOO_LARGE NOT_JSON INVALID_FIELD UNKNOWN_MEMBER NEVER_FIRES
    KEY_REUSED.
    """

    code = "INVALID_FIELD"

    def __init__(
        self,
        field: str | None,
        reason: str,
        *,
        position: int | None = None,
        code: str | None = None,
        others: tuple[InvalidRequest, ...] = (),
    ) -> None:
        super().__init__(reason, code=code)
        self.field = field
        self.position = position
        self.others = others

    @property
    def all(self) -> tuple[InvalidRequest, ...]:
        """This mistake, then the others."""
        return (self, *self.others)

    def alone(self, others: tuple[InvalidRequest, ...] = ()) -> InvalidRequest:
        """The same refusal with these others in the place of its own."""
        return type(self)(self.field, self.reason, position=self.position, code=self.code, others=others)

    def within(self, prefix: str) -> InvalidRequest:
        """The same refusal, its field seen from one level above: `cron` within `schedules[0]`."""
        inner = self.field
        field = prefix if not inner else f"{prefix}{inner}" if inner.startswith("[") else f"{prefix}.{inner}"
        others = tuple(other.within(prefix) for other in self.others)
        return type(self)(field, self.reason, position=self.position, code=self.code, others=others)


class Mistakes:
    """Collects the refusals of one body, so that its caller learns all of them from one answer."""

    def __init__(self) -> None:
        self._found: list[InvalidRequest] = []

    def add(self, wrong: InvalidRequest) -> None:
        """Adds a refusal with its others. A field that is blamed already keeps its first reason."""
        blamed = {each.field for each in self._found}
        self._found += [each for each in wrong.all if each.field not in blamed]

    def of(self, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns what `read` returns, or None where it refuses: `check` raises before anybody uses that."""
        try:
            return read(*args, **kwargs)
        except InvalidRequest as wrong:
            self.add(wrong)
            return cast("T", None)

    @property
    def all(self) -> tuple[InvalidRequest, ...]:
        """In the order in which they were found, each without others."""
        return tuple(each.alone() for each in self._found)

    def check(self) -> None:
        """Raises InvalidRequest with all that was collected, if anything was."""
        if self._found:
            first, *others = self.all
            raise first.alone(tuple(others))


class Unauthenticated(SweephandError):
    """The usual reason is the same for every cause, so that nobody learns which ids exist."""

    code = "UNAUTHENTICATED"

    def __init__(
        self,
        reason: str = "send a client id and its secret as Basic, or a token of POST /oauth/token as Bearer; "
        "what was sent is missing, wrong, deleted or expired",
    ) -> None:
        super().__init__(reason)


class Forbidden(SweephandError):
    """Codes: SCOPE_MISSING TENANT_DISABLED."""

    code = "SCOPE_MISSING"


class NotFound(SweephandError):
    code = "NOT_FOUND"


class Conflict(SweephandError):
    """Codes: NAME_TAKEN STATE_CONFLICT RESULT_CONFLICT FACADE_LIMIT."""

    code = "STATE_CONFLICT"


class QuotaExceeded(Conflict):
    code = "QUOTA_EXCEEDED"


class PreconditionFailed(SweephandError):
    """Codes: REVISION_MISMATCH COUNT_MISMATCH."""

    code = "REVISION_MISMATCH"


class RateLimited(SweephandError):
    code = "RATE_LIMITED"

    def __init__(self, reason: str, *, retry_after_s: int) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class Unavailable(SweephandError):
    code = "UNAVAILABLE"

    def __init__(self, reason: str, *, retry_after_s: int = 1) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s
