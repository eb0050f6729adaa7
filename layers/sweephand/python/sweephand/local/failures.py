"""What can go wrong with the local stack. Each failure is one clear line for the user and an exit status of its own."""

from __future__ import annotations


class LocalFailure(Exception):
    """The message is the line that the user reads; status is the exit status of the command."""

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
