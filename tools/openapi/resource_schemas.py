"""The schemas of calendars, flow keys, tenants and overviews of all jobs."""

from __future__ import annotations

from sweephand.base.json_schema import Members, Schema, answer, items, one_of, or_null, request, text
from sweephand.domain.schema_words import PASSED_OVER, TENANT_NAME
from sweephand.schedules.calendars import calendar_content as content
from sweephand.schedules.calendars import icalendar
from sweephand.server.facades.native.jobs.last_runs import LAST_RUN
from sweephand.server.facades.native.overview.attention import ATTENTION, ITEM
from sweephand.server.facades.native.overview.lane import LANE, LANE_SCHEDULE, MARK
from sweephand.server.facades.native.overview.load import LOAD
from sweephand.server.facades.native.overview.pace import PRICE
from sweephand.server.facades.native.overview.timeline import CHANGES, KNOWN_JOB, TIMELINE
from sweephand.server.facades.native.shared.calendars import CALENDAR, IMPORT, VERSION
from sweephand.server.facades.native.shared.flow_keys import FLOW_KEY, LIVE
from sweephand.server.facades.native.tenants.tenants import GIVEN, READ_ONLY, SUBSCRIPTION, TENANT
from tools.openapi.pages_and_patches import page, patch_of

_LONGEST = 1_000
_END = text(1, _LONGEST, description=f"{content.AN_END[0].upper()}{content.AN_END[1:]}.")
_TIME = text(1, _LONGEST, description=content.A_TIME[0].upper() + content.A_TIME[1:] + ".")
_CONTENT: Members = {
    "timezone": text(1, _LONGEST, description="An IANA time zone; by default that of each schedule."),
    "dates": items(
        text(1, _LONGEST, description="`2026-12-25`, or `12-25` for each year."),
        maxItems=content.MOST_DATES,
        description="Days: `2027-12-24`, or `12-25` for every year.",
    ),
    "ranges": items(
        request(
            {"from": _END, "to": {**_END, "description": "The end. A day is included, a time is not."}}, ("from", "to")
        ),
        maxItems=content.MOST_RANGES,
        description="Ranges of days or of wall times.",
    ),
    "weekly": items(
        request(
            {
                "days": items(
                    one_of(content.WEEKDAYS), minItems=1, maxItems=7, description="The weekdays: `MON` to `SUN`."
                ),
                "from": _TIME,
                "to": _TIME,
            },
            ("days",),
        ),
        maxItems=content.MOST_WEEKLY,
        description="Hours of weekdays: whole days without `from` and `to`; past midnight if `to` is not "
        "later than `from`.",
    ),
}
_IMPORT: Members = {
    IMPORT: text(
        1,
        icalendar.LONGEST,
        description="A calendar as RFC 5545 defines it. Its events are added to the other members; the text "
        "itself is not stored.",
    )
}
_SHOWN_CONTENT: Members = {**_CONTENT, "timezone": or_null(_CONTENT["timezone"])}
_CALENDAR: Members = {**CALENDAR.request(), **_CONTENT, **_IMPORT}
CALENDARS: dict[str, Schema] = {
    "CalendarDraft": request(_CALENDAR, ("name",)),
    "CalendarReplacement": request({**_CALENDAR, **dict.fromkeys(CALENDAR.read_only, PASSED_OVER)}),
    "Calendar": answer({**CALENDAR.answer(), **_SHOWN_CONTENT}),
    "ListedCalendar": answer(CALENDAR.answer()),
    "CalendarPage": page("ListedCalendar"),
    "CalendarVersion": answer({**VERSION.answer(), **_SHOWN_CONTENT}),
    "ListedCalendarVersion": answer(VERSION.answer()),
    "CalendarVersionPage": page("ListedCalendarVersion"),
}
FLOW_KEYS: dict[str, Schema] = {
    "FlowKeyDraft": request(FLOW_KEY.request(), ("name",)),
    "FlowKeyReplacement": request({**FLOW_KEY.request(), **dict.fromkeys(FLOW_KEY.read_only, PASSED_OVER)}),
    "FlowKeyPause": request({"note": text(0, 1_000)}),
    "FlowKey": answer({**FLOW_KEY.answer(), "live": answer(LIVE.answer(), description="The current state.")}),
    "ListedFlowKey": answer(FLOW_KEY.answer()),
    "FlowKeyPage": page("ListedFlowKey"),
}
TENANTS: dict[str, Schema] = {
    "TenantDraft": request({"tenant": TENANT_NAME, "name": TENANT_NAME, **GIVEN}),
    "TenantPatch": patch_of(
        request({"tenant": TENANT_NAME, **GIVEN, **dict.fromkeys(READ_ONLY, PASSED_OVER)}), {}, removable=False
    ),
    "Tenant": answer(TENANT.answer()),
    "TenantPage": page("Tenant"),
    "Subscription": answer(SUBSCRIPTION.answer()),
    "SubscriptionPage": page("Subscription"),
}
OVERVIEWS: dict[str, Schema] = {
    "Timeline": answer({**TIMELINE.answer(), **PRICE.answer()}),
    "Lane": answer(LANE.answer()),
    "LaneSchedule": answer(LANE_SCHEDULE.answer()),
    "LastRun": answer(LAST_RUN.answer()),
    "Mark": answer(MARK.answer()),
    "TimelineChanges": answer({**CHANGES.answer(), **PRICE.answer()}),
    "Attention": answer({**ATTENTION.answer(), **PRICE.answer()}),
    "AttentionItem": answer(ITEM.answer()),
    "Load": answer({**LOAD.answer(), **PRICE.answer()}),
    "KnownJob": answer(KNOWN_JOB.answer()),
}
