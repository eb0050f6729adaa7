"""Pointers to what waits in the next-run index and is no run: each goes to its verb, which is loaded with the first."""

from __future__ import annotations

from sweephand.domain.message import Pointer, Subject
from sweephand.flow.jobs import completion
from sweephand.flow.world import World


def look(world: World, pointer: Pointer) -> None:
    match pointer.subject:
        case Subject.SCHEDULE:
            completion.look(world, pointer)
        case Subject.CLEAN_UP:
            from sweephand.flow.deletes import clean_up  # noqa: PLC0415

            clean_up.clean(world, pointer)
        case Subject.RESUME:
            from sweephand.flow.lifecycle import pause_end  # noqa: PLC0415

            pause_end.look(world, pointer)
        case Subject.CHANGE:
            from sweephand.flow.jobs import large_changes  # noqa: PLC0415

            large_changes.look(world, pointer)
        case Subject.RELEASE:
            from sweephand.flow.series import releasing  # noqa: PLC0415

            releasing.go_on(world, pointer)
        case Subject.REPLAN:
            from sweephand.flow.calendars import followers  # noqa: PLC0415

            followers.go_on(world, pointer)
        case Subject.FLOW:
            from sweephand.flow.flow_keys import waiting_line  # noqa: PLC0415

            waiting_line.look(world, pointer)
        case Subject.ENDED:
            from sweephand.flow.lifecycle import ended_jobs  # noqa: PLC0415

            ended_jobs.look(world, pointer)
