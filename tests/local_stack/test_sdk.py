"""The SDK against the running stack, over its file of addresses."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from sweephand.sdk import AsyncSweephand, Sweephand, every, http
from sweephand.sdk.api_errors import NotFound
from tests.local_stack.waiting import until

if TYPE_CHECKING:
    from tests.local_stack.conftest import LocalStack

pytestmark = pytest.mark.emulator

CLOSED = "http://127.0.0.1:9/"
"""An address where nobody listens: a run of it ends soon, whatever else the machine does."""


def test_a_job_is_created_run_and_deleted(stack: LocalStack) -> None:
    with Sweephand.local(stack.folder.root / "stack.json", tenant="acme") as sh:
        job = sh.jobs.create(None, http.post(CLOSED, payload={"from": "sdk"}), every("PT2S"), tags=["sdk"])
        runs = until(
            lambda: list(sh.runs.list(job_id=job, state="REQUEST_ERROR", page_size=1, max_items=2)),
            lambda r: len(r) == 2,
        )

        assert {run.reason for run in runs} == {"CONNECT"}
        assert [each.id for each in sh.jobs.list(tag="sdk")] == [job.id]
        assert sh.jobs.delete(sh.jobs.get(job)) is None
        with pytest.raises(NotFound, match="see http"):
            sh.jobs.get(job)


def test_the_asyncio_client_sends_many_requests_to_the_stack_at_once(stack: LocalStack) -> None:
    async def main() -> list[str]:
        async with AsyncSweephand.local(stack.folder.root / "stack.json", tenant="acme") as sh:
            jobs = await asyncio.gather(*(sh.jobs.create(f"at-once-{n}", http.post(CLOSED)) for n in range(4)))
            await asyncio.gather(*(sh.jobs.delete(job) for job in jobs))
            return [job.name for job in jobs]

    assert asyncio.run(main()) == [f"at-once-{n}" for n in range(4)]
