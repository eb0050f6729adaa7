"""`runs`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sweephand.sdk import models
from sweephand.sdk.sync.caller import Caller
from sweephand.sdk.sync.pages import Pages
from sweephand.sdk.transport.request import ABSENT, Absent, Json, Named, Request, part


class Runs:
    """The methods of `runs`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        job_id: Named | None = None,
        schedule_id: Named | None = None,
        collection: str | None = None,
        tag: str | None = None,
        resource_id: str | None = None,
        from_: datetime | str | None = None,
        until: datetime | str | None = None,
        state: str | None = None,
        kind: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
        cursor: str | None = None,
    ) -> Pages[models.Run]:
        """Lists runs. Runs that succeeded are left out unless you filter by more than kind and time.

        Args:
            job_id: The id of the job. The integer `_id` of a job that SAP's API created is accepted too.
            schedule_id: Only runs of this schedule.
            collection: Only resources of this collection.
            tag: Only resources with this tag.
            resource_id: Only resources with this resource id.
            from_: Only runs planned at or after this instant. RFC 3339; without an offset, it is in UTC.
            until: Only runs planned at or before this instant. RFC 3339; without an offset, it is in UTC.
            state: Only resources in this state. Values: `TRIGGERED`, `ACK_RECVD`, `ACK_NOT_RECVD`,
                `RETRY_WAIT`, `HELD`, `QUEUED`, `SUCCESS`, `ERROR`, `REQUEST_ERROR`, `UNKNOWN`, `TIMEOUT`,
                `SKIPPED`, `MISSED`, `EXPIRED`, `CANCELLED`.
            kind: Only entries of this kind. Values: `scheduled`, `manual`, `error_action`, `backfill`,
                `on_success`, `on_failure`, `on_missed`, `test`.
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return Pages(
            self._caller,
            Request(
                "GET",
                "/v1/runs",
                query={
                    "jobId": job_id,
                    "scheduleId": schedule_id,
                    "collection": collection,
                    "tag": tag,
                    "resourceId": resource_id,
                    "from": from_,
                    "until": until,
                    "state": state,
                    "kind": kind,
                },
                acting=True,
            ),
            models.Run,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    def get(self, run: Named) -> models.Run:
        """Returns a run with its attempts and the reason for its state.

        Args:
            run: `<scheduleId>_<uuid>`; without a schedule `<jobId>_<uuid>`.
        """
        return models.Run(self._caller.json(Request("GET", f"/v1/runs/{part(run, 'runId')}", acting=True)))

    def report(
        self,
        run: Named,
        *,
        success: bool,
        message: str | Absent | None = ABSENT,
        reschedule: Json | Absent | None = ABSENT,
    ) -> models.Run:
        """Reports the result of a run that waits for one. The run's own token is enough.

        Args:
            run: `<scheduleId>_<uuid>`; without a schedule `<jobId>_<uuid>`.
            success: Whether the run succeeded.
            message: A sentence for people.
            reschedule: When the job runs again; null: as its schedules say.
        """
        return models.Run(
            self._caller.json(
                Request(
                    "PUT",
                    f"/v1/runs/{part(run, 'runId')}/result",
                    body={"success": success, "message": message, "reschedule": reschedule},
                    acting=True,
                )
            )
        )

    def nack(self, run: Named, *, attempt: int) -> models.Run:
        """Rejects an attempt whose result is awaited. The job's retry policy decides when the next one follows.

        Args:
            run: `<scheduleId>_<uuid>`; without a schedule `<jobId>_<uuid>`.
            attempt: The number of the attempt whose result will not come.
        """
        return models.Run(
            self._caller.json(
                Request("POST", f"/v1/runs/{part(run, 'runId')}/nack", body={"attempt": attempt}, acting=True)
            )
        )

    def cancel(self, run: Named) -> models.Run:
        """Cancels a run that has not ended. A call that has already begun is not interrupted.

        Args:
            run: `<scheduleId>_<uuid>`; without a schedule `<jobId>_<uuid>`.
        """
        return models.Run(self._caller.json(Request("POST", f"/v1/runs/{part(run, 'runId')}/cancel", acting=True)))

    def rerun(
        self,
        run: Named,
        *,
        payload: Any | Absent = ABSENT,
        body: str | Absent | None = ABSENT,
        headers: Json | Absent | None = ABSENT,
        idempotency_key: str | None = None,
    ) -> models.RunStarted:
        """Runs a finished run again, with its own payload or another one.

        Args:
            run: `<scheduleId>_<uuid>`; without a schedule `<jobId>_<uuid>`.
            payload: JSON that this run sends instead of the job's payload.
            body: A string that is sent unchanged; excludes `payload`.
            headers: Headers that replace the action's headers of the same names; null leaves one out.
            idempotency_key: A repetition with the same key within 24 hours has no further effect.
        """
        return models.RunStarted(
            self._caller.json(
                Request(
                    "POST",
                    f"/v1/runs/{part(run, 'runId')}/rerun",
                    body={"payload": payload, "body": body, "headers": headers},
                    keyed=True,
                    key=idempotency_key,
                    acting=True,
                )
            )
        )

    def export(
        self,
        *,
        format: str | Absent | None = ABSENT,
        job_id: str | Absent | None = ABSENT,
        schedule_id: str | Absent | None = ABSENT,
        collection: str | Absent | None = ABSENT,
        tag: str | Absent | None = ABSENT,
        resource_id: str | Absent | None = ABSENT,
        from_: datetime | str | Absent | None = ABSENT,
        until: datetime | str | Absent | None = ABSENT,
        state: str | Absent | None = ABSENT,
        kind: str | Absent | None = ABSENT,
        cursor: str | Absent | None = ABSENT,
        idempotency_key: str | None = None,
    ) -> models.Operation:
        """Exports runs to a file. The operation in the answer has the link to the file.

        Args:
            format: The format of the file. Values: `csv`, `jsonl`.
            job_id: The id of the job. The integer `_id` of a job that SAP's API created is accepted too.
            schedule_id: Only runs of this schedule.
            collection: Only runs of jobs in this collection.
            tag: Only runs of jobs with this tag.
            resource_id: Only runs of jobs with this resource id.
            from_: Only runs planned at or after this instant. RFC 3339; without an offset, it is in UTC.
            until: Only runs planned at or before this instant. RFC 3339; without an offset, it is in UTC.
            state: Only runs in this state. Values: `TRIGGERED`, `ACK_RECVD`, `ACK_NOT_RECVD`, `RETRY_WAIT`,
                `HELD`, `QUEUED`, `SUCCESS`, `ERROR`, `REQUEST_ERROR`, `UNKNOWN`, `TIMEOUT`, `SKIPPED`,
                `MISSED`, `EXPIRED`, `CANCELLED`.
            kind: Only runs of this kind. Values: `scheduled`, `manual`, `error_action`, `backfill`,
                `on_success`, `on_failure`, `on_missed`, `test`.
            cursor: `nextCursor` of the previous file, with the same other members, or of a page of `GET
                /v1/runs`.
            idempotency_key: A repetition with the same key within 24 hours has no further effect.
        """
        return models.Operation(
            self._caller.json(
                Request(
                    "POST",
                    "/v1/runs:export",
                    body={
                        "format": format,
                        "jobId": job_id,
                        "scheduleId": schedule_id,
                        "collection": collection,
                        "tag": tag,
                        "resourceId": resource_id,
                        "from": from_,
                        "until": until,
                        "state": state,
                        "kind": kind,
                        "cursor": cursor,
                    },
                    keyed=True,
                    key=idempotency_key,
                    acting=True,
                )
            )
        )

    def claim(
        self,
        run: Named,
        *,
        message: str,
        owner: str,
        application: str,
        version: str | Absent | None = ABSENT,
        lease_seconds: int | Absent | None = ABSENT,
        sent_at: datetime | str | Absent | None = ABSENT,
    ) -> models.ClaimVerdict:
        """Claims a run for the worker that received its message. Repeating the request returns the same task.

        Args:
            run: `<scheduleId>_<uuid>`; without a schedule `<jobId>_<uuid>`.
            message: The body of the message, unchanged.
            owner: Identifies the worker and the message. A repeated request has the same value.
            application: The application whose queue the message came from.
            version: The version of the worker.
            lease_seconds: How long the claim holds without a heartbeat.
            sent_at: When the queue accepted the message.
        """
        return models.ClaimVerdict(
            self._caller.json(
                Request(
                    "POST",
                    f"/v1/runs/{part(run, 'runId')}/claim",
                    body={
                        "message": message,
                        "owner": owner,
                        "application": application,
                        "version": version,
                        "leaseSeconds": lease_seconds,
                        "sentAt": sent_at,
                    },
                    acting=True,
                )
            )
        )

    def heartbeat(self, run: Named, *, owner: str, lease_seconds: int | Absent | None = ABSENT) -> models.LeaseEnd:
        """Extends the lease of a claimed run.

        Args:
            run: `<scheduleId>_<uuid>`; without a schedule `<jobId>_<uuid>`.
            owner: Identifies the worker and the message. A repeated request has the same value.
            lease_seconds: How long the claim holds without a heartbeat.
        """
        return models.LeaseEnd(
            self._caller.json(
                Request(
                    "POST",
                    f"/v1/runs/{part(run, 'runId')}/heartbeat",
                    body={"owner": owner, "leaseSeconds": lease_seconds},
                    acting=True,
                )
            )
        )

    def settle(
        self,
        run: Named,
        *,
        owner: str,
        attempt: int,
        outcome: str,
        message: str | Absent | None = ABSENT,
        exception: str | Absent | None = ABSENT,
        details: str | Absent | None = ABSENT,
        retry: bool | Absent | None = ABSENT,
        delay_seconds: int | Absent | None = ABSENT,
        reschedule: Json | Absent | None = ABSENT,
    ) -> models.Run:
        """Reports the outcome of an attempt that a worker has claimed. Repeating the request changes nothing.

        Args:
            run: `<scheduleId>_<uuid>`; without a schedule `<jobId>_<uuid>`.
            owner: Identifies the worker and the message. A repeated request has the same value.
            attempt: The number of the attempt, from 1.
            outcome: How the attempt ended. `unknown_task`: another worker may know it. `bad_payload`: no
                attempt follows. `discarded`: the run is cancelled. Values: `success`, `failure`,
                `bad_payload`, `unknown_task`, `discarded`.
            message: A sentence for people.
            exception: The type of the exception. Errors are grouped by it.
            details: More about the failure, such as a stack trace. Kept as the answer of the attempt.
            retry: Whether another attempt may follow. Only with `failure`.
            delay_seconds: The shortest wait before the next attempt. Only with `failure`.
            reschedule: When the job runs again; null: as its schedules say. Only with the outcome `success`.
        """
        return models.Run(
            self._caller.json(
                Request(
                    "POST",
                    f"/v1/runs/{part(run, 'runId')}/settle",
                    body={
                        "owner": owner,
                        "attempt": attempt,
                        "outcome": outcome,
                        "message": message,
                        "exception": exception,
                        "details": details,
                        "retry": retry,
                        "delaySeconds": delay_seconds,
                        "reschedule": reschedule,
                    },
                    acting=True,
                )
            )
        )
