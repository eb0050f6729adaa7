"""The members `payload`, `body` and `headers` of a run or a rerun, which replace those of its job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.members import fields
from sweephand.server.actions import headers as header_fields
from sweephand.server.actions import payloads
from sweephand.server.flow.runs.edits import Edit

MEMBERS = ("payload", "body", "headers")


def read(members: Mapping[str, Any], *, tasks: bool) -> Edit | None:
    """Returns the edit; None if a request has none of these members. tasks: as for Edit. Raises InvalidRequest."""
    if not any(name in members for name in MEMBERS):
        return None
    path, payload = payloads.parse_payload(members, "")
    if payload is not None:
        payloads.check_size(payload, path)
    return Edit(payload, _headers(members["headers"]) if "headers" in members else None, tasks=tasks)


def _headers(value: object) -> dict[str, str | None]:
    """Reads headers by name. Null removes a header."""
    if not isinstance(value, Mapping):
        raise InvalidRequest("headers", "must be an object")
    set_, _ = header_fields.parse({name: each for name, each in value.items() if each is not None}, "headers")
    gone = [name for name, each in value.items() if each is None]
    for name in gone:
        header_fields.check_name(name, fields.below("headers", name))
    return {**{name: value[name] for name, _ in set_}, **dict.fromkeys(gone)}
