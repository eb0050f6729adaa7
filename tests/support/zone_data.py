"""Two tables for one zone: what a deployment with newer time-zone data changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest import mock

from sweephand.schedules import timing
from sweephand.schedules.calendars import calendars
from sweephand.schedules.notations import cron, event_bridge, rrule_parts, rrule_pattern, sap_cron
from sweephand.schedules.zones import localtime

Change = tuple[int, int]
"""A Unix second, and the offset from it on."""


def forget() -> None:
    """Forgets all that was computed with the data so far, as a new process has."""
    for module in (localtime, timing, cron, sap_cron, event_bridge, rrule_parts, rrule_pattern):
        for each in vars(module).values():
            if hasattr(each, "cache_clear"):
                each.cache_clear()
    calendars._kept.clear()


@contextmanager
def zone_data(name: str, *changes: Change) -> Iterator[None]:
    """Gives the zone these offsets only, the first of them since ever."""
    real = localtime.table

    def table(asked: str) -> localtime.Table:
        return _table(changes) if asked == name else real(asked)

    forget()
    version = mock.patch.object(localtime, "IANA_VERSION", f"{localtime.IANA_VERSION} {changes}")
    with version, mock.patch.object(localtime, "table", table):
        yield
    forget()


def _table(changes: Sequence[Change]) -> localtime.Table:
    starts, offsets = zip(*changes, strict=True)
    return (localtime.ALWAYS, *starts[1:]), offsets
