"""Reads small bodies of the native API for the flow. Every member is checked, and every refusal names its field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.ids import is_uuid
from sweephand.base.members import fields
from sweephand.domain.run import Kind
from sweephand.schedules.text.instants import parse_instant

_STRANGE = re.compile(r"^[._-]|[^A-Za-z0-9._-]", re.ASCII)
IF_ACTIVE = ("start", "drop")
MODES: Mapping[str, Kind] = {"run": Kind.MANUAL, "test": Kind.TEST}


def run(body: object) -> tuple[str | None, str, Kind, Mapping[str, Any]]:
    """Returns the schedule of a manual run, what to do if another run is active, the run's kind, and all members."""
    wrong = Mistakes()
    members = fields.members(body, "", ("scheduleId", "ifActive", "mode", "payload", "body", "headers"), wrong)
    schedule_id = wrong.of(_schedule_id, members["scheduleId"]) if "scheduleId" in members else None
    if_active = wrong.of(fields.one_of, members.get("ifActive", "start"), "ifActive", IF_ACTIVE)
    mode = wrong.of(fields.one_of, members.get("mode", "run"), "mode", MODES.keys())
    if mode == "test" and "ifActive" in members:
        wrong.add(InvalidRequest("ifActive", "has no effect with mode `test`, whose run takes no turn: leave it out"))
    wrong.check()
    return schedule_id, if_active, MODES[mode], members


def _schedule_id(value: object) -> str:
    schedule_id = fields.free(value, "scheduleId", 1, 64)
    if not is_uuid(schedule_id):
        raise InvalidRequest("scheduleId", f"is not an id: {fields.shown(schedule_id)}")
    return schedule_id


def pause(body: object) -> tuple[str | None, datetime | None]:
    wrong = Mistakes()
    members = fields.members(body, "", ("note", "until"), wrong)
    note = wrong.of(_text, members, "note")
    until = wrong.of(_instant, members, "until")
    wrong.check()
    return note, until


# Members


def _text(members: Mapping[str, Any], name: str) -> str | None:
    return fields.free(members[name], name, 0, 1_000) if name in members else None


def is_plain(text: str) -> bool:
    """Returns whether a name can be part of a path."""
    return 1 <= len(text) <= 128 and _STRANGE.search(text) is None


def plain_name(members: Mapping[str, Any], before: str | None) -> str:
    """Reads the name of a resource. before: its name, which cannot be changed; None for a new resource."""
    name = fields.text(members["name"], "name", 1, 128) if "name" in members else None
    if before is None:
        if name is None:
            raise InvalidRequest("name", "is required")
        check_plain(name, "name")
        return name
    if name not in {None, before}:
        raise InvalidRequest("name", "cannot be changed")
    return before


def check_plain(text: str, field: str) -> None:
    strange = _STRANGE.search(text)
    if strange:
        rule = "must consist of letters, digits, . _ and -, and begin with a letter or a digit"
        raise InvalidRequest(field, f"{rule}, not {fields.shown(text)}", position=strange.start())


def _instant(members: Mapping[str, Any], name: str) -> datetime | None:
    return parse_instant(members[name], name) if name in members else None
