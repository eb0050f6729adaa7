"""`schedules`. Made by .ci/sdk.py: change that, or its source, and run `make sdk`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sweephand.sdk import models
from sweephand.sdk.request import ABSENT, Absent, Json, Named, Request, Revision, part
from sweephand.sdk.sync.caller import Caller
from sweephand.sdk.sync.pages import Pages


class Schedules:
    """The methods of `schedules`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(
        self,
        job: Named,
        *,
        name: str | Absent | None = ABSENT,
        active: bool | Absent | None = ABSENT,
        payload: Any | Absent = ABSENT,
        hooks: Json | Absent | None = ABSENT,
        policies: Json | Absent | None = ABSENT,
        at: datetime | str | Absent | None = ABSENT,
        every: str | Absent | None = ABSENT,
        cron: str | Absent | None = ABSENT,
        event_bridge: str | Absent | None = ABSENT,
        sap_cron: str | Absent | None = ABSENT,
        time: Any | Absent = ABSENT,
        rrule: str | Absent | None = ABSENT,
        repeat_at: str | Absent | None = ABSENT,
        recurrence: Json | Absent | None = ABSENT,
        align: str | Absent | None = ABSENT,
        timezone: str | Absent | None = ABSENT,
        dst_gap: str | Absent | None = ABSENT,
        dst_overlap: str | Absent | None = ABSENT,
        month_overflow: str | Absent | None = ABSENT,
        start_time: datetime | str | Absent | None = ABSENT,
        end_time: datetime | str | Absent | None = ABSENT,
        count: int | Absent | None = ABSENT,
        jitter_seconds: int | Absent | None = ABSENT,
        calendars: Sequence[Json] | Absent | None = ABSENT,
        if_match: Revision | None = None,
        idempotency_key: str | None = None,
    ) -> models.Schedule:
        """Adds a schedule to a job. It contains exactly one notation, such as `cron` or `every`."""
        return models.Schedule(
            self._caller.json(
                Request(
                    "POST",
                    f"/v1/jobs/{part(job, 'jobId')}/schedules",
                    body={
                        "name": name,
                        "active": active,
                        "payload": payload,
                        "hooks": hooks,
                        "policies": policies,
                        "at": at,
                        "every": every,
                        "cron": cron,
                        "eventBridge": event_bridge,
                        "sapCron": sap_cron,
                        "time": time,
                        "rrule": rrule,
                        "repeatAt": repeat_at,
                        "recurrence": recurrence,
                        "align": align,
                        "timezone": timezone,
                        "dstGap": dst_gap,
                        "dstOverlap": dst_overlap,
                        "monthOverflow": month_overflow,
                        "startTime": start_time,
                        "endTime": end_time,
                        "count": count,
                        "jitterSeconds": jitter_seconds,
                        "calendars": calendars,
                    },
                    if_match=if_match,
                    keyed=True,
                    key=idempotency_key,
                    acting=True,
                )
            )
        )

    def list(
        self, job: Named, *, page_size: int | None = None, max_items: int | None = None, cursor: str | None = None
    ) -> Pages[models.Schedule]:
        """Lists the schedules of a job."""
        return Pages(
            self._caller,
            Request("GET", f"/v1/jobs/{part(job, 'jobId')}/schedules", acting=True),
            models.Schedule,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    def get(self, job: Named, schedule: Named) -> models.Schedule:
        """Returns a schedule with its next instants and totals."""
        return models.Schedule(
            self._caller.json(
                Request("GET", f"/v1/jobs/{part(job, 'jobId')}/schedules/{part(schedule, 'scheduleId')}", acting=True)
            )
        )

    def put(
        self,
        job: Named,
        schedule: Named,
        *,
        id: str | Absent | None = ABSENT,
        name: str | Absent | None = ABSENT,
        active: bool | Absent | None = ABSENT,
        payload: Any | Absent = ABSENT,
        hooks: Json | Absent | None = ABSENT,
        policies: Json | Absent | None = ABSENT,
        at: datetime | str | Absent | None = ABSENT,
        every: str | Absent | None = ABSENT,
        cron: str | Absent | None = ABSENT,
        event_bridge: str | Absent | None = ABSENT,
        sap_cron: str | Absent | None = ABSENT,
        time: Any | Absent = ABSENT,
        rrule: str | Absent | None = ABSENT,
        repeat_at: str | Absent | None = ABSENT,
        recurrence: Json | Absent | None = ABSENT,
        align: str | Absent | None = ABSENT,
        timezone: str | Absent | None = ABSENT,
        dst_gap: str | Absent | None = ABSENT,
        dst_overlap: str | Absent | None = ABSENT,
        month_overflow: str | Absent | None = ABSENT,
        start_time: datetime | str | Absent | None = ABSENT,
        end_time: datetime | str | Absent | None = ABSENT,
        count: int | Absent | None = ABSENT,
        jitter_seconds: int | Absent | None = ABSENT,
        calendars: Sequence[Json] | Absent | None = ABSENT,
        if_match: Revision | None = None,
    ) -> models.Schedule:
        """Replaces a schedule. Members that are left out get their defaults."""
        return models.Schedule(
            self._caller.json(
                Request(
                    "PUT",
                    f"/v1/jobs/{part(job, 'jobId')}/schedules/{part(schedule, 'scheduleId')}",
                    body={
                        "id": id,
                        "name": name,
                        "active": active,
                        "payload": payload,
                        "hooks": hooks,
                        "policies": policies,
                        "at": at,
                        "every": every,
                        "cron": cron,
                        "eventBridge": event_bridge,
                        "sapCron": sap_cron,
                        "time": time,
                        "rrule": rrule,
                        "repeatAt": repeat_at,
                        "recurrence": recurrence,
                        "align": align,
                        "timezone": timezone,
                        "dstGap": dst_gap,
                        "dstOverlap": dst_overlap,
                        "monthOverflow": month_overflow,
                        "startTime": start_time,
                        "endTime": end_time,
                        "count": count,
                        "jitterSeconds": jitter_seconds,
                        "calendars": calendars,
                    },
                    if_match=if_match,
                    acting=True,
                )
            )
        )

    def patch(
        self,
        job: Named,
        schedule: Named,
        *,
        id: str | Absent | None = ABSENT,
        name: str | Absent | None = ABSENT,
        active: bool | Absent | None = ABSENT,
        payload: Any | Absent = ABSENT,
        hooks: Json | Absent | None = ABSENT,
        policies: Json | Absent | None = ABSENT,
        at: datetime | str | Absent | None = ABSENT,
        every: str | Absent | None = ABSENT,
        cron: str | Absent | None = ABSENT,
        event_bridge: str | Absent | None = ABSENT,
        sap_cron: str | Absent | None = ABSENT,
        time: Any | Absent = ABSENT,
        rrule: str | Absent | None = ABSENT,
        repeat_at: str | Absent | None = ABSENT,
        recurrence: Json | Absent | None = ABSENT,
        align: str | Absent | None = ABSENT,
        timezone: str | Absent | None = ABSENT,
        dst_gap: str | Absent | None = ABSENT,
        dst_overlap: str | Absent | None = ABSENT,
        month_overflow: str | Absent | None = ABSENT,
        start_time: datetime | str | Absent | None = ABSENT,
        end_time: datetime | str | Absent | None = ABSENT,
        count: int | Absent | None = ABSENT,
        jitter_seconds: int | Absent | None = ABSENT,
        calendars: Sequence[Json] | Absent | None = ABSENT,
        if_match: Revision | None = None,
    ) -> models.Schedule:
        """Changes the given members of a schedule (merge patch, RFC 7396); null removes a member."""
        return models.Schedule(
            self._caller.json(
                Request(
                    "PATCH",
                    f"/v1/jobs/{part(job, 'jobId')}/schedules/{part(schedule, 'scheduleId')}",
                    body={
                        "id": id,
                        "name": name,
                        "active": active,
                        "payload": payload,
                        "hooks": hooks,
                        "policies": policies,
                        "at": at,
                        "every": every,
                        "cron": cron,
                        "eventBridge": event_bridge,
                        "sapCron": sap_cron,
                        "time": time,
                        "rrule": rrule,
                        "repeatAt": repeat_at,
                        "recurrence": recurrence,
                        "align": align,
                        "timezone": timezone,
                        "dstGap": dst_gap,
                        "dstOverlap": dst_overlap,
                        "monthOverflow": month_overflow,
                        "startTime": start_time,
                        "endTime": end_time,
                        "count": count,
                        "jitterSeconds": jitter_seconds,
                        "calendars": calendars,
                    },
                    if_match=if_match,
                    acting=True,
                )
            )
        )

    def delete(self, job: Named, schedule: Named, *, if_match: Revision | None = None) -> None:
        """Deletes a schedule. Its occurrences that are already sent but not yet due do not run."""
        self._caller.json(
            Request(
                "DELETE",
                f"/v1/jobs/{part(job, 'jobId')}/schedules/{part(schedule, 'scheduleId')}",
                if_match=if_match,
                acting=True,
            )
        )

    def activate(self, job: Named, schedule: Named, *, if_match: Revision | None = None) -> models.Schedule:
        """Activates a schedule. Repeating the request changes nothing."""
        return models.Schedule(
            self._caller.json(
                Request(
                    "POST",
                    f"/v1/jobs/{part(job, 'jobId')}/schedules/{part(schedule, 'scheduleId')}/activate",
                    if_match=if_match,
                    acting=True,
                )
            )
        )

    def deactivate(self, job: Named, schedule: Named, *, if_match: Revision | None = None) -> models.Schedule:
        """Deactivates a schedule until it is activated again. Repeating the request changes nothing."""
        return models.Schedule(
            self._caller.json(
                Request(
                    "POST",
                    f"/v1/jobs/{part(job, 'jobId')}/schedules/{part(schedule, 'scheduleId')}/deactivate",
                    if_match=if_match,
                    acting=True,
                )
            )
        )

    def explain(self, job: Named, schedule: Named, *, at: datetime | str | None = None) -> models.Explanation:
        """Explains why a schedule runs at an instant or does not, and names the run."""
        return models.Explanation(
            self._caller.json(
                Request(
                    "GET",
                    f"/v1/jobs/{part(job, 'jobId')}/schedules/{part(schedule, 'scheduleId')}/explain",
                    query={"at": at},
                    acting=True,
                )
            )
        )

    def preview(
        self,
        *,
        at: datetime | str | Absent | None = ABSENT,
        every: str | Absent | None = ABSENT,
        cron: str | Absent | None = ABSENT,
        event_bridge: str | Absent | None = ABSENT,
        sap_cron: str | Absent | None = ABSENT,
        time: Any | Absent = ABSENT,
        rrule: str | Absent | None = ABSENT,
        repeat_at: str | Absent | None = ABSENT,
        recurrence: Json | Absent | None = ABSENT,
        align: str | Absent | None = ABSENT,
        timezone: str | Absent | None = ABSENT,
        dst_gap: str | Absent | None = ABSENT,
        dst_overlap: str | Absent | None = ABSENT,
        month_overflow: str | Absent | None = ABSENT,
        start_time: datetime | str | Absent | None = ABSENT,
        end_time: datetime | str | Absent | None = ABSENT,
        count: int | Absent | None = ABSENT,
        jitter_seconds: int | Absent | None = ABSENT,
        calendars: Sequence[Json] | Absent | None = ABSENT,
        collection: str | Absent | None = ABSENT,
        after: datetime | str | Absent | None = ABSENT,
        limit: int | Absent | None = ABSENT,
        explain: datetime | str | Absent | None = ABSENT,
    ) -> models.Preview:
        """Computes the next instants of a schedule, with warnings. Nothing is stored."""
        return models.Preview(
            self._caller.json(
                Request(
                    "POST",
                    "/v1/schedules:preview",
                    body={
                        "at": at,
                        "every": every,
                        "cron": cron,
                        "eventBridge": event_bridge,
                        "sapCron": sap_cron,
                        "time": time,
                        "rrule": rrule,
                        "repeatAt": repeat_at,
                        "recurrence": recurrence,
                        "align": align,
                        "timezone": timezone,
                        "dstGap": dst_gap,
                        "dstOverlap": dst_overlap,
                        "monthOverflow": month_overflow,
                        "startTime": start_time,
                        "endTime": end_time,
                        "count": count,
                        "jitterSeconds": jitter_seconds,
                        "calendars": calendars,
                        "collection": collection,
                        "after": after,
                        "limit": limit,
                        "explain": explain,
                    },
                    acting=True,
                )
            )
        )
