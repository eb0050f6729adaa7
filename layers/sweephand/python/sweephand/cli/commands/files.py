"""Values that a user gives as JSON, on the command line or in a file."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import click

from sweephand.cli.commands.statuses import Unusable


def read_file(path: str) -> Any:
    """Returns what is in a file of JSON, or of TOML by its ending; `-` is stdin. Raises Unusable."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        return tomllib.loads(text) if path.endswith(".toml") else json.loads(text)
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from error
    except RecursionError as error:
        raise Unusable(f"{path}: is nested too deeply") from error
    except ValueError as error:
        raise Unusable(f"{path}: {error}") from error


def json_value(option: str, given: str) -> Any:
    """Returns the value of an option with JSON, or with @FILE. Raises UsageError."""
    if given.startswith("@"):
        return read_file(given[1:])
    try:
        return json.loads(given)
    except (ValueError, RecursionError) as wrong:
        raise click.UsageError(f'{option} must be JSON, such as {{"a": 1}} or "text" in quotes, or @FILE') from wrong
