"""Lists of messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from sweephand.base.records import dataclass
from sweephand.domain.run import Run
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.store.runs import messages as rows
from sweephand.server.store.views import messages as views
from sweephand.server.store.views.runs import ALWAYS, Passed, RunMark, Span


@dataclass(frozen=True)
class Wanted:
    """The filters of a list. None: any."""

    collection: str | None = None
    state: str | None = None
    tag: str | None = None
    resource_id: str | None = None
    span: Span = ALWAYS

    def holds(self, run: Run, now: datetime) -> bool:
        """Returns whether a message belongs to the list. One whose retention has ended does not."""
        if run.posted is None or run.is_gone(now):
            return False
        posted = run.posted
        return (
            self.collection in {None, posted.collection}
            and self.state in {None, run.state.value}
            and (self.tag is None or self.tag in posted.tags)
            and self.resource_id in {None, posted.resource_id}
            and self.span.touches(run)
        )


def listed(world: World, tenant: str, wanted: Wanted, after: RunMark | None, page: int) -> Iterator[Run | Passed]:
    """Yields messages after a mark, latest planned first. The caller leaves out those that `wanted` does not hold."""
    began = tenancy.began_at(world, tenant)
    for each in views.listed(world.table, tenant, wanted.collection, after, page, wanted.span):
        if isinstance(each, Passed) or not each.is_of_former(began):
            yield each


def whole(world: World, runs: Sequence[Run]) -> list[Run]:
    """Returns the messages with their actions."""
    return rows.whole(world.table, runs)
