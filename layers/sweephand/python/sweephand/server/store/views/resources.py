"""Lists of calendars, flow keys, groups of failures, redirects, operations, and the changes of a job."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.dynamo.table import RevisionItem

if TYPE_CHECKING:
    from sweephand.domain.calendar import Calendar, Version
    from sweephand.domain.consumer import Consumer
    from sweephand.domain.failure import Group, Redirect
    from sweephand.domain.flow_keys.circuits import Circuit
    from sweephand.domain.flow_keys.flow_keys import FlowKey, Turnstile
    from sweephand.domain.job_set import Member
    from sweephand.domain.jobs.job_state import Entry
    from sweephand.domain.operation import Operation
    from sweephand.server.store.job_sets.job_sets import JobSet as JobSet  # noqa: PLC0414 - shown by the facade

with lazy():
    from sweephand.domain.flow_keys import flow_keys as flow_key_rules
    from sweephand.server.store.calendars import calendars as calendar_rows
    from sweephand.server.store.consumers import consumers as consumer_rows
    from sweephand.server.store.errors import failures
    from sweephand.server.store.flow_keys import circuits, flow_key_lines
    from sweephand.server.store.flow_keys import flow_keys as flow_key_rows
    from sweephand.server.store.job_sets import job_sets as job_set_rows
    from sweephand.server.store.jobs import history
    from sweephand.server.store.operations import operations as operation_rows

MOST_COUNTED = 10_000
MOST_CIRCUITS = 100
COUNTED_AT_ONCE = 25
"""Calendars or flow keys whose users are counted in one call."""


def calendars(table: Table, tenant: str, after: str | None, page: int) -> Iterator[Calendar]:
    """Yields calendars without content by name, after `after`."""
    resources = map(
        calendar_rows.calendar_of,
        table.listed(calendar_rows.CalendarItem, keys.tenant(tenant), keys.calendar, after, page),
    )
    while some := list(islice(resources, page or COUNTED_AT_ONCE)):
        yield from calendar_rows.with_users(table, some)


def versions(table: Table, tenant: str, name: str, below: int | None, page: int) -> Iterator[Version]:
    """Yields the versions of a calendar below a number, newest first."""
    last = keys.calendar_version(99_999_999 if below is None else below - 1)
    sort = calendar_rows.CalendarVersionItem.sk.between(keys.calendar_version(0), last)
    for row in table.query_all(keys.calendar_rows(tenant, name), sort, limit=page, forward=False, consistent=True):
        yield calendar_rows.version_of(calendar_rows.CalendarVersionItem.from_raw_data(row))


def flow_keys(table: Table, tenant: str, after: str | None, page: int) -> Iterator[FlowKey]:
    """Yields flow keys by name, after `after`."""
    resources = map(
        flow_key_rows.key_of, table.listed(flow_key_rows.FlowKeyItem, keys.tenant(tenant), keys.flow_key, after, page)
    )
    while some := list(islice(resources, page or COUNTED_AT_ONCE)):
        yield from flow_key_rows.with_users(table, some)


@dataclass(frozen=True)
class Live:
    """The live state of a flow key. waiting: counted up to MOST_COUNTED."""

    turnstile: Turnstile
    waiting: int
    circuits: list[Circuit]


def live(table: Table, tenant: str, name: str) -> Live:
    turnstile = flow_key_rows.read_stile(table, tenant, name) or flow_key_rules.Turnstile(tenant, name)
    shown = list(islice((circuit for _, circuit in circuits.listed(table, tenant, name)), MOST_CIRCUITS))
    return Live(turnstile, flow_key_lines.waiting(table, tenant, name, MOST_COUNTED), shown)


def open_circuits(table: Table, tenant: str, name: str) -> list[Circuit]:
    """Returns the open circuits under a flow key, up to MOST_CIRCUITS."""
    open_ones = (circuit for _, circuit in circuits.listed(table, tenant, name) if circuit.opened_at is not None)
    return list(islice(open_ones, MOST_CIRCUITS))


def groups(table: Table, tenant: str) -> Iterator[Group]:
    """Yields all groups of failures of a tenant, in no particular order."""
    model = failures.ErrorGroupItem
    for row in table.query_all(keys.errors(tenant), model.sk.startswith(keys.error_group(""))):
        yield failures.group_of(model.from_raw_data(row))


def redirects(table: Table, tenant: str, after: str | None = None, page: int | None = None) -> Iterator[Redirect]:
    """Yields redirects by the job that is redirected, after `after`."""
    items = table.listed(failures.RedirectItem, keys.errors(tenant), keys.redirect, after, page)
    yield from map(failures.redirect_of, items)


def job_sets(table: Table, tenant: str, after: str | None, page: int) -> Iterator[JobSet]:
    """Yields job sets by name, after `after`."""
    items = table.listed(job_set_rows.JobSetItem, keys.tenant(tenant), keys.job_set, after, page)
    yield from map(job_set_rows.set_of, items)


def job_set(table: Table, tenant: str, name: str) -> JobSet | None:
    return job_set_rows.read_set(table, tenant, name)


def members(table: Table, tenant: str, name: str) -> list[Member]:
    """Returns the members of a job set by key."""
    return list(job_set_rows.members(table, tenant, name))


def consumers(table: Table, tenant: str, after: str | None, page: int) -> Iterator[Consumer]:
    """Yields consumers by name, after `after`."""
    yield from consumer_rows.listed(table, tenant, after, page)


def held(table: Table, tenant: str, consumer: str, most: int) -> list[datetime]:
    """Returns the planned instants of runs that are held for a consumer, oldest first."""
    run_keys = islice(consumer_rows.held(table, tenant, consumer, most), most)
    return [consumer_rows.planned_at(key) for key in run_keys]


def operations(table: Table, tenant: str | None, before: str | None, page: int) -> Iterator[Operation]:
    """Yields operations, newest first, after the id `before`. tenant: None for the provider's own."""
    model = operation_rows.OperationItem
    sort = model.sk.between(keys.operation(""), keys.operation(before or "~"))
    for row in table.query_all(keys.operations(tenant), sort, limit=page, forward=False, consistent=True):
        operation = operation_rows.operation_of(model.from_raw_data(row))
        if operation.id != before:
            yield operation


def changes(table: Table, tenant: str, job_id: str, before: int | None, page: int) -> Iterator[Entry]:
    """Yields a job's changes before revision `before` (None: all), newest first. page: items that one query reads."""
    last = keys.revision(before - 1) if before is not None else keys.revision(99_999_999)
    sort = RevisionItem.sk.between(keys.revision(0), last)
    for row in table.query_all(keys.job(tenant, job_id), sort, forward=False, limit=page, consistent=True):
        yield history.entry_of(RevisionItem.from_raw_data(row))
