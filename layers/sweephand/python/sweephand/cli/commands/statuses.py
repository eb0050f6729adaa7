"""The exit statuses of all commands, and the sentences for what went wrong. No error reaches the user as a trace."""

from __future__ import annotations

import json
import sys
from typing import TextIO

import click

from sweephand.errors import SweephandError
from sweephand.sdk.errors import ApiError, ConfigError, InvalidArgument, TransportError

DONE, REFUSED, NOT_ASKED, DIFFERENT, CONFLICT = range(5)
"""Done; refused or failed; could not ask (usage, file, address, credential, scope, clock); differences, with
`plan --exit-code`; a conflict, such as a name that is taken or a plan that is out of date."""
INTERRUPTED = 130
CONFLICTS = frozenset({409, 412})
NO_ACCESS = frozenset({401, 403})


class Unusable(Exception):
    """A file or a value that cannot be used: nothing was sent."""


def of_error(error: Exception, *, as_json: bool, err: TextIO | None = None) -> int:
    """Writes a sentence, or with as_json one JSON object, to stderr. Returns the exit status.

    Raises any error that this package does not raise itself.
    """
    err = err or sys.stderr
    if isinstance(error, ApiError):
        tell(error, as_json=as_json, err=err)
        return NOT_ASKED if error.status in NO_ACCESS else CONFLICT if error.status in CONFLICTS else REFUSED
    if isinstance(error, click.UsageError):
        error.show(err)
        return NOT_ASKED
    if not isinstance(error, Unusable | SweephandError):
        raise error
    told = {"code": getattr(error, "code", SweephandError.code), "detail": str(error)}
    err.write(f"{json.dumps(told) if as_json else error}\n")
    return NOT_ASKED if isinstance(error, Unusable | ConfigError | InvalidArgument | TransportError) else REFUSED


def tell(refused: ApiError, *, as_json: bool, err: TextIO) -> None:
    """Writes a refusal: a line for each mistake, or one JSON object."""
    if as_json:
        told = {"code": refused.code, "status": refused.status, "detail": refused.detail}
        mistakes = [{"field": each.field, "reason": each.reason} for each in refused.errors]
        more = {"errors": mistakes, "requestId": refused.request_id, "type": refused.help}
        err.write(json.dumps(told | more) + "\n")
        return
    err.writelines(f"{each.field}: {each.reason}\n" for each in refused.errors)
    if not refused.errors:
        err.write(f"{refused.detail}\n")
