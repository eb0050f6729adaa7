"""The command `api`, for requests that have no command of their own."""

from __future__ import annotations

import sys
from typing import Any

import click

from sweephand.cli.commands.call import Argument, Call, command
from sweephand.cli.commands.files import json_value
from sweephand.cli.commands.statuses import Unusable

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def made(_name: str) -> click.Command:
    """Returns the command `api`."""
    parameters = [
        Argument(["method"], text="The HTTP method.", type=click.Choice(METHODS, case_sensitive=False)),
        Argument(["path"], text="The path, such as /v1/jobs, without a query."),
        click.Option(
            ["--query", "-q"], multiple=True, metavar="NAME=VALUE", help="A parameter of the query. May be repeated."
        ),
        click.Option(["--body", "-d"], metavar="JSON", help="The body: JSON, or @FILE; @- is stdin."),
    ]
    about = "Call any path of the API, such as /v1/health, and print the answer unchanged."
    return command("api", _api, parameters, help=about)


def _api(call: Call, method: str, path: str, query: tuple[str, ...], body: str | None) -> int:
    if not path.startswith("/") or "?" in path:
        raise Unusable(f"{path}: the path must begin with a slash, such as /v1/jobs; give a query with --query")
    if wrong := next((each for each in query if "=" not in each), None):
        raise click.UsageError(f"--query must be NAME=VALUE, not {wrong}")
    value: Any = None if body is None else json_value("--body", body)
    if value is not None and not isinstance(value, dict):
        raise click.UsageError("--body must be an object")
    with call.client() as client:
        answer = client.call(method, path, query=dict(each.split("=", 1) for each in query), body=value)
    text = answer.content.decode(errors="replace")
    sys.stdout.write(text if text.endswith("\n") or not text else f"{text}\n")
    return 0
