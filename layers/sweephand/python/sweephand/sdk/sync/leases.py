"""The lease of a consumer that another process may have left."""

from __future__ import annotations

import logging

from sweephand.sdk import models
from sweephand.sdk.api_errors import ConsumerTaken
from sweephand.sdk.sync.client import Sweephand

log = logging.getLogger("sweephand.scheduler")
AGAIN_S = 5.0
"""How long it waits before it asks for the lease again."""


def take(client: Sweephand, consumer: str, holder: str, seconds: int, *, wait: bool) -> models.Consumer:
    """Takes the lease of a consumer.

    wait: until a lease that nobody prolongs is over, such as that of a process which was killed. Raises ConsumerTaken
    as soon as its holder prolongs it; without wait, at once.
    """
    first = None
    while True:
        try:
            return client.consumers.take_lease(consumer, holder=holder, seconds=seconds)
        except ConsumerTaken as taken:
            if not wait:
                raise
            there = client.consumers.get(consumer)
            until = there.lease_until
            if first is None and until is not None:
                first = until
                log.warning("%s; waiting for its end, unless that process prolongs it", taken.detail)
            elif first is not None and until is not None and until > first:
                raise
        client.clock.sleep(AGAIN_S)
