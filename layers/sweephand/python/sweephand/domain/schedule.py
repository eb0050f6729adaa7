"""A schedule: when a job runs, and the progress of its series."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sweephand.base.records import dataclass

GENERATIONS_KEPT = 20
PAST_GRACE = timedelta(seconds=60)
"""How long ago a requested instant may lie and still run."""


class ScheduleState(StrEnum):
    ACTIVE = "ACTIVE"
    INACTIVE = "INACTIVE"
    PAUSED = "PAUSED"
    ENDING = "ENDING"
    COMPLETED = "COMPLETED"
    FAULTED = "FAULTED"
    """The same as COMPLETED, for a one-time schedule whose run failed."""
    BROKEN = "BROKEN"


class StateReason(StrEnum):
    """The reason for the state of a schedule or job, if the caller did not simply request it."""

    ONE_TIME_DONE = "ONE_TIME_DONE"
    NO_FUTURE_DATES = "NO_FUTURE_DATES"
    END_REACHED = "END_REACHED"
    COUNT_REACHED = "COUNT_REACHED"
    QUOTA_REACHED = "QUOTA_REACHED"
    UNREACHABLE = "UNREACHABLE"
    UNREADABLE = "UNREADABLE"
    JOB_INACTIVE = "JOB_INACTIVE"
    BY_USER = "BY_USER"


APPLICATION = "app-"
"""The prefix of the lane of an application's workers. A hash follows."""
_OF_APPLICATION = re.compile(rf"{APPLICATION}[a-z2-7]{{26}}", re.ASCII)


class Lane(StrEnum):
    """The queue for a message: FAST for runs of up to 15 s, SLOW for longer ones, OPERATIONS for operations.

    Any other lane is the queue of an application's workers (domain.application.lane_of). There are as many of those as
    applications, so iteration yields only the stack's own three.
    """

    FAST = "fast"
    SLOW = "slow"
    OPERATIONS = "operations"

    @classmethod
    def _missing_(cls, value: object) -> Lane | None:
        if not isinstance(value, str) or not _OF_APPLICATION.fullmatch(value):
            return None
        lane = str.__new__(cls, value)
        lane._name_ = lane._value_ = value
        return lane

    @property
    def of_application(self) -> bool:
        """Returns True for the queue of an application's workers, which no executor reads."""
        return self.startswith(APPLICATION)

    @property
    def executors(self) -> Lane:
        """Returns the queue of executors for work that no worker can do, such as effects of ended runs."""
        return Lane.FAST if self.of_application else self


LIVE = frozenset({ScheduleState.ACTIVE, ScheduleState.ENDING})
OVER = frozenset({ScheduleState.COMPLETED, ScheduleState.FAULTED})


@dataclass(frozen=True)
class Schedule:
    """The times at which a job runs. generation: raised by every change of timing or state.

    ended_at: the epoch second at which each generation ended. timing: the caller's members, for responses. packed: read
    by schedules.timing.load. next_run_at: the earliest instant not yet sent (if ENDING, when the sweeper checks it
    again); None while nothing waits. last_planned_at: the last counted instant. planned_total: occurrences sent so far.
    first_at: the first occurrence of this generation, if its rule does not contain it or if it lies before the end of
    the previous generation. still_due: future instants that earlier generations have counted and this one does not
    contain. off_times: when it was off; needed for messages sent before that (domain.occurrences.off_times).

    missed_from, missed_to: the last span of occurrences that is not sent one by one; late messages for them are
    dropped. Without missed_from, the span is everything planned up to missed_to. left_out_to: up to here, ledger ranges
    stand for the occurrences that were left out, and nothing is sent, unless all of them are.

    collection: that of its job. held_from: the earliest instant not yet sent while its collection or tenant is
    disabled; next_run_at is then only the next check. completed_at: set once COMPLETED. unreachable: since when its
    target has not answered (flow.lifecycle.unreachable.Streak); None while it answers. hooks: hooks that replace those
    of its job (domain.jobs.job_state.OwnHooks); None without any. attributes: JSON that only its job's facade reads.
    offset_s: seconds from the earliest unsent instant to its wall time, when it was planned (domain.occurrences.moved).

    Two members are set only in responses and never stored. newer_packed: the timing with the current versions of its
    calendars, while it does not follow them yet. resumes_at: the set end of the pause of its job,
    or now if it is held no longer.
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
    resumes_at: datetime | None = None
    offset_s: int | None = None

    @property
    def unsent_from(self) -> datetime | None:
        """Returns the earliest instant not yet sent; None while nothing waits."""
        return self.held_from or self.next_run_at


def follows_starts(packed: str) -> bool:
    """Returns True if a string with a packed timing has an interval that follows actual starts."""
    return '"actual_start"' in packed


def names_zone(packed: str) -> bool:
    """Returns True if a string with a packed timing names a zone."""
    return '"zone":"' in packed


def names_calendars(packed: str) -> bool:
    """Returns True if a string with a packed timing names calendars, which must be read before it is loaded."""
    return '"cal":[' in packed


_ENDLESS = re.compile(
    r"""\{"(?:cron|every|recurrence)":|\{"repeatAt":|\{"sapCron":"\* |\{"rrule":\{"rule":"""
    r"""|\{"eventBridge":\{(?:"cron":"[^"]* \*"|"rate":)"""
)
_BOUNDS = ('"last":', '"until":', '"count":', '"cal":')


def may_end(packed: str) -> bool:
    """Returns False if a packed timing certainly has no last occurrence, without loading it.

    May return True for a series without a last occurrence.
    """
    return _ENDLESS.match(packed) is None or any(bound in packed for bound in _BOUNDS)


def ended_generations(schedule: Schedule, effective_at: int) -> dict[int, int]:
    """Returns the last 20 ended generations after a change at `effective_at` (epoch seconds)."""
    ended = {**schedule.ended_at, schedule.generation: effective_at}
    return dict(sorted(ended.items())[-GENERATIONS_KEPT:])
