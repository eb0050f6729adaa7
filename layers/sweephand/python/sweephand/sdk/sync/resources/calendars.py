"""`calendars`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from collections.abc import Sequence

from sweephand.sdk import models
from sweephand.sdk.sync.caller import Caller
from sweephand.sdk.sync.pages import Pages
from sweephand.sdk.transport.request import ABSENT, Absent, Json, Named, Request, Revision, part


class Calendars:
    """The methods of `calendars`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(
        self,
        *,
        name: str,
        description: str | Absent | None = ABSENT,
        timezone: str | Absent | None = ABSENT,
        dates: Sequence[str] | Absent | None = ABSENT,
        ranges: Sequence[Json] | Absent | None = ABSENT,
        weekly: Sequence[Json] | Absent | None = ABSENT,
        i_calendar: str | Absent | None = ABSENT,
        idempotency_key: str | None = None,
    ) -> models.Calendar:
        """Creates a calendar of dates and hours that schedules can name.

        Args:
            name: Its name, for people and for filters.
            description: Free text for people.
            timezone: An IANA time zone; by default that of each schedule.
            dates: Days: `2027-12-24`, or `12-25` for every year.
            ranges: Ranges of days or of wall times.
            weekly: Hours of weekdays: whole days without `from` and `to`; past midnight if `to` is not later
                than `from`.
            i_calendar: A calendar as RFC 5545 defines it. Its events are added to the other members; the text
                itself is not stored.
            idempotency_key: A repetition with the same key within 24 hours has no further effect.
        """
        return models.Calendar(
            self._caller.json(
                Request(
                    "POST",
                    "/v1/calendars",
                    body={
                        "name": name,
                        "description": description,
                        "timezone": timezone,
                        "dates": dates,
                        "ranges": ranges,
                        "weekly": weekly,
                        "iCalendar": i_calendar,
                    },
                    keyed=True,
                    key=idempotency_key,
                    acting=True,
                )
            )
        )

    def list(
        self, *, page_size: int | None = None, max_items: int | None = None, cursor: str | None = None
    ) -> Pages[models.ListedCalendar]:
        """Lists the tenant's calendars.

        Args:
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return Pages(
            self._caller,
            Request("GET", "/v1/calendars", acting=True),
            models.ListedCalendar,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    def get(self, calendar: Named) -> models.Calendar:
        """Returns the current version of a calendar.

        Args:
            calendar: The name of the calendar.
        """
        return models.Calendar(self._caller.json(Request("GET", f"/v1/calendars/{part(calendar)}", acting=True)))

    def put(
        self,
        calendar: Named,
        *,
        name: str | Absent | None = ABSENT,
        description: str | Absent | None = ABSENT,
        timezone: str | Absent | None = ABSENT,
        dates: Sequence[str] | Absent | None = ABSENT,
        ranges: Sequence[Json] | Absent | None = ABSENT,
        weekly: Sequence[Json] | Absent | None = ABSENT,
        i_calendar: str | Absent | None = ABSENT,
        if_match: Revision | None = None,
    ) -> models.Calendar:
        """Writes a new version of a calendar, and replans the schedules that name it.

        Args:
            calendar: The name of the calendar.
            name: Its name, for people and for filters.
            description: Free text for people.
            timezone: An IANA time zone; by default that of each schedule.
            dates: Days: `2027-12-24`, or `12-25` for every year.
            ranges: Ranges of days or of wall times.
            weekly: Hours of weekdays: whole days without `from` and `to`; past midnight if `to` is not later
                than `from`.
            i_calendar: A calendar as RFC 5545 defines it. Its events are added to the other members; the text
                itself is not stored.
            if_match: Changes it only if this is still its revision.
        """
        return models.Calendar(
            self._caller.json(
                Request(
                    "PUT",
                    f"/v1/calendars/{part(calendar)}",
                    body={
                        "name": name,
                        "description": description,
                        "timezone": timezone,
                        "dates": dates,
                        "ranges": ranges,
                        "weekly": weekly,
                        "iCalendar": i_calendar,
                    },
                    if_match=if_match,
                    acting=True,
                )
            )
        )

    def delete(self, calendar: Named, *, if_match: Revision | None = None) -> None:
        """Deletes a calendar that no schedule names.

        Args:
            calendar: The name of the calendar.
            if_match: Changes it only if this is still its revision.
        """
        self._caller.json(Request("DELETE", f"/v1/calendars/{part(calendar)}", if_match=if_match, acting=True))

    def versions(
        self, calendar: Named, *, page_size: int | None = None, max_items: int | None = None, cursor: str | None = None
    ) -> Pages[models.ListedCalendarVersion]:
        """Lists the versions of a calendar, newest first.

        Args:
            calendar: The name of the calendar.
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return Pages(
            self._caller,
            Request("GET", f"/v1/calendars/{part(calendar)}/versions", acting=True),
            models.ListedCalendarVersion,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    def get_version(self, calendar: Named, version: Named) -> models.CalendarVersion:
        """Returns one version of a calendar.

        Args:
            calendar: The name of the calendar.
            version: The number of the version.
        """
        return models.CalendarVersion(
            self._caller.json(Request("GET", f"/v1/calendars/{part(calendar)}/versions/{part(version)}", acting=True))
        )
