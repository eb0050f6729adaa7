"""The demo of the local stack, on the public API: its endpoint, its jobs, the ledger as it grows, and a summary.

python -m sweephand.local.demo run | report --seconds N | suspend
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import datetime

from sweephand.base.sources import Clock, SystemClock
from sweephand.local import control, stack_file
from sweephand.local import settings as choices
from sweephand.local.api import Api, Refused, Unreachable
from sweephand.local.console import carry_out, say, say_error
from sweephand.local.demo import endpoint, jobs, ledger, summary
from sweephand.local.demo.documentation import Site
from sweephand.local.failures import EmulatorFailed
from sweephand.local.settings import IS_CHECKOUT, Settings
from sweephand.local.stack_file import StackFile

STEP_S = 0.2
LATE_S = 60.0
"""How long a report waits for occurrences that are missing, before it counts them as lost."""
OWN_PORT = 9000
ENDPOINT = "python3 examples/own_endpoint/endpoint.py --port" if IS_CHECKOUT else "python3 -m http.server"


def where(stack: StackFile, place: Settings, documentation: str | None) -> str:
    """Returns the first text for the user: all addresses, and a command that creates a job."""
    documentation = "" if documentation is None else f"  documentation     {documentation}\n"
    credential = stack.tenants[jobs.TENANT]
    body = (
        f'{{"name": "mine", "schedules": [{{"every": "PT5S"}}], '
        f'"action": {{"type": "http", "url": "http://127.0.0.1:{OWN_PORT}/", "payload": {{"hello": "me"}}}}}}'
    )
    return f"""
Sweephand is up.
  console           {stack.console_url}
    sign in with    {credential.client_id}  {credential.secret}
  API               {stack.base_url}/v1
{documentation}  credentials       {place.folder.stack_file}
  AWS endpoint      {stack.aws_endpoint_url}
  logs              {choices.LOGS}

Your own job for your own endpoint, in other terminals:
  {ENDPOINT} {OWN_PORT}
  curl -u {credential.client_id}:{credential.secret} {stack.base_url}/v1/jobs \\
    -H 'Content-Type: application/json' \\
    -d '{body}'
