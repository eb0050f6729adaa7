"""A target's report of its run: how it ended, and when the job runs again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from json import dumps
from math import ceil
from typing import Any

from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.members import fields
from sweephand.domain.instants import from_s
from sweephand.schedules.text.instants import parse_instant
from sweephand.server.facades.native.members import run_edits
from sweephand.server.flow.runs.edits import Edit
from sweephand.server.flow.runs.follow_ups import FIELD, FURTHEST, FollowUp

LONGEST_MESSAGE = 1_000
MOST_ATTEMPTS = 1_000


def read(body: object, now: datetime, *, tasks: bool) -> tuple[bool, str | None, FollowUp | None]:
    """Reads a target's report: whether the run succeeded, a message, and when the job runs again.

    tasks: as for Edit.
    """
    wrong = Mistakes()
    members = fields.members(body, "", ("success", "message", FIELD), wrong)
    success = wrong.of(lambda: fields.flag(fields.required(members, "success"), "success"))
    message = wrong.of(fields.free, members["message"], "message", 0, LONGEST_MESSAGE) if "message" in members else None
    follows = wrong.of(follow_up, members, now, tasks=tasks)
    wrong.check()
    return success, message, follows


def attempt(body: object) -> int:
    """Reads the attempt whose result will not come."""
    wrong = Mistakes()
    members = fields.members(body, "", ("attempt",), wrong)
    number = wrong.of(lambda: fields.whole(fields.required(members, "attempt"), "attempt", 1, MOST_ATTEMPTS))
    wrong.check()
    return number


def follow_up(report: Mapping[str, Any], now: datetime, *, tasks: bool) -> FollowUp | None:
    """Reads when the job runs again, and what that run sends instead of the job's payload and headers."""
    value = report.get(FIELD)
    if value is None:
        return None
    wrong = Mistakes()
    members = fields.members(value, FIELD, ("at", "afterSeconds", *run_edits.MEMBERS), wrong)
    if ("at" in members) is ("afterSeconds" in members):
        wrong.add(InvalidRequest(FIELD, "needs either at or afterSeconds"))
    else:
        at = wrong.of(_at, members, now)
    edit = wrong.of(_edit, members, tasks=tasks)
    wrong.check()
    return FollowUp(at, dumps(value, sort_keys=True), edit)


def _at(members: Mapping[str, Any], now: datetime) -> datetime:
    if "at" in members:
        instant = parse_instant(members["at"], f"{FIELD}.at")
    else:
        seconds = fields.whole(members.get("afterSeconds"), f"{FIELD}.afterSeconds", 1, int(FURTHEST.total_seconds()))
        instant = now + timedelta(seconds=seconds)
    return from_s(ceil(instant.timestamp()))


def _edit(members: Mapping[str, Any], *, tasks: bool) -> Edit | None:
    try:
        return run_edits.read(members, tasks=tasks)
    except InvalidRequest as wrong:
        raise wrong.within(FIELD) from wrong
