"""Checks which AWS resources and roles jobs may use, at creation and again at each call. Pure."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from sweephand.base.errors import InvalidRequest
from sweephand.base.records import dataclass
from sweephand.server.security.guard import AwsSettings

_REGION = r"[a-z]{2}(?:-[a-z]+)+-[0-9]{1,2}"
_ARN = re.compile(
    rf"arn:(?P<partition>aws(?:-[a-z]+)*):(?P<service>[a-z]+):(?P<region>{_REGION}):(?P<account>[0-9]{{12}}):(?P<resource>.+)",
    re.ASCII,
)
_ROLE = re.compile(r"arn:aws(?:-[a-z]+)*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]{1,576}", re.ASCII)
_RESOURCES = {
    "sqs": (re.compile(r"[A-Za-z0-9_-]{1,75}(?:\.fifo)?|[A-Za-z0-9_-]{1,80}", re.ASCII), "sqs:REGION:ACCOUNT:QUEUE"),
    "sns": (re.compile(r"[A-Za-z0-9_-]{1,251}(?:\.fifo)?|[A-Za-z0-9_-]{1,256}", re.ASCII), "sns:REGION:ACCOUNT:TOPIC"),
    "events": (re.compile(r"event-bus/[A-Za-z0-9/._-]{1,256}", re.ASCII), "events:REGION:ACCOUNT:event-bus/NAME"),
    "lambda": (
        re.compile(r"function:[A-Za-z0-9_-]{1,64}(?::(?:\$LATEST|[A-Za-z0-9_-]{1,128}))?", re.ASCII),
        "lambda:REGION:ACCOUNT:function:NAME, optionally followed by :VERSION or :ALIAS",
    ),
    "states": (
        re.compile(r"stateMachine:[A-Za-z0-9_-]{1,80}(?::[A-Za-z0-9_.-]{1,80})?", re.ASCII),
        "states:REGION:ACCOUNT:stateMachine:NAME, optionally followed by :VERSION or :ALIAS",
    ),
}
"""The form of a resource's name, and that of its ARN for error messages, by service."""
OWN_RESOURCES = (
    "ApiFunction",
    "SapApiFunction",
    "AzureApiFunction",
    "SweeperFunction",
    "AuditorFunction",
    "ConsoleFunction",
    "ExecutorFunction",
    "ExecutorSlowFunction",
    "OperationsFunction",
    "RunQueue",
    "SlowQueue",
    "OperationsQueue",
    "DeadLetterQueue",
    "ArchiveQueue",
    "TickDeadLetterQueue",
)
"""The template's resources that an action could name. CloudFormation adds the stack's name and a random suffix."""
_SHORTENED = 24
"""The fewest characters of the stack's name that CloudFormation keeps if the whole name is too long."""


@dataclass(frozen=True)
class Arn:
    """An ARN in parts. resource: in the service's form, `name`, `function:name:alias`, `event-bus/name`."""

    text: str
    service: str
    region: str
    account: str
    resource: str

    @property
    def name(self) -> str:
        """Returns the resource's name without its type, version or alias."""
        typed = {"lambda", "states"}
        return self.resource.split(":")[1] if self.service in typed else self.resource.removeprefix("event-bus/")

    @property
    def fifo(self) -> bool:
        return self.resource.endswith(".fifo")


def check_role(text: str, settings: AwsSettings) -> str:
    """Returns the ARN of a role that jobs may use. Raises InvalidRequest(None, reason) for any other."""
    if not _ROLE.fullmatch(text):
        raise InvalidRequest(None, "must be the ARN of a role: arn:aws:iam::ACCOUNT:role/NAME")
    if not any(fnmatchcase(text, role) for role in settings.roles):
        raise InvalidRequest(None, "is not among the roles that this stack may assume (parameter TargetRoleArns)")
    return text


def check_target(text: str, service: str, settings: AwsSettings) -> Arn:
    """Reads the ARN of a service's resource. Raises InvalidRequest(None, reason) for other forms and for our own."""
    known, form = _RESOURCES[service]
    match = _ARN.fullmatch(text)
    if not match or match["service"] != service or not known.fullmatch(match["resource"]):
        raise InvalidRequest(None, f"must be an ARN of the form arn:aws:{form}")
    arn = Arn(text, service, match["region"], match["account"], match["resource"])
    if _is_own(arn, settings):
        raise InvalidRequest(None, "is a resource of this service itself")
    return arn


def _is_own(arn: Arn, settings: AwsSettings) -> bool:
    if (arn.account, arn.region) != (settings.account, settings.region):
        return False
    if arn.service == "events":
        return arn.name == settings.bus_name
    if settings.application_queues and arn.service == "sqs" and arn.name.startswith(settings.application_queues):
        return True
    stack = re.escape(settings.stack_name[:_SHORTENED])
    return bool(re.fullmatch(rf"{stack}[A-Za-z0-9-]*-(?:{'|'.join(OWN_RESOURCES)})-[A-Za-z0-9]+", arn.name))
