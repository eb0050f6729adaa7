"""The statistics of a schedule: final counts up to an instant. After that, the rows of the ledger are counted."""

from __future__ import annotations

from datetime import datetime

from pynamodb.attributes import Attribute

from sweephand.domain.instants import epoch_ms
from sweephand.domain.schedule import Schedule
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Refused, Table, Written
from sweephand.server.store.dynamo.expressions import Action, Condition, assign, every
from sweephand.server.store.dynamo.table import StatsItem


def read(table: Table, schedule: Schedule, *, consistent: bool = True) -> StatsItem:
    """Reads the statistics of a schedule; zeros if it has none."""
    pk, sk = keys.job(schedule.tenant, schedule.job_id), keys.stats(schedule.id)
    return table.get(StatsItem, pk, sk, consistent=consistent) or StatsItem(pk=pk, sk=sk)


def settled_as_read(before: StatsItem) -> Condition:
    """Requires that nobody has settled since and that no late run has ended within the settled part."""
    return every(
        _same(StatsItem.settled_to, before.settled_to),
        _same(StatsItem.settled_total, before.settled_total),
        _same(StatsItem.late_ends, before.late_ends),
    )


def settle(table: Table, before: StatsItem, until: datetime, *, ended: int, planned: int) -> Written | Refused:
    """Settles the counts up to `until`, in absolute values, if nothing has changed (settled_as_read).

    ended, planned: the number of ended runs, and of all rows, of the occurrences after the settled part up to `until`.
    """
    wanted = _settled(before, until, ended, planned)
    result = table.update(before.pk, before.sk, _settling(wanted), settled_as_read(before))
    if isinstance(result, Refused):
        current = result.read(StatsItem)
        if current is not None and (current.settled_to, current.settled_total, current.settled_planned) == wanted:
            return Written()  # this write succeeded before, and its answer was lost
    return result


def settle_op(table: Table, before: StatsItem, until: datetime, *, ended: int, planned: int) -> Op:
    """Returns the part of a transaction that does the same as `settle`."""
    actions = _settling(_settled(before, until, ended, planned))
    return table.update_op("stats", before.pk, before.sk, actions, settled_as_read(before))


def _settled(before: StatsItem, until: datetime, ended: int, planned: int) -> tuple[int, int, int]:
    return epoch_ms(until), before.settled_total + ended, before.settled_planned + planned


def _settling(wanted: tuple[int, int, int]) -> list[Action]:
    attributes = StatsItem.settled_to, StatsItem.settled_total, StatsItem.settled_planned
    return [assign(attribute, value) for attribute, value in zip(attributes, wanted, strict=True)]


def _same(attribute: Attribute[int], value: int | None) -> Condition:
    """Requires this count. Zero and absent are the same."""
    return attribute == value if value else (attribute.does_not_exist() | (attribute == 0))
