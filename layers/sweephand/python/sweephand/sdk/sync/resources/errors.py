"""`errors`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sweephand.sdk import models
from sweephand.sdk.sync.caller import Caller
from sweephand.sdk.sync.pages import Pages
from sweephand.sdk.transport.request import ABSENT, Absent, Json, Named, Request, part


class Errors:
    """The methods of `errors`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        job_id: Named | None = None,
        collection: str | None = None,
        tag: str | None = None,
        resource_id: str | None = None,
        from_: datetime | str | None = None,
        until: datetime | str | None = None,
        state: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
        cursor: str | None = None,
    ) -> Pages[models.ErrorGroup]:
        """Lists failed runs in groups by job and error, latest first.

        Args:
            job_id: The id of the job. The integer `_id` of a job that SAP's API created is accepted too.
            collection: Only resources of this collection.
            tag: Only resources with this tag.
            resource_id: Only resources with this resource id.
            from_: Only groups that last failed at or after this instant. RFC 3339; without an offset, it is
                in UTC.
            until: Only groups that first failed at or before this instant. RFC 3339; without an offset, it is
                in UTC.
            state: Only resources in this state. Values: `OPEN`, `ARCHIVED`, `RESOLVED`.
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return Pages(
            self._caller,
            Request(
                "GET",
                "/v1/errors",
                query={
                    "jobId": job_id,
                    "collection": collection,
                    "tag": tag,
                    "resourceId": resource_id,
                    "from": from_,
                    "until": until,
                    "state": state,
                },
                acting=True,
            ),
            models.ErrorGroup,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    def get(self, error: Named) -> models.ErrorGroup:
        """Returns a group of errors with its notes.

        Args:
            error: The id of the group of errors.
        """
        return models.ErrorGroup(self._caller.json(Request("GET", f"/v1/errors/{part(error)}", acting=True)))

    def runs(
        self, error: Named, *, page_size: int | None = None, max_items: int | None = None, cursor: str | None = None
    ) -> Pages[models.ErrorRun]:
        """Lists the failed runs of a group, each with what was done about it.

        Args:
            error: The id of the group of errors.
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return Pages(
            self._caller,
            Request("GET", f"/v1/errors/{part(error)}/runs", acting=True),
            models.ErrorRun,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    def summary(
        self,
        *,
        group_by: str | None = None,
        job_id: Named | None = None,
        collection: str | None = None,
        tag: str | None = None,
        resource_id: str | None = None,
        from_: datetime | str | None = None,
        until: datetime | str | None = None,
    ) -> models.ErrorSummary:
        """Counts open errors by what their jobs have in common now.

        Args:
            group_by: The value by which the errors are counted. Values: `job`, `jobSet`, `target`, `version`.
            job_id: The id of the job. The integer `_id` of a job that SAP's API created is accepted too.
            collection: Only resources of this collection.
            tag: Only resources with this tag.
            resource_id: Only resources with this resource id.
            from_: Only groups that last failed at or after this instant. RFC 3339; without an offset, it is
                in UTC.
            until: Only groups that first failed at or before this instant. RFC 3339; without an offset, it is
                in UTC.
        """
        return models.ErrorSummary(
            self._caller.json(
                Request(
                    "GET",
                    "/v1/errors:summary",
                    query={
                        "groupBy": group_by,
                        "jobId": job_id,
                        "collection": collection,
                        "tag": tag,
                        "resourceId": resource_id,
                        "from": from_,
                        "until": until,
                    },
                    acting=True,
                )
            )
        )

    def add_note(self, error: Named, text: str, *, idempotency_key: str | None = None) -> models.ErrorGroup:
        """Adds a note to a group of errors.

        Args:
            error: The id of the group of errors.
            text: The text.
            idempotency_key: A repetition with the same key within 24 hours has no further effect.
        """
        return models.ErrorGroup(
            self._caller.json(
                Request(
                    "POST",
                    f"/v1/errors/{part(error)}/notes",
                    body={"text": text},
                    keyed=True,
                    key=idempotency_key,
                    acting=True,
                )
            )
        )

    def archive(self, error: Named, *, reason: str | Absent | None = ABSENT) -> models.ErrorGroup:
        """Archives a group of errors. It opens again when the job fails in the same way.

        Args:
            error: The id of the group of errors.
            reason: Why it is archived, for people.
        """
        return models.ErrorGroup(
            self._caller.json(
                Request("POST", f"/v1/errors/{part(error)}/archive", body={"reason": reason}, acting=True)
            )
        )

    def restore(self, error: Named) -> models.ErrorGroup:
        """Reopens an archived group of errors.

        Args:
            error: The id of the group of errors.
        """
        return models.ErrorGroup(self._caller.json(Request("POST", f"/v1/errors/{part(error)}/restore", acting=True)))

    def archive_run(self, error: Named, failed_run: Named, *, reason: str | Absent | None = ABSENT) -> models.ErrorRun:
        """Archives one failed run.

        Args:
            error: The id of the group of errors.
            failed_run: `<scheduleId>_<uuid>`; without a schedule `<jobId>_<uuid>`.
            reason: Why it is archived, for people.
        """
        return models.ErrorRun(
            self._caller.json(
                Request(
                    "POST",
                    f"/v1/errors/{part(error)}/runs/{part(failed_run, 'runId')}/archive",
                    body={"reason": reason},
                    acting=True,
                )
            )
        )

    def restore_run(self, error: Named, failed_run: Named) -> models.ErrorRun:
        """Reopens an archived failed run, if its group is open.

        Args:
            error: The id of the group of errors.
            failed_run: `<scheduleId>_<uuid>`; without a schedule `<jobId>_<uuid>`.
        """
        return models.ErrorRun(
            self._caller.json(
                Request("POST", f"/v1/errors/{part(error)}/runs/{part(failed_run, 'runId')}/restore", acting=True)
            )
        )

    def redrive(
        self,
        *,
        runs: Sequence[str] | Absent | None = ABSENT,
        group: str | Absent | None = ABSENT,
        filter: Json | Absent | None = ABSENT,
        rate_per_minute: int | Absent | None = ABSENT,
        dry_run: bool | Absent | None = ABSENT,
        expected_count: int | Absent | None = ABSENT,
        idempotency_key: str | None = None,
    ) -> models.Redrive:
        """Runs failed runs again as an operation, at a given rate.

        Args:
            runs: The runs to run again, instead of `group` or `filter`.
            group: The group whose unresolved runs are run again, instead of `runs` or `filter`.
            filter: Reruns the unresolved runs of all groups that `GET /v1/errors` lists with these
                parameters, up to 100 groups. Takes the place of `runs` and `group`.
            rate_per_minute: How many runs begin per minute.
            dry_run: Only counts; changes nothing.
            expected_count: Refused (412) if another number matches.
            idempotency_key: A repetition with the same key within 24 hours has no further effect.
        """
        return models.Redrive(
            self._caller.json(
                Request(
                    "POST",
                    "/v1/errors:redrive",
                    body={
                        "runs": runs,
                        "group": group,
                        "filter": filter,
                        "ratePerMinute": rate_per_minute,
                        "dryRun": dry_run,
                        "expectedCount": expected_count,
                    },
                    keyed=True,
                    key=idempotency_key,
                    acting=True,
                )
            )
        )
