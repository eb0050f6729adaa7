"""The event bus: sends ten events per call, repeats failures up to three times, and returns what still failed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError, ReadTimeoutError

from sweephand.base.errors import Unavailable
from sweephand.base.sources import Chance, Clock
from sweephand.domain.event import SOURCE, Event

BATCH_MOST = 10
TRIES = 4
"""One try and three repeats."""
PASSING = frozenset({"ThrottlingException", "InternalFailure", "InternalException", "ServiceUnavailable"})
"""Error codes of the bus after which the same event may be accepted."""


class EventBus:
    """The bus to which others subscribe.

    client: a botocore EventBridge client without retries. name: that of the bus.
    """

    def __init__(self, client: Any, name: str, clock: Clock, chance: Chance) -> None:
        self._client = client
        self._name = name
        self._clock = clock
        self._chance = chance

    def publish(self, events: Sequence[Event]) -> list[Event]:
        """Sends all events and repeats failures up to three times. Returns those not sent, without raising an error."""
        unsent = list(events)
        for tries in range(TRIES):
            if not unsent:
                break
            if tries:
                self._clock.sleep(self._chance.uniform(0.05, 0.1 * 2**tries))
            unsent = [
                event
                for begin in range(0, len(unsent), BATCH_MOST)
                for event in self._refused(unsent[begin : begin + BATCH_MOST])
            ]
        return unsent

    def _refused(self, batch: Sequence[Event]) -> list[Event]:
        """Sends one batch. Returns the events that failed; the answer identifies them by position."""
        try:
            answer = self._client.put_events(Entries=[self._of_event(event) for event in batch])
        except (ClientError, BotoCoreError):
            return list(batch)
        return [event for event, result in zip(batch, answer["Entries"], strict=True) if "ErrorCode" in result]

    def _of_event(self, event: Event) -> dict[str, Any]:
        detail = json.dumps(event.detail, ensure_ascii=False, separators=(",", ":"))
        return self._entry(SOURCE, event.type.value, event.at, detail)

    def _entry(self, source: str, detail_type: str, at: datetime, detail: str) -> dict[str, Any]:
        return {
            "EventBusName": self._name,
            "Source": source,
            "DetailType": detail_type,
            "Time": at,
            "Detail": detail,
        }

    def put(self, source: str, detail_type: str, detail: str, *, once: bool = False) -> str | None:
        """Sends an event of a job, without repeats. Returns the code of a refusal, or None on success.

        once: whether an event that the bus may have taken without an answer counts as refused, because it must not be
        put again. Raises Unavailable if the bus does not answer, or has no time.
        """
        entry = self._entry(source, detail_type, self._clock.now(), detail)
        try:
            (said,) = self._client.put_events(Entries=[entry])["Entries"]
        except ClientError as refused:
            code, status = refused.response["Error"]["Code"], refused.response.get("ResponseMetadata", {})
            if code in PASSING or status.get("HTTPStatusCode", 0) >= 500:
                raise Unavailable("the event bus has no time") from refused
            return str(code)
        except BotoCoreError as silent:
            if once and isinstance(silent, ReadTimeoutError | ConnectionClosedError):
                return type(silent).__name__
            raise Unavailable("the event bus does not answer") from silent
        if said.get("ErrorCode") in PASSING:
            raise Unavailable("the event bus has no time")
        return str(said["ErrorCode"]) if "ErrorCode" in said else None
