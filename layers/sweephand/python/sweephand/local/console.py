"""The output, the failures and the exit status of commands for the user."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from sweephand.local.api import Refused, Unreachable
from sweephand.local.failures import LocalFailure

if TYPE_CHECKING:
    from collections.abc import Callable


def say(text: str) -> None:
    """Writes lines to standard output and flushes."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def say_error(text: str) -> None:
    """Writes lines to standard error and flushes."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def carry_out(command: Callable[[], int]) -> int:
    """Runs a command. Returns its exit status, or that of its failure, which is printed as one line.

    SIGTERM and SIGHUP end the command like Ctrl-C: with the summary and an orderly stop of the stack.
    """

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    try:
        return command()
    except LocalFailure as failure:
        say_error(str(failure))
        return failure.status
    except (Refused, Unreachable) as error:
        say_error(f"The stack's API gave an unexpected answer: {error}")
        return LocalFailure.status
    except KeyboardInterrupt:
        return 130
