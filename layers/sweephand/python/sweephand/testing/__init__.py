"""A whole stack in a test, whose clock only the test moves: `with stack(now=...) as sh`. See docs/guide/sdk.md."""

from __future__ import annotations

from sweephand.testing.stack import Stack, stack
from sweephand.testing.targets import Call, Reply

__all__ = ["Call", "Reply", "Stack", "stack"]
