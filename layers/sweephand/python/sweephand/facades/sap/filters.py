"""The filter of job lists: `contains(name, 'x') and tenantId eq 'y'`. `and` binds tighter than `or`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sweephand.errors import InvalidRequest

PROPERTIES = ("name", "subDomain", "tenantId")
LONGEST = 1_000
_CONDITION = re.compile(
    r"\s*(?:contains\(\s*(?P<part>[A-Za-z]+)\s*,\s*'(?P<text>(?:[^']|'')*+)'\s*\)"
    r"|(?P<whole>[A-Za-z]+)\s+eq\s+'(?P<value>(?:[^']|'')*+)')\s*",
    re.ASCII,
)
_JOINT = re.compile(r"(and|or)(?=\s)", re.ASCII)


@dataclass(frozen=True)
class Condition:
    """One condition. exact: compares the whole value, else a part of it."""

    property: str
    text: str
    exact: bool

    def holds(self, value: str) -> bool:
        return value == self.text if self.exact else self.text in value


Filter = Callable[[dict[str, str]], bool]
"""A test of a job's properties."""


def parse(text: str) -> Filter:
    """Parses a filter. Raises InvalidRequest for anything else."""
    if len(text) > LONGEST:
        raise InvalidRequest(None, f"the filter is longer than {LONGEST} characters")
    choices: list[list[Condition]] = [[]]
    position = 0
    while True:
        found = _CONDITION.match(text, position)
        if found is None:
            raise _unknown(position)
        choices[-1].append(_condition(found))
        position = found.end()
        if position == len(text):
            break
        joint = _JOINT.match(text, position)
        if joint is None:
            raise _unknown(position)
        if joint[1] == "or":
            choices.append([])
        position = joint.end()
    return lambda values: any(all(each.holds(values[each.property]) for each in choice) for choice in choices)


def _condition(found: re.Match[str]) -> Condition:
    exact = found["whole"] is not None
    name, value = (found["whole"], found["value"]) if exact else (found["part"], found["text"])
    if name not in PROPERTIES:
        raise InvalidRequest(None, f"Field not recognized: {name[:40]}", position=found.start())
    return Condition(name, value.replace("''", "'"), exact)


def _unknown(position: int) -> InvalidRequest:
    return InvalidRequest(None, f"the filter cannot be read at character {position}", position=position)
