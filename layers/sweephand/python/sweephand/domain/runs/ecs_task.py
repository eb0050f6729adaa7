"""ECS tasks of runs: by which mark a task tells its run, and what ECS tells of a task. Pure.

The mark is RunTask's `startedBy`: 128 letters, digits, hyphens, slashes and underscores at most, and ECS tells it with
every change of the task's state.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

PREFIX = "sweephand/"
"""What marks begin with: the rule of the template lets nothing else through."""
RUNNING, STOPPED = "RUNNING", "STOPPED"
MOST_CONTAINERS = 10
"""Of a task; ECS allows no more."""
_MARK = re.compile(rf"{PREFIX}([A-Za-z0-9][A-Za-z0-9_-]{{0,63}})/([0-9]{{1,2}})/([\w-]{{22}})/([\w-]{{22}})", re.ASCII)
_LONGEST_REASON = 400


@dataclass(frozen=True)
class Marked:
    """Whose task it is. owner: of the run: the schedule's id, or the job's."""

    tenant: str
    owner: str
    uuid: str
    attempt: int


@dataclass(frozen=True)
class Container:
    """exit_code None: it never ran, or was lost. reason: why, where ECS knows."""

    name: str
    exit_code: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Change:
    """What ECS tells of a task, as the template's rules pass it on. arn: of the task; reason: why it stopped.

    of None: no run of this service started it.
    """

    of: Marked | None
    arn: str
    stopped: bool
    reason: str | None = None
    containers: tuple[Container, ...] = ()


def mark(tenant: str, run_id: str, attempt: int) -> str:
    """run_id: the native one. At most 123 characters."""
    owner, _, uuid = run_id.partition("_")
    return f"{PREFIX}{tenant}/{attempt}/{_short(owner)}/{_short(uuid)}"


def client_token(tenant: str, run_id: str, attempt: int) -> str:
    """By which ECS knows a repeat of the same attempt: 64 characters."""
    return hashlib.sha256(f"{tenant}/{run_id}/{attempt}".encode()).hexdigest()


def read_mark(text: object) -> Marked | None:
    """None for the mark of a task that no run of this service started."""
    found = _MARK.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    tenant, attempt, owner, uuid = found.groups()
    return Marked(tenant, _long(owner), _long(uuid), int(attempt))


def read_change(body: str) -> Change | None:
    """What the template's rules made of ECS's event; None for anything else."""
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


def _container(told: dict[str, Any]) -> Container:
    code = told.get("exitCode")
    return Container(str(told["name"]), code if isinstance(code, int) else None, _text(told.get("reason")))


def judged(change: Change, container: str | None) -> tuple[bool, str]:
    """Whether a task that stopped did its work, and one sentence for people.

    Its container's exit code decides. container None, or one that the task does not have (the job was changed since):
    all of them must have ended with 0.
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
