"""The action `event`: an event on the stack's own bus, for whoever has a rule there.

A repeat puts a second event with the same `id`: the run's.
"""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar, final

from sweephand.actions.call import Call
from sweephand.actions.kind import Action, string
from sweephand.actions.outcome import Rules, failed, taken, taken_outcome
from sweephand.domain.instants import text, text_ms
from sweephand.domain.members.json_text import dumps, loads
from sweephand.domain.run import Outcome, Reason
from sweephand.records import dataclass
from sweephand.security.guard import Outbound

USUAL_TYPE = "job"
MAX_DETAIL_TYPE = 128


@final
@dataclass(frozen=True)
class Event(Action):
    """An event on the stack's own bus, in the tenant's name."""

    detail_type: str = string("detailType", 1, MAX_DETAIL_TYPE, default=USUAL_TYPE)
    outcome: Rules = taken_outcome()

    kind = "event"
    shows = ("own",)
    never: ClassVar = {"unproven": "the stack's own"}

    def tells_its_run(self, *, with_payload: bool) -> bool:  # noqa: ARG002 - whatever it carries
        """Says no: everybody with a rule hears the event."""
        return False

    def perform(self, call: Call, outbound: Outbound) -> Outcome:  # noqa: ARG002 - the stack's bus is no target
        assert call.put_event is not None
        refused = call.put_event(self.detail_type, dumps(_detail(call)))
        if refused is not None:
            return failed(Reason.TARGET_ERROR, f"the event bus did not take the event: {refused}", retryable=True)
        return taken(self.outcome, call, None, told=False)


def _detail(call: Call) -> dict[str, Any]:
    """Returns the detail as events/schemas/job.json has it.

    Source: the events of Root JobScheduler, whose names are kept (`jobScheduleId`, `tag`, `jobTime`). Its
    `jobScheduleId` is the id that create returned and that edit and delete take: here the job's, of every run.
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
    }


def traceparent(call: Call) -> str:
    """Returns a parent by the W3C's Trace Context. All attempts of a run are one trace, and each is a span.

    It is marked as not sampled: the service records no traces.
    """
    trace = call.run_id.rpartition("_")[2].replace("-", "")
    span = hashlib.sha256(f"{call.run_id} {call.attempt}".encode()).hexdigest()[:16]
    return f"00-{trace}-{span}-00"
