"""Checks which ECS tasks jobs may run, at creation and again at each call. Pure.

Unlike other targets on AWS, tasks run with the stack's own permissions and at its account's cost. The operator decides
on the cluster, the network and the roles. Source: decision 0041.
"""

from __future__ import annotations

import re

from sweephand.base.errors import InvalidRequest
from sweephand.server.security.guard import TaskSettings

_DEFINITION = re.compile(r"(?P<family>[A-Za-z0-9_-]{1,255})(?::(?P<revision>[1-9][0-9]{0,8}))?", re.ASCII)
_ROLE = re.compile(r"arn:aws(?:-[a-z]+)*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]{1,576}", re.ASCII)


def settings(*, cluster: str, definition_arns: str, network: str, role_arns: str) -> TaskSettings:
    """Returns the settings from the template's parameters, whose lists are separated by commas."""
    places = _parted(network)
    return TaskSettings(
        cluster=cluster,
        definitions=frozenset(arn.rpartition("/")[2] for arn in _parted(definition_arns)),
        subnets=tuple(each for each in places if each.startswith("subnet-")),
        security_groups=tuple(each for each in places if each.startswith("sg-")),
        public_ip="public" in places,
        roles=frozenset(_parted(role_arns)),
    )


def _parted(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def check_definition(text: str, allowed: TaskSettings) -> str:
    """Returns a task definition, `family` (its latest revision) or `family:7`.

    Raises InvalidRequest(None, reason) for other forms, and for definitions that this stack does not run.
    """
    match = _DEFINITION.fullmatch(text)
    if not match:
        raise InvalidRequest(None, "must be the family of a task definition, optionally followed by :REVISION")
    missing = [
        name
        for name, value in (
            ("TaskCluster", allowed.cluster),
            ("TaskDefinitionArns", allowed.definitions),
            ("TaskNetwork", allowed.subnets),
        )
        if not value
    ]
    if missing:
        raise InvalidRequest(None, f"this stack runs no tasks (parameter {missing[0]} is empty)")
    if not {f"{match['family']}:*", text} & allowed.definitions:
        raise InvalidRequest(None, "is not among the tasks that this stack may run (parameter TaskDefinitionArns)")
    return text


def check_role(text: str, allowed: TaskSettings) -> str:
    """Returns a role that tasks may be given. Raises InvalidRequest(None, reason) for any other."""
    if not _ROLE.fullmatch(text):
        raise InvalidRequest(None, "must be the ARN of a role: arn:aws:iam::ACCOUNT:role/NAME")
    if text not in allowed.roles:
        raise InvalidRequest(None, "is not among the roles that tasks may be given (parameter TaskRoleArns)")
    return text
