"""python -m sweephand.local run | stack | stop | report --seconds N | logs | deploy"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sweephand.local import control
from sweephand.local import settings as choices
from sweephand.local.api import Api, Refused, Unreachable
from sweephand.local.console import say, say_error
from sweephand.local.demo import endpoint, jobs, report
from sweephand.local.demo.follow import Arrivals, Follower
from sweephand.local.failures import EmulatorFailed, LocalFailure, NotRunning
from sweephand.sources import SystemChance, SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sweephand.local.settings import Settings
    from sweephand.local.stack_file import StackFile
    from sweephand.sources import Clock

STEP_S = 0.2
OWN_PORT = 9000


def where(stack: StackFile, place: Settings) -> str:
    """Returns the first information for the user: all addresses, and a command that creates a job."""
    credential = stack.tenants[jobs.TENANT]
    body = (
        f'{{"name": "mine", "schedules": [{{"every": "PT5S"}}], '
        f'"action": {{"type": "http", "url": "http://127.0.0.1:{OWN_PORT}/", "payload": {{"hello": "me"}}}}}}'
    )
    return f"""
Sweephand is up.
  API               {stack.base_url}/v1
  credentials       {place.folder.stack_file}
  AWS endpoint      {stack.aws_endpoint_url}
  logs              make logs

Your own job for your own endpoint, in other terminals:
  python3 examples/own_endpoint/endpoint.py --port {OWN_PORT}
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
        standing = endpoint.standing(place.folder)
        self._endpoint = None if standing else endpoint.open_endpoint(place.folder, clock)
        self._url, closed_url = standing or (self._own().url, self._own().closed_url)
        self._jobs = jobs.jobs(self._url, closed_url)

    def _own(self) -> endpoint.DemoEndpoint:
        assert self._endpoint is not None
        return self._endpoint

    def load(self, stack: StackFile, show: Callable[[str], None], *, all_since_start: bool) -> None:
        """Creates the jobs and starts to follow their runs.

        all_since_start: also show runs since the endpoint was opened; a restarted stack catches up at once.
        """
        self._apis = {tenant: Api(stack.base_url, pair) for tenant, pair in stack.tenants.items()}
        self._ids = jobs.ensure(self._apis[jobs.TENANT], self._jobs)
        self._arrivals = Arrivals(self._url)
        self._begin = self._clock.now()
        since = self._since if all_since_start else self._begin
        self._follower = Follower(self._apis, self._arrivals, self._clock, show, since)

    def follow(self, seconds: float | None) -> None:
        """Shows runs that finish, for a number of seconds or until interrupted. Raises Refused, Unreachable."""
        end = None if seconds is None else self._clock.monotonic() + seconds
        while end is None or self._clock.monotonic() < end:
            self._follower.step()
            self._clock.sleep(STEP_S)

    def summary(self) -> report.Summary:
        """Returns the summary since the demo began."""
        window = report.Window(self._begin, self._clock.now())
        runs = list(self._follower.runs.values())
        demos = {demo_job.name: demo_job for demo_job in self._jobs}
        ours = [run for run in runs if run["jobId"] in self._ids.values() and run.get("scheduleId") is not None]
        fresh = [run for run in ours if report.instant(run["plannedAt"]) >= window.begin]
        judged = [self._follower.arrived_late_ms(run) for run in fresh if demos[run["job"]].reaches_us]
        lost = sum(
            report.lost([run for run in ours if run["job"] == name], demo_job.period_s, window)
            for name, demo_job in demos.items()
        )
        demos_runs = [run for run in runs if run["jobId"] in self._ids.values()]
        states, unfinished = report.count_states(demos_runs)
        lateness = [late for late in judged if late is not None]
        return report.Summary(window, lateness, lost, states, unfinished)

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


@contextmanager
def interruptible() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP end the command like Ctrl-C: with the summary and an orderly stop of the stack."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)


