"""The schemas of overviews of all jobs."""

from __future__ import annotations

from sweephand.base.json_schema import Members, Schema, answer, items, one_of, or_null, ref, text, whole
from sweephand.domain.job import JobState
from sweephand.domain.occurrences import lanes
from sweephand.domain.run import Kind, Reason, State
from sweephand.domain.schedule import ScheduleState, StateReason
from sweephand.server.facades.native.members.job_members import JOB
from sweephand.server.facades.native.members.schema_words import (
    ID,
    INSTANT,
    INSTANT_MS,
    NAME,
    REVISION,
    RUN_ID,
    STATUS_CODE,
    TEXT,
)
from sweephand.server.facades.native.overview import attention, timeline
from sweephand.server.flow.jobs.load_ahead import MOST_JOBS, SLOTS

_PRICE: Members = {
    "readUnits": {
        "type": "number",
        "minimum": 0,
        "description": "How many read units of DynamoDB this answer cost.",
    },
    "askAgainAfterSeconds": whole(
        1, description="The shortest interval for polling, with which an open overview reads at most 60 units a minute."
    ),
}
_NOW: Members = {"now": {**INSTANT_MS, "description": "The clock of the service."}}
_MARKS_FROM: Schema = {**INSTANT_MS, "description": "Marks planned after this instant are complete."}
_SECONDS = items(
    {"type": "integer"}, maxItems=lanes.MOST, description="Instants, in whole seconds after the `from` of the timeline."
)
_LEFT_OUT = whole(0, lanes.COUNTED_MOST, description="How many more there are; the maximum means that many or more.")
_JOB = JOB.answer()

