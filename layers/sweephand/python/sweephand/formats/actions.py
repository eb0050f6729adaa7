"""The part of actions that forms need: facades and importers pass it, so forms know neither targets nor guard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from sweephand.domain.job import ActionDraft, ActionSpec, Payload


class Actions(Protocol):
    """The kinds of actions, as the settings of a stack allow them."""

    def draft(self, fields: object, *, field: str, stored: ActionSpec | None = None) -> ActionDraft:
        """Reads an action; see sweephand.server.actions.draft."""

    def check_payload(self, kind: str, params: Mapping[str, Any], payload: Payload | None, field: str) -> None:
        """Raises InvalidRequest if a payload cannot replace the action's."""
