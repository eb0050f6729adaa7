"""Schemas of schedules: every notation, the time rules, and what an answer shows."""

from __future__ import annotations

from sweephand.domain.job import HOOK_KINDS
from sweephand.domain.jobs.held import HeldBy
from sweephand.domain.run import State
from sweephand.domain.schedule import ScheduleState, StateReason
from sweephand.facades.native import descriptions, shapes
from sweephand.facades.native.calendar_schemas import SHOWN_USES, USES
from sweephand.facades.native.json_schema import (
    NULL,
    Members,
    Schema,
    answer,
    items,
    one_of,
    or_null,
    ref,
    request,
    text,
    whole,
)
from sweephand.facades.native.schema_words import (
    ANYTHING,
    FLAG,
    GIVEN_INSTANT,
    ID,
    INSTANT,
    INSTANT_MS,
    NAME,
    PASSED_OVER,
    RUN_ID,
    TEXT,
)
from sweephand.schedules import notations
from sweephand.schedules.notations.every import Align
from sweephand.schedules.text.members import LONGEST_TEXT
from sweephand.schedules.timing import MOST_COUNT, MOST_JITTER_S
from sweephand.schedules.zones.localtime import Gap, MonthOverflow, Overlap

DST_RULES: Members = {
    "dstGap": one_of(Gap, description="A wall time that the clock jumps over."),
    "dstOverlap": one_of(Overlap, description="A wall time that the clock shows twice."),
    "monthOverflow": one_of(MonthOverflow, description="A day that its month does not have."),
}
NOTATIONS: Members = {name: notation.SCHEMA for name, notation in notations.NOTATIONS.items()}


def _described(name: str) -> Schema:
    """Returns a notation's own description, where the document has no shorter one for its name."""
    return {} if name in descriptions.MEMBERS else {"description": NOTATIONS[name]["description"]}


ALIGN = one_of(Align, description="Of `every`: where the grid of the steps lies.")
ZONE = text(1, LONGEST_TEXT, description="IANA, such as `Europe/Berlin`.")
ONE_NOTATION = [{"required": [name], "properties": {name: {"not": NULL, **_described(name)}}} for name in NOTATIONS]
TIMING: Members = {
    **NOTATIONS,
    "align": ALIGN,
    "timezone": ZONE,
    **DST_RULES,
    "startTime": GIVEN_INSTANT,
    "endTime": {**GIVEN_INSTANT, "description": "Included. " + GIVEN_INSTANT["description"]},
    "count": whole(1, MOST_COUNT, description="Occurrences in all."),
    "jitterSeconds": whole(0, MOST_JITTER_S),
    "calendars": USES,
}
SCHEDULE_DRAFT: Members = {
    "name": NAME,
    "active": FLAG,
    "payload": {**ANYTHING, "description": "In the place of the action's. " + ANYTHING["description"]},
    "hooks": request(
        dict.fromkeys(HOOK_KINDS, ref("Action")), description="Each in the place of the job's of that name."
    ),
    "policies": ref("SchedulePolicies"),
    **TIMING,
}
SCHEDULE_REPLACEMENT: Members = {
    "id": text(1, 64, description="Of a schedule that is there."),
    **SCHEDULE_DRAFT,
    **dict.fromkeys(shapes.READ_ONLY_OF_SCHEDULE, PASSED_OVER),
}
HELD: Schema = or_null(
    answer(
        {"by": one_of(HeldBy), "name": TEXT, "since": INSTANT_MS},
        description="What keeps it from running although it is switched on: its disabled tenant or collection, while"
        " which nothing is announced and what falls due is skipped, or its paused flow key, under which runs wait.",
    )
)
SCHEDULE: Members = {
    "id": ID,
    "jobId": ID,
    "name": TEXT,
    "active": FLAG,
    "state": one_of(ScheduleState),
    "stateReason": or_null(one_of(StateReason)),
    "held": HELD,
    "type": one_of(("recurring", "one-time")),
    "summary": text(description="In plain English."),
    **TIMING,
    "timezone": ZONE,
    **{name: or_null(TIMING[name]) for name in ("startTime", "endTime", "count")},
    "calendars": SHOWN_USES,
    "payload": ANYTHING,
    "hooks": answer(dict.fromkeys(HOOK_KINDS, ref("ShownAction")), HOOK_KINDS),
    "policies": ref("OwnPolicies"),
    "createdAt": INSTANT_MS,
    "modifiedAt": INSTANT_MS,
    "nextRunAt": or_null(INSTANT),
    "nextRuns": items(INSTANT, maxItems=5),
    "lastRun": or_null(answer({"id": RUN_ID, "state": one_of(State)})),
    "totals": ref("Totals"),
}
OF_SOME_NOTATIONS = (*NOTATIONS, "align", *DST_RULES)
