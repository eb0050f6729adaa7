"""Previews of schedules that are not stored, and explanations of instants, for the native API."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.json_schema import Members, answer, items, one_of, or_null, whole
from sweephand.base.lazy import lazy
from sweephand.base.members import fields
from sweephand.base.records import dataclass
from sweephand.domain.answers import Table, answered
from sweephand.domain.collection import Collection, Usage
from sweephand.domain.instants import epoch_s, from_ms, text
from sweephand.domain.run import Reason as RunReason
from sweephand.domain.run import Run, State
from sweephand.domain.schema_words import FLAG, INSTANT, INSTANT_MS, LOCAL_WITH_OFFSET, RUN_ID, TEXT
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
from sweephand.server.facades.native.members.schedule_members import MOVED_BY, moved_body
from sweephand.server.facades.native.shared import collection_members
from sweephand.server.flow.jobs.schedule_timing import LAST
from sweephand.server.flow.tenants import tenancy

if TYPE_CHECKING:
    from sweephand.server.flow.jobs.past import Switch

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
        timing, members, after, limit, asked = _asked_for(ctx, body)
        timing.check_computable(after)
    count = limit if timing.count is None else min(limit, timing.count)
    occurrences, whole = search(timing, after, count)
    until = occurrences[-1].instant if len(occurrences) == limit or not whole else LAST
    ends = (
        occurrences[-1].instant if len(occurrences) == count or not whole else LAST
    )  # after the last, nothing is left out
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
                for each in occurrences
            ],
            "dropped": [{"at": text(each.at), "movedBy": moved_body(each.moved_by)} for each in gone],
            "leftOut": [
                {"plannedAt": text(each.instant), "calendar": members["calendars"][each.calendar]["name"]}
                for each in islice(left_out(timing, after, ends), MOST_DROPPED)
            ],
            "gaps": _gaps(timing, after),
            "warnings": [
                {"code": each.code, "message": each.text} for each in preview_warnings.cautions(timing, after)
            ],
            "explained": None
            if explained is None
            else EXPLANATION.show(Explained(timing, explained, members.get("calendars"))),
            "nextCursor": None,
            "searchedUntil": text(until),
            "ianaVersion": IANA_VERSION,
        },
    )


def _asked_for(ctx: Context, body: object) -> tuple[Timing, dict[str, Any], datetime, int, Written | None]:
    """Reads the timing with its members, the beginning, the number, and the instant to explain."""
    wrong = Mistakes()
    members = fields.members(body, "", (*TIMING_MEMBERS, *OWN_MEMBERS), wrong)
    limit = wrong.of(fields.whole, members.pop("limit", NEXT_PREVIEWED), "limit", 1, MOST_PREVIEWED)
    after = wrong.of(parse_instant, members.pop("after"), "after") if "after" in members else ctx.now
    asked = wrong.of(instants.read, members.pop("explain"), "explain") if "explain" in members else None
    home = wrong.of(_collection, ctx, members.pop("collection")) if "collection" in members else None
    collection, usage = home or (None, Usage())
    if collection is not None:
        members = dict(collection_members.schedule_with_defaults(members, collection.defaults))
    for refused in idle.of_timing(members, ""):
        wrong.add(refused)
    wrong.check()
    book = named_calendars.book_of(ctx.world, _tenant(ctx), [members]) if "calendars" in members else None
    timing = parse(members, now=after, book={} if book is None else named_calendars.references(book))
    if collection is not None:
        tenancy.check_interval(collection, usage, timing, "")
        timing = tenancy.bounded(collection, timing, timing.count, "")
    if timing.notation == "time" and timing.once_at == after:  # `after` stands for the creation, which is "now"
        after -= timedelta(seconds=1)
    return timing, members, after, limit, asked


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
        stretch = gaps.walk(timing.rule, begin, end, min(most, timing.count))
    else:
        stretch = gaps.measure(timing.rule, begin, end, most)
    if stretch is None or stretch.smallest_s is None:
        return None
    until = text(from_ms(stretch.until * 1000))
    return {"smallestSeconds": stretch.smallest_s, "largestSeconds": stretch.largest_s, "until": until}


def _ends_within(timing: Timing, begin: int, end: int) -> bool:
    """Returns whether the last occurrence of its `count` is before `end`, or counting would take too long."""
    assert timing.count is not None
    try:
        with limited(MOST // 8):
            return timing.rule.count(begin, end, timing.count + 1) > timing.count
    except Undecided:
        return True


@dataclass(frozen=True)
class Explained:
    """An explanation of an instant. calendars: as the schedule names them. The rest is None in a preview.

    state, reason: of the row, or as things stand. row: of the ledger. off: who had switched the schedule off.
    """

    timing: Timing
    explanation: explain_instant.Explanation
    calendars: Any
    state: State | None = None
    reason: RunReason | None = None
    row: Run | None = None
    off: Switch | None = None

    def message(self, reason: Reason) -> str:
        if reason.calendar is None:
            return reason.text
        return f"the times of its calendar {self.calendars[reason.calendar]['name']} do not allow it"


SPAN = Table(
    {
        "from": answered(INSTANT_MS, "planned_at"),
        "until": answered(INSTANT_MS, "range_until"),
        "count": answered(whole(1), "range_count"),
    }
)
OFF = Table(
    {
        "since": answered(or_null(INSTANT_MS)),
        "until": answered(or_null(INSTANT_MS), says="The end that was set, or when it was switched on again."),
        "by": answered(or_null(TEXT), says="The client id; null if the service did it, or nobody knows."),
        "note": answered(or_null(TEXT)),
    }
)
_REASON: Members = {
    "code": one_of(explain_instant.REASON_CODES),
    "message": TEXT,
    "field": or_null({**TEXT, "description": "The field of the wall time that does not match."}),
}
EXPLANATION = Table(
    {
        "at": answered(INSTANT, "explanation.instant", "The instant that is explained."),
        "localTime": answered(
            LOCAL_WITH_OFFSET,
            lambda explained: local_text(epoch_s(explained.explanation.instant), explained.timing.zone),
        ),
        "occurs": answered(FLAG, "explanation.occurs", "Whether it ran, or will run as things stand."),
        "state": answered(
            or_null(one_of(State)),
            says="The state of its row in the ledger; without a row, SCHEDULED or SKIPPED as things stand. It is null "
            "if the instant is no occurrence, if the row has expired, and in a preview.",
        ),
        "reason": answered(or_null(one_of(RunReason))),
        "range": answered(
            or_null(answer(SPAN.answer(), description="The span of the row, if it stands for many occurrences.")),
            lambda explained: SPAN.show(explained.row) if explained.row and explained.row.range_until else None,
        ),
        "switchedOff": answered(
            or_null(
                answer(
                    OFF.answer(),
                    description="The time around this instant in which somebody had paused or switched off the job or"
                    " the schedule, as far as the last 100 changes of the job show it.",
                )
            ),
            lambda explained: explained.off and OFF.show(explained.off),
        ),
        "reasons": answered(
            items(answer(_REASON), minItems=1),
            lambda explained: [
                {"code": each.code, "message": explained.message(each), "field": each.field}
                for each in explained.explanation.reasons
            ],
            "The reasons, the most important first.",
        ),
        "movedBy": answered(MOVED_BY, lambda explained: moved_body(explained.explanation.moved_by)),
        "previous": answered(or_null(INSTANT), "explanation.previous", "The occurrence before; null if there is none."),
        "next": answered(or_null(INSTANT), "explanation.following", "The next occurrence; null if there is none."),
        "runId": answered(
            or_null(RUN_ID),
            lambda explained: explained.row and explained.row.id,
            "The row of the ledger that covers it; null if there is none.",
        ),
    }
)
