"""The hooks of a schedule that replace its job's: their names, and the item that holds them. Pure.

The schedule's row is written at each occurrence, so it holds only a short string. The actions are in a separate item.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sweephand.domain.job import HOOK_KINDS


@dataclass(frozen=True)
class OwnHooks:
    """The hooks of a schedule. version: the revision of the job that wrote them. names: in the order of HOOK_KINDS."""

    version: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        """Returns the stored form: `7 onSuccess onMissed`."""
        return " ".join((str(self.version), *self.names))

    @classmethod
    def of(cls, version: int, names: Collection[str]) -> OwnHooks:
        return cls(version, tuple(name for name in HOOK_KINDS if name in names))

    @classmethod
    def read(cls, text: str | None) -> OwnHooks | None:
        if text is None:
            return None
        version, *names = text.split(" ")
        return cls(int(version), tuple(names))