"""


class Demo:
    """The demo: first its endpoint, then its jobs on a running stack, and then the growing ledger."""

    def __init__(self, place: Settings, clock: Clock) -> None:
        """Opens the endpoint, or uses the one of another demo on this stack."""
        self._clock = clock
        self._since = clock.now()
        self._endpoint: endpoint.DemoEndpoint | None = None
        addresses = endpoint.standing(place.folder)
        if addresses is None:
            self._endpoint = endpoint.open_endpoint(place.folder, clock)
            addresses = self._endpoint.url, self._endpoint.closed_url
        self._end: datetime | None = None
        self._url, closed_url = addresses
        self._jobs = jobs.jobs(self._url, closed_url)

    def load(self, stack: StackFile, show: Callable[[str], None], *, all_since_start: bool) -> None:
        """Creates the jobs and starts to follow their runs.

        all_since_start: also show runs since the endpoint was opened; a restarted stack catches up at once.
        """
        self._apis = {tenant: Api(stack.base_url, pair) for tenant, pair in stack.tenants.items()}
        self._ids = jobs.ensure(self._apis[jobs.TENANT], self._jobs)
        if all_since_start:
            jobs.ensure_scenery(self._apis[jobs.TENANT], self._url)
        self._arrivals = ledger.Arrivals(self._url)
        self._begin = self._clock.now()
        since = self._since if all_since_start else self._begin
        self._follower = ledger.Follower(self._apis, self._arrivals, self._clock, show, since)

    def follow(self, seconds: float | None) -> None:
        """Shows runs that finish, for a number of seconds or until interrupted. Raises Refused, Unreachable.

        After this time, it waits for missing occurrences for up to a minute, because a busy machine is late.
        """
        end = None if seconds is None else self._clock.monotonic() + seconds
        while end is None or self._clock.monotonic() < end:
            self._step()
        self._end = self._clock.now()
        while self._clock.monotonic() < end + LATE_S and self.judge().lost:
            self._step()

    def _step(self) -> None:
        self._follower.step()
        self._clock.sleep(STEP_S)

    def judge(self) -> summary.Summary:
        """Returns the summary since the demo began, up to the end of `follow`."""
        window = summary.Window(self._begin, self._end or self._clock.now())
        runs = list(self._follower.runs.values())
        demos = {demo_job.name: demo_job for demo_job in self._jobs}
        ours = [run for run in runs if run["jobId"] in self._ids.values() and run.get("scheduleId") is not None]
        fresh = [run for run in ours if summary.instant(run["plannedAt"]) >= window.begin]
        judged = [self._follower.arrived_late_ms(run) for run in fresh if demos[run["job"]].reaches_us]
        lost = sum(
            summary.lost([run for run in ours if run["job"] == name], demo_job.period_s, window)
            for name, demo_job in demos.items()
        )
        demos_runs = [run for run in runs if run["jobId"] in self._ids.values()]
        states, unfinished = summary.count_states(demos_runs)
        lateness = [late for late in judged if late is not None]
        return summary.Summary(window, lateness, lost, states, unfinished)

    def close(self, *, suspend: bool) -> None:
        """Ends the demo. suspend: switch the jobs off if the endpoint is ours, because the stack stays up."""
        try:
            if suspend and self._endpoint is not None:
                jobs.suspend(self._apis[jobs.TENANT], list(self._ids.values()))
        except (Refused, Unreachable) as error:
            say_error(f"The demo's jobs could not be switched off: {error}")
        self._arrivals.close()
        for api in self._apis.values():
            api.close()
        self.close_endpoint()

    def close_endpoint(self) -> None:
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None


def run_demo(place: Settings, clock: Clock, *, seconds: float | None) -> int:
    """Runs the demo until Ctrl-C or for `seconds`; then prints only the summary, whose verdict is the exit status."""
    quiet = seconds is not None
    the_demo = Demo(place, clock)  # before the stack, which may call the endpoint at once to catch up
    site = None
    try:
        running = control.start(place, clock, say_error if quiet else say, owned=True)
        try:
            if not quiet:
                site = Site() if IS_CHECKOUT else None
                say(where(running.stack, place, site.url if site else None))
            seen = _follow(the_demo, running, seconds)
            say("\n".join(seen.lines()))
        except Unreachable as error:
            raise EmulatorFailed(f"The stack has stopped ({error}). See {place.folder.service_log}") from error
        finally:
            if running.ours and not quiet:
                say("Stopping; the state is kept ...")
            control.release(running, place, clock)
    finally:
        the_demo.close_endpoint()
        if site is not None:
            site.close()
    return int(quiet and not seen.good)


def _follow(the_demo: Demo, running: control.Running, seconds: float | None) -> summary.Summary:
    show: Callable[[str], None] = say if seconds is None else lambda _: None
    the_demo.load(running.stack, show, all_since_start=running.ours)
    try:
        with suppress(KeyboardInterrupt):
            the_demo.follow(seconds)
        if seconds is None:
            say("")
        return the_demo.judge()
    finally:
        the_demo.close(suspend=not running.ours)


def suspend(place: Settings) -> None:
    """Deactivates the jobs of a demo that ended together with its stack, unless a demo is running."""
    stack = stack_file.read(place.folder)
    if stack is not None and endpoint.standing(place.folder) is None:
        with closing(Api(stack.base_url, stack.tenants[jobs.TENANT])) as api:
            jobs.suspend_orphans(api)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sweephand.local.demo", description="The demo of the local stack.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run", help="start, load the demo and follow the ledger until Ctrl-C")
    report = commands.add_parser("report", help="run the demo for a while and print only its summary")
    report.add_argument("--seconds", type=float, default=300.0)
    commands.add_parser("suspend", help="switch off the jobs of a demo that has ended")
    return parser.parse_args(arguments)


def command(options: argparse.Namespace) -> int:
    """Returns the exit status. Raises LocalFailure, Refused, Unreachable."""
    place = choices.read(os.environ)
    if options.command == "suspend":
        suspend(place)
        return 0
    return run_demo(place, SystemClock(), seconds=None if options.command == "run" else options.seconds)


if __name__ == "__main__":
    sys.exit(carry_out(lambda: command(parse(sys.argv[1:]))))
