"""Reads everything that the gate needs in one consistent call: schedule, job and run (3 read units plus the payload's).

The messages of a batch share one call, because a call takes more CPU than its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sweephand.base.lazy import lazy
from sweephand.domain.collection import Terms
from sweephand.domain.message import Pointer
from sweephand.domain.run import Kind
from sweephand.domain.runs.admission import RunContext
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.dynamo.table import JobItem, RunItem, ScheduleItem
from sweephand.server.store.jobs import jobs
from sweephand.server.store.runs import run_rows
from sweephand.server.store.tenants.tenants import CollectionTerms

if TYPE_CHECKING:
    from sweephand.domain.job import Job
    from sweephand.domain.run import Run

with lazy():
    from sweephand.domain import messages as domain
    from sweephand.server.store.runs import messages

Key = tuple[str, str]
Rows = Mapping[Key, dict[str, Any] | None]
"""The requested rows in DynamoDB's JSON; None for a row that does not exist."""


def read(table: Table, pointers: Iterable[Pointer]) -> Rows:
    """Reads the rows that the gate needs for these runs, in one call."""
    wanted = [key for pointer in pointers for key in _keys(pointer)]
    rows = table.batch_get(wanted) if wanted else {}
    return {key: rows.get(key) for key in wanted}


def read_context(table: Table, cache: CollectionTerms, pointer: Pointer, known: Rows | None = None) -> RunContext:
    """Returns the rows for the gate's decision.

    known: rows read since the run's instant; if one is missing, reads all.
    """
    wanted = _keys(pointer)
    rows = known if known is not None and all(key in known for key in wanted) else read(table, [pointer])
    job_row, run_row = rows[wanted[0]], rows[wanted[1]]
    if pointer.kind is Kind.MESSAGE:
        return _of_message(cache, pointer, run_row, job_row)
    schedule_row = rows[wanted[2]] if pointer.schedule is not None else None
    job = jobs.job_of(JobItem.from_raw_data(job_row)) if job_row else None
    terms = Terms() if job is None else cache.of(pointer.tenant, job.collection)
    if terms.purging:
        job = schedule_row = None  # as if deleted already: retries and manual runs end as well
    return RunContext(
        job=job,
        schedule=jobs.schedules_of(table, [ScheduleItem.from_raw_data(schedule_row)])[0] if schedule_row else None,
        run=run_rows.run_of(RunItem.from_raw_data(run_row)) if run_row else None,
        terms=terms,
    )


def _of_message(cache: CollectionTerms, pointer: Pointer, run_row: Any, body_row: Any) -> RunContext:
    """Returns the rows of a message, which does in place of a job what its caller posted.

    A message of a deleted collection or tenant, or of a former tenant of the same name, has nothing to do any more.
    """
    if run_row is None:
        return RunContext(None, None, None)
    run = messages.with_body(run_rows.run_of(RunItem.from_raw_data(run_row)), body_row)
    assert run.posted is not None
    terms = cache.of(pointer.tenant, run.posted.collection)
    gone = terms.purging or terms.gone or terms.tenant_since is None or run.is_of_former(terms.tenant_since)
    return RunContext(None if gone else domain.job_of(run), None, run, terms)


def job_of(table: Table, run: Run) -> Job | None:
    """Returns the job of a run, or what a message does in place of one; None if it was deleted."""
    if run.posted is None:
        return jobs.read_job(table, run.tenant, run.job_id)
    return domain.job_of(messages.whole(table, [run])[0])


def _keys(pointer: Pointer) -> list[Key]:
    """Returns the keys of job (or of the body of a message), run and, if it has one, schedule."""
    if pointer.kind is Kind.MESSAGE:
        ledger = keys.runs(pointer.tenant, pointer.owner)
        return [(ledger, keys.body(pointer.run)), (ledger, keys.run(pointer.run))]
    partition = keys.job(pointer.tenant, pointer.job)
    wanted = [(partition, keys.JOB), (keys.runs(pointer.tenant, pointer.owner), keys.run(pointer.run))]
    return wanted if pointer.schedule is None else [*wanted, (partition, keys.schedule(pointer.schedule))]
