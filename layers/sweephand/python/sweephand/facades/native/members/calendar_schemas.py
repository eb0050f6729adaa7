"""The schemas of calendars, and of the member by which a schedule names them."""

from __future__ import annotations

from sweephand.facades.native.members.json_schema import (
    Members,
    Schema,
    answer,
    items,
    one_of,
    or_null,
    page,
    request,
    text,
    whole,
)
from sweephand.facades.native.members.schema_words import PLAIN_NAME
from sweephand.schedules.calendars import calendar_content as content
from sweephand.schedules.calendars import icalendar
from sweephand.schedules.calendars.calendars import MOST, Mode, Roll

READ_ONLY = ("version", "usedBy", "replanning", "createdAt", "modifiedAt")
_LONGEST = 1_000
USES: Schema = items(
    request(
        {
            "name": PLAIN_NAME,
            "mode": one_of(Mode, description="`exclude`, the default: nothing runs inside. `include`: only inside."),
            "roll": one_of(
                Roll, description="To the nearest day that all calendars allow; `none`, the default: left out."
            ),
        },
        ("name",),
    ),
    maxItems=MOST,
    description="An occurrence runs where all of them allow it.",
)
SHOWN_USES: Schema = items(answer({"name": PLAIN_NAME, "mode": one_of(Mode), "roll": one_of(Roll)}), maxItems=MOST)

_END = text(1, _LONGEST, description=content.AN_END[0].upper() + content.AN_END[1:] + ".")
_TIME = text(1, _LONGEST, description=content.A_TIME[0].upper() + content.A_TIME[1:] + ".")
_CONTENT: Members = {
    "timezone": text(1, _LONGEST, description="IANA; absent: that of each schedule."),
    "dates": items(
        text(1, _LONGEST, description="`2026-12-25`, or `12-25` for each year."), maxItems=content.MOST_DATES
    ),
    "ranges": items(
        request({"from": _END, "to": {**_END, "description": "A day is included, a time is not."}}, ("from", "to")),
        maxItems=content.MOST_RANGES,
    ),
    "weekly": items(
        request(
            {"days": items(one_of(content.WEEKDAYS), minItems=1, maxItems=7), "from": _TIME, "to": _TIME}, ("days",)
        ),
        maxItems=content.MOST_WEEKLY,
        description="Hours of weekdays, without `from` and `to` all of them; past midnight where `to` is not later.",
    ),
}
_DESCRIPTION = text(0, 1_000)
_IMPORT: Members = {
    "iCalendar": text(
        1,
        icalendar.LONGEST,
        description="A text of RFC 5545: its events are added to the other members; it is not kept.",
    )
}
_SHOWN_CONTENT: Members = {**_CONTENT, "timezone": or_null(_CONTENT["timezone"])}
_PASSED_OVER: Schema = {"readOnly": True, "description": "Of answers; passed over, so that what was read can be sent."}
_MOMENT = text(format="date-time", pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$")
_LISTED: Members = {
    "name": PLAIN_NAME,
    "description": or_null(_DESCRIPTION),
    "version": whole(1, description="Raised by each change."),
    "usedBy": whole(description="Jobs whose schedules name it."),
    "replanning": {"type": "boolean", "description": "Some of these still go by an earlier version."},
    "createdAt": _MOMENT,
    "modifiedAt": _MOMENT,
}
_LISTED_VERSION: Members = {
    "version": whole(1),
    "description": or_null(_DESCRIPTION),
    "createdAt": _MOMENT,
    "actor": or_null(text(description="The caller's client id.")),
}

SCHEMAS: dict[str, Schema] = {
    "CalendarDraft": request({"name": PLAIN_NAME, "description": _DESCRIPTION, **_CONTENT, **_IMPORT}, ("name",)),
    "CalendarReplacement": request(
        {
            "name": PLAIN_NAME,
            "description": _DESCRIPTION,
            **_CONTENT,
            **_IMPORT,
            **dict.fromkeys(READ_ONLY, _PASSED_OVER),
        }
    ),
    "Calendar": answer({**_LISTED, **_SHOWN_CONTENT}),
    "ListedCalendar": answer(_LISTED),
    "CalendarPage": page("ListedCalendar"),
    "CalendarVersion": answer({**_LISTED_VERSION, **_SHOWN_CONTENT}),
    "ListedCalendarVersion": answer(_LISTED_VERSION),
    "CalendarVersionPage": page("ListedCalendarVersion"),
}
