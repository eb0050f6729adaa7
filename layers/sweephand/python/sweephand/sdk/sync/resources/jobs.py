"""`jobs`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sweephand.sdk import models
from sweephand.sdk.sync.caller import Caller
from sweephand.sdk.sync.pages import Pages
from sweephand.sdk.transport.request import ABSENT, Absent, Json, Named, Request, Revision, part, several


class Jobs:
    """The methods of `jobs`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(
        self,
        name: str | None,
        action: Json,
        schedules: Json | Sequence[Json] | Absent | None = ABSENT,
        *,
        description: str | Absent | None = ABSENT,
        collection: str | Absent | None = ABSENT,
        active: bool | Absent | None = ABSENT,
        resource_id: str | Absent | None = ABSENT,
        tags: Sequence[str] | Absent | None = ABSENT,
        start_time: datetime | str | Absent | None = ABSENT,
        end_time: datetime | str | Absent | None = ABSENT,
        error_action: Json | Absent | None = ABSENT,
        hooks: Json | Absent | None = ABSENT,
        policies: Json | Absent | None = ABSENT,
        idempotency_key: str | None = None,
    ) -> models.Job:
        """Creates a job with its action and schedules. `Idempotency-Key` makes the request repeatable.

        Args:
            name: The name, unique in its collection; by default the id.
            description: Free text for people.
            collection: The collection that holds the job.
            active: Whether it runs. If false, it does not run until this is true again.
            resource_id: The caller's own id for it, by which lists can be filtered.
            tags: Labels by which lists can be filtered.
            start_time: The job does not run before this instant. RFC 3339; without an offset, it is in UTC.
            end_time: The job does not run after this instant. RFC 3339; without an offset, it is in UTC.
            action: The action of the job: its target and what to send there.
            error_action: The action that runs after a run of the job has failed.
            hooks: Actions that run after a run has succeeded or failed, or was missed.
            policies: Rules for occurrences that overlap, are missed, or lie in the past.
            schedules: The schedules of the job.
            idempotency_key: A repetition with the same key within 24 hours has no further effect.
        """
        return models.Job(
            self._caller.json(
                Request(
                    "POST",
                    "/v1/jobs",
                    body={
                        "name": name,
                        "description": description,
                        "collection": collection,
                        "active": active,
                        "resourceId": resource_id,
                        "tags": tags,
                        "startTime": start_time,
                        "endTime": end_time,
                        "action": action,
                        "errorAction": error_action,
                        "hooks": hooks,
                        "policies": policies,
                        "schedules": several(schedules),
                    },
                    keyed=True,
                    key=idempotency_key,
                    acting=True,
                )
            )
        )

    def list(
        self,
        *,
        offset: int | None = None,
        collection: str | None = None,
        state: str | None = None,
        tag: str | None = None,
        resource_id: str | None = None,
        name: str | None = None,
        search: str | None = None,
        job_set: str | None = None,
        action_type: str | None = None,
        created_after: datetime | str | None = None,
        created_before: datetime | str | None = None,
        next_run_after: datetime | str | None = None,
        next_run_before: datetime | str | None = None,
        sort: str | None = None,
        include: str | Sequence[str] | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
        cursor: str | None = None,
    ) -> Pages[models.ListedJob]:
        """Lists the tenant's jobs. Filters can be combined.

        Args:
            offset: How many entries to skip. Not with `cursor`.
            collection: Only resources of this collection.
            state: Only resources in this state. Values: `ACTIVE`, `INACTIVE`, `PAUSED`, `COMPLETED`,
                `FAULTED`.
            tag: Only jobs with this tag. If empty, only jobs without tags.
            resource_id: Only resources with this resource id.
            name: Only resources with exactly this name.
            search: Only resources whose name contains this string; case is ignored.
            job_set: Only jobs that this job set owns.
            action_type: Only jobs whose action is of this type. Rejected if more than 1,000 jobs match the
                other filters. Values: `azure_service_bus_queue`, `azure_service_bus_topic`,
                `azure_storage_queue`, `ecs`, `event`, `events`, `http`, `job`, `lambda`, `queue`, `sns`,
                `sqs`, `states`.
            created_after: Only jobs that were created at or after this instant. Rejected if more than 1,000
                jobs match the other filters.
            created_before: Only jobs that were created before this instant. Rejected if more than 1,000 jobs
                match the other filters.
            next_run_after: Only jobs whose next run is at or after this instant. Rejected if more than 1,000
                jobs match the other filters.
            next_run_before: Only jobs whose next run is before this instant. Rejected if more than 1,000 jobs
                match the other filters.
            sort: Sorts by the next run, soonest first; jobs without one come last. Rejected if more than
                1,000 jobs match the other filters. Values: `nextRunAt`.
            include: Optional parts of the answer, separated by commas. Values: `lastRuns`, `schedules`,
                `total`.
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return Pages(
            self._caller,
            Request(
                "GET",
                "/v1/jobs",
                query={
                    "offset": offset,
                    "collection": collection,
                    "state": state,
                    "tag": tag,
                    "resourceId": resource_id,
                    "name": name,
                    "search": search,
                    "jobSet": job_set,
                    "actionType": action_type,
                    "createdAfter": created_after,
                    "createdBefore": created_before,
                    "nextRunAfter": next_run_after,
                    "nextRunBefore": next_run_before,
                    "sort": sort,
                    "include": include,
                },
                acting=True,
            ),
            models.ListedJob,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    def get(self, job: Named, *, include: str | Sequence[str] | None = None) -> models.Job:
        """Returns a job with its action and totals and, with `include`, its schedules. The ETag is its revision.

        Args:
            job: The id of the job.
            include: Optional parts of the answer, separated by commas. Values: `schedules`.
        """
        return models.Job(
            self._caller.json(Request("GET", f"/v1/jobs/{part(job, 'jobId')}", query={"include": include}, acting=True))
        )

    def put(
        self,
        job: Named,
        *,
        name: str | Absent | None = ABSENT,
        description: str | Absent | None = ABSENT,
        collection: str | Absent | None = ABSENT,
        active: bool | Absent | None = ABSENT,
        resource_id: str | Absent | None = ABSENT,
        tags: Sequence[str] | Absent | None = ABSENT,
        start_time: datetime | str | Absent | None = ABSENT,
        end_time: datetime | str | Absent | None = ABSENT,
        action: Json,
        error_action: Json | Absent | None = ABSENT,
        hooks: Json | Absent | None = ABSENT,
        policies: Json | Absent | None = ABSENT,
        schedules: Json | Sequence[Json] | Absent | None = ABSENT,
        if_match: Revision | None = None,
    ) -> models.Job:
        """Replaces a job. Members that are left out get their defaults.

        Args:
            job: The id of the job.
            name: The name, unique in its collection; by default the id.
            description: Free text for people.
            collection: The collection that holds the job.
            active: Whether it runs. If false, it does not run until this is true again.
            resource_id: The caller's own id for it, by which lists can be filtered.
            tags: Labels by which lists can be filtered.
            start_time: The job does not run before this instant. RFC 3339; without an offset, it is in UTC.
            end_time: The job does not run after this instant. RFC 3339; without an offset, it is in UTC.
            action: The action of the job: its target and what to send there.
            error_action: The action that runs after a run of the job has failed.
            hooks: Actions that run after a run has succeeded or failed, or was missed.
            policies: Rules for occurrences that overlap, are missed, or lie in the past.
            schedules: If left out, they stay. Schedules are matched by `id`, else by `name`; those not listed
                are deleted.
            if_match: Changes it only if this is still its revision.
        """
        return models.Job(
            self._caller.json(
                Request(
                    "PUT",
                    f"/v1/jobs/{part(job, 'jobId')}",
                    body={
                        "name": name,
                        "description": description,
                        "collection": collection,
                        "active": active,
                        "resourceId": resource_id,
                        "tags": tags,
                        "startTime": start_time,
                        "endTime": end_time,
                        "action": action,
                        "errorAction": error_action,
                        "hooks": hooks,
                        "policies": policies,
                        "schedules": several(schedules),
                    },
                    if_match=if_match,
                    acting=True,
                )
            )
        )

    def patch(
        self,
        job: Named,
        *,
        name: str | Absent | None = ABSENT,
        description: str | Absent | None = ABSENT,
        collection: str | Absent | None = ABSENT,
        active: bool | Absent | None = ABSENT,
        resource_id: str | Absent | None = ABSENT,
        tags: Sequence[str] | Absent | None = ABSENT,
        start_time: datetime | str | Absent | None = ABSENT,
        end_time: datetime | str | Absent | None = ABSENT,
        action: Json | Absent = ABSENT,
        error_action: Json | Absent | None = ABSENT,
        hooks: Json | Absent | None = ABSENT,
        policies: Json | Absent | None = ABSENT,
        schedules: Json | Sequence[Json] | Absent | None = ABSENT,
        if_match: Revision | None = None,
    ) -> models.Job:
        """Changes the given members of a job (merge patch, RFC 7396); null removes a member.

        Args:
            job: The id of the job.
            name: The name, unique in its collection; by default the id.
            description: Free text for people.
            collection: The collection that holds the job.
            active: Whether it runs. If false, it does not run until this is true again.
            resource_id: The caller's own id for it, by which lists can be filtered.
            tags: Labels by which lists can be filtered.
            start_time: The job does not run before this instant. RFC 3339; without an offset, it is in UTC.
            end_time: The job does not run after this instant. RFC 3339; without an offset, it is in UTC.
            action: The action of the job: its target and what to send there.
            error_action: The action that runs after a run of the job has failed.
            hooks: Actions that run after a run has succeeded or failed, or was missed.
            policies: Rules for occurrences that overlap, are missed, or lie in the past.
            schedules: If left out, they stay. Schedules are matched by `id`, else by `name`; those not listed
                are deleted.
            if_match: Changes it only if this is still its revision.
        """
        return models.Job(
            self._caller.json(
                Request(
                    "PATCH",
                    f"/v1/jobs/{part(job, 'jobId')}",
                    body={
                        "name": name,
                        "description": description,
                        "collection": collection,
                        "active": active,
                        "resourceId": resource_id,
                        "tags": tags,
                        "startTime": start_time,
                        "endTime": end_time,
                        "action": action,
                        "errorAction": error_action,
                        "hooks": hooks,
                        "policies": policies,
                        "schedules": several(schedules),
                    },
                    if_match=if_match,
                    acting=True,
                )
            )
        )

    def delete(self, job: Named, *, if_match: Revision | None = None) -> None:
        """Deletes a job with its schedules, and ends its open runs. Its runs stay in the ledger.

        Args:
            job: The id of the job.
            if_match: Changes it only if this is still its revision.
        """
        self._caller.json(Request("DELETE", f"/v1/jobs/{part(job, 'jobId')}", if_match=if_match, acting=True))

    def delete_matching(
        self,
        *,
        collection: str | None = None,
        state: str | None = None,
        tag: str | None = None,
        resource_id: str | None = None,
        name: str | None = None,
        search: str | None = None,
        dry_run: bool | None = None,
        expected_count: int | None = None,
    ) -> models.BulkDelete:
        """Deletes the jobs that match the filters. Give `expectedCount`, or `dryRun` only to count them.

        Args:
            collection: Only resources of this collection.
            state: Only resources in this state. Values: `ACTIVE`, `INACTIVE`, `PAUSED`, `COMPLETED`,
                `FAULTED`.
            tag: Only jobs with this tag. If empty, only jobs without tags.
            resource_id: Only resources with this resource id.
            name: Only resources with exactly this name.
            search: Only resources whose name contains this string; case is ignored.
            dry_run: Only counts; changes nothing.
            expected_count: Refused (412) if another number matches. Required, except with `dryRun`.
        """
        return models.BulkDelete(
            self._caller.json(
                Request(
                    "DELETE",
                    "/v1/jobs",
                    query={
                        "collection": collection,
                        "state": state,
                        "tag": tag,
                        "resourceId": resource_id,
                        "name": name,
                        "search": search,
                        "dryRun": dry_run,
                        "expectedCount": expected_count,
                    },
                    repeatable=dry_run is True,
                    acting=True,
                )
            )
        )

    def run(
        self,
        job: Named,
        *,
        schedule_id: str | Absent | None = ABSENT,
        if_active: str | Absent | None = ABSENT,
        mode: str | Absent | None = ABSENT,
        payload: Any | Absent = ABSENT,
        body: str | Absent | None = ABSENT,
        headers: Json | Absent | None = ABSENT,
        idempotency_key: str | None = None,
    ) -> models.RunStarted:
        """Starts a manual run now, in addition to the schedules. The body may contain a payload and headers.

        Args:
            job: The id of the job.
            schedule_id: Starts a run of this schedule, with its payload.
            if_active: With `drop`, nothing starts while a run of the job (or of the schedule) is active.
                Values: `start`, `drop`.
            mode: With `test`, the run is not counted, does not wait for other runs, starts no hook and no
                error action, causes no error group, and switches nothing off. Its kind is `test`. Values:
                `run`, `test`.
            payload: JSON that this run sends instead of the job's payload.
            body: A string that is sent unchanged; excludes `payload`.
            headers: Headers that replace the action's headers of the same names; null leaves one out.
            idempotency_key: A repetition with the same key within 24 hours has no further effect.
        """
        return models.RunStarted(
            self._caller.json(
                Request(
                    "POST",
                    f"/v1/jobs/{part(job, 'jobId')}/run",
                    body={
                        "scheduleId": schedule_id,
                        "ifActive": if_active,
                        "mode": mode,
                        "payload": payload,
                        "body": body,
                        "headers": headers,
                    },
                    keyed=True,
                    key=idempotency_key,
                    acting=True,
                )
            )
        )

    def pause(
        self,
        job: Named,
        *,
        note: str | Absent | None = ABSENT,
        until: datetime | str | Absent | None = ABSENT,
        if_match: Revision | None = None,
    ) -> models.Job:
        """Pauses a job until it is resumed, or until a given instant.

        Args:
            job: The id of the job.
            note: A note that says why.
            until: The job resumes at this instant. RFC 3339; without an offset, it is in UTC.
            if_match: Changes it only if this is still its revision.
        """
        return models.Job(
            self._caller.json(
                Request(
                    "POST",
                    f"/v1/jobs/{part(job, 'jobId')}/pause",
                    body={"note": note, "until": until},
                    if_match=if_match,
                    acting=True,
                )
            )
        )

    def resume(self, job: Named, *, if_match: Revision | None = None) -> models.Job:
        """Resumes a job. Occurrences that fell due during the pause do not run; the ledger has a row for them.

        Args:
            job: The id of the job.
            if_match: Changes it only if this is still its revision.
        """
        return models.Job(
            self._caller.json(Request("POST", f"/v1/jobs/{part(job, 'jobId')}/resume", if_match=if_match, acting=True))
        )

    def activate(self, job: Named, *, if_match: Revision | None = None) -> models.Job:
        """Activates a job. Repeating the request changes nothing.

        Args:
            job: The id of the job.
            if_match: Changes it only if this is still its revision.
        """
        return models.Job(
            self._caller.json(
                Request("POST", f"/v1/jobs/{part(job, 'jobId')}/activate", if_match=if_match, acting=True)
            )
        )

    def deactivate(self, job: Named, *, if_match: Revision | None = None) -> models.Job:
        """Deactivates a job until it is activated again. Repeating the request changes nothing.

        Args:
            job: The id of the job.
            if_match: Changes it only if this is still its revision.
        """
        return models.Job(
            self._caller.json(
                Request("POST", f"/v1/jobs/{part(job, 'jobId')}/deactivate", if_match=if_match, acting=True)
            )
        )

    def activate_matching(
        self,
        *,
        collection: str | None = None,
        state: str | None = None,
        tag: str | None = None,
        resource_id: str | None = None,
        name: str | None = None,
        search: str | None = None,
        dry_run: bool | None = None,
        expected_count: int | None = None,
        idempotency_key: str | None = None,
    ) -> models.BulkSwitch:
        """Activates the jobs that match the filters. Give `expectedCount`, or `dryRun` only to count them.

        Args:
            collection: Only resources of this collection.
            state: Only resources in this state. Values: `ACTIVE`, `INACTIVE`, `PAUSED`, `COMPLETED`,
                `FAULTED`.
            tag: Only jobs with this tag. If empty, only jobs without tags.
            resource_id: Only resources with this resource id.
            name: Only resources with exactly this name.
            search: Only resources whose name contains this string; case is ignored.
            dry_run: Only counts; changes nothing.
            expected_count: Refused (412) if another number matches. Required, except with `dryRun`.
            idempotency_key: A repetition with the same key within 24 hours has no further effect.
        """
        return models.BulkSwitch(
            self._caller.json(
                Request(
                    "POST",
                    "/v1/jobs:activate",
                    query={
                        "collection": collection,
                        "state": state,
                        "tag": tag,
                        "resourceId": resource_id,
                        "name": name,
                        "search": search,
                        "dryRun": dry_run,
                        "expectedCount": expected_count,
                    },
                    keyed=True,
                    key=idempotency_key,
                    acting=True,
                )
            )
        )

    def deactivate_matching(
        self,
        *,
        collection: str | None = None,
        state: str | None = None,
        tag: str | None = None,
        resource_id: str | None = None,
        name: str | None = None,
        search: str | None = None,
        dry_run: bool | None = None,
        expected_count: int | None = None,
        idempotency_key: str | None = None,
    ) -> models.BulkSwitch:
        """Deactivates the jobs that match the filters. Give `expectedCount`, or `dryRun` only to count them.

        Args:
            collection: Only resources of this collection.
            state: Only resources in this state. Values: `ACTIVE`, `INACTIVE`, `PAUSED`, `COMPLETED`,
                `FAULTED`.
            tag: Only jobs with this tag. If empty, only jobs without tags.
            resource_id: Only resources with this resource id.
            name: Only resources with exactly this name.
            search: Only resources whose name contains this string; case is ignored.
            dry_run: Only counts; changes nothing.
            expected_count: Refused (412) if another number matches. Required, except with `dryRun`.
            idempotency_key: A repetition with the same key within 24 hours has no further effect.
        """
        return models.BulkSwitch(
            self._caller.json(
                Request(
                    "POST",
                    "/v1/jobs:deactivate",
                    query={
                        "collection": collection,
                        "state": state,
                        "tag": tag,
                        "resourceId": resource_id,
                        "name": name,
                        "search": search,
                        "dryRun": dry_run,
                        "expectedCount": expected_count,
                    },
                    keyed=True,
                    key=idempotency_key,
                    acting=True,
                )
            )
        )

    def pause_matching(
        self,
        *,
        note: str | Absent | None = ABSENT,
        until: datetime | str | Absent | None = ABSENT,
        collection: str | None = None,
        state: str | None = None,
        tag: str | None = None,
        resource_id: str | None = None,
        name: str | None = None,
        search: str | None = None,
        dry_run: bool | None = None,
        expected_count: int | None = None,
        idempotency_key: str | None = None,
    ) -> models.BulkSwitch:
        """Pauses the jobs that match the filters. Give `expectedCount`, or `dryRun` only to count them.

        Args:
            note: A note that says why.
            until: The job resumes at this instant. RFC 3339; without an offset, it is in UTC.
            collection: Only resources of this collection.
            state: Only resources in this state. Values: `ACTIVE`, `INACTIVE`, `PAUSED`, `COMPLETED`,
                `FAULTED`.
            tag: Only jobs with this tag. If empty, only jobs without tags.
            resource_id: Only resources with this resource id.
            name: Only resources with exactly this name.
            search: Only resources whose name contains this string; case is ignored.
            dry_run: Only counts; changes nothing.
            expected_count: Refused (412) if another number matches. Required, except with `dryRun`.
            idempotency_key: A repetition with the same key within 24 hours has no further effect.
        """
        return models.BulkSwitch(
            self._caller.json(
                Request(
                    "POST",
                    "/v1/jobs:pause",
                    query={
                        "collection": collection,
                        "state": state,
                        "tag": tag,
                        "resourceId": resource_id,
                        "name": name,
                        "search": search,
                        "dryRun": dry_run,
                        "expectedCount": expected_count,
                    },
                    body={"note": note, "until": until},
                    keyed=True,
                    key=idempotency_key,
                    acting=True,
                )
            )
        )

    def resume_matching(
        self,
        *,
        collection: str | None = None,
        state: str | None = None,
        tag: str | None = None,
        resource_id: str | None = None,
        name: str | None = None,
        search: str | None = None,
        dry_run: bool | None = None,
        expected_count: int | None = None,
        idempotency_key: str | None = None,
    ) -> models.BulkSwitch:
        """Resumes the jobs that match the filters. Give `expectedCount`, or `dryRun` only to count them.

        Args:
            collection: Only resources of this collection.
            state: Only resources in this state. Values: `ACTIVE`, `INACTIVE`, `PAUSED`, `COMPLETED`,
                `FAULTED`.
            tag: Only jobs with this tag. If empty, only jobs without tags.
            resource_id: Only resources with this resource id.
            name: Only resources with exactly this name.
            search: Only resources whose name contains this string; case is ignored.
            dry_run: Only counts; changes nothing.
            expected_count: Refused (412) if another number matches. Required, except with `dryRun`.
            idempotency_key: A repetition with the same key within 24 hours has no further effect.
        """
        return models.BulkSwitch(
            self._caller.json(
                Request(
                    "POST",
                    "/v1/jobs:resume",
                    query={
                        "collection": collection,
                        "state": state,
                        "tag": tag,
                        "resourceId": resource_id,
                        "name": name,
                        "search": search,
                        "dryRun": dry_run,
                        "expectedCount": expected_count,
                    },
                    keyed=True,
                    key=idempotency_key,
                    acting=True,
                )
            )
        )

    def next(self, job: Named) -> models.NextRun:
        """Returns the next instant at which any schedule of the job runs.

        Args:
            job: The id of the job.
        """
        return models.NextRun(self._caller.json(Request("GET", f"/v1/jobs/{part(job, 'jobId')}/next", acting=True)))

    def occurrences(
        self,
        job: Named,
        *,
        schedule_id: Named | None = None,
        from_: datetime | str | None = None,
        until: datetime | str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
        cursor: str | None = None,
    ) -> Pages[models.Occurrence]:
        """Lists a job's past runs and planned occurrences in one list.

        Args:
            job: The id of the job.
            schedule_id: Only runs of this schedule.
            from_: The start (inclusive); by default now. RFC 3339; without an offset, it is in UTC.
            until: The end (inclusive). RFC 3339; without an offset, it is in UTC.
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return Pages(
            self._caller,
            Request(
                "GET",
                f"/v1/jobs/{part(job, 'jobId')}/occurrences",
                query={"scheduleId": schedule_id, "from": from_, "until": until},
                acting=True,
            ),
            models.Occurrence,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    def changes(
        self,
        job: Named,
        *,
        include: str | Sequence[str] | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
        cursor: str | None = None,
    ) -> Pages[models.Change]:
        """Lists the changes of a job, newest first: who changed which members, and when.

        Args:
            job: The id of the job.
            include: Optional parts of the answer, separated by commas. Values: `before`.
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return Pages(
            self._caller,
            Request("GET", f"/v1/jobs/{part(job, 'jobId')}/changes", query={"include": include}, acting=True),
            models.Change,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )
