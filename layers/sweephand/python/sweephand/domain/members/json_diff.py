"""What differs between two JSON bodies, member by member. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from sweephand.domain.members.json_text import dumps


class Difference(NamedTuple):
    """path: `action.url`. old or new None: the member was not there."""

    path: str
    old: Any
    new: Any


def differences(
    old: Mapping[str, Any], new: Mapping[str, Any], whole: Collection[str], path: str = ""
) -> Iterator[Difference]:
    """In the order of the members. Objects are compared within; lists, and members named in `whole`, as one value.

    An absent member and null are the same. Numbers differ where their digits do.
    """
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        where = f"{path}.{name}" if path else name
        if isinstance(before, Mapping) and isinstance(after, Mapping) and name not in whole:
            yield from differences(before, after, whole, where)
        elif dumps(before) != dumps(after):
            yield Difference(where, before, after)
