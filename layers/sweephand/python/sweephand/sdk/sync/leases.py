# Generated from aio/leases.py by `make sdk`. Do not edit.
"""Takes the lease of a consumer, which a killed process may still hold."""

from __future__ import annotations

import logging

from sweephand.sdk import models
from sweephand.sdk.api_errors import ConsumerTaken
from sweephand.sdk.sync.client import Sweephand
from sweephand.sdk.transport import skew

log = logging.getLogger("sweephand.scheduler")
AGAIN_S = 5.0
"""The wait before the lease is requested again."""


def take(client: Sweephand, consumer: str, holder: str, seconds: int, *, wait: bool) -> models.Consumer:
    """Takes the lease of a consumer. Logs a warning if this machine's clock is off.

    wait: True to wait until the present lease ends, such as that of a killed process. Raises ConsumerTaken if its
    holder extends it meanwhile; without wait, at once.
    """
    first = None
    while True:
        try:
            taken = client.consumers.take_lease(consumer, holder=holder, seconds=seconds)
        except ConsumerTaken as other:
            if not wait:
                raise
            current = client.consumers.get(consumer)
            until = current.lease_until
            if first is None and until is not None:
                first = until
                log.warning("%s; waiting for the end of its lease, unless that process extends it", other.detail)
            elif first is not None and until is not None and until > first:
                raise
        else:
            skew.warn(log, client.clock_ahead_s)
            return taken
        client.clock.sleep(AGAIN_S)
