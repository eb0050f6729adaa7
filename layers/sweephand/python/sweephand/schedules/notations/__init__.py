"""The notations, one module each: `read` turns a caller's value into facts, `compile_` turns facts into a series.

Facts are plain JSON, stored in the table. They contain everything that `compile_` needs apart from the shared rules; it
reads no clock. A new notation is a module and a line in _MODULES. The API's schemas, defaults and refusals follow from
these two. tests/unit/schedules/notations/test_notations.py names each list in the tests that lacks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from sweephand.schedules.notations.shapes import Beginning, Defaults, Facts, Notation, Rules

_MODULES = {
    "at": "at",
    "every": "every",
    "cron": "cron",
    "eventBridge": "event_bridge",
    "sapCron": "sap_cron",
    "time": "time",
    "rrule": "rrule",
    "repeatAt": "repeat_at",
    "recurrence": "recurrence",
}
"""Modules by the name of the member that holds the value."""


class _Notations(Mapping[str, "Notation"]):
    """A mapping that loads each module when its notation is first used, so that a sweeper loads no other."""

    def __getitem__(self, name: str) -> Notation:
        return cast("Notation", import_module(f"{__name__}.{_MODULES[name]}"))

    def __contains__(self, name: object) -> bool:
        return name in _MODULES

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


NOTATIONS: Mapping[str, Notation] = _Notations()


def is_one_time(notation: str, value: object) -> bool:
    """Returns whether a value means a single instant."""
    own = getattr(NOTATIONS[notation], "is_one_time", None)
    return own is not None and bool(own(value))


def defaults_of(notation: str, value: object) -> Defaults:
    """Returns the rules that apply if a caller states none. Some depend on the value."""
    module: Any = NOTATIONS[notation]
    own = getattr(module, "defaults_of", None)
    made: Defaults = module.DEFAULTS if own is None else own(value)
    return made


def counted_from(notation: str, facts: Facts) -> int | None:
    """Returns the `now` (Unix seconds) from which facts without a start took their grid; None if there is none."""
    own = getattr(NOTATIONS[notation], "counted_from", None)
    return None if own is None else own(facts)


def is_anchored(notation: str) -> bool:
    """Returns whether the facts of a notation may depend on when the series begins."""
    return hasattr(NOTATIONS[notation], "reads_clock")


def reads_clock(notation: str, facts: Facts) -> bool:
    """Returns whether facts depend on the zone data that were loaded when they were read, apart from limits."""
    own = getattr(NOTATIONS[notation], "reads_clock", None)
    return own is not None and bool(own(facts))


def kept(notation: str, value: object) -> object:
    """Returns what must be kept of a value, in addition to its facts, so that it can be read again."""
    own = getattr(NOTATIONS[notation], "kept", None)
    return value if own is None else own(value)


def read_again(notation: str, facts: Facts, kept: object, rules: Rules, beginning: Beginning) -> Facts:
    """Returns the facts by the loaded zone data."""
    module: Any = NOTATIONS[notation]
    own = getattr(module, "read_again", None)
    return module.read(kept, rules, beginning) if own is None else own(facts, kept, rules, beginning)


def zone_named(notation: str, value: object) -> str | None:
    """Returns the zone that the value itself names (DTSTART;TZID=Europe/Berlin) instead of `timezone`."""
    own = getattr(NOTATIONS[notation], "zone_named", None)
    return None if own is None else own(value)


def as_rfc_3339(notation: str, value: object) -> object:
    """Returns a startTime or endTime in a notation's own form as RFC 3339; anything else unchanged."""
    own = getattr(NOTATIONS[notation], "as_rfc_3339", None)
    return value if own is None else own(value)
