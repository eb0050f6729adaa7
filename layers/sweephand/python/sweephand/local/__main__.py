"""python -m sweephand.local logs | deploy; `sweephand dev` starts and stops the stack."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from sweephand.base.sources import SystemChance, SystemClock
from sweephand.local import control
from sweephand.local import settings as choices
from sweephand.local.console import carry_out, say
from sweephand.local.failures import NotRunning

if TYPE_CHECKING:
    from sweephand.base.sources import Clock
    from sweephand.local.settings import Settings


def show_logs(place: Settings, clock: Clock, function: str | None, minutes: float, *, follow: bool) -> int:
    """Prints the functions' log lines, oldest first; with follow, continues until interrupted."""
    from sweephand.local import logs  # noqa: PLC0415 - botocore is slow to import

    running = control.attach(place, clock)
    if running is None:
        raise NotRunning(f"No stack runs in {place.folder.root}. Start one: {choices.START}")
    try:
        logs.show(running.stack, clock, say, function=function, minutes=minutes, follow=follow)
    except KeyboardInterrupt:
        say("")
    return 0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sweephand.local", description="Sweephand on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    logs_command = commands.add_parser("logs", help="print the log lines of the functions")
    logs_command.add_argument("--function", help="api, sweeper, executor, ...; by default all")
    logs_command.add_argument("--minutes", type=float, default=10.0)
    logs_command.add_argument("--follow", action="store_true")
    deploy_command = commands.add_parser("deploy", help="deploy the current code and template to the running stack")
    deploy_command.add_argument("--repair", metavar="STACK", help="only repair a stack that `sam deploy` created there")
    serve_command = commands.add_parser("serve")
    serve_command.add_argument("report_to", type=int)
    serve_command.add_argument("owner")
    return parser.parse_args(arguments)


def command(options: argparse.Namespace) -> int:
    """Returns the exit status. Raises LocalFailure, Refused, Unreachable."""
    clock = SystemClock()
    place = choices.read(os.environ)
    match options.command:
        case "serve":
            from sweephand.local.service import serve  # noqa: PLC0415 - botocore is slow to import

            owner = None if options.owner == "-" else int(options.owner)
            return serve(place, clock, SystemChance(), report_to=options.report_to, owner=owner)
        case "logs":
            return show_logs(place, clock, options.function, options.minutes, follow=options.follow)
        case "deploy":
            control.redeploy(place, clock, options.repair)
    return 0


if __name__ == "__main__":
    sys.exit(carry_out(lambda: command(parse(sys.argv[1:]))))
