"""Reads the fields of cron notations: numbers and names within bounds. Refuses others with their position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweephand.base.errors import InvalidRequest
from sweephand.base.members.fields import must_be, shown
from sweephand.base.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Field:
    """A field of a cron. member: the member of the caller's JSON. name: for refusals.

    top: the largest value that may be written. last: the value with which `*` and an open step end. letters: whether L
    and LW are read as well.
    """

    member: str
    name: str
    low: int
    last: int
    top: int
    names: dict[str, int]
    letters: bool = False

    def value(self, text: str, position: int) -> int:
        """Returns a number within bounds, or one of the names in any case. Raises InvalidRequest."""
        if text.isascii() and text.isdigit():
            value = int(text)
            if self.low <= value <= self.top:
                return value
            raise must_be(self.member, f"{self.low} to {self.top}", text, part=self.name, position=position)
        named = self.names.get(text.lower())
        if named is None:
            names = f" or {', '.join(self.names)}" if self.names else ""
            letters = ", L (the last day), LW (the last weekday)" if self.letters else ""
            kinds = f"a number from {self.low} to {self.top}{names}{letters}"
            raise must_be(self.member, f"*, {kinds}", text, part=self.name, position=position)
        return named

    def step(self, text: str, position: int) -> int:
        """Returns a number of 1 or more."""
        width = int(text) if text.isascii() and text.isdigit() else 0
        if width < 1:
            raise must_be(self.member, "1 or more", text, part=f"the step of {self.name}", position=position)
        return width

    def mask(self, text: str, position: int) -> int:
        """Returns bit n for value n of a list of `*`, `a`, `a-b`, each also with `/step`; `a/step` runs to the end."""
        mask = 0
        for item in text.split(","):
            mask |= self.item(item, position)
            position += len(item) + 1
        return mask

    def item(self, item: str, position: int) -> int:
        """Returns the mask of one item of such a list."""
        body, slash, step = item.partition("/")
        begin, dash, end = body.partition("-")
        if begin == "*":
            if dash:
                raise InvalidRequest(self.member, f"{self.name}: * cannot begin a range", position=position + 1)
            low, high = self.low, self.last
        else:
            low = self.value(begin or item, position)
            high = self.value(end or body, position + len(begin) + 1) if dash else self.last if slash else low
        if low > high and (dash or low > self.top):
            reason = f"{self.name}: the range {shown(body)} runs backwards; {self._forwards(begin, low, high)}"
            raise InvalidRequest(self.member, reason, position=position)
        if not slash:
            return (2 << high) - (1 << low)
        width = self.step(step, position + len(body) + 1)
        return sum(1 << value for value in range(low, max(high, low) + 1, width))

    def _forwards(self, begin: str, low: int, high: int) -> str:
        """Suggests the probable meaning of a range that was written backwards."""
        top = max([self.last, *self.names.values()])
        values = [*range(low, top + 1), *range(self.low, high + 1)]
        if not self.names or begin.isdigit():
            ends = (f"{low}-{top}" if low < top else str(low), f"{self.low}-{high}" if high > self.low else str(high))
            return f"write {','.join(ends)} for both parts of it"
        names = {number: name for name, number in self.names.items()}
        return f"write {','.join(names[value] for value in values)}"


def split(text: str, fields: Sequence[Field]) -> list[tuple[int, str]]:
    """Returns (position, string) of each field. Raises InvalidRequest if there are more or fewer."""
    words, position = [], 0
    for word in text.split():
        position = text.index(word, position)
        words.append((position, word))
        position += len(word)
    if len(words) != len(fields):
        surplus = words[len(fields)][0] if len(words) > len(fields) else len(text)
        names = ", ".join(field.name for field in fields)
        reason = f"must have {len(fields)} fields ({names}), not {len(words)} as in {shown(text)}"
        raise InvalidRequest(fields[0].member, reason, position=surplus)
    return words


def steps_over_all_hours(text: str, mask: int) -> bool:
    """Returns whether an hour field (`*/n`, `0-23/n`, `0/n` with more than one hour) is a step over the whole day."""
    if "/" not in text or "," in text or not mask & 1 or mask == 1:
        return False
    width = (mask >> 1 & -(mask >> 1)).bit_length()
    return mask == sum(1 << hour for hour in range(0, 24, width))
