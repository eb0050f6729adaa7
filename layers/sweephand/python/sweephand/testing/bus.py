"""The event bus in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from sweephand.domain.event import SOURCE, EventType
from sweephand.testing.taps import Passing, Taps

MOST_ENTRIES = 10


@dataclass(frozen=True)
class Told:
    """An event as it reached the bus."""

    kind: EventType
    detail: Mapping[str, Any]

    @property
    def id(self) -> str:
        own: str = self.detail["id"]
        return own


@dataclass
class VirtualBus:
    """The methods of botocore's EventBridge client that the service uses. told: all that was taken, repeats too.

    of_jobs: the entries that jobs put there themselves, with a source of their tenant's.
    """

    taps: Taps
    name: str
    told: list[Told] = field(default_factory=list)
    of_jobs: list[Mapping[str, Any]] = field(default_factory=list)

    def put_events(self, **request: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.taps(Passing("events", "PutEvents", request), lambda: self._take(request))
        return answer

    def _take(self, request: dict[str, Any]) -> dict[str, Any]:
        entries = request["Entries"]
        if not 0 < len(entries) <= MOST_ENTRIES:
            raise ClientError({"Error": {"Code": "ValidationException", "Message": "entries"}}, "PutEvents")
        for entry in entries:
            detail = json.loads(entry["Detail"])
            self.check(entry, detail)
            if entry["Source"] == SOURCE:
                self.told.append(Told(EventType(entry["DetailType"]), detail))
            else:
                self.of_jobs.append(entry)
        return {"FailedEntryCount": 0, "Entries": [{"EventId": str(n)} for n, _ in enumerate(entries)]}

    def check(self, entry: Mapping[str, Any], detail: Mapping[str, Any]) -> None:
        """Checks an entry that the service sends, in a subclass."""