SCHEMAS: dict[str, Schema] = {
    "Timeline": answer(
        {
            **_NOW,
            "from": INSTANT,
            "until": INSTANT,
            "marksFrom": _MARKS_FROM,
            "items": items(ref("Lane")),
            "nextCursor": or_null(text(description="Send it as `cursor` for the next lanes; null on the last page.")),
            "since": text(description="Send it to `/v1/timeline:changes`."),
            **_PRICE,
        }
    ),
    "Lane": answer(
        {
            "jobId": ID,
            "name": TEXT,
            "collection": NAME,
            "revision": REVISION,
            "state": one_of(JobState),
            "stateReason": or_null(one_of(StateReason)),
            "sentence": or_null(text(description="Why the job does not run, in words; null: it runs normally.")),
            "pause": _JOB["pause"],
            "held": _JOB["held"],
            "nextRunAt": or_null(INSTANT),
            "dueSince": or_null(
                {**INSTANT, "description": "The oldest instant that is due and has not begun; null: it is on time."}
            ),
            "schedules": items(ref("LaneSchedule"), maxItems=timeline.MOST_SCHEDULES),
            "schedulesLeftOut": whole(description="How many schedules the lane does not show."),
            "marks": items(
                ref("Mark"),
                maxItems=timeline.MOST_MARKS_OF_LANE,
                description="Runs that did not succeed, or that wait.",
            ),
            "marksLeftOut": whole(description="How many older marks the lane does not show."),
            "noFailure": answer(
                {
                    "since": {**INSTANT, "description": "The current rules do not apply to earlier instants."},
                    "seconds": _SECONDS,
                    "leftOut": _LEFT_OUT,
                },
                description="The latest past instants without a recorded failure, as far as rows are known.",
            ),
            "noRow": answer(
                {"seconds": _SECONDS, "leftOut": _LEFT_OUT},
                description="The latest past instants without a row in the ledger: nothing has run yet.",
            ),
            "planned": answer({"seconds": _SECONDS, "leftOut": _LEFT_OUT}, description="The next instants."),
            "exact": {
                "type": "boolean",
                "description": "False if some instants take too long to compute, so that the lane may lack them.",
            },
        }
    ),
    "LaneSchedule": answer(
        {
            "id": ID,
            "name": TEXT,
            "state": one_of(ScheduleState),
            "summary": text(description="In plain English."),
            "timezone": text(description="The zone of its wall times."),
            "nextRunAt": or_null(INSTANT),
        }
    ),
    "LastRun": answer(
        {
            "runId": RUN_ID,
            "plannedAt": INSTANT_MS,
            "kind": one_of(Kind),
            "state": one_of(State),
            "reason": or_null(one_of(Reason)),
            "durationMs": or_null(whole()),
            "count": whole(1, description="How many occurrences it stands for."),
        }
    ),
    "Mark": answer(
        {
            "runId": RUN_ID,
            "jobId": ID,
            "scheduleId": or_null(ID),
            "kind": one_of(Kind),
            "plannedAt": INSTANT_MS,
            "state": one_of(State),
            "reason": or_null(one_of(Reason)),
            "httpStatus": or_null(STATUS_CODE),
            "sentence": text(description="The reason for its state, in words."),
            "until": or_null({**INSTANT_MS, "description": "For a mark of many occurrences: the last of them."}),
            "count": whole(1, description="How many occurrences it stands for."),
        }
    ),
    "TimelineChanges": answer(
        {
            **_NOW,
            "marksFrom": _MARKS_FROM,
            "marks": items(
                ref("Mark"),
                maxItems=timeline.MOST_AGAIN,
                description="All marks planned after `marksFrom`; they replace those that the caller has.",
            ),
            "jobs": {
                **or_null(items(ref("KnownJob"))),
                "description": f"All jobs, if one was created, changed or deleted since; null: none was, or more than "
                f"{timeline.MOST_KNOWN:,} jobs.",
            },
            "since": text(description="Send it with the next request."),
            **_PRICE,
        }
    ),
    "Attention": answer(
        {
            **_NOW,
            "oldestDueAt": or_null(
                {**INSTANT, "description": "The tenant's oldest instant that is due and has not been sent."}
            ),
            "behindSeconds": whole(description="How long ago that was; 0: nothing waits."),
            "items": items(ref("AttentionItem"), maxItems=attention.MOST),
            "itemsLeftOut": whole(description="How many more there are."),
            **_PRICE,
        }
    ),
    "AttentionItem": answer(
        {
            "kind": one_of(attention.KINDS, description="The kind; `jobs` stands for all jobs in the state `id`."),
            "id": text(description="The id or the name of the resource."),
            "name": text(description="The name for people."),
            "jobId": or_null(ID),
            "since": or_null({**INSTANT_MS, "description": "When it began."}),
            "lastAt": or_null({**INSTANT_MS, "description": "When it last happened."}),
            "count": whole(1, description="How many runs, targets, events or jobs it stands for."),
            "reason": or_null(one_of(Reason)),
            "sentence": text(description="The problem, in a sentence."),
            "nextStep": answer(
                {
                    "verb": one_of(attention.VERBS, description="The kind of the step."),
                    "words": text(description="The step in words."),
                    "href": text(description="The path to start with."),
                },
                description="The next step.",
            ),
        }
    ),
    "Load": answer(
        {
            "computedAt": {**INSTANT_MS, "description": "When it was computed."},
            "ageSeconds": whole(description="How old it is. It is kept in the memory of the function."),
            "from": {**INSTANT, "description": "The beginning of the first slot."},
            "slotSeconds": whole(1, description="How long each slot is."),
            "slots": items(
                whole(), minItems=SLOTS, maxItems=SLOTS, description="How many runs the rules plan in each slot."
            ),
            "jobs": whole(description="How many jobs were counted."),
            "jobsLeftOut": whole(
                description=f"How many were not: those after the first {MOST_JOBS:,}, and those whose occurrences take "
                "too long to compute."
            ),
            **_PRICE,
        }
    ),
    "KnownJob": answer({"jobId": ID, "revision": REVISION, "state": one_of(JobState)}),
}
