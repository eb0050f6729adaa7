"""The base of the actions on Azure's queues and topics, and the grammar of their names.

Users who left Azure Scheduler still have the queues that its jobs filled. Source: decision 0030.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from sweephand.base.errors import InvalidRequest
from sweephand.base.members import fields as read
from sweephand.base.members.fields import below
from sweephand.domain.run import Outcome
from sweephand.server.actions.call import Call
from sweephand.server.actions.kind import Reading, within
from sweephand.server.actions.webhook import Webhook
from sweephand.server.security.guard import GuardSettings, Outbound, check_url


class AzureAction(Webhook):
    """An action on a queue or topic of Azure. The redirects of its collection can send its messages to SQS or SNS."""

    redirectable = True
    host_member: ClassVar[str]

    @abstractmethod
    def url(self, settings: GuardSettings) -> str:
        """Returns the URL to which its messages are sent."""

    def check(self, field: str, guard: GuardSettings) -> None:
        """Raises InvalidRequest if the guard refuses the host: the stack's suffix may lead to a private network."""
        with within(below(field, self.host_member)):
            check_url(self.url(guard), guard)

    @abstractmethod
    def redirected(self, call: Call, outbound: Outbound) -> Outcome | None:
        """Sends the message to the target of a redirect. Returns None if no redirect applies."""

    def perform(self, call: Call, outbound: Outbound) -> Outcome:
        elsewhere = self.redirected(call, outbound) if call.redirects else None
        return super().perform(call, outbound) if elsewhere is None else elsewhere


def entity(value: Any, path: str, _: Reading) -> str:
    """Reads the name of a queue or topic, which becomes the path of its URL."""
    name = _entity(value, path)
    if ".." in name or "//" in name:
        raise InvalidRequest(path, "must not contain // or ..")
    return name


_LENGTH = (1, 260)
_entity = read.matching(
    r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,258}[A-Za-z0-9])?",
    "must have 1 to 260 letters, digits, and . _ / - between them",
    *_LENGTH,
)
host = read.matching(
    r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?", "must have 1 to 63 letters, digits and inner hyphens", *_LENGTH
)
"""Reads the name of an account or namespace, which becomes a part of a host's name."""


def base_url(name: str, suffix: str) -> str:
    """Returns the URL of an account or namespace. suffix: the parameter, which may name a scheme and a port."""
    scheme, marked, host = suffix.rpartition("://")
    return f"{scheme if marked else 'https'}://{name}.{host}"
