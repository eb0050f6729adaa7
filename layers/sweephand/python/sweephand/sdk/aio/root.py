"""Root's JobScheduler: its nine methods over the native API. Source: @rootsdk/server-bot 0.17.0, its types."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar

from sweephand.errors import SweephandError
from sweephand.sdk.aio.client import AsyncSweephand
from sweephand.sdk.api_errors import CountMismatch, InvalidField, InvalidQuery, NameTaken, NotFound
from sweephand.sdk.bodies import event
from sweephand.sdk.errors import ApiError
from sweephand.sdk.records import JobInterval, JobRecord, Result, members_of, record_of, resource_of, tag_of

T = TypeVar("T")
TRIES = 5
"""How often jobs are counted and deleted while others make and delete such jobs."""


class AsyncJobScheduler:
    """The jobs of one collection, as Root's JobScheduler has those of one community.

    At its instant each puts the event `job` on the stack's bus, with Root's members. collection: made with the first
    job; it should hold these jobs only, as a delete by tag or resource takes all that match. Each method has a twin
    `try_...`, which returns a Result instead of raising.
    """

    def __init__(self, client: AsyncSweephand, *, collection: str = "root") -> None:
        self._client, self._collection = client, collection

    async def create(
        self,
        *,
        resource_id: str,
        start: datetime,
        job_interval: JobInterval | int,
        tag: str | None = None,
        end: datetime | None = None,
    ) -> JobRecord:
        """Creates a job. Raises InvalidArgument, such as for an interval outside 1 to 5, and ApiError."""
        members = members_of(resource_id, tag, start, end, job_interval)
        try:
            job = await self._client.jobs.create(None, event(), collection=self._collection, **members)
        except InvalidField as refused:
            if not self._is_unknown(refused):
                raise
            await self._make_collection()
            job = await self._client.jobs.create(None, event(), collection=self._collection, **members)
        return JobRecord(job.id, resource_id, start, JobInterval(job_interval), tag, end)

    async def get(self, job_schedule_id: str) -> JobRecord | None:
        """Returns a job; None if there is none."""
        try:
            job = await self._client.jobs.get(job_schedule_id, include="schedules")
        except NotFound:
            return None
        return record_of(job) if job.collection == self._collection else None

    async def edit(self, record: JobRecord) -> None:
        """Replaces a job by its record, whole. Raises NotFound if there is none in the collection."""
        members = members_of(record.resource_id, record.tag, record.start, record.end, record.job_interval)
        if await self.get(record.job_schedule_id) is None:
            raise NotFound(
                method="PUT",
                path=f"/v1/jobs/{record.job_schedule_id}",
                status=404,
                code=NotFound.code,
                detail=f"the collection {self._collection} has no job {record.job_schedule_id}",
            )
        await self._client.jobs.put(record.job_schedule_id, action=event(), collection=self._collection, **members)

    async def delete(self, job_schedule_id: str) -> None:
        """Deletes a job. Succeeds if there is none in the collection."""
        if await self.get(job_schedule_id) is None:
            return
        try:
            await self._client.jobs.delete(job_schedule_id)
        except NotFound:
            return

    async def delete_by_resource_id(self, resource_id: str) -> int:
        """Deletes the jobs of a resource. Returns how many. Raises TransportError, not repeated, for a lost answer."""
        return await self._delete(resource_id=resource_of(resource_id))

    async def delete_by_tag(self, tag: str | None) -> int:
        """Deletes the jobs with a tag; with None, those without one. Otherwise as `delete_by_resource_id`."""
        return await self._delete(tag=tag_of(tag))

    async def list(self) -> tuple[JobRecord, ...]:
        """Returns all jobs."""
        return await self._list()

    async def list_by_resource_id(self, resource_id: str) -> tuple[JobRecord, ...]:
        """Returns the jobs of a resource."""
        return await self._list(resource_id=resource_of(resource_id))

    async def list_by_tag(self, tag: str | None) -> tuple[JobRecord, ...]:
        """Returns the jobs with a tag; with None, those without one."""
        return await self._list(tag=tag_of(tag))

    # Without raising

    async def try_create(
        self,
        *,
        resource_id: str,
        start: datetime,
        job_interval: JobInterval | int,
        tag: str | None = None,
        end: datetime | None = None,
    ) -> Result[JobRecord]:
        return await _tried(
            lambda: self.create(resource_id=resource_id, start=start, job_interval=job_interval, tag=tag, end=end)
        )

    async def try_get(self, job_schedule_id: str) -> Result[JobRecord | None]:
        return await _tried(lambda: self.get(job_schedule_id))

    async def try_edit(self, record: JobRecord) -> Result[None]:
        return await _tried(lambda: self.edit(record))

    async def try_delete(self, job_schedule_id: str) -> Result[None]:
        return await _tried(lambda: self.delete(job_schedule_id))

    async def try_delete_by_resource_id(self, resource_id: str) -> Result[int]:
        return await _tried(lambda: self.delete_by_resource_id(resource_id))

    async def try_delete_by_tag(self, tag: str | None) -> Result[int]:
        return await _tried(lambda: self.delete_by_tag(tag))

    async def try_list(self) -> Result[tuple[JobRecord, ...]]:
        return await _tried(self.list)

    async def try_list_by_resource_id(self, resource_id: str) -> Result[tuple[JobRecord, ...]]:
        return await _tried(lambda: self.list_by_resource_id(resource_id))

    async def try_list_by_tag(self, tag: str | None) -> Result[tuple[JobRecord, ...]]:
        return await _tried(lambda: self.list_by_tag(tag))

    async def _list(self, *, resource_id: str | None = None, tag: str | None = None) -> tuple[JobRecord, ...]:
        found: tuple[JobRecord, ...] = ()
        jobs = self._client.jobs.list(
            collection=self._collection, resource_id=resource_id, tag=tag, include="schedules", page_size=200
        )
        try:
            async for job in jobs:
                record = record_of(job)
                found += () if record is None else (record,)
        except InvalidQuery as refused:
            if not self._is_unknown(refused):
                raise
        return found

    async def _delete(self, *, resource_id: str | None = None, tag: str | None = None) -> int:
        """Counts the jobs and deletes so many, again where others have made or deleted some meanwhile.

        Returns how many were deleted: a job that is changed after the count stays.
        """
        jobs = self._client.jobs
        for left in reversed(range(TRIES)):
            try:
                count = (
                    await jobs.delete_matching(
                        collection=self._collection, resource_id=resource_id, tag=tag, dry_run=True
                    )
                ).count
                if not count:
                    return 0
                begun = await jobs.delete_matching(
                    collection=self._collection, resource_id=resource_id, tag=tag, expected_count=count
                )
                rest = await self._client.operations.wait(begun)
            except CountMismatch:
                if not left:
                    raise
            except InvalidQuery as refused:
                if not self._is_unknown(refused):
                    raise
                return 0
            else:
                return begun.deleted + (rest.progress.done if rest else 0)
        raise AssertionError("the last try returns or raises")

    def _is_unknown(self, refused: ApiError) -> bool:
        """Tells whether the collection is what a refusal is about: it is made with the first job."""
        return [each.field for each in refused.errors] == ["collection"]

    async def _make_collection(self) -> None:
        try:
            await self._client.collections.create(name=self._collection)
        except NameTaken:
            return


async def _tried(call: Callable[[], Awaitable[T]]) -> Result[T]:
    try:
        return Result(value=await call())
    except SweephandError as error:
        return Result(error=error)
