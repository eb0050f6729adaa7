"""The table of all kinds of operations: who may begin each, and how it can end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sweephand.domain.operation import OperationKind


@dataclass(frozen=True)
class Kind:
    """The rules of one kind.

    scope: needed to begin, pause, resume and cancel it. for_good: it cannot be cancelled, because half of it would be
    neither the old state nor the new one. leaves: what it wrote is removed when it is cancelled.
    """

    scope: str
    for_good: bool = False
    leaves: bool = False


KINDS: Mapping[OperationKind, Kind] = {
    OperationKind.REDRIVE: Kind("errors:edit"),
    OperationKind.DELETE_JOBS: Kind("jobs:write"),
    OperationKind.PURGE_TENANT: Kind("provider:admin", for_good=True),
    OperationKind.EXPORT_RUNS: Kind("jobs:read", leaves=True),
}