def run_demo(place: Settings, clock: Clock, *, seconds: float | None) -> int:
    """Runs the demo until Ctrl-C or for `seconds`; then prints only the summary, whose verdict is the exit status."""
    quiet = seconds is not None
    the_demo = Demo(place, clock)  # before the stack, which may call the endpoint at once to catch up
    try:
        running = control.start(place, clock, say_error if quiet else say, owned=True)
        try:
            if not quiet:
                say(where(running.stack, place))
            summary = _follow(the_demo, running, seconds)
            say("\n".join(summary.lines()))
        except Unreachable as error:
            raise EmulatorFailed(f"The stack has stopped ({error}). See {place.folder.service_log}") from error
        finally:
            if running.ours and not quiet:
                say("Stopping; the state is kept ...")
            control.release(running, place, clock)
    finally:
        the_demo.close_endpoint()
    return int(quiet and not summary.good)


def _follow(the_demo: Demo, running: control.Running, seconds: float | None) -> report.Summary:
    show: Callable[[str], None] = say if seconds is None else lambda _: None
    the_demo.load(running.stack, show, all_since_start=running.ours)
    try:
        with suppress(KeyboardInterrupt):
            the_demo.follow(seconds)
        if seconds is None:
            say("")
        return the_demo.summary()
    finally:
        the_demo.close(suspend=not running.ours)


def start_in_background(place: Settings, clock: Clock) -> int:
    running = control.start(place, clock, say, owned=False)
    if running.process is not None and endpoint.standing(place.folder) is None:
        api = Api(running.stack.base_url, running.stack.tenants[jobs.TENANT])
        jobs.suspend_orphans(api)
        api.close()
    say(f"Sweephand is up: {running.stack.base_url}/v1, all addresses and credentials in {place.folder.stack_file}")
    return 0


def stop(place: Settings, clock: Clock) -> int:
    try:
        control.stop(place, clock)
    except NotRunning as nothing:
        say(str(nothing))
    else:
        say("Stopped; the state is kept.")
    return 0


def deploy(place: Settings, clock: Clock, stack_name: str | None) -> int:
    """Deploys the current code and template to the running stack, or repairs a stack that the SAM CLI deployed."""
    running = control.attach(place, clock)
    if running is None:
        raise NotRunning(f"No stack runs in {place.folder.root}.")
    control.redeploy(running, place, clock, stack_name)
    return 0


def show_logs(place: Settings, clock: Clock, function: str | None, minutes: float, *, follow: bool) -> int:
    """Prints the functions' log lines, oldest first; with follow, continues until interrupted."""
    from sweephand.local import logs  # noqa: PLC0415 - boto3 is slow to import

    running = control.attach(place, clock)
    if running is None:
        raise NotRunning(f"No stack runs in {place.folder.root}. Start one: make stack")
    try:
        logs.show(running.stack, clock, say, function=function, minutes=minutes, follow=follow)
    except KeyboardInterrupt:
        say("")
    return 0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sweephand.local", description="Sweephand on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run", help="start, load the demo and follow the ledger until Ctrl-C")
    commands.add_parser("stack", help="start in the background; returns when ready")
    commands.add_parser("stop", help="stop the background stack; its state is saved")
    report_command = commands.add_parser("report", help="run the demo for a while and print only its summary")
    report_command.add_argument("--seconds", type=float, default=300.0)
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


def _commands(place: Settings, clock: Clock) -> dict[str, Callable[[argparse.Namespace], int]]:
    return {
        "run": lambda _: run_demo(place, clock, seconds=None),
        "report": lambda options: run_demo(place, clock, seconds=options.seconds),
        "stack": lambda _: start_in_background(place, clock),
        "stop": lambda _: stop(place, clock),
        "logs": lambda options: show_logs(place, clock, options.function, options.minutes, follow=options.follow),
        "deploy": lambda options: deploy(place, clock, options.repair),
    }


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    clock = SystemClock()
    try:
        place = choices.read(os.environ)
        if options.command == "serve":
            from sweephand.local.service import serve  # noqa: PLC0415 - boto3 is slow to import

            owner = None if options.owner == "-" else int(options.owner)
            return serve(place, clock, SystemChance(), report_to=options.report_to, owner=owner)
        with interruptible():
            return _commands(place, clock)[options.command](options)
    except LocalFailure as failure:
        say_error(str(failure))
        return failure.status
    except (Refused, Unreachable) as error:
        say_error(f"The stack's API gave an unexpected answer: {error}")
        return LocalFailure.status
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
