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


class SweephandError(Exception):
    code = "ERROR"

    def __init__(self, reason: str, *, code: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        if code is not None:
            self.code = code


class InvalidRequest(SweephandError):
    """field: a path as the caller wrote it, `schedules[0].cron`; None where the request as a whole cannot be read.
    position: index in the text of the field.

    Codes: INVALID_JSON INVALID_QUERY INVALID_CURSOR TOO_LARGE NOT_JSON INVALID_FIELD UNKNOWN_MEMBER NEVER_FIRES
    KEY_REUSED.
    """

    code = "INVALID_FIELD"

    def __init__(self, field: str | None, reason: str, *, position: int | None = None, code: str | None = None) -> None:
        super().__init__(reason, code=code)
        self.field = field
        self.position = position

    def within(self, prefix: str) -> InvalidRequest:
        """The same refusal, its field seen from one level above: `cron` within `schedules[0]`."""
        inner = self.field
        field = prefix if not inner else f"{prefix}{inner}" if inner.startswith("[") else f"{prefix}.{inner}"
        return type(self)(field, self.reason, position=self.position, code=self.code)


class Unauthenticated(SweephandError):
    code = "UNAUTHENTICATED"


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
