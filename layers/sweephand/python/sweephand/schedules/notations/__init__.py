"""The notations, one module each: `read` turns a caller's value into facts, `compile_` turns facts into a series.

Facts are plain JSON, kept in the table: everything that `compile_` needs beside the shared rules, nothing of the clock.
A new notation is a module and a line in _MODULES; the shared properties in tests/unit/schedules cover it by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from sweephand.schedules.notations.shapes import Notation

_MODULES = {
    "at": "at",
    "every": "every",
    "cron": "cron",
    "eventBridge": "event_bridge",
    "sapCron": "sap_cron",
    "time": "time",
    "repeatAt": "repeat_at",
    "recurrence": "recurrence",
    "rrule": "rrule",
}
"""By the name of the member that holds the text."""


class _Notations(Mapping[str, "Notation"]):
    """Each module is loaded when its notation is first met: a sweeper pays for no other."""

    def __getitem__(self, name: str) -> Notation:
        return cast("Notation", import_module(f"{__name__}.{_MODULES[name]}"))

    def __contains__(self, name: object) -> bool:
        return name in _MODULES

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


NOTATIONS: Mapping[str, Notation] = _Notations()
