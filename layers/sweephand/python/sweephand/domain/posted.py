"""The part of a message that its caller determines. The row of its run contains it, packed as JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import Any

from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_ms, from_ms

LARGEST_IN_ROW = 300
"""The most bytes of an action, with payload and secrets, in the row of its run, so that each write stays one unit."""


@dataclass(frozen=True)
class Posted:
    """A message as its caller posted it.

    action: as domain.messages packs it, with payload and secrets; None while it is in a row of its own and not read.
    apart: whether it is. target: what it calls, the wider name. by: the client id of the caller. max_lateness_s: how
    late it may begin.
    """

    collection: str
    created_at: datetime
    action: Sequence[Any] | None
    target: str = ""
    name: str | None = None
    resource_id: str | None = None
    tags: tuple[str, ...] = ()
    policies: Mapping[str, Any] = field(default_factory=dict)
    max_lateness_s: int | None = None
    by: str | None = None
    dedupe_key: str | None = None
    apart: bool = False

    def __str__(self) -> str:
        """Returns the text of the run's row, which leaves out an action that is in a row of its own."""
        packed = {
            "c": self.collection,
            "t": epoch_ms(self.created_at),
            "d": self.target,
            "n": self.name,
            "r": self.resource_id,
            "g": list(self.tags),
            "o": dict(self.policies),
            "l": self.max_lateness_s,
            "b": self.by,
            "k": self.dedupe_key,
            "a": None if self.apart else self.action,
        }
        return _text({name: value for name, value in packed.items() if value not in (None, "", [], {})})

    @classmethod
    def read(cls, text: str) -> Posted:
        packed = json.loads(text)
        return cls(
            collection=packed["c"],
            created_at=from_ms(packed["t"]),
            action=packed.get("a"),
            target=packed.get("d", ""),
            name=packed.get("n"),
            resource_id=packed.get("r"),
            tags=tuple(packed.get("g", ())),
            policies=packed.get("o", {}),
            max_lateness_s=packed.get("l"),
            by=packed.get("b"),
            dedupe_key=packed.get("k"),
            apart="a" not in packed,
        )

    @property
    def body(self) -> str:
        """Returns the text of the row that contains the action alone."""
        return _text(self.action)

    def placed(self) -> Posted:
        """Returns it with its action where it belongs: in the run's row, or in one of its own if it is long."""
        return replace(self, apart=len(self.body.encode()) > LARGEST_IN_ROW)

    def with_body(self, text: str) -> Posted:
        return replace(self, action=json.loads(text))


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
