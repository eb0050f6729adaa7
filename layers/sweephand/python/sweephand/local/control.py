"""Attaches to the stack of a folder, starts it and stops it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sweephand.local import stack_file
from sweephand.local.failures import BY_STATUS, EmulatorFailed, LocalFailure, NotRunning
from sweephand.local.folder import held, holder
from sweephand.local.settings import ALREADY_RUNNING, PACKAGE_ROOT, parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    from sweephand.base.sources import Clock
    from sweephand.local.settings import Settings
    from sweephand.local.stack_file import StackFile

COMES_UP_WITHIN_S = 180.0
GOES_DOWN_WITHIN_S = 60.0


@dataclass(frozen=True)
class Running:
    """A stack that answers. owner: our end of the pipe whose closing stops the stack; None if we did not start it.

    process: the background process, if we started it.
    """

    stack: StackFile
    owner: int | None = None
    process: subprocess.Popen[bytes] | None = None

    @property
    def ours(self) -> bool:
        return self.owner is not None


def attach(settings: Settings, clock: Clock) -> Running | None:
    """Returns the stack that runs in the folder, once it is ready; None if there is none. Raises EmulatorFailed."""
    end = clock.monotonic() + COMES_UP_WITHIN_S
    while held(settings.folder):
        stack = stack_file.read(settings.folder) if holder(settings.folder) is not None else None
        if stack is not None:
            return Running(stack)
        if clock.monotonic() > end:
            raise EmulatorFailed(
                f"The stack in {settings.folder.root} does not start. See {settings.folder.service_log}"
            )
        clock.sleep(0.1)
    return None


def start(settings: Settings, clock: Clock, say: Callable[[str], None], *, owned: bool) -> Running:
    """Starts the stack, or attaches to the running one. owned: it stops when this process ends, in whatever way.

    Raises LocalFailure, with the class that the background process reports.
    """
    attached = attach(settings, clock)
    if attached is not None:
        return attached
    settings.folder.root.mkdir(parents=True, exist_ok=True)
    report, report_end = os.pipe()
    owner_end, owner = os.pipe()
    with settings.folder.service_log.open("wb") as log:
        child = subprocess.Popen(  # noqa: S603 - our own interpreter and code
            [sys.executable, "-m", "sweephand.local", "serve", str(report_end), str(owner_end) if owned else "-"],
            env={**os.environ, **_environment(settings)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(report_end, owner_end) if owned else (report_end,),
            start_new_session=True,
        )
    os.close(report_end)
    os.close(owner_end)
    try:
        _follow_start(report, say, settings)
    except _SomebodyElse:
        child.wait()
        os.close(owner)
        attached = attach(settings, clock)
        if attached is None:
            raise EmulatorFailed("The stack was started and stopped elsewhere at the same time. Try again.") from None
        return attached
    except LocalFailure:
        child.wait()
        os.close(owner)
        raise
    stack = stack_file.read(settings.folder)
    if stack is None:
        raise EmulatorFailed(f"The stack stopped just after its start. See {settings.folder.service_log}")
    if not owned:
        os.close(owner)
        return Running(stack, process=child)
    return Running(stack, owner, child)


class _SomebodyElse(Exception):
    """Another process took the lock between our check and our start."""


def _environment(settings: Settings) -> dict[str, str]:
    return {
        "SWEEPHAND_STATE": str(settings.folder.root),
        "SWEEPHAND_PORT": str(settings.port),
        "SWEEPHAND_TEMPLATE": str(settings.template),
        **({} if settings.aws_port is None else {"SWEEPHAND_AWS_PORT": settings.aws_port}),
        **({} if settings.aws_also_on is None else {"SWEEPHAND_AWS_ALSO_ON": settings.aws_also_on}),
        "SWEEPHAND_PARAMETERS": shlex.join(f"{name}={value}" for name, value in settings.chosen.items()),
        "PYTHONPATH": str(PACKAGE_ROOT),
    }


def _follow_start(report: int, say: Callable[[str], None], settings: Settings) -> None:
    with os.fdopen(report, encoding="utf-8") as lines:
        for line in lines:
            message: dict[str, Any] = json.loads(line)
            if "say" in message:
                say(message["say"])
            elif message.get("status") == ALREADY_RUNNING:
                raise _SomebodyElse
            elif "failed" in message:
                raise BY_STATUS.get(message["status"], LocalFailure)(message["failed"])
            else:
                return
    raise EmulatorFailed(f"The stack stopped during its start. See {settings.folder.service_log}")


def stop(settings: Settings, clock: Clock) -> None:
    """Stops the stack of the folder; its state is saved. Raises NotRunning, or EmulatorFailed if it does not stop."""
    if not held(settings.folder):
        raise NotRunning(f"No stack runs in {settings.folder.root}.")
    process = holder(settings.folder)
    if process is not None:
        os.kill(process, signal.SIGTERM)
    _await_end(settings, clock)


def _await_end(settings: Settings, clock: Clock) -> None:
    end = clock.monotonic() + GOES_DOWN_WITHIN_S
    while held(settings.folder):
        if clock.monotonic() > end:
            raise EmulatorFailed(
                f"The stack in {settings.folder.root} does not stop. See {settings.folder.service_log}"
            )
        clock.sleep(0.05)


def release(running: Running, settings: Settings, clock: Clock) -> None:
    """Stops the stack if we started it; leaves any other running."""
    if running.owner is None:
        return
    os.close(running.owner)
    _await_end(settings, clock)
    if running.process is not None:
        running.process.wait()


def redeploy(settings: Settings, clock: Clock, repair_only: str | None) -> None:
    """Deploys the current code and template to the running stack. Raises NotRunning, DeployFailed.

    repair_only: name of another stack on the same emulator, deployed by the SAM CLI, which is only repaired.
    """
    from sweephand.local.aws import deploy as deploys  # noqa: PLC0415 - botocore is slow to import
    from sweephand.local.aws import template as templates  # noqa: PLC0415

    running = attach(settings, clock)
    if running is None:
        raise NotRunning(f"No stack runs in {settings.folder.root}.")
    aws = deploys.Aws(endpoint_url=running.stack.aws_endpoint_url, region=running.stack.region)
    if repair_only is not None:
        stack = deploys.read_stack(aws, repair_only)
        deploys.repair(aws, stack, templates.load(settings.template))
        return
    settings.folder.check(templates.data_shape(templates.load(settings.template)))
    name = running.stack.stack_name
    chosen = parameters(running.stack.base_url, settings.chosen)
    deploys.deploy(aws, clock, path=settings.template, stack_name=name, parameters=chosen)
