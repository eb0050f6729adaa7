"""The work of each kind of operation, imported when a message asks for it.

The module of a kind has `page(world, operation) -> Page`: one page of the work, from the operation's cursor. A page may
be called twice or be cut off anywhere, so everything it does must be harmless to repeat. It raises SweephandError if
the operation cannot continue (its reason becomes the cause), Unavailable if the same page may succeed later. A kind
that leaves something when it is cancelled also has `clear(world, operation)`, which may be called twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from sweephand.domain.operation import Operation, OperationKind, Page
from sweephand.flow.world import World

Work = Callable[[World, Operation], Page]

MODULES: Mapping[OperationKind, str] = {
    OperationKind.REDRIVE: "redrive",
    OperationKind.DELETE_JOBS: "delete_jobs",
    OperationKind.PURGE_TENANT: "purge_tenant",
    OperationKind.EXPORT_RUNS: "export_runs",
}


def work_of(kind: OperationKind) -> Work:
    """Returns the `page` of the kind."""
    work: Work = import_module(f"sweephand.flow.bulk.{MODULES[kind]}").page
    return work


def clear(world: World, operation: Operation) -> None:
    """Removes what a cancelled operation has written. Raises Unavailable."""
    import_module(f"sweephand.flow.bulk.{MODULES[operation.kind]}").clear(world, operation)
