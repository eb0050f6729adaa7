"""Dispatches wake-ups that are not runs to their handlers, which are imported on first use."""

from __future__ import annotations

from sweephand.domain.message import Pointer, Subject
from sweephand.flow.jobs import completion
from sweephand.flow.world import World
from sweephand.lazy import lazy

with lazy():
    from sweephand.flow.calendars import followers
    from sweephand.flow.deletes import clean_up
    from sweephand.flow.flow_keys import waiting_line
    from sweephand.flow.jobs import large_changes
    from sweephand.flow.lifecycle import ended_jobs, pause_end
    from sweephand.flow.series import releasing


def look(world: World, pointer: Pointer) -> None:
    match pointer.subject:
        case Subject.SCHEDULE:
            completion.look(world, pointer)
        case Subject.CLEAN_UP:
            clean_up.clean(world, pointer)
        case Subject.RESUME:
            pause_end.look(world, pointer)
        case Subject.CHANGE:
            large_changes.look(world, pointer)
        case Subject.RELEASE:
            releasing.go_on(world, pointer)
        case Subject.REPLAN:
            followers.go_on(world, pointer)
        case Subject.FLOW:
            waiting_line.look(world, pointer)
        case Subject.ENDED:
            ended_jobs.look(world, pointer)
