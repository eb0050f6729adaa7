"""The lists of the template's parameters that would not fit into a function's environment.

They are lines of a parameter of Systems Manager, each a setting's name, a space and its value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from sweephand.base.errors import Unavailable
from sweephand.base.sources import Clock

KEPT = timedelta(minutes=5)


class Lists:
    """The lists as they were at most five minutes ago. ssm: makes the client for the first read. Safe for threads.

    If they cannot be read again, the known ones stay in force.
    """

    def __init__(self, ssm: Callable[[], Any], name: str, clock: Clock) -> None:
        self._ssm = ssm
        self._name = name
        self._clock = clock
        self._known: Mapping[str, str] | None = None
        self._tried_at: datetime | None = None
        self._lock = Lock()

    def read(self) -> Mapping[str, str]:
        """Returns the values by the names of their settings. Raises Unavailable if they were never read."""
        with self._lock:
            now = self._clock.now()
            if self._known is None or self._tried_at is None or not now - KEPT <= self._tried_at <= now:
                self._tried_at = now
                self._known = self._fetched() or self._known
            if self._known is None:
                raise Unavailable("the lists of the stack's parameters cannot be read")
            return self._known

    def _fetched(self) -> Mapping[str, str] | None:
        try:
            text = self._ssm().get_parameter(Name=self._name)["Parameter"]["Value"]
        except (ClientError, BotoCoreError):
            return None
        return {name: value.strip() for name, _, value in (line.partition(" ") for line in text.splitlines())}
