"""The command `sweephand dev`: the local stack in any folder, in front, in the background, or for one command."""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sweephand.base.sources import SystemClock
from sweephand.local import control
from sweephand.local import settings as choices
from sweephand.local.console import carry_out, say, say_error
from sweephand.local.demo import __main__ as demo
from sweephand.local.failures import ForeignState, NotRunning, PortTaken
from sweephand.local.folder import StateFolder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sweephand.local.settings import Settings
    from sweephand.local.stack_file import StackFile

POLL_S, CANNOT_START = 0.2, 2


def run(*, state: str | None, port: int | None, with_demo: bool, once: str | None, detach: bool, ends: bool) -> int:
    """Carries out the command. Returns the exit status."""

    def command() -> int:
        try:
            return chosen()
        except (ForeignState, PortTaken) as failure:
            say_error(str(failure))
            return CANNOT_START

    def chosen() -> int:
        options = {"SWEEPHAND_STATE": state, "SWEEPHAND_PORT": None if port is None else str(port)}
        place = choices.read({**os.environ, **{name: value for name, value in options.items() if value is not None}})
        if ends:
            return stop(place)
        if once is not None:
            return _once(place, once)
        if with_demo:
            return demo.run_demo(place, SystemClock(), seconds=None)
        return start(place) if detach else _foreground(place)

    return carry_out(command)


def start(place: Settings) -> int:
    """Starts the stack in the background."""
    stack = control.start(place, SystemClock(), say, owned=False).stack
    demo.suspend(place)
    say(f"Sweephand is up: {stack.base_url}/v1, console {stack.console_url}")
    say(f"All addresses and credentials are in {place.folder.stack_file}")
    return 0


def stop(place: Settings) -> int:
    """Stops the stack in the background."""
    try:
        control.stop(place, SystemClock())
    except NotRunning as nothing:
        say(str(nothing))
    else:
        say("Stopped; the state is kept.")
    return 0


def _foreground(place: Settings) -> int:
    clock = SystemClock()
    running = control.start(place, clock, say, owned=True)
    try:
        demo.suspend(place)
        say(demo.where(running.stack, place, None))
        with suppress(KeyboardInterrupt):
            while running.process is None or running.process.poll() is None:
                clock.sleep(POLL_S)
        say("Stopping; the state is kept ..." if running.ours else "The stack goes on: somebody else started it.")
    finally:
        control.release(running, place, clock)
    return 0


def _once(place: Settings, command: str) -> int:
    """Runs a shell command against a fresh stack, which ends with it. Returns the command's exit status."""
    clock = SystemClock()
    with tempfile.TemporaryDirectory(prefix="sweephand-") as folder:
        fresh = replace(place, folder=StateFolder(Path(folder) / "state"), port=0, aws_port="0")
        running = control.start(fresh, clock, say_error, owned=True)
        try:
            return subprocess.run(command, shell=True, env=_environment(running.stack), check=False).returncode  # noqa: S602 - the user's own command
        finally:
            control.release(running, fresh, clock)


def _environment(stack: StackFile) -> Mapping[str, str]:
    credential = next(iter(stack.tenants.values()))
    return {
        **os.environ,
        "SWEEPHAND_URL": stack.base_url,
        "SWEEPHAND_CLIENT_ID": credential.client_id,
        "SWEEPHAND_SECRET": credential.secret,
        "AWS_ENDPOINT_URL": stack.aws_endpoint_url,
    }
