"""The notations, one module each: `read` turns a caller's value into facts, `compile_` turns facts into a series.

Facts are plain JSON, kept in the table: everything that `compile_` needs beside the shared rules, nothing of the clock.
A new notation is a module and a line in NOTATIONS; the shared properties in tests/unit/schedules cover it by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweephand.schedules.notations import at, cron, every

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sweephand.schedules.notations.shapes import Notation

NOTATIONS: Mapping[str, Notation] = {"at": at, "every": every, "cron": cron}
"""By the name of the member that holds the text."""
