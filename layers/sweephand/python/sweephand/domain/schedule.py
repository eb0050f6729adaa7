"""A schedule: when a job runs, and how far its series has come."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

GENERATIONS_KEPT = 20


class ScheduleState(StrEnum):
    ACTIVE = "ACTIVE"
    INACTIVE = "INACTIVE"
    PAUSED = "PAUSED"
    ENDING = "ENDING"
    COMPLETED = "COMPLETED"
    FAULTED = "FAULTED"
    """As COMPLETED, of a one-time schedule whose run failed."""
    BROKEN = "BROKEN"


class StateReason(StrEnum):
    """Why a schedule or a job stands as it does, where that is not the caller's plain wish."""

    ONE_TIME_DONE = "ONE_TIME_DONE"
    NO_FUTURE_DATES = "NO_FUTURE_DATES"
    END_REACHED = "END_REACHED"
    COUNT_REACHED = "COUNT_REACHED"
    QUOTA_REACHED = "QUOTA_REACHED"
    UNREACHABLE = "UNREACHABLE"
    UNREADABLE = "UNREADABLE"
    JOB_INACTIVE = "JOB_INACTIVE"
    BY_USER = "BY_USER"


class Lane(StrEnum):
    """Which queue: of runs, fast for answers within 15 s, slow beyond; operations for long work, never for a run."""

    FAST = "fast"
    SLOW = "slow"
    OPERATIONS = "operations"


LIVE = frozenset({ScheduleState.ACTIVE, ScheduleState.ENDING})
OVER = frozenset({ScheduleState.COMPLETED, ScheduleState.FAULTED})


@dataclass(frozen=True)
class Schedule:
    """generation: raised by every change of timing or state. ended_at: generation -> epoch seconds at which it ended.

    timing: the caller's members, for the answer. packed: what schedules.timing.load reads. next_run_at: the earliest
    instant not yet sent (of an ENDING schedule: when it is looked at again), None while nothing waits.
    last_planned_at: the last counted instant. planned_total: occurrences sent so far. first_at: the first occurrence of
    this generation, where its rule has none there, or where it lies before the end of the generation before.
    still_due: instants that generations before this one have counted, that lay ahead as this one began, and that this
    one does not have. off_times: when it was off, for what it had sent ahead by then (domain.off_times).
    missed_from, missed_to: what was last decided not to be sent one by one: a late message of it is dropped. Without
    missed_from, all that was planned before it too. left_out_to: up to where lines tell of it and nothing is sent,
    unless all of it is.
    collection: of its job, as the sweeper knows it. held_from: while its collection or tenant is disabled, the
    earliest instant not yet sent; next_run_at is then only when it is looked at again. completed_at: once COMPLETED.
    unreachable: since when its target is out of reach (domain.runs.deactivation.Streak); None while it answers.
    hooks: which hooks it brings itself, in the place of its job's (domain.jobs.own_hooks.OwnHooks); None: none.
    attributes: what only its job's facade knows.
    newer_packed: the timing by the versions of its calendars that hold now, while it has still to follow them. Known to
    answers only (flow.lookup.as_following), and never stored.
    """

    tenant: str
    job_id: str
    id: str
    name: str
    timing: Mapping[str, Any]
    packed: str
    lane: Lane
    created_at: datetime
    modified_at: datetime
    active: bool = True
    state: ScheduleState = ScheduleState.ACTIVE
    state_reason: str | None = None
    misfire: str = "sap"
    generation: int = 1
    ended_at: Mapping[int, int] = field(default_factory=dict)
    planned_total: int = 0
    last_planned_at: datetime | None = None
    payload_version: int | None = None
    policies: Mapping[str, Any] = field(default_factory=dict)
    next_run_at: datetime | None = None
    missed_from: datetime | None = None
    missed_to: datetime | None = None
    left_out_to: datetime | None = None
    first_at: datetime | None = None
    collection: str | None = None
    held_from: datetime | None = None
    completed_at: datetime | None = None
    unreachable: str | None = None
    hooks: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    still_due: tuple[datetime, ...] = ()
    off_times: str | None = None
    newer_packed: str | None = None

    @property
    def unsent_from(self) -> datetime | None:
        """The earliest instant not yet sent, None while nothing waits."""
        return self.held_from or self.next_run_at


def names_calendars(packed: str) -> bool:
    """Whether a text that holds a packed timing names calendars, which must have been read before it is loaded."""
    return '"cal":[' in packed


_ENDLESS = re.compile(
    r"""\{"(?:cron|every|recurrence)":|\{"repeatAt":|\{"sapCron":"\* |\{"rrule":\{"rule":"""
    r"""|\{"eventBridge":\{(?:"cron":"[^"]* \*"|"rate":)"""
)
_BOUNDS = ('"last":', '"until":', '"count":', '"cal":')


def may_end(packed: str) -> bool:
    """Says from a packed timing, without its mathematics, whether the series may have a last occurrence.

    Wrong only in saying so of a series that has none.
    """
    return _ENDLESS.match(packed) is None or any(bound in packed for bound in _BOUNDS)


def ended_generations(schedule: Schedule, effective_at: int) -> dict[int, int]:
    """The generations that a change at `effective_at` (epoch seconds) leaves behind: the last 20."""
    ended = {**schedule.ended_at, schedule.generation: effective_at}
    return dict(sorted(ended.items())[-GENERATIONS_KEPT:])
