"""Shared parts of the native API's schemas: ids, instants, names."""

from __future__ import annotations

from sweephand.base import json_schema
from sweephand.base.json_schema import Schema, one_of, or_null, text, whole
from sweephand.base.members.fields import LONGEST_TEXT
from sweephand.schedules.text import instants

_HEX = "[0-9a-f]"
_UUID = "-".join(f"{_HEX}{{{size}}}" for size in (8, 4, 4, 4, 12))
_DAY_AND_TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
ID = text(format="uuid", pattern=f"^{_UUID}$")
JOB_FILTER = text(
    pattern=f"^({_UUID}|[1-9][0-9]{{0,15}})$",
    description="The id of the job. The integer `_id` of a job that SAP's API created is accepted too.",
)
RUN_ID = text(pattern=f"^{_UUID}_{_UUID}$", description="`<scheduleId>_<uuid>`; without a schedule `<jobId>_<uuid>`.")
INSTANT = json_schema.INSTANT
INSTANT_MS = text(format="date-time", pattern=rf"^{_DAY_AND_TIME}\.[0-9]{{3}}Z$")
LOCAL = text(pattern=f"^{_DAY_AND_TIME}$", description="A wall time in the schedule's zone.")
LOCAL_WITH_OFFSET = text(
    pattern=f"^{_DAY_AND_TIME}[+-][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}})?$",
    description="The wall time in the schedule's zone, with its offset.",
)
GIVEN_INSTANT: Schema = dict(instants.SCHEMA)
IN_UTC = "RFC 3339; without an offset, it is in UTC."
"""Describes an instant in a request that names no time zone."""
ZONE = text(1, LONGEST_TEXT, description="An IANA time zone, such as `Europe/Berlin`.")
TEXT = text()
FLAG: Schema = {"type": "boolean"}
PASSED_OVER = json_schema.PASSED_OVER
NAME = text(1, 128)
REVISION = whole(1)
STATUS_CODE = whole(100, 599)
PLAIN_NAME = text(1, 128, pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$")
TENANT_NAME = text(1, 64, pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$")
ACTOR = or_null(
    text(
        description="The client id of the caller; null for the service itself, and for changes from before "
        "this was recorded."
    )
)
FACADE = one_of(("native", "sap", "azure"))
