"""Answers of the service: the JSON as received, with attributes in snake case."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Self

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
Reading = Callable[[Any], Any]


class Model:
    """An answer. Each class annotates its attributes; `members` says which values are converted.

    A member that this version does not know is kept: it is in `to_json()` and can be read as an attribute in snake
    case. A documented member that the service left out is None. Two answers are equal if they have the same class and
    the same JSON.
    """

    __slots__ = ("_json",)
    members: ClassVar[Mapping[str, tuple[str, Reading | None]]] = {}

    def __init__(self, json: Mapping[str, Any]) -> None:
        self._json = json

    @classmethod
    def of(cls, json: Any) -> Self | None:
        """Returns the answer in this JSON; None for null."""
        return cls(json) if isinstance(json, Mapping) else None

    @classmethod
    def all_of(cls, json: Any) -> tuple[Self, ...] | None:
        """Returns the answers in a JSON array; None for null."""
        return tuple(map(cls, json)) if isinstance(json, list) else None

    def to_json(self) -> dict[str, Any]:
        """Returns a copy of the JSON as received."""
        return deepcopy(dict(self._json))

    if not TYPE_CHECKING:  # so that the type checker reports a misspelt attribute

        def __getattr__(self, attribute: str) -> Any:
            if attribute in self.members:
                name, reading = self.members[attribute]
                value = self._json.get(name)
                return value if reading is None or value is None else reading(value)
            for name in () if attribute.startswith("_") else self._json:
                if snake(name) == attribute:
                    return self._json[name]
            raise AttributeError(f"{type(self).__name__} has no member {attribute!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.members, *map(snake, self._json)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and type(self) is type(other) and self._json == other._json

    __hash__ = None  # type: ignore[assignment]  # JSON may contain lists, which have no hash

    def __repr__(self) -> str:
        names = [name for name in ("id", "name", "state", "code") if name in self._json] or list(self._json)[:3]
        shown = [f"{snake(name)}={self._json[name]!r}" for name in names]
        return f"{type(self).__name__}({', '.join(shown)})"


def snake(name: str) -> str:
    """Returns a member's name in snake case: `created_at` for `createdAt`."""
    return _HUMP.sub("_", name).lower()


def instant(text: str) -> datetime:
    """Returns an aware datetime."""
    return datetime.fromisoformat(text)


def instants(texts: list[str]) -> tuple[datetime, ...]:
    """Returns aware datetimes."""
    return tuple(map(instant, texts))
