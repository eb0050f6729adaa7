"""An error for each code of the service. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from collections.abc import Mapping

from sweephand.sdk.errors import ApiError, PlanRefused


class InvalidJson(ApiError):
    """400: the body cannot be read."""

    code = "INVALID_JSON"


class InvalidQuery(ApiError):
    """400: the path, the query or a header cannot be read."""

    code = "INVALID_QUERY"


class InvalidCursor(ApiError):
    """400: the cursor does not belong to this list."""

    code = "INVALID_CURSOR"


class Unauthenticated(ApiError):
    """401: no valid identity."""

    code = "UNAUTHENTICATED"


class ScopeMissing(ApiError):
    """403: a scope is missing."""

    code = "SCOPE_MISSING"


class TenantDisabled(ApiError):
    """403: the tenant is disabled."""

    code = "TENANT_DISABLED"


class NotFound(ApiError):
    """404: not found."""

    code = "NOT_FOUND"


class MethodNotAllowed(ApiError):
    """405: the path does not support this method."""

    code = "METHOD_NOT_ALLOWED"


class NameTaken(ApiError):
    """409: the name is taken."""

    code = "NAME_TAKEN"


class QuotaExceeded(ApiError):
    """409: a quota is exceeded."""

    code = "QUOTA_EXCEEDED"


class StateConflict(ApiError):
    """409: the current state does not allow this."""

    code = "STATE_CONFLICT"


class ResultConflict(ApiError):
    """409: another result is already recorded."""

    code = "RESULT_CONFLICT"


class LeaseLost(ApiError):
    """409: another worker may have the run."""

    code = "LEASE_LOST"


class TooManyDeletes(PlanRefused):
    """409: the plan deletes more jobs than is usual."""

    code = "TOO_MANY_DELETES"


class ConsumerTaken(ApiError):
    """409: another process is this consumer."""

    code = "CONSUMER_TAKEN"


class LeaseOver(ApiError):
    """409: the lease of the consumer is over."""

    code = "LEASE_OVER"


class FacadeLimit(ApiError):
    """409: the job's own API could not show the change."""

    code = "FACADE_LIMIT"


class RevisionMismatch(ApiError):
    """412: the revision differs."""

    code = "REVISION_MISMATCH"


class CountMismatch(ApiError):
    """412: the count differs."""

    code = "COUNT_MISMATCH"


class PlanStale(PlanRefused):
    """412: the plan is out of date."""

    code = "PLAN_STALE"


class TooLarge(ApiError):
    """413: the body is too large."""

    code = "TOO_LARGE"


class NotJson(ApiError):
    """415: the body is not plain JSON."""

    code = "NOT_JSON"


class InvalidField(ApiError):
    """422: a field breaks a rule."""

    code = "INVALID_FIELD"


class UnknownMember(ApiError):
    """422: a member is unknown."""

    code = "UNKNOWN_MEMBER"


class NeverFires(ApiError):
    """422: the schedule can never fire."""

    code = "NEVER_FIRES"


class KeyReused(ApiError):
    """422: the Idempotency-Key belongs to another request."""

    code = "KEY_REUSED"


class RateLimited(ApiError):
    """429: too many requests."""

    code = "RATE_LIMITED"


class Unavailable(ApiError):
    """503: the service cannot do this at the moment."""

    code = "UNAVAILABLE"


class Internal(ApiError):
    """500: an unexpected error."""

    code = "INTERNAL"


BY_CODE: Mapping[str, type[ApiError]] = {
    "INVALID_JSON": InvalidJson,
    "INVALID_QUERY": InvalidQuery,
    "INVALID_CURSOR": InvalidCursor,
    "UNAUTHENTICATED": Unauthenticated,
    "SCOPE_MISSING": ScopeMissing,
    "TENANT_DISABLED": TenantDisabled,
    "NOT_FOUND": NotFound,
    "METHOD_NOT_ALLOWED": MethodNotAllowed,
    "NAME_TAKEN": NameTaken,
    "QUOTA_EXCEEDED": QuotaExceeded,
    "STATE_CONFLICT": StateConflict,
    "RESULT_CONFLICT": ResultConflict,
    "LEASE_LOST": LeaseLost,
    "TOO_MANY_DELETES": TooManyDeletes,
    "CONSUMER_TAKEN": ConsumerTaken,
    "LEASE_OVER": LeaseOver,
    "FACADE_LIMIT": FacadeLimit,
    "REVISION_MISMATCH": RevisionMismatch,
    "COUNT_MISMATCH": CountMismatch,
    "PLAN_STALE": PlanStale,
    "TOO_LARGE": TooLarge,
    "NOT_JSON": NotJson,
    "INVALID_FIELD": InvalidField,
    "UNKNOWN_MEMBER": UnknownMember,
    "NEVER_FIRES": NeverFires,
    "KEY_REUSED": KeyReused,
    "RATE_LIMITED": RateLimited,
    "UNAVAILABLE": Unavailable,
    "INTERNAL": Internal,
}
