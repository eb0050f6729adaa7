"""The meaning of each reason, in one sentence: for the documentation and for people who look at runs."""

from __future__ import annotations

from collections.abc import Mapping

from sweephand.domain.run import Reason

MEANINGS: Mapping[Reason, str] = {
    Reason.ON_TIME: "The first attempt began at most 5 s after the planned instant.",
    Reason.LATE: "The first attempt began more than 5 s after the planned instant.",
    Reason.HTTP_STATUS: "The target answered with another status; `httpStatus` has it.",
    Reason.DNS: "The name of the target could not be resolved.",
    Reason.TLS: "No TLS connection: handshake or certificate.",
    Reason.CONNECT: "No TCP connection: refused, no route, or not in time.",
    Reason.NO_ANSWER: "The connection stood, but no whole answer came in time.",
    Reason.GUARD: "The outbound guard refused the target, or a secret of the job cannot be opened.",
    Reason.DEADLINE: "The time for the call, or for the target's report, was over.",
    Reason.CALLBACK: "The target reported a failure.",
    Reason.BAD_PAYLOAD: "What is stored does not fit: the payload, or a schedule's own text.",
    Reason.TARGET_ERROR: (
        "The target was reached and failed: a function by its error, a bus that did not take the event."
    ),
    Reason.NO_TARGET: "What the action names is not there.",
    Reason.UNKNOWN_TASK: "The worker does not know the task.",
    Reason.EXECUTOR_LOST: "The executors that held it ended without a word, once more than allowed.",
    Reason.UNDELIVERED: "Its message could not be worked on in ten receives.",
    Reason.CIRCUIT_OPEN: "The circuit of its target was open.",
    Reason.OVERLAP: "Another run of its schedule was active; `message` says which.",
    Reason.PAUSED: "Its job was paused.",
    Reason.DISABLED: "Its schedule, job or collection was switched off.",
    Reason.SUPERSEDED: "A change of the schedule took its place.",
    Reason.CALENDAR: "A calendar excludes the day.",
    Reason.BY_HAND: "Somebody skipped this one occurrence.",
    Reason.QUOTA: "A quota was used up.",
    Reason.SERVICE_OUTAGE: (
        "The service was out, and its policy left it out: nothing ticked, or an executor met it late (see `message`)."
    ),
    Reason.CONSUMER_AWAY: "The consumer of its event is away, was away for too long, or was deleted (see `message`).",
    Reason.MAX_LATENESS: "Later than the schedule's `maxLatenessSeconds`.",
    Reason.MAX_AGE: (
        "Its message had waited for more than 4 days, or the next attempt would be older than `maxAgeSeconds`."
    ),
    Reason.BY_USER: "Somebody cancelled it.",
    Reason.REPLACED: "A later run of its schedule took its turn; `message` says which.",
    Reason.OWNER_GONE: "Its job or schedule was deleted.",
}
