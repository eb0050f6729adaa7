"""References between the jobs of one list: an action `job` in an entry may have `jobKey` instead of `jobId`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.members import fields
from sweephand.base.members.fields import below
from sweephand.server.actions.job import StartJob
from sweephand.server.facades.native.members.job_members import JOB

JOB_KEY, JOB_ID = "jobKey", "jobId"
OWN_MEMBERS = ("key", "was")
"""The members of an entry that do not belong to its job."""
LONGEST_KEY = 128


def references(body: Mapping[str, Any], path: str, wrong: Mistakes) -> dict[str, str]:
    """Returns the keys to which the actions of an entry refer, by the path of the member. wrong: gets the mistakes."""
    keys_by_place: dict[str, str] = {}
    for place, action in _actions(body):
        if action.get(JOB_KEY) is None or action.get("type") != "job":
            continue  # an action of another kind refuses the member
        where = below(path, f"{place}.{JOB_KEY}")
        if action.get(JOB_ID) is not None:
            wrong.add(InvalidRequest(where, f"excludes {JOB_ID}: name the job by one of them"))
        key = wrong.of(fields.line, action[JOB_KEY], where, LONGEST_KEY)
        if key is not None:
            keys_by_place[where] = key
    return keys_by_place


def with_ids(body: Mapping[str, Any], ids: Mapping[str, str]) -> dict[str, Any]:
    """Returns the body of an entry with the ids of jobs instead of their keys."""

    def resolved(action: Mapping[str, Any]) -> dict[str, Any]:
        if action.get(JOB_KEY) is None or action.get("type") != "job":
            return dict(action)
        return {**{name: value for name, value in action.items() if name != JOB_KEY}, JOB_ID: ids[action[JOB_KEY]]}

    return _changed(body, resolved)


def with_entry_members(wrong: InvalidRequest, body: Mapping[str, Any]) -> InvalidRequest:
    """Returns the mistakes in the job of an entry. For unknown members, they list all members of an entry."""
    starting = {place for place, action in _actions(body) if action.get("type") == StartJob.kind}

    def hinted(each: InvalidRequest) -> InvalidRequest:
        owner, _, name = (each.field or "").rpartition(".")
        if each.code != "UNKNOWN_MEMBER" or (owner and owner not in starting):
            return each
        known = (*StartJob.known_members(), JOB_KEY) if owner else (*OWN_MEMBERS, *JOB.sent, "schedules")
        return fields.unknown(owner, name, known)

    first, *others = map(hinted, wrong.all)
    return first.alone(tuple(others))


def _actions(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the actions of an entry with their paths: its own, its error action, and its hooks."""
    hooks = body.get("hooks")
    named = {f"hooks.{name}": each for name, each in hooks.items()} if isinstance(hooks, Mapping) else {}
    for place, action in {"action": body.get("action"), "errorAction": body.get("errorAction"), **named}.items():
        if isinstance(action, Mapping):
            yield place, action


def _changed(body: Mapping[str, Any], change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    made = dict(body)
    for place, action in _actions(body):
        first, _, hook = place.partition(".")
        made[first] = {**made[first], hook: change(action)} if hook else change(action)
    return made
