"""One strong read of all that the gate needs: schedule, job and run row (3 read units beside the payload's size)."""

from __future__ import annotations

from sweephand.domain.admission import Seen
from sweephand.domain.collection import Terms
from sweephand.domain.message import Pointer
from sweephand.store import jobs, keys, ledger
from sweephand.store.conditional import Table
from sweephand.store.standing import Standing
from sweephand.store.table import JobItem, RunItem, ScheduleItem


def look(table: Table, standing: Standing, pointer: Pointer) -> Seen:
    job_key = (keys.job(pointer.tenant, pointer.job), keys.JOB)
    run_key = (keys.runs(pointer.tenant, pointer.owner), keys.run(pointer.run))
    wanted = [job_key, run_key]
    schedule_key = None
    if pointer.schedule is not None:
        schedule_key = (keys.job(pointer.tenant, pointer.job), keys.schedule(pointer.schedule))
        wanted.append(schedule_key)
    found = table.batch_get(wanted)
    job_row, run_row = found.get(job_key), found.get(run_key)
    schedule_row = found.get(schedule_key) if schedule_key else None
    job = jobs.job_of(JobItem.from_raw_data(job_row)) if job_row else None
    terms = Terms() if job is None else standing.of(pointer.tenant, job.collection)
    if terms.purging:
        job = schedule_row = None  # it is as good as deleted: retries and manual runs of it end as well
    return Seen(
        job=job,
        schedule=jobs.schedules_of(table, [ScheduleItem.from_raw_data(schedule_row)])[0] if schedule_row else None,
        run=ledger.run_of(RunItem.from_raw_data(run_row)) if run_row else None,
        terms=terms,
    )
