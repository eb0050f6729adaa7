"""Headers that identify the run to its target: the service's own, or those of a service that the target already knows.

A facade chooses the dialect of the jobs that it creates, so that their targets need no change.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC

from sweephand.domain.instants import text
from sweephand.server.actions.call import Call

OWN, SAP, AZURE = "sweephand", "sap", "azure"


def _own(call: Call) -> dict[str, str | None]:
    return {
        "Sweephand-Job-Id": call.job_id,
        "Sweephand-Schedule-Id": call.schedule_id,
        "Sweephand-Run-Id": call.run_id,
        "Sweephand-Planned-At": text(call.planned_at),
        "Sweephand-Attempt": str(call.attempt),
        "Sweephand-Callback-Url": call.callback_url,
        "Sweephand-Callback-Token": call.callback_token,
    }


def _sap(call: Call) -> dict[str, str | None]:
    """Returns SAP's headers. Source: its documentation of asynchronous jobs; several applications read x-sap-run-at."""
    return {
        "x-sap-job-id": None if call.integer_job_id is None else str(call.integer_job_id),
        "x-sap-job-schedule-id": call.schedule_id,
        "x-sap-job-run-id": call.run_id.rpartition("_")[2],
        "x-sap-scheduler-host": call.base_url,
        "x-sap-run-at": f"{call.planned_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
    }


def _azure(call: Call) -> dict[str, str | None]:
    """Returns Azure Scheduler's headers. Receivers recognise it by x-ms-scheduler-jobid."""
    return {
        "x-ms-scheduler-jobid": call.job_name,
        "x-ms-scheduler-jobcollectionid": call.collection,
        "x-ms-scheduler-executiontag": execution_tag(call),
        "x-ms-scheduler-expectedexecutiontime": f"{call.planned_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "x-ms-scheduler-region": call.region,
        "x-ms-client-request-id": attempt_uuid(call),
    }


def execution_tag(call: Call) -> str:
    """Returns 32 hex digits that all attempts of a run share."""
    return _trace(call.run_id)


def attempt_uuid(call: Call) -> str:
    """Returns a UUID of this attempt."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{call.run_id.rpartition('_')[2]}/{call.attempt}"))


DIALECTS: Mapping[str, Callable[[Call], dict[str, str | None]]] = {OWN: _own, SAP: _sap, AZURE: _azure}


def headers(dialect: str, call: Call) -> dict[str, str | None]:
    """Returns the headers of a dialect; None for those that a run does not have."""
    return DIALECTS[dialect](call)


def content_type_without_payload(dialect: str) -> str | None:
    """Returns the Content-Type of a POST or PUT without a payload, which SAP's service always sends."""
    return "application/json" if dialect == SAP else None


def traceparent(call: Call) -> str:
    """Returns a parent as defined by W3C Trace Context. All attempts of a run are one trace; each attempt is a span.

    Source: https://www.w3.org/TR/trace-context. It is marked as sampled, although the service records no spans: targets
    would not record theirs otherwise, because most follow the mark of their caller.
    """
    return traceparent_of(call.run_id, call.attempt)


def traceparent_of(run_id: str, attempt: int) -> str:
    return f"00-{_trace(run_id)}-{_span(run_id, attempt)}-01"


def _trace(run_id: str) -> str:
    return run_id.rpartition("_")[2].replace("-", "")


def _span(run_id: str, attempt: int) -> str:
    return hashlib.sha256(f"{run_id} {attempt}".encode()).hexdigest()[:16]


def trace_header(call: Call) -> str:
    """Returns the same parent in the form of AWS X-Ray, for services that pass only this one on.

    Source: https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html (tracing header).
    """
    trace = execution_tag(call)
    return f"Root=1-{trace[:8]}-{trace[8:]};Parent={_span(call.run_id, call.attempt)};Sampled=1"


def facts(call: Call) -> dict[str, str]:
    """Returns the attributes that identify the run to targets without HTTP headers, under the names of the headers."""
    known = {**headers(OWN, call), "Sweephand-Hop": str(call.hop)}
    return {name: value for name, value in known.items() if value is not None}
