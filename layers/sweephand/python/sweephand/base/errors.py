"""The tree of errors.

SweephandError                every deliberate refusal
├── InvalidRequest            the caller's input cannot be read or breaks a rule: nothing was written
├── Unauthenticated           the caller is missing or unknown
├── Forbidden                 known, but without the scope, or of a disabled tenant
├── NotFound                  unknown, or another tenant's: callers cannot tell the difference
├── Conflict                  the current state forbids it
│   └── QuotaExceeded         a limit of the collection or the tenant
├── PreconditionFailed        If-Match or expectedCount does not match
├── RateLimited               too many requests: retry_after_s says when
└── Unavailable               a dependency did not answer in time: the same call may succeed later

Each has a stable `code` and no HTTP number: a facade maps codes to its own answers.
A failed action of a job is not an error but an Outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, Self, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

MOST_SHOWN = 50
"""The most mistakes in one body that an answer names."""


class SweephandError(Exception):
    code = "ERROR"

    def __init__(self, reason: str, *, code: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        if code is not None:
            self.code = code


class InvalidRequest(SweephandError):
    """A request that cannot be read or breaks a rule.

    field: a path such as `schedules[0].cron`; None if the request as a whole cannot be read. position: an index in the
    string of the field. others: further mistakes in the same body.

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
        """Returns this mistake, then the others."""
        return (self, *self.others)

    def alone(self, others: tuple[InvalidRequest, ...] = ()) -> Self:
        """Returns this mistake with the given others instead of its own."""
        return self.changed(others=others)

    def within(self, prefix: str) -> Self:
        """Returns this mistake with its field seen from one level above: `cron` within `schedules[0]`."""
        if not prefix:
            return self
        inner = self.field
        field = prefix if not inner else f"{prefix}{inner}" if inner.startswith("[") else f"{prefix}.{inner}"
        return self.changed(field=field, others=tuple(other.within(prefix) for other in self.others))

    def changed(self, **members: Any) -> Self:
        """Returns a copy with other members. It has the same class, whatever its constructor takes."""
        copied = type(self).__new__(type(self), members.get("reason", self.reason))
        vars(copied).update(vars(self), **members)
        return copied


class Mistakes:
    """A collection of the mistakes in one body, so that one answer names all of them.

    It raises them as soon as there are more than an answer shows, so that no body costs more than its first mistakes.
    """

    def __init__(self) -> None:
        self._by_field: dict[str | None, InvalidRequest] = {}

    def add(self, wrong: InvalidRequest) -> None:
        """Adds a mistake with its others. A field that already has one keeps its first reason.

        Raises InvalidRequest if there are more than MOST_SHOWN.
        """
        for each in wrong.all:
            self._by_field.setdefault(each.field, each.alone())
        if len(self._by_field) > MOST_SHOWN:
            self.check()

    def of(self, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns the result of `read`, or None if it refuses. `check` then raises before the None is used."""
        try:
            return read(*args, **kwargs)
        except InvalidRequest as wrong:
            self.add(wrong)
            return cast("T", None)

    @property
    def all(self) -> tuple[InvalidRequest, ...]:
        """Returns the mistakes in the order in which they were found, each without others."""
        return tuple(self._by_field.values())

    def check(self) -> None:
        """Raises InvalidRequest with all mistakes, if there are any."""
        if self._by_field:
            first, *others = self.all
            raise first.alone(tuple(others))


HOW_TO_IDENTIFY = "send a client id and its secret as Basic, or a token of POST /oauth/token as Bearer"


class Unauthenticated(SweephandError):
    """A caller who is missing or unknown. The default reason never varies, so that nobody learns which ids exist."""

    code = "UNAUTHENTICATED"

    def __init__(
        self,
        reason: str = f"the credential is wrong, deleted or expired: {HOW_TO_IDENTIFY}",
    ) -> None:
        super().__init__(reason)


class Forbidden(SweephandError):
    """A known caller without permission. Codes: SCOPE_MISSING TENANT_DISABLED."""

    code = "SCOPE_MISSING"


class NotFound(SweephandError):
    code = "NOT_FOUND"


class Conflict(SweephandError):
    """A request that the current state forbids.

    current: the present state of the resource, if it is shown. Codes: NAME_TAKEN STATE_CONFLICT RESULT_CONFLICT
    LEASE_LOST FACADE_LIMIT.
    """

    code = "STATE_CONFLICT"

    def __init__(self, reason: str, *, code: str | None = None, current: str | None = None) -> None:
        super().__init__(reason, code=code)
        self.current = current


def never_fires(field: str, reason: str) -> InvalidRequest:
    """Returns the error for a schedule without an occurrence."""
    return InvalidRequest(field, reason, code="NEVER_FIRES")


def name_taken(what: str, name: str) -> Conflict:
    """Returns the error for a name that another resource of this kind has. what: the kind, such as "collection"."""
    return Conflict(f'there is a {what} with the name "{name}" already: choose another name', code="NAME_TAKEN")


class QuotaExceeded(Conflict):
    code = "QUOTA_EXCEEDED"


class PreconditionFailed(SweephandError):
    """A request for a state other than the current one. Codes: REVISION_MISMATCH COUNT_MISMATCH."""

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
