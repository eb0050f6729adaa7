"""Root's JobScheduler: its nine methods over the native API. Source: @rootsdk/server-bot 0.17.0, its types."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from sweephand.errors import SweephandError
from sweephand.sdk.api_errors import CountMismatch, InvalidField, InvalidQuery, NameTaken, NotFound
from sweephand.sdk.bodies import event
from sweephand.sdk.errors import ApiError
from sweephand.sdk.records import JobInterval, JobRecord, Result, members_of, record_of, resource_of, tag_of
from sweephand.sdk.sync.client import Sweephand

T = TypeVar("T")
TRIES = 5
"""How often jobs are counted and deleted while others make and delete such jobs."""


class JobScheduler:
    """The jobs of one collection, as Root's JobScheduler has those of one community.

    At its instant each puts the event `job` on the stack's bus, with Root's members. collection: made with the first
    job; it should hold these jobs only, as a delete by tag or resource takes all that match. Each method has a twin
    `try_...`, which returns a Result instead of raising.
    """

    def __init__(self, client: Sweephand, *, collection: str = "root") -> None:
        self._client, self._collection = client, collection

    def create(
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
            job = self._client.jobs.create(None, event(), collection=self._collection, **members)
        except InvalidField as refused:
            if not self._is_unknown(refused):
                raise
            self._make_collection()
            job = self._client.jobs.create(None, event(), collection=self._collection, **members)
        return JobRecord(job.id, resource_id, start, JobInterval(job_interval), tag, end)

    def get(self, job_schedule_id: str) -> JobRecord | None:
        """Returns a job; None if there is none."""
        try:
            job = self._client.jobs.get(job_schedule_id, include="schedules")
        except NotFound:
            return None
        return record_of(job) if job.collection == self._collection else None

    def edit(self, record: JobRecord) -> None:
        """Replaces a job by its record, whole. Raises NotFound if there is none in the collection."""
        members = members_of(record.resource_id, record.tag, record.start, record.end, record.job_interval)
        if self.get(record.job_schedule_id) is None:
            raise NotFound(
                method="PUT",
                path=f"/v1/jobs/{record.job_schedule_id}",
                status=404,
                code=NotFound.code,
                detail=f"the collection {self._collection} has no job {record.job_schedule_id}",
            )
        self._client.jobs.put(record.job_schedule_id, action=event(), collection=self._collection, **members)

    def delete(self, job_schedule_id: str) -> None:
        """Deletes a job. Succeeds if there is none in the collection."""
        if self.get(job_schedule_id) is None:
            return
        try:
            self._client.jobs.delete(job_schedule_id)
        except NotFound:
            return

    def delete_by_resource_id(self, resource_id: str) -> int:
        """Deletes the jobs of a resource. Returns how many. Raises TransportError, not repeated, for a lost answer."""
        return self._delete(resource_id=resource_of(resource_id))

    def delete_by_tag(self, tag: str | None) -> int:
        """Deletes the jobs with a tag; with None, those without one. Otherwise as `delete_by_resource_id`."""
        return self._delete(tag=tag_of(tag))

    def list(self) -> tuple[JobRecord, ...]:
        """Returns all jobs."""
        return self._list()

    def list_by_resource_id(self, resource_id: str) -> tuple[JobRecord, ...]:
        """Returns the jobs of a resource."""
        return self._list(resource_id=resource_of(resource_id))

    def list_by_tag(self, tag: str | None) -> tuple[JobRecord, ...]:
        """Returns the jobs with a tag; with None, those without one."""
        return self._list(tag=tag_of(tag))

    # Without raising

    def try_create(
        self,
        *,
        resource_id: str,
        start: datetime,
        job_interval: JobInterval | int,
        tag: str | None = None,
        end: datetime | None = None,
    ) -> Result[JobRecord]:
        return _tried(
            lambda: self.create(resource_id=resource_id, start=start, job_interval=job_interval, tag=tag, end=end)
        )

    def try_get(self, job_schedule_id: str) -> Result[JobRecord | None]:
        return _tried(lambda: self.get(job_schedule_id))

    def try_edit(self, record: JobRecord) -> Result[None]:
        return _tried(lambda: self.edit(record))

    def try_delete(self, job_schedule_id: str) -> Result[None]:
        return _tried(lambda: self.delete(job_schedule_id))

    def try_delete_by_resource_id(self, resource_id: str) -> Result[int]:
        return _tried(lambda: self.delete_by_resource_id(resource_id))

    def try_delete_by_tag(self, tag: str | None) -> Result[int]:
        return _tried(lambda: self.delete_by_tag(tag))

    def try_list(self) -> Result[tuple[JobRecord, ...]]:
        return _tried(self.list)

    def try_list_by_resource_id(self, resource_id: str) -> Result[tuple[JobRecord, ...]]:
        return _tried(lambda: self.list_by_resource_id(resource_id))

    def try_list_by_tag(self, tag: str | None) -> Result[tuple[JobRecord, ...]]:
        return _tried(lambda: self.list_by_tag(tag))

    def _list(self, *, resource_id: str | None = None, tag: str | None = None) -> tuple[JobRecord, ...]:
        found: tuple[JobRecord, ...] = ()
        jobs = self._client.jobs.list(
            collection=self._collection, resource_id=resource_id, tag=tag, include="schedules", page_size=200
        )
        try:
            for job in jobs:
                record = record_of(job)
                found += () if record is None else (record,)
        except InvalidQuery as refused:
            if not self._is_unknown(refused):
                raise
        return found

    def _delete(self, *, resource_id: str | None = None, tag: str | None = None) -> int:
        """Counts the jobs and deletes so many, again where others have made or deleted some meanwhile.

        Returns how many were deleted: a job that is changed after the count stays.
        """
        jobs = self._client.jobs
        for left in reversed(range(TRIES)):
            try:
                count = (
                    jobs.delete_matching(collection=self._collection, resource_id=resource_id, tag=tag, dry_run=True)
                ).count
                if not count:
                    return 0
                begun = jobs.delete_matching(
                    collection=self._collection, resource_id=resource_id, tag=tag, expected_count=count
                )
                rest = self._client.operations.wait(begun)
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

    def _make_collection(self) -> None:
        try:
            self._client.collections.create(name=self._collection)
        except NameTaken:
            return


def _tried(call: Callable[[], T]) -> Result[T]:
    try:
        return Result(value=call())
    except SweephandError as error:
        return Result(error=error)
