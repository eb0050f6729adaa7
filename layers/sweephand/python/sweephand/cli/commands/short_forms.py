"""Short options for a job's action and schedule, such as `--post URL --cron "30 2 * * *"`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from sweephand.cli.commands.files import json_value
from sweephand.sdk import bodies

ACTIONS: Mapping[str, Callable[..., bodies.Body]] = {
    "post_url": bodies.http.post,
    "get_url": bodies.http.get,
    "event_type": bodies.event,
}
TIMINGS = {"cron": "30 2 * * 1-5", "every": "15m", "at": "2027-03-01T08:00:00", "rrule": "FREQ=DAILY;COUNT=5"}
"""The short options for a schedule, each with an example."""


def options() -> list[click.Parameter]:
    """Returns the options. `take` reads them."""
    return [
        click.Option(["--post", "post_url"], metavar="URL", help="The action: a POST to this address."),
        click.Option(["--get", "get_url"], metavar="URL", help="The action: a GET of this address."),
        click.Option(
            ["--event", "event_type"], metavar="TYPE", help="The action: an event of this type on the stack's bus."
        ),
        click.Option(["--payload"], metavar="JSON", help="What the action sends: JSON, or @FILE."),
        *(click.Option([f"--{each}"], help=f"One schedule, such as {such!r}.") for each, such in TIMINGS.items()),
        click.Option(["--timezone"], metavar="ZONE", help="The time zone of the schedule, such as Europe/Berlin."),
    ]


def take(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments that short options stand for. Raises UsageError for options that exclude each other."""
    targets = [name for name in ACTIONS if options[name] is not None]
    timings = [name for name in TIMINGS if options[name] is not None]
    members: dict[str, Any] = {}
    if len(targets) > 1 or (targets and options["action"] is not None):
        raise click.UsageError("--post, --get, --event and --action exclude each other")
    if len(timings) > 1 or (timings and options["schedules"] is not None):
        raise click.UsageError("--cron, --every, --at, --rrule and --schedules exclude each other")
    if options["timezone"] is not None and not timings:
        raise click.UsageError("--timezone belongs to --cron, --every, --at or --rrule")
    if options["payload"] is not None and not targets:
        raise click.UsageError("--payload belongs to --post, --get or --event")
    if targets:
        more = {} if options["payload"] is None else {"payload": json_value("--payload", options["payload"])}
        make = ACTIONS[targets[0]]
        members["action"] = make(options[targets[0]], **more)
    if timings:
        members["schedules"] = [getattr(bodies, timings[0])(options[timings[0]], zone=options["timezone"])]
    return members
