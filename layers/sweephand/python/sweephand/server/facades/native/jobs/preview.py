"""Previews of schedules that are not stored, and explanations of instants, for the native API."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.lazy import lazy
from sweephand.base.members import fields
from sweephand.domain.collection import Collection, Usage
from sweephand.domain.instants import epoch_s, from_ms, text
from sweephand.schedules.explain import explain_instant, gaps, preview_warnings
from sweephand.schedules.explain.explain import dropped, left_out, local_text, search
from sweephand.schedules.explain.explain_instant import Reason
from sweephand.schedules.explain.preview_warnings import describe
from sweephand.schedules.rule import MOST, Undecided, limited
from sweephand.schedules.text import instants
from sweephand.schedules.text.instants import Written, parse_instant
from sweephand.schedules.timing import TIMING_MEMBERS, Timing, parse
from sweephand.schedules.zones.localtime import IANA_VERSION
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import shapes
from sweephand.server.facades.native.context import TENANT_HEADER, Context, helpful
from sweephand.server.facades.native.members import idle
from sweephand.server.facades.native.members.schedule_members import moved_body
from sweephand.server.facades.native.shared import collection_members
from sweephand.server.flow.jobs.schedule_timing import LAST
from sweephand.server.flow.tenants import tenancy

with lazy():
    from sweephand.server.flow.job_parts import named_calendars

NEXT_PREVIEWED, MOST_PREVIEWED, MOST_DROPPED = 5, 1_000, 100
OWN_MEMBERS = ("collection", "after", "limit", "explain")


def preview_schedule(ctx: Context) -> Answer:
    """Previews the next instants of a schedule that is not stored. Members: those of a timing, and OWN_MEMBERS.

    collection: its defaults, such as the time zone, and its quotas apply.

    dropped: wall times, up to the last shown instant, that a gap of the clock leaves out (dstGap skip), 100 at most.
    leftOut: the same for calendars. gaps and warnings look a year ahead. explain: an instant to be explained; without
    an offset, it is wall time in the schedule's zone.
    """
    with limited():
        return _preview(ctx)


def _preview(ctx: Context) -> Answer:
    body = ctx.body()
    with helpful(body, ctx.now):
        timing, given, after, limit, asked = _asked_for(ctx, body)
        timing.check_computable(after)
    count = limit if timing.count is None else min(limit, timing.count)
    found, whole = search(timing, after, count)
    until = found[-1].instant if len(found) == limit or not whole else LAST
    ends = found[-1].instant if len(found) == count or not whole else LAST  # after the last, nothing is left out
    gone = dropped(timing, after, ends, MOST_DROPPED)
    counted = None if timing.count is None else explain_instant.Counted(after, timing.count)
    explained = None if asked is None else explain_instant.explain_written(timing, asked, counted)
    return Answer(
        200,
        {
            "type": "recurring" if timing.recurring else "one-time",
            "summary": timing.summary,
            "description": describe(timing, after),
            "items": [
                {
                    "plannedAt": text(each.instant),
                    "localTime": local_text(epoch_s(each.instant), timing.zone),
                    "movedBy": moved_body(each.moved_by),
                }
                for each in found
            ],
            "dropped": [{"at": text(each.at), "movedBy": moved_body(each.moved_by)} for each in gone],
            "leftOut": [
                {"plannedAt": text(each.instant), "calendar": given["calendars"][each.calendar]["name"]}
                for each in islice(left_out(timing, after, ends), MOST_DROPPED)
            ],
            "gaps": _gaps(timing, after),
            "warnings": [
                {"code": each.code, "message": each.text} for each in preview_warnings.cautions(timing, after)
            ],
            "explained": None if explained is None else explanation_body(timing, explained, given.get("calendars")),
            "nextCursor": None,
            "searchedUntil": text(until),
            "ianaVersion": IANA_VERSION,
        },
    )


def _asked_for(ctx: Context, body: object) -> tuple[Timing, dict[str, Any], datetime, int, Written | None]:
    """Reads the timing with its members, the beginning, the number, and the instant to explain."""
    wrong = Mistakes()
    given = fields.members(body, "", (*TIMING_MEMBERS, *OWN_MEMBERS), wrong)
    limit = wrong.of(fields.whole, given.pop("limit", NEXT_PREVIEWED), "limit", 1, MOST_PREVIEWED)
    after = wrong.of(parse_instant, given.pop("after"), "after") if "after" in given else ctx.now
    asked = wrong.of(instants.read, given.pop("explain"), "explain") if "explain" in given else None
    found = wrong.of(_collection, ctx, given.pop("collection")) if "collection" in given else None
    collection, usage = found or (None, Usage())
    if collection is not None:
        given = dict(collection_members.schedule_with_defaults(given, collection.defaults))
    for refused in idle.of_timing(given, ""):
        wrong.add(refused)
    wrong.check()
    book = named_calendars.book_of(ctx.world, _tenant(ctx), [given]) if "calendars" in given else None
    timing = parse(given, now=after, book={} if book is None else named_calendars.references(book))
    if collection is not None:
        tenancy.check_interval(collection, usage, timing, "")
        timing = tenancy.bounded(collection, timing, timing.count, "")
    if timing.notation == "time" and timing.once_at == after:  # `after` stands for the creation, which is "now"
        after -= timedelta(seconds=1)
    return timing, given, after, limit, asked


def _collection(ctx: Context, value: object) -> tuple[Collection, Usage]:
    name = fields.text(value, "collection", 1, 128)
    if not shapes.is_plain(name):
        raise InvalidRequest("collection", f"there is no such collection: {fields.shown(name)}")
    return tenancy.open_with_quotas(ctx.world, _tenant(ctx), name, for_more=False)


def _tenant(ctx: Context) -> str:
    assert ctx.caller is not None
    return ctx.caller.acting_for(ctx.request.headers.get(TENANT_HEADER))


def _gaps(timing: Timing, after: datetime) -> dict[str, Any] | None:
    """Returns the smallest and largest gap in the next year; None for fewer than two occurrences."""
    begin = epoch_s(after)
    end = begin + preview_warnings.YEAR_S
    most = gaps.MOST_MEASURED
    if timing.count is not None and _ends_within(timing, begin, end):
        found = gaps.walk(timing.rule, begin, end, min(most, timing.count))
    else:
        found = gaps.measure(timing.rule, begin, end, most)
    if found is None or found.smallest_s is None:
        return None
    until = text(from_ms(found.until * 1000))
    return {"smallestSeconds": found.smallest_s, "largestSeconds": found.largest_s, "until": until}


def _ends_within(timing: Timing, begin: int, end: int) -> bool:
    """Returns whether the last occurrence of its `count` is before `end`, or counting would take too long."""
    assert timing.count is not None
    try:
        with limited(MOST // 8):
            return timing.rule.count(begin, end, timing.count + 1) > timing.count
    except Undecided:
        return True


def explanation_body(timing: Timing, found: explain_instant.Explanation, calendars: Any) -> dict[str, Any]:
    """Returns the body of an explanation by a rule alone. calendars: as the schedule names them."""
    return {
        "at": text(found.instant),
        "localTime": local_text(epoch_s(found.instant), timing.zone),
        "occurs": found.occurs,
        "reasons": [
            {"code": each.code, "message": _message(each, calendars), "field": each.field} for each in found.reasons
        ],
        "movedBy": moved_body(found.moved_by),
        "previous": None if found.previous is None else text(found.previous),
        "next": None if found.following is None else text(found.following),
        **dict.fromkeys(("state", "reason", "runId", "range", "switchedOff")),
    }


def _message(reason: Reason, calendars: Any) -> str:
    if reason.calendar is None:
        return reason.text
    return f"the times of its calendar {calendars[reason.calendar]['name']} do not allow it"
