"""ECS tasks of runs: the mark that links a task to its run, and the events of ECS. Pure.

The mark is RunTask's `startedBy`: at most 128 letters, digits, hyphens, slashes and underscores. ECS repeats it in each
event about the task.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any
from uuid import UUID

from sweephand.base.records import dataclass

PREFIX = "sweephand/"
"""The prefix of all marks. The template's event rule filters by it."""
RUNNING, STOPPED = "RUNNING", "STOPPED"
MOST_CONTAINERS = 10
"""The largest number of containers that ECS allows in a task."""
_MARK = re.compile(rf"{PREFIX}([A-Za-z0-9][A-Za-z0-9_-]{{0,63}})/([0-9]{{1,2}})/([\w-]{{22}})/([\w-]{{22}})", re.ASCII)
_LONGEST_REASON = 400


@dataclass(frozen=True)
class Marked:
    """The run of a task. owner: the id of the run's schedule, or of its job."""

    tenant: str
    owner: str
    uuid: str
    attempt: int


@dataclass(frozen=True)
class Container:
    """A container of a stopped task.

    exit_code: None if it never ran or was lost. reason: why it ended, if ECS knows.
    """

    name: str
    exit_code: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Change:
    """A change of a task's state, as the template's rule forwards it. reason: why the task stopped.

    of: the run that started the task; None if it was started by something else.
    """

    of: Marked | None
    arn: str
    stopped: bool
    reason: str | None = None
    containers: tuple[Container, ...] = ()


def mark(tenant: str, run_id: str, attempt: int) -> str:
    """Returns the mark of an attempt, at most 123 characters. run_id: the native one."""
    owner, _, uuid = run_id.partition("_")
    return f"{PREFIX}{tenant}/{attempt}/{_short(owner)}/{_short(uuid)}"


def client_token(tenant: str, run_id: str, attempt: int) -> str:
    """Returns the token by which ECS recognises a repeated start of the same attempt: 64 characters."""
    return hashlib.sha256(f"{tenant}/{run_id}/{attempt}".encode()).hexdigest()


def read_mark(text: object) -> Marked | None:
    """Reads a mark. Returns None for a task that no run of this service started."""
    match = _MARK.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    tenant, attempt, owner, uuid = match.groups()
    return Marked(tenant, _long(owner), _long(uuid), int(attempt))


def read_change(body: str) -> Change | None:
    """Reads a message that the template's rule made from an ECS event. Returns None for anything else."""
    try:
        members = json.loads(body)
        if members["lastStatus"] not in {RUNNING, STOPPED}:
            return None
        return Change(
            read_mark(members["startedBy"]),
            str(members["taskArn"]),
            stopped=members["lastStatus"] == STOPPED,
            reason=_text(members.get("stoppedReason")),
            containers=tuple(_container(each) for each in members["containers"][:MOST_CONTAINERS]),
        )
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def _container(described: dict[str, Any]) -> Container:
    code = described.get("exitCode")
    return Container(str(described["name"]), code if isinstance(code, int) else None, _text(described.get("reason")))


def judged(change: Change, container: str | None) -> tuple[bool, str]:
    """Returns whether a stopped task succeeded, and one sentence for people.

    The exit code of the given container decides. If container is None or not part of the task (the job was changed
    since), all containers must have ended with 0.
    """
    mine = [each for each in change.containers if each.name == container] or list(change.containers)
    success = bool(mine) and all(each.exit_code == 0 for each in mine)
    worst = next((each for each in mine if each.exit_code != 0), mine[0] if mine else None)
    code = worst.exit_code if worst else None
    ended = "the task never ran" if code is None else f"exit code {code}"
    why = [text for text in (change.reason, worst.reason if worst else None) if text]
    return success, ": ".join([ended, *why])[:_LONGEST_REASON]


def _text(value: object) -> str | None:
    return value or None if isinstance(value, str) else None


def _short(uuid: str) -> str:
    return base64.urlsafe_b64encode(UUID(uuid).bytes).decode().rstrip("=")


def _long(short: str) -> str:
    return str(UUID(bytes=base64.urlsafe_b64decode(f"{short}==")))
