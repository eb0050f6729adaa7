"""The exit statuses of all commands, and their error messages. Users never see a stack trace for a known error."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from typing import TextIO

import click

from sweephand.base.errors import SweephandError
from sweephand.sdk.errors import ApiError, ConfigError, InvalidArgument, TransportError
from sweephand.sdk.model import snake

DONE, REFUSED, NOT_ASKED, DIFFERENT, CONFLICT = range(5)
"""Done; refused or failed; not sent or not allowed (usage, file, address, credential, scope, clock); differences, with
`plan --exit-code`; a conflict, such as a name that is taken or a plan that is out of date."""
INTERRUPTED = 130
NO_OPTIONS: Mapping[str, str] = {}
CONFLICTS = frozenset({409, 412})
NO_ACCESS = frozenset({401, 403})
_PARAMETER = re.compile(r"(?<![?&\w-])(?P<name>[a-z][A-Za-z]*)=(?P<value>\w+)")

_QUOTED = re.compile(r"`(\w+)`")
_OF_API = re.compile(r"(?<![\w./?&\"-])[a-z]+[A-Z]\w*(?![\w./=\"])")
"""A parameter of the API in a sentence, such as expectedCount, outside paths and quoted values."""


class Unusable(Exception):
    """A file or a value that cannot be used. Nothing was sent."""


UNSENT = (click.UsageError, Unusable, ConfigError, InvalidArgument, TransportError)


def of_error(
    error: Exception, *, as_json: bool, err: TextIO | None = None, options: Mapping[str, str] = NO_OPTIONS
) -> int:
    """Writes a sentence to stderr, or one JSON object with as_json. Returns the exit status.

    options: the command's options, by the names of their parameters in snake case. Raises the error again if it is not
    one of this package.
    """
    err = err or sys.stderr
    if isinstance(error, ApiError):
        report(error, as_json=as_json, err=err, options=options)
        return NOT_ASKED if error.status in NO_ACCESS else CONFLICT if error.status in CONFLICTS else REFUSED
    if isinstance(error, click.UsageError) and not as_json:
        error.show(err)
        return NOT_ASKED
    if not isinstance(error, Unusable | SweephandError | click.UsageError):
        raise error
    detail = error.format_message() if isinstance(error, click.UsageError) else str(error)
    problem = {"code": getattr(error, "code", SweephandError.code), "detail": detail}
    err.write(f"{json.dumps(problem) if as_json else detail}\n")
    return NOT_ASKED if isinstance(error, UNSENT) else REFUSED


def report(refused: ApiError, *, as_json: bool, err: TextIO, options: Mapping[str, str] = NO_OPTIONS) -> None:
    """Writes a refusal: a line for each mistake, naming options instead of parameters, or one JSON object."""
    if as_json:
        problem = {"code": refused.code, "status": refused.status, "detail": refused.detail}
        mistakes = [{"field": each.field, "reason": each.reason} for each in refused.errors]
        more = {"errors": mistakes, "requestId": refused.request_id, "type": refused.help}
        err.write(json.dumps(problem | more) + "\n")
        return
    fields = ((options.get(snake(each.field), each.field), each.reason) for each in refused.errors)
    err.writelines(f"{field}: {_in_options(reason, options)}\n" for field, reason in fields)
    if not refused.errors:
        err.write(f"{_in_options(refused.detail, options)}\n")


def _in_options(text: str, options: Mapping[str, str]) -> str:
    """Returns a reason that names options: `--allow-deletes 3` for `allowDeletes=3`, `--dry-run` for `dryRun=true`."""

    def worded(match: re.Match[str]) -> str:
        option = options.get(snake(match["name"]))
        if option is None:
            return match[0]
        return option if match["value"] == "true" else f"{option} {match['value']}"

    text = _QUOTED.sub(lambda match: options.get(snake(match[1]), match[0]), text)
    text = _PARAMETER.sub(worded, text)
    return _OF_API.sub(lambda match: options.get(snake(match[0]), match[0]), text)
