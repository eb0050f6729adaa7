"""The action `event`: an event on the stack's own bus, for everybody who has a rule there.

A repetition sends a second event with the same `id`, that of the run. An event that waited for its consumer has
`.missed` at the end of its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, final

from sweephand.base.errors import InvalidRequest
from sweephand.base.json_schema import answer, ref, request
from sweephand.base.json_text import dumps, loads
from sweephand.base.members.fields import below, inactive
from sweephand.base.records import dataclass
from sweephand.domain.consumer import (
    LONGEST_KEEP_S,
    MOST_HELD,
    NAME_PATTERN,
    NAME_RULE,
    USUAL_KEEP_S,
    USUAL_LIMIT,
    Mode,
)
from sweephand.domain.instants import text, text_ms
from sweephand.domain.run import Outcome, Reason
from sweephand.server.actions.call import Call
from sweephand.server.actions.kind import (
    Action,
    choice,
    loaded_members,
    member,
    members_of,
    number,
    stored_members,
    string,
)
from sweephand.server.actions.outcome import Rules, failed, read_record, taken, taken_outcome
from sweephand.server.actions.run_headers import traceparent
from sweephand.server.security.guard import GuardSettings, Outbound

USUAL_TYPE = "job"
MAX_DETAIL_TYPE = 128
MISSED_SUFFIX = ".missed"


@dataclass(frozen=True)
class Missed:
    """The rule for occurrences that fall due while the consumer is away: which ones it gets, and how long they wait."""

    mode: str = choice("mode", tuple(Mode), default=Mode.EACH.value)
    keep_s: int = number("keepSeconds", 1, LONGEST_KEEP_S, default=USUAL_KEEP_S)
    limit: int = number("limit", 1, MOST_HELD, default=USUAL_LIMIT)


_OF_MISSED = {each.name: each.schema for each in members_of(Missed).values()}


def _stored(missed: Missed | None) -> dict[str, Any] | None:
    return None if missed is None else stored_members(missed)


def _loaded(stored: Mapping[str, Any] | None) -> Missed | None:
    return None if stored is None else loaded_members(Missed, stored)


@final
@dataclass(frozen=True)
class Event(Action):
    """An event on the stack's own bus, in the tenant's name. application: the queue of this application gets it too."""

    detail_type: str = string("detailType", 1, MAX_DETAIL_TYPE, default=USUAL_TYPE)
    consumer: str | None = string(
        "consumer", 1, 128, like=(NAME_PATTERN, NAME_RULE), more={"pattern": f"^{NAME_PATTERN}$"}, default=None
    )
    application: str | None = string(
        "application", 1, 64, like=(NAME_PATTERN, NAME_RULE), more={"pattern": f"^{NAME_PATTERN}$"}, default=None
    )
    missed: Missed | None = member(
        "missed",
        ref("Missed"),
        partial(read_record, Missed),
        shown=ref("ShownMissed"),
        stored=_stored,
        loaded=_loaded,
        default=None,
    )
    outcome: Rules = taken_outcome()

    kind = "event"
    shows = ("own",)
    never: ClassVar = {"unproven": "uses the permission of the stack"}
    components: ClassVar = {"Missed": request(_OF_MISSED), "ShownMissed": answer(_OF_MISSED)}

    def check(self, field: str, guard: GuardSettings) -> None:  # noqa: ARG002 - it calls nobody
        if self.missed is not None and self.consumer is None:
            raise inactive(field, "missed", "it only applies to a consumer that was away, and there is no `consumer`")
        longest = MAX_DETAIL_TYPE - len(MISSED_SUFFIX)
        if self.consumer is not None and len(self.detail_type) > longest:
            reason = f"must have at most {longest} characters if there is a `consumer`, not {len(self.detail_type)}"
            raise InvalidRequest(below(field, "detailType"), reason)

    def sends_callback(self, *, with_payload: bool) -> bool:  # noqa: ARG002 - whatever it carries
        """Returns False, because everybody with a rule gets the event."""
        return False

    def perform(self, call: Call, outbound: Outbound) -> Outcome:  # noqa: ARG002 - the stack's bus is no target
        assert call.put_event is not None
        kind = f"{self.detail_type}{MISSED_SUFFIX}" if call.missed else self.detail_type
        refused = call.put_event(kind, dumps(_detail(call)))
        if refused is not None:
            return failed(Reason.TARGET_ERROR, f"the event was refused: {refused}", retryable=True)
        return taken(self.outcome, call, None, can_report=False)


def _detail(call: Call) -> dict[str, Any]:
    """Returns the detail in the form of events/schemas/job.json.

    Source: the events of Root JobScheduler, whose names are kept (`jobScheduleId`, `tag`, `jobTime`). Its
    `jobScheduleId` is the id that create returned and that edit and delete accept: here the id of the job.
    """
    payload = None
    if call.payload is not None:
        payload = loads(call.payload) if call.payload_is_json else call.payload
    return {
        "id": call.run_id,
        "tenant": call.tenant,
        "jobId": call.job_id,
        "jobScheduleId": call.job_id,
        "scheduleId": call.schedule_id,
        "resourceId": call.resource_id,
        "tag": call.tags[0] if call.tags else None,
        "tags": list(call.tags),
        "jobTime": text(call.planned_at),
        "firedAt": text_ms(call.clock.now()),
        "attempt": call.attempt,
        "payload": payload,
        "traceparent": traceparent(call),
        **_missed(call),
    }


def _missed(call: Call) -> dict[str, Any]:
    """Returns the member of a missed occurrence, which may stand for others."""
    if not call.missed:
        return {}
    first = call.missed_from or call.planned_at
    return {"missed": {"count": call.missed_count, "from": text(first), "until": text(call.planned_at)}}
