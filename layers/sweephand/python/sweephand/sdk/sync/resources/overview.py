"""`overview`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sweephand.sdk import models
from sweephand.sdk.sync.caller import Caller
from sweephand.sdk.sync.pages import Pages
from sweephand.sdk.transport.request import Request


class Overview:
    """The methods of `overview`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def timeline(
        self,
        *,
        from_: datetime | str | None = None,
        until: datetime | str | None = None,
        collection: str | None = None,
        state: str | None = None,
        tag: str | None = None,
        resource_id: str | None = None,
        name: str | None = None,
        search: str | None = None,
        job_ids: Sequence[str] | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
        cursor: str | None = None,
    ) -> Pages[models.Lane]:
        """Returns the timeline of the last and next 24 hours, with a lane for each job.

        Args:
            from_: The start; by default 24 hours ago. RFC 3339; without an offset, it is in UTC.
            until: The end; by default in 24 hours. At most 14 days after `from`. RFC 3339; without an offset,
                it is in UTC.
            collection: Only resources of this collection.
            state: Only resources in this state. Values: `ACTIVE`, `INACTIVE`, `PAUSED`, `COMPLETED`,
                `FAULTED`.
            tag: Only jobs with this tag. If empty, only jobs without tags.
            resource_id: Only resources with this resource id.
            name: Only resources with exactly this name.
            search: Only resources whose name contains this string; case is ignored.
            job_ids: Only these jobs. Not with other filters.
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return Pages(
            self._caller,
            Request(
                "GET",
                "/v1/timeline",
                query={
                    "from": from_,
                    "until": until,
                    "collection": collection,
                    "state": state,
                    "tag": tag,
                    "resourceId": resource_id,
                    "name": name,
                    "search": search,
                    "jobIds": job_ids,
                },
                acting=True,
            ),
            models.Lane,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    def changes(self, *, since: str | None = None) -> models.TimelineChanges:
        """Returns the changes of the timeline since it was last read.

        Args:
            since: `since` from the answer of the timeline, or of its last changes.
        """
        return models.TimelineChanges(
            self._caller.json(Request("GET", "/v1/timeline:changes", query={"since": since}, acting=True))
        )

    def load(self) -> models.Load:
        """Returns the number of planned runs for each quarter of an hour of the next 24 hours."""
        return models.Load(self._caller.json(Request("GET", "/v1/load", acting=True)))

    def attention(self) -> models.Attention:
        """Lists what needs attention, most serious first, each with its reason and the next step."""
        return models.Attention(self._caller.json(Request("GET", "/v1/attention", acting=True)))
