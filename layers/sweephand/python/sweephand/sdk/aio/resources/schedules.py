"""`schedules`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sweephand.sdk import models
from sweephand.sdk.aio.caller import AsyncCaller
from sweephand.sdk.aio.pages import AsyncPages
from sweephand.sdk.transport.request import ABSENT, Absent, Json, Named, Request, Revision, part


class AsyncSchedules:
    """The methods of `schedules`."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def create(
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
        """Adds a schedule to a job. It contains exactly one notation, such as `cron` or `every`.

        Args:
            job: The id of the job.
            name: Its name, for people and for filters.
            active: Whether it runs. If false, it does not run until this is true again.
            payload: Replaces the payload of the job's action. Any JSON, up to 64 KB.
            hooks: Each hook replaces the job's hook of the same name.
            policies: Rules for occurrences that overlap, are missed, or lie in the past.
            at: Once, at this instant. RFC 3339, years 1970 to 2199. Without an offset, it is wall time in
                `timezone`. Fractions are rounded up.
            every: Equal steps, such as `5m`, `PT10S`, `10 seconds`, `P1M` or `R5/2027-01-01T00:00Z/PT1H`; up
                to 36,500 days or 1,200 months.
            cron: Five fields, or a name such as `@daily`.
            event_bridge: An expression of EventBridge Scheduler: `cron(30 2 ? * MON-FRI *)`, `rate(5
                minutes)` or `at(...)`.
            sap_cron: Seven fields, as SAP writes them: year, month, day, weekday, hour, minute, second.
            time: One instant: in words, in a standard format, or in a format of your own.
            rrule: A recurrence rule of RFC 5545, such as `FREQ=WEEKLY;BYDAY=MO,FR`, or lines with DTSTART,
                RRULE, RDATE and EXDATE.
            repeat_at: Daily at a time, such as `4.40pm`, `18.40` or `17.20:30`.
            recurrence: A recurrence as Azure Scheduler writes it.
            align: The point from which the steps of `every` count. Only with `every`. Values: `start`,
                `clock`, `epoch`, `actual_start`.
            timezone: An IANA time zone, such as `Europe/Berlin`.
            dst_gap: The rule for a wall time that the clock skips. Values: `skip`, `next_valid`, `shift`.
            dst_overlap: The rule for a wall time that the clock shows twice. Values: `first`, `second`,
                `both`.
            month_overflow: The rule for a day that a month does not have. Values: `skip`, `clamp`, `next`.
            start_time: The start (inclusive). RFC 3339, years 1970 to 2199. Without an offset, it is wall
                time in `timezone`. Fractions are rounded up.
            end_time: The end (inclusive). RFC 3339, years 1970 to 2199. Without an offset, it is wall time in
                `timezone`. Fractions are rounded up.
            count: How many occurrences the schedule has in all.
            jitter_seconds: Delays each occurrence by 0 to this many seconds. The delay of an occurrence never
                changes.
            calendars: The calendars whose times the schedule excludes, or is limited to.
            if_match: Changes it only if this is still its revision.
            idempotency_key: A repetition with the same key within 24 hours has no further effect.
        """
        return models.Schedule(
            await self._caller.json(
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
    ) -> AsyncPages[models.Schedule]:
        """Lists the schedules of a job.

        Args:
            job: The id of the job.
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return AsyncPages(
            self._caller,
            Request("GET", f"/v1/jobs/{part(job, 'jobId')}/schedules", acting=True),
            models.Schedule,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    async def get(self, job: Named, schedule: Named) -> models.Schedule:
        """Returns a schedule with its next instants and totals.

        Args:
            job: The id of the job.
            schedule: The id of the schedule.
        """
        return models.Schedule(
            await self._caller.json(
                Request("GET", f"/v1/jobs/{part(job, 'jobId')}/schedules/{part(schedule, 'scheduleId')}", acting=True)
            )
        )

    async def put(
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
        """Replaces a schedule. Members that are left out get their defaults.

        Args:
            job: The id of the job.
            schedule: The id of the schedule.
            id: The id of an existing schedule.
            name: Its name, for people and for filters.
            active: Whether it runs. If false, it does not run until this is true again.
            payload: Replaces the payload of the job's action. Any JSON, up to 64 KB.
            hooks: Each hook replaces the job's hook of the same name.
            policies: Rules for occurrences that overlap, are missed, or lie in the past.
            at: Once, at this instant. RFC 3339, years 1970 to 2199. Without an offset, it is wall time in
                `timezone`. Fractions are rounded up.
            every: Equal steps, such as `5m`, `PT10S`, `10 seconds`, `P1M` or `R5/2027-01-01T00:00Z/PT1H`; up
                to 36,500 days or 1,200 months.
            cron: Five fields, or a name such as `@daily`.
            event_bridge: An expression of EventBridge Scheduler: `cron(30 2 ? * MON-FRI *)`, `rate(5
                minutes)` or `at(...)`.
            sap_cron: Seven fields, as SAP writes them: year, month, day, weekday, hour, minute, second.
            time: One instant: in words, in a standard format, or in a format of your own.
            rrule: A recurrence rule of RFC 5545, such as `FREQ=WEEKLY;BYDAY=MO,FR`, or lines with DTSTART,
                RRULE, RDATE and EXDATE.
            repeat_at: Daily at a time, such as `4.40pm`, `18.40` or `17.20:30`.
            recurrence: A recurrence as Azure Scheduler writes it.
            align: The point from which the steps of `every` count. Only with `every`. Values: `start`,
                `clock`, `epoch`, `actual_start`.
            timezone: An IANA time zone, such as `Europe/Berlin`.
            dst_gap: The rule for a wall time that the clock skips. Values: `skip`, `next_valid`, `shift`.
            dst_overlap: The rule for a wall time that the clock shows twice. Values: `first`, `second`,
                `both`.
            month_overflow: The rule for a day that a month does not have. Values: `skip`, `clamp`, `next`.
            start_time: The start (inclusive). RFC 3339, years 1970 to 2199. Without an offset, it is wall
                time in `timezone`. Fractions are rounded up.
            end_time: The end (inclusive). RFC 3339, years 1970 to 2199. Without an offset, it is wall time in
                `timezone`. Fractions are rounded up.
            count: How many occurrences the schedule has in all.
            jitter_seconds: Delays each occurrence by 0 to this many seconds. The delay of an occurrence never
                changes.
            calendars: The calendars whose times the schedule excludes, or is limited to.
            if_match: Changes it only if this is still its revision.
        """
        return models.Schedule(
            await self._caller.json(
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

    async def patch(
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
        """Changes the given members of a schedule (merge patch, RFC 7396); null removes a member.

        Args:
            job: The id of the job.
            schedule: The id of the schedule.
            id: The id of an existing schedule.
            name: Its name, for people and for filters.
            active: Whether it runs. If false, it does not run until this is true again.
            payload: Replaces the payload of the job's action. Any JSON, up to 64 KB.
            hooks: Actions that run after a run has succeeded or failed, or was missed.
            policies: Rules for occurrences that overlap, are missed, or lie in the past.
            at: Once, at this instant. RFC 3339, years 1970 to 2199. Without an offset, it is wall time in
                `timezone`. Fractions are rounded up.
            every: Equal steps, such as `5m`, `PT10S`, `10 seconds`, `P1M` or `R5/2027-01-01T00:00Z/PT1H`; up
                to 36,500 days or 1,200 months.
            cron: Five fields, or a name such as `@daily`.
            event_bridge: An expression of EventBridge Scheduler: `cron(30 2 ? * MON-FRI *)`, `rate(5
                minutes)` or `at(...)`.
            sap_cron: Seven fields, as SAP writes them: year, month, day, weekday, hour, minute, second.
            time: One instant: in words, in a standard format, or in a format of your own.
            rrule: A recurrence rule of RFC 5545, such as `FREQ=WEEKLY;BYDAY=MO,FR`, or lines with DTSTART,
                RRULE, RDATE and EXDATE.
            repeat_at: Daily at a time, such as `4.40pm`, `18.40` or `17.20:30`.
            recurrence: A recurrence as Azure Scheduler writes it.
            align: The point from which the steps of `every` count. Only with `every`. Values: `start`,
                `clock`, `epoch`, `actual_start`.
            timezone: An IANA time zone, such as `Europe/Berlin`.
            dst_gap: The rule for a wall time that the clock skips. Values: `skip`, `next_valid`, `shift`.
            dst_overlap: The rule for a wall time that the clock shows twice. Values: `first`, `second`,
                `both`.
            month_overflow: The rule for a day that a month does not have. Values: `skip`, `clamp`, `next`.
            start_time: The start (inclusive). RFC 3339, years 1970 to 2199. Without an offset, it is wall
                time in `timezone`. Fractions are rounded up.
            end_time: The end (inclusive). RFC 3339, years 1970 to 2199. Without an offset, it is wall time in
                `timezone`. Fractions are rounded up.
            count: How many occurrences the schedule has in all.
            jitter_seconds: Delays each occurrence by 0 to this many seconds. The delay of an occurrence never
                changes.
            calendars: The calendars of the schedule. An occurrence runs if all of them allow it.
            if_match: Changes it only if this is still its revision.
        """
        return models.Schedule(
            await self._caller.json(
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

    async def delete(self, job: Named, schedule: Named, *, if_match: Revision | None = None) -> None:
        """Deletes a schedule. Its occurrences that are already sent but not yet due do not run.

        Args:
            job: The id of the job.
            schedule: The id of the schedule.
            if_match: Changes it only if this is still its revision.
        """
        await self._caller.json(
            Request(
                "DELETE",
                f"/v1/jobs/{part(job, 'jobId')}/schedules/{part(schedule, 'scheduleId')}",
                if_match=if_match,
                acting=True,
            )
        )

    async def activate(self, job: Named, schedule: Named, *, if_match: Revision | None = None) -> models.Schedule:
        """Activates a schedule. Repeating the request changes nothing.

        Args:
            job: The id of the job.
            schedule: The id of the schedule.
            if_match: Changes it only if this is still its revision.
        """
        return models.Schedule(
            await self._caller.json(
                Request(
                    "POST",
                    f"/v1/jobs/{part(job, 'jobId')}/schedules/{part(schedule, 'scheduleId')}/activate",
                    if_match=if_match,
                    acting=True,
                )
            )
        )

    async def deactivate(self, job: Named, schedule: Named, *, if_match: Revision | None = None) -> models.Schedule:
        """Deactivates a schedule until it is activated again. Repeating the request changes nothing.

        Args:
            job: The id of the job.
            schedule: The id of the schedule.
            if_match: Changes it only if this is still its revision.
        """
        return models.Schedule(
            await self._caller.json(
                Request(
                    "POST",
                    f"/v1/jobs/{part(job, 'jobId')}/schedules/{part(schedule, 'scheduleId')}/deactivate",
                    if_match=if_match,
                    acting=True,
                )
            )
        )

    async def explain(self, job: Named, schedule: Named, *, at: datetime | str | None = None) -> models.Explanation:
        """Explains why a schedule runs at an instant or does not, and names the run.

        Args:
            job: The id of the job.
            schedule: The id of the schedule.
            at: The instant to explain; by default now. RFC 3339, years 1970 to 2199. Without an offset, it is
                wall time in `timezone`. Fractions are rounded up.
        """
        return models.Explanation(
            await self._caller.json(
                Request(
                    "GET",
                    f"/v1/jobs/{part(job, 'jobId')}/schedules/{part(schedule, 'scheduleId')}/explain",
                    query={"at": at},
                    acting=True,
                )
            )
        )

    async def preview(
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
        """Computes the next instants of a schedule, with warnings. Nothing is stored.

        Args:
            at: Once, at this instant. RFC 3339, years 1970 to 2199. Without an offset, it is wall time in
                `timezone`. Fractions are rounded up.
            every: Equal steps, such as `5m`, `PT10S`, `10 seconds`, `P1M` or `R5/2027-01-01T00:00Z/PT1H`; up
                to 36,500 days or 1,200 months.
            cron: Five fields, or a name such as `@daily`.
            event_bridge: An expression of EventBridge Scheduler: `cron(30 2 ? * MON-FRI *)`, `rate(5
                minutes)` or `at(...)`.
            sap_cron: Seven fields, as SAP writes them: year, month, day, weekday, hour, minute, second.
            time: One instant: in words, in a standard format, or in a format of your own.
            rrule: A recurrence rule of RFC 5545, such as `FREQ=WEEKLY;BYDAY=MO,FR`, or lines with DTSTART,
                RRULE, RDATE and EXDATE.
            repeat_at: Daily at a time, such as `4.40pm`, `18.40` or `17.20:30`.
            recurrence: A recurrence as Azure Scheduler writes it.
            align: The point from which the steps of `every` count. Only with `every`. Values: `start`,
                `clock`, `epoch`, `actual_start`.
            timezone: An IANA time zone, such as `Europe/Berlin`.
            dst_gap: The rule for a wall time that the clock skips. Values: `skip`, `next_valid`, `shift`.
            dst_overlap: The rule for a wall time that the clock shows twice. Values: `first`, `second`,
                `both`.
            month_overflow: The rule for a day that a month does not have. Values: `skip`, `clamp`, `next`.
            start_time: The start (inclusive). RFC 3339, years 1970 to 2199. Without an offset, it is wall
                time in `timezone`. Fractions are rounded up.
            end_time: The end (inclusive). RFC 3339, years 1970 to 2199. Without an offset, it is wall time in
                `timezone`. Fractions are rounded up.
            count: How many occurrences the schedule has in all.
            jitter_seconds: Delays each occurrence by 0 to this many seconds. The delay of an occurrence never
                changes.
            calendars: The calendars whose times the schedule excludes, or is limited to.
            collection: The collection whose defaults and quotas apply.
            after: Shows occurrences after this instant; by default now. RFC 3339; without an offset, it is in
                UTC.
            limit: The maximum number of entries.
            explain: An instant to explain. RFC 3339, years 1970 to 2199. Without an offset, it is wall time
                in `timezone`. Fractions are rounded up.
        """
        return models.Preview(
            await self._caller.json(
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
