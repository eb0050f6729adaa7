"""Failures of the local stack. Each one is a clear line for the user and has its own exit status."""

from __future__ import annotations


class LocalFailure(Exception):
    """A failure. The message is the line for the user; status is the exit status of the command."""

    status = 1


class PortTaken(LocalFailure):
    status = 3


class ForeignState(LocalFailure):
    """The state folder was written by another emulator or for another template."""

    status = 4


class EmulatorFailed(LocalFailure):
    status = 5


class DeployFailed(LocalFailure):
    status = 6


class NotRunning(LocalFailure):
    status = 7


BY_STATUS: dict[int, type[LocalFailure]] = {
    kind.status: kind for kind in (LocalFailure, PortTaken, ForeignState, EmulatorFailed, DeployFailed, NotRunning)
}
