"""`job_sets`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sweephand.sdk import models
from sweephand.sdk.sync.caller import Caller
from sweephand.sdk.sync.pages import Pages
from sweephand.sdk.transport.request import Json, Named, Request, part


class JobSets:
    """The methods of `job_sets`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self, *, page_size: int | None = None, max_items: int | None = None, cursor: str | None = None
    ) -> Pages[models.ListedJobSet]:
        """Lists the tenant's job sets.

        Args:
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return Pages(
            self._caller,
            Request("GET", "/v1/job-sets", acting=True),
            models.ListedJobSet,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    def get(
        self,
        job_set: Named,
        *,
        include: str | Sequence[str] | None = None,
        from_: datetime | str | None = None,
        limit_seconds: int | None = None,
    ) -> models.JobSet:
        """Returns a job set with its jobs by key, and what others have changed since it was applied.

        Args:
            job_set: The name of the job set.
            include: Optional parts of the answer, separated by commas. Values: `figures`.
            from_: The start of the span for `include=figures`; by default 24 hours ago. RFC 3339; without an
                offset, it is in UTC.
            limit_seconds: The longest time that a run should take from its instant to its end. With
                `include=figures`.
        """
        return models.JobSet(
            self._caller.json(
                Request(
                    "GET",
                    f"/v1/job-sets/{part(job_set)}",
                    query={"include": include, "from": from_, "limitSeconds": limit_seconds},
                    acting=True,
                )
            )
        )

    def put(
        self,
        job_set: Named,
        *,
        jobs: Sequence[Json],
        plan: bool | None = None,
        token: str | None = None,
        allow_deletes: int | None = None,
        on_drift: str | None = None,
        prune: bool | None = None,
        owner: str | None = None,
    ) -> models.JobSetPlan:
        """Applies a job set: creates, updates and deletes jobs until they match the list.

        Args:
            job_set: The name of the job set.
            jobs: All jobs of the set. Jobs that are not in the list are deleted.
            plan: Only shows what would change.
            token: The token of a plan. Refused (412) if the plan has changed.
            allow_deletes: How many jobs the plan deletes. Required for more than 10 jobs that are more than a
                fifth of the set.
            on_drift: When repaired jobs run: at their next instant, or at once. `run_now` needs the scope
                `runs:write`. Values: `keep_next`, `run_now`.
            prune: Whether to delete jobs of the set that are not in the list.
            owner: The owner of the set, in words of your own. A set that this request creates belongs to it
                from its first job on, another set once the whole list is applied. Deleting is rejected (409)
                if the set belongs to another owner or to none.
        """
        return models.JobSetPlan(
            self._caller.json(
                Request(
                    "PUT",
                    f"/v1/job-sets/{part(job_set)}",
                    query={
                        "plan": plan,
                        "token": token,
                        "allowDeletes": allow_deletes,
                        "onDrift": on_drift,
                        "prune": prune,
                        "owner": owner,
                    },
                    body={"jobs": jobs},
                    acting=True,
                )
            )
        )

    def delete(
        self,
        job_set: Named,
        *,
        plan: bool | None = None,
        token: str | None = None,
        allow_deletes: int | None = None,
        owner: str | None = None,
    ) -> models.JobSetPlan:
        """Deletes a job set with all its jobs.

        Args:
            job_set: The name of the job set.
            plan: Only shows what would change.
            token: The token of a plan. Refused (412) if the plan has changed.
            allow_deletes: How many jobs the plan deletes. Required for more than 10 jobs that are more than a
                fifth of the set.
            owner: The owner of the set, in words of your own. A set that this request creates belongs to it
                from its first job on, another set once the whole list is applied. Deleting is rejected (409)
                if the set belongs to another owner or to none.
        """
        return models.JobSetPlan(
            self._caller.json(
                Request(
                    "DELETE",
                    f"/v1/job-sets/{part(job_set)}",
                    query={"plan": plan, "token": token, "allowDeletes": allow_deletes, "owner": owner},
                    acting=True,
                )
            )
        )
