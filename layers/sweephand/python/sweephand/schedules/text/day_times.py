"""Times of a day as people write them: 4pm, 4.40pm, 18.40, 17.20:30, noon."""

from __future__ import annotations

import re
from typing import NamedTuple

from sweephand.errors import InvalidRequest

EXPECTED = "a time of day such as 4.40pm, 18:40 or 17.20:30"
_NAMED_S = {"noon": 43_200, "midnight": 0}
_CLOCK = re.compile(
    r"([0-9]{1,2})(?:[.:]([0-9]{2})(?:[.:]([0-9]{2}))?)?(?: ?([ap])\.?m\.?)?(?![0-9a-z.:])|(noon|midnight)(?![a-z])",
    re.ASCII | re.IGNORECASE,
)


class Found(NamedTuple):
    """A time of day. second: since midnight by the wall clock. end: where the time ends in its string."""

    second: int
    end: int


def match(text: str, position: int, field: str) -> Found | None:
    """Returns the time that begins there, or None. A bare number is not a time. Raises InvalidRequest for 25:00."""
    found = _CLOCK.match(text, position)
    if found is None:
        return None
    if found[5]:
        return Found(_NAMED_S[found[5].lower()], found.end())
    if not found[2] and not found[4]:
        return None
    hour, minute, second = int(found[1]), int(found[2] or 0), int(found[3] or 0)
    least, most = (1, 12) if found[4] else (0, 23)
    for name, number, low, high, group in (
        ("hour", hour, least, most, 1),
        ("minute", minute, 0, 59, 2),
        ("second", second, 0, 59, 3),
    ):
        if not low <= number <= high:
            raise InvalidRequest(field, f"{name} {found[group]} is outside {low}..{high}", position=found.start(group))
    if found[4]:
        hour = hour % 12 + (12 if found[4] in "pP" else 0)
    return Found(hour * 3600 + minute * 60 + second, found.end())
