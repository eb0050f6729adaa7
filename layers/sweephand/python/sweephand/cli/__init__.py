"""Commands for a user's machine. The functions' layer does not contain them."""

from __future__ import annotations

from collections.abc import Sequence

from sweephand.base.lazy import lazy

with lazy():
    from sweephand.cli import app


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command. Returns the exit status; `sweephand.cli.commands.statuses` lists them.

    arguments: without the program's name; None for those of the process.
    """
    return int(app.run(arguments))
