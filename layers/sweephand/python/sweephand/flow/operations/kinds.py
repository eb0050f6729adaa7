"""The closed table of what an operation can be.

A kind is a module with `page(world, operation) -> Page`: one page of the work, from the operation's cursor. A page may
come twice, or be cut off anywhere, so all that it does must be harmless to repeat. It raises SweephandError where the
operation cannot go on (its reason becomes the cause), Unavailable where the same page may succeed later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

from sweephand.domain.operation import Operation, OperationKind, Page
from sweephand.flow.world import World

Work = Callable[[World, Operation], Page]


@dataclass(frozen=True)
class Kind:
    """module: below flow. scope: who may begin it may also pause, resume and cancel it.

    for_good: it cannot be cancelled, because half of it would be neither the one nor the other. leaves: what it wrote
    must go where it is cancelled; then its module has `clear(world, operation)`, which may come twice.
    """

    module: str
    scope: str
    for_good: bool = False
    leaves: bool = False


KINDS: Mapping[OperationKind, Kind] = {
    OperationKind.REDRIVE: Kind("operations.redrive", "errors:edit"),
    OperationKind.DELETE_JOBS: Kind("operations.delete_jobs", "jobs:write"),
    OperationKind.PURGE_TENANT: Kind("operations.purge_tenant", "provider:admin", for_good=True),
    OperationKind.EXPORT_RUNS: Kind("operations.export_runs", "jobs:read", leaves=True),
}


def work_of(kind: OperationKind) -> Work:
    """Loaded when it is needed: of many kinds a message needs one."""
    work: Work = import_module(f"sweephand.flow.{KINDS[kind].module}").page
    return work


def clear(world: World, operation: Operation) -> None:
    """Of a kind that leaves something where it is cancelled. Raises Unavailable."""
    import_module(f"sweephand.flow.{KINDS[operation.kind].module}").clear(world, operation)
