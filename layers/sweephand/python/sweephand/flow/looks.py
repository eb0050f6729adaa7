"""Pointers to what waits in the next-run index and is no run: each goes to its verb, which is loaded with the first."""

from __future__ import annotations

from sweephand.domain.message import Pointer, Subject
from sweephand.flow import endings
from sweephand.flow.world import World


def look(world: World, pointer: Pointer) -> None:
    match pointer.subject:
        case Subject.SCHEDULE:
            endings.look(world, pointer)
        case Subject.CLEAN_UP:
            from sweephand.flow import cleaning  # noqa: PLC0415

            cleaning.clean(world, pointer)
        case Subject.RESUME:
            from sweephand.flow import pausing  # noqa: PLC0415

            pausing.look(world, pointer)
        case Subject.CHANGE:
            from sweephand.flow import following  # noqa: PLC0415

            following.look(world, pointer)
        case Subject.RELEASE:
            from sweephand.flow import releasing  # noqa: PLC0415

            releasing.go_on(world, pointer)
        case Subject.REPLAN:
            from sweephand.flow import replanning  # noqa: PLC0415

            replanning.go_on(world, pointer)
        case Subject.FLOW:
            from sweephand.flow import flow_key_lines  # noqa: PLC0415

            flow_key_lines.look(world, pointer)
        case Subject.ENDED:
            from sweephand.flow import ended_jobs  # noqa: PLC0415

            ended_jobs.look(world, pointer)
