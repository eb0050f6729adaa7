"""The meaning of each reason, in one sentence: for the documentation and for people who look at runs."""

from __future__ import annotations

from collections.abc import Mapping

from sweephand.domain.run import Reason

ISSUER = "the token endpoint"
"""Begins the message of an attempt that failed before its call, because no token was issued."""
MEANINGS: Mapping[Reason, str] = {
    Reason.ON_TIME: "The first attempt began at most 5 s after the planned instant.",
    Reason.LATE: "The first attempt began more than 5 s after the planned instant.",
    Reason.HTTP_STATUS: "The target answered with a status that is not a success; `httpStatus` has it.",
    Reason.DNS: "The host name of the target could not be resolved.",
    Reason.TLS: "No TLS connection could be made: the handshake or the certificate failed.",
    Reason.CONNECT: "No TCP connection could be made: it was refused, had no route or took too long.",
    Reason.NO_ANSWER: "The connection was made, but no complete answer came in time.",
    Reason.GUARD: "The outbound guard refused the target, or a secret of the job could not be decrypted.",
    Reason.DEADLINE: "The time limit for the call, or for the target's report, was reached.",
    Reason.CALLBACK: "The target reported a failure.",
    Reason.BAD_PAYLOAD: "The stored payload, or the stored text of the schedule, cannot be used.",
    Reason.TARGET_ERROR: (
        "The target was reached and failed: a function raised an error, or a bus did not accept the event."
    ),
    Reason.NO_TARGET: "The target that the action names does not exist.",
    Reason.UNKNOWN_TASK: "The worker does not know the task.",
    Reason.EXECUTOR_LOST: "Its executors were lost, more often than allowed.",
    Reason.UNDELIVERED: "No executor could begin it, although its message came back from the dead letters 24 times.",
    Reason.CIRCUIT_OPEN: (
        "Its target did not answer other calls or was unavailable, so it waited for too long (see `message`)."
    ),
    Reason.OVERLAP: "Another run of its schedule was active; `message` names it.",
    Reason.PAUSED: "Its job was paused.",
    Reason.DISABLED: "Its schedule, job, collection or tenant was switched off.",
    Reason.CALENDAR: "A calendar excludes this time.",
    Reason.BY_HAND: "Somebody skipped this one occurrence.",
    Reason.QUOTA: "A quota was used up.",
    Reason.SERVICE_OUTAGE: (
        "The service did not run, or an executor received the run too late, and the misfire policy left it out "
        "(see `message`)."
    ),
    Reason.CONSUMER_AWAY: (
        "No worker of its application has taken it, or the consumer of its event is away, was away for too long, or "
        "was deleted (see `message`)."
    ),
    Reason.MAX_LATENESS: "It would have begun later than `maxLatenessSeconds` allows.",
    Reason.MAX_AGE: (
        "Its message waited for more than 4 days or was found lost after them, or the next attempt would begin later "
        "than `maxAgeSeconds` allows."
    ),
    Reason.RETENTION: "The audit looked for it when its row could already have expired. It may have run.",
    Reason.BY_USER: "Somebody cancelled it.",
    Reason.REPLACED: "A later run of its schedule replaced it; `message` names it.",
    Reason.OWNER_GONE: "Its job or schedule was deleted.",
}
