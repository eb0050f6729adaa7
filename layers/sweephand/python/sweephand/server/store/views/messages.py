"""Lists of messages, by the days for which a tenant has any."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime

from sweephand.base.ids import first_uuid_at, instant_ms_of
from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.domain.messages import ledgers_of
from sweephand.domain.run import TERMINAL, Run, State
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.dynamo.table import Item, RunItem
from sweephand.server.store.runs.run_rows import run_of
from sweephand.server.store.views import runs as views
from sweephand.server.store.views.runs import ALWAYS, NO_OWNER, Passed, RunMark, Span

DAYS_AT_ONCE = 30


def days(table: Table, tenant: str, since: date | None, until: date | None) -> Iterator[tuple[date, list[str]]]:
    """Yields the days for which a tenant has messages, latest first, each with the collections."""
    first = keys.message_day("0" if since is None else since.isoformat())
    last = keys.message_day("~" if until is None else f"{until.isoformat()}~~")
    if first > last:  # such as from a start in the future; DynamoDB refuses a range without a place
        return
    rows = table.query_all(
        keys.message_days(tenant), Item.sk.between(first, last), forward=False, limit=DAYS_AT_ONCE, consistent=True
    )
    current: tuple[date, list[str]] | None = None
    for row in rows:
        day, _, collection = keys.message_day_parts(row["sk"]["S"])
        if current is not None and current[0] == day:
            current[1].append(collection)
            continue
        if current is not None:
            yield current
        current = day, [collection]
    if current is not None:
        yield current


def listed(
    table: Table, tenant: str, collection: str | None, after: RunMark | None, page: int, span: Span = ALWAYS
) -> Iterator[Run | Passed]:
    """Yields messages, latest planned first, after a mark. collection: None for all.

    The start of each day is yielded as Passed, so that a page can end among days without a message of the list.
    """
    until = span.until
    if after is not None:
        marked = from_ms(instant_ms_of(after[0]))
        until = marked if until is None else min(until, marked)
    for day, collections in days(table, tenant, _day(span.since), _day(until)):
        chosen = collections if collection is None else [each for each in collections if each == collection]
        owners = [owner for each in chosen for owner in ledgers_of(tenant, each, day)]
        yield from views.merged_runs(table, tenant, owners, after, page, span) if owners else ()
        yield Passed((first_uuid_at(epoch_ms(datetime(day.year, day.month, day.day, tzinfo=UTC))), NO_OWNER))


def _day(instant: datetime | None) -> date | None:
    return None if instant is None else instant.astimezone(UTC).date()


def open_of(table: Table, tenant: str, owner: str, until: datetime) -> Iterator[Run]:
    """Yields the messages of a ledger that were planned up to an instant and have not ended."""
    last = keys.run(views.first_uuid_after(epoch_ms(until)))
    rows = table.query_all(keys.runs(tenant, owner), Item.sk.between(keys.run(""), last), limit=1_000)
    for row in rows:
        if "state" in row and State(row["state"]["S"]) not in TERMINAL:
            yield run_of(RunItem.from_raw_data(row))
