"""The commands `runs tail` and `ops watch`, which show progress until the end, or until they are interrupted."""

from __future__ import annotations

import re
import sys
from datetime import timedelta

import click

from sweephand.base.sources import SystemClock
from sweephand.cli.commands import job_names, resources
from sweephand.cli.commands.call import Argument, Call, command

MOST_FOLLOWED = 1_000
"""How many of the latest runs `runs tail` reads each time."""
WATCHED_S, LONGEST_S = 900, 86_400
SECONDS_OF = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
LEFT_OUT = "Without --job-id, --collection or --tag, runs that succeed are left out."


class Span(click.ParamType):  # type: ignore[type-arg]  # not generic in older versions
    """A time of up to a day: a whole number of seconds, or of minutes, hours or days with m, h or d."""

    name = "TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Returns the seconds."""
        read = re.fullmatch(r"([0-9]{1,5})([smhd]?)", str(value), re.ASCII)
        seconds = int(read[1]) * SECONDS_OF[read[2]] if read else 0
        if not 1 <= seconds <= LONGEST_S:
            self.fail(f"must be a time of up to a day, such as 90s, 5m, 1h or 1d, not {value!r}", param, ctx)
        return seconds


def made(name: str) -> click.Group:
    """Returns the group `runs` or `ops` with all its commands."""
    group = resources.group(name)
    group.add_command(_tailing() if name == "runs" else _watching())
    return group


def _tailing() -> click.Command:
    options: list[click.Parameter] = [
        click.Option(["--job-id"], help="An id, or a name."),
        click.Option(["--collection"], help="Only runs of jobs in this collection."),
        click.Option(["--tag"], help="Only runs of jobs with this tag."),
        click.Option(
            ["--since", "since_s"],
            type=Span(),
            help="Start with runs of this long ago, such as 90s, 5m, 1h or 1d; default: from now on.",
        ),
        click.Option(
            ["--every", "every_s"],
            type=click.IntRange(1, 3_600),
            default=2,
            help="Read the runs every this many seconds; default: 2.",
        ),
    ]
    about = f"Follow runs: a line for each one, and for each change of its state, until you interrupt it. {LEFT_OUT}"
    return command("tail", _tail, options, help=about)


def _tail(call: Call, since_s: int | None, every_s: int, **filters: str | None) -> int:
    """Shows the runs planned from now on, or since some time ago, oldest first. Ends only when it is interrupted."""
    clock = SystemClock()
    start = clock.now() - timedelta(seconds=since_s or 0)
    window = timedelta(seconds=max(since_s or 0, WATCHED_S))
    seen: dict[str, tuple[str, int | None]] = {}
    if not call.as_json and not any(filters.values()):
        sys.stderr.write(f"{LEFT_OUT}\n")
    with call.client() as client:
        if filters["job_id"] is not None:
            filters["job_id"] = job_names.id_of(client, filters["job_id"])
        while True:
            begin = max(start, clock.now() - window)
            newest = list(client.runs.list(from_=begin, max_items=MOST_FOLLOWED, page_size=100, **filters))
            for each in reversed(newest):
                if seen.get(each.id) != (each.state, each.attempt):
                    if call.as_json:
                        call.out.json(each)
                    else:
                        call.out.follow(each)
            seen = {each.id: (each.state, each.attempt) for each in newest}
            clock.sleep(every_s)


def _watching() -> click.Command:
    operation = Argument(["operation"], text="The id of the operation.")
    return command("watch", _watch, [operation], help="Wait for an operation, and show its progress.")


def _watch(call: Call, operation: str) -> int:
    with call.client() as client:
        return resources.wait(call, client, operation)
