"""The differences between two JSON bodies, member by member. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from sweephand.domain.members.json_text import dumps


class Difference(NamedTuple):
    """One changed member. path: `action.url`. old, new: None if the member was absent."""

    path: str
    old: Any
    new: Any


def differences(
    old: Mapping[str, Any], new: Mapping[str, Any], whole: Collection[str], path: str = ""
) -> Iterator[Difference]:
    """Yields the differences in the order of the members.

    Compares objects member by member; lists, and members named in `whole`, as one value. An absent member equals null.
    Numbers differ if their digits differ.
    """
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        where = f"{path}.{name}" if path else name
        if isinstance(before, Mapping) and isinstance(after, Mapping) and name not in whole:
            yield from differences(before, after, whole, where)
        elif dumps(before) != dumps(after):
            yield Difference(where, before, after)
