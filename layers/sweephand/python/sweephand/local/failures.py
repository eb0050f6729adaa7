"""Failures of the local stack. Each is one line for the user and has its own exit status."""

from __future__ import annotations


class LocalFailure(Exception):
    """A failure. The message is the line for the user; status is the exit status of the command."""

    status = 1


class PortTaken(LocalFailure):
    """A port that another program uses."""

    status = 3


class ForeignState(LocalFailure):
    """A state folder that another emulator wrote, or that belongs to another template."""

    status = 4


class EmulatorFailed(LocalFailure):
    """An emulator or stack that did not start, stopped, or does not stop."""

    status = 5


class DeployFailed(LocalFailure):
    """A deploy, or a call of a function, that failed."""

    status = 6


class NotRunning(LocalFailure):
    """A command that needs a running stack, without one."""

    status = 7


BY_STATUS: dict[int, type[LocalFailure]] = {
    kind.status: kind for kind in (LocalFailure, PortTaken, ForeignState, EmulatorFailed, DeployFailed, NotRunning)
}
