"""Reads values that a user gives as JSON, on the command line or in a file."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import click

from sweephand.cli.commands.statuses import Unusable
from sweephand.sdk.each_once import Twice, each_once


def read_file(path: str) -> Any:
    """Returns the content of a file: TOML if its name ends in .toml, else JSON; `-` is stdin. Raises Unusable."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        return tomllib.loads(text) if path.endswith(".toml") else json.loads(text, object_pairs_hook=each_once)
    except (OSError, RecursionError, ValueError) as error:
        raise Unusable(unreadable(path, error)) from error


def unreadable(path: str | Path, error: OSError | RecursionError | ValueError) -> str:
    """Returns the message for a file that cannot be read, or whose content is invalid."""
    if isinstance(error, FileNotFoundError):
        return f"{path}: there is no such file"
    if isinstance(error, OSError):
        return f"{path}: {error.strerror}"
    return f"{path}: {'is nested too deeply' if isinstance(error, RecursionError) else error}"


def json_value(option: str, text: str) -> Any:
    """Returns the value of an option that is JSON or @FILE. Raises UsageError, and Unusable for the file."""
    if text.startswith("@"):
        return read_file(text[1:])
    try:
        return json.loads(text, object_pairs_hook=each_once)
    except Twice as wrong:
        raise click.UsageError(f"{option}: {wrong}") from wrong
    except (ValueError, RecursionError) as wrong:
        raise click.UsageError(f'{option} must be JSON, such as {{"a": 1}} or "text" in quotes, or @FILE') from wrong
