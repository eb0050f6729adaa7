"""Reads everything that the gate needs in one consistent call: schedule, job and run (3 read units plus the payload's).

The messages of a batch share one call, because a call takes more CPU than its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sweephand.domain.collection import Terms
from sweephand.domain.message import Pointer
from sweephand.domain.runs.admission import RunContext
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.dynamo.table import JobItem, RunItem, ScheduleItem
from sweephand.server.store.jobs import jobs
from sweephand.server.store.runs import run_rows
from sweephand.server.store.tenants.tenants import CollectionTerms

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


def _keys(pointer: Pointer) -> list[Key]:
    """Returns the keys of job, run and, if it has one, schedule."""
    partition = keys.job(pointer.tenant, pointer.job)
    wanted = [(partition, keys.JOB), (keys.runs(pointer.tenant, pointer.owner), keys.run(pointer.run))]
    return wanted if pointer.schedule is None else [*wanted, (partition, keys.schedule(pointer.schedule))]
