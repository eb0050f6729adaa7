"""`make site`: collects the source of the site in .cache/site-source: the pages of docs/, and generated pages.

The generated pages are not checked in. They describe each operation of the API with examples that a test has run, the
method of the SDK and the command, from openapi.json and the code, and contain the help of every command.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from sweephand.cli import app
from sweephand.cli.commands import resources

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "layers" / "sweephand" / "python" / "sweephand"
DOCS = ROOT / "docs"
SOURCE = ROOT / ".cache" / "site-source"
UNFINISHED = ROOT / ".cache" / "site-unfinished"
"""Makes `tools/docs/site` start afresh: Sphinx keeps the pages of sources that are gone."""
WIDTH = 88
"""Columns of a command's help: more would scroll on the site."""
MOST_LINES = 60
"""A longer example is cut. openapi.json has the whole example."""
ABOUT_COMMANDS = (
    "The help of every command, as `--help` prints it. [The command line](../guide/cli.md) says what they share."
)
NAME = re.compile(r"\{[^}]*\}")


@dataclass(frozen=True)
class Method:
    """A method of the SDK: its call, and its command if it has one."""

    call: str
    command: str | None


def _plain(path: str) -> str:
    return NAME.sub("{}", path)


def _path(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return None


def methods() -> dict[tuple[str, str], Method]:
    """Returns the methods of the SDK by HTTP method and path, with their calls as in a program."""
    groups = {resource: group for group, resource in resources.GROUPS.items()}
    found: dict[tuple[str, str], Method] = {}
    for file in sorted((PACKAGE / "sdk" / "sync" / "resources").glob("[a-z]*.py")):
        for each in ast.walk(ast.parse(file.read_text())):
            if not isinstance(each, ast.FunctionDef):
                continue
            for call in ast.walk(each):
                if not (isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Request"):
                    continue
                path = _path(call.args[1])
                if path is not None and isinstance(call.args[0], ast.Constant):
                    command = _command(groups.get(file.stem), file.stem, each.name)
                    found.setdefault((str(call.args[0].value), _plain(path)), Method(_call(file.stem, each), command))
    return found


def _call(resource: str, function: ast.FunctionDef) -> str:
    given = function.args
    places = [one.arg for one in given.args if one.arg != "self"]
    named = [f"{one.arg}=..." for one in given.kwonlyargs if one.arg not in {"page_size", "max_items", "cursor"}]
    return f"sh.{resource}.{function.name}({', '.join([*places, *named])})"


def _command(group: str | None, resource: str, method: str) -> str | None:
    if resource == "schedules" and method in resources.ALONE:
        return method
    if group is None or (group, method) in resources.LEFT_OUT:
        return None
    return f"{group} {resources.RENAMED.get(method, method).replace('_', '-')}"


def _block(value: object) -> str:
    """Returns an example as a fenced block. A cut example is no longer JSON, and is marked as text."""
    if isinstance(value, str):
        return f"```text\n{value.strip()}\n```\n"
    lines = json.dumps(value, indent=2, ensure_ascii=False).splitlines()
    if len(lines) > MOST_LINES:
        return "\n".join(["```text", *lines[:MOST_LINES], "...", "```", ""])
    return "\n".join(["```json", *lines, "```", ""])


def _examples(content: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for body in content.values():
        for name, example in body.get("examples", {}).items():
            yield name, example["value"]


def _operation(method: str, path: str, operation: dict[str, Any], of_sdk: Method | None) -> Iterator[str]:
    yield f"## {operation['summary']}\n"
    yield f"`{method} {path}`\n"
    yield operation.get("description", "") + "\n"
    scopes = sorted({scope for one in operation.get("security", []) for needed in one.values() for scope in needed})
    open_to_all = {} in operation.get("security", [{}])
    yield f"Scope: {'none' if open_to_all or not scopes else ', '.join(f'`{scope}`' for scope in scopes)}.\n"
    query = [one for one in operation.get("parameters", []) if one.get("in") == "query"]
    if query:
        yield "| Parameter | |\n| --- | --- |"
        for one in query:
            yield f"| `{one['name']}` | {one.get('description', '').replace('|', ',')} |"
        yield ""
    if of_sdk is not None:
        yield f"Python: `{of_sdk.call}`\n"
        if of_sdk.command is not None:
            yield f"Command: `sweephand {of_sdk.command}`\n"
    for name, example in _examples(operation.get("requestBody", {}).get("content", {})):
        yield f"Request, `{name}`:\n\n{_block(example)}"
    for status, answer in operation["responses"].items():
        for _, example in _examples(answer.get("content", {})):
            yield f"Answer, {status}:\n\n{_block(example)}"


def operations() -> dict[str, str]:
    """Returns the pages of the API's operations by file name, one for each tag."""
    described = json.loads((PACKAGE / "server" / "facades" / "native" / "openapi.json").read_text())
    of_sdk = methods()
    tags = {tag["name"]: tag["description"] for tag in described["tags"]}
    pages = {name: [f"# API: {name}\n", f"{text}\n"] for name, text in tags.items()}
    for path, item in described["paths"].items():
        for method in ("get", "post", "put", "patch", "delete"):
            if method in item:
                key = method.upper(), _plain(path)
                pages[item[method]["tags"][0]] += _operation(method.upper(), path, item[method], of_sdk.get(key))
    return {name: "\n".join(parts) for name, parts in pages.items()}


def commands() -> str:
    """Returns the page with the help of every command."""
    program = app.program()
    parts = ["# All commands\n", f"{ABOUT_COMMANDS}\n"]
    context = click.Context(program, info_name="sweephand")
    for name in program.list_commands(context):
        parts += _help(program.get_command(context, name), name, context, 2)
    return "\n".join(parts)


def _help(command: click.Command | None, name: str, above: click.Context, level: int) -> Iterator[str]:
    assert command is not None
    context = click.Context(command, info_name=name, parent=above, max_content_width=WIDTH, terminal_width=WIDTH)
    yield f"{'#' * level} {context.command_path.removeprefix('sweephand ')}\n"
    yield f"```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            yield from _help(command.get_command(context, inner), inner, context, level + 1)


def pages() -> dict[Path, bytes]:
    """Returns all files of the site's source, by their paths in it."""
    there = {file.relative_to(DOCS): file.read_bytes() for file in DOCS.rglob("*") if file.is_file()}
    made = {Path("reference") / "operations" / f"{name}.md": text for name, text in operations().items()}
    made[Path("reference") / "commands.md"] = commands()
    return {**there, **{place: text.encode() for place, text in made.items()}}


def main() -> None:
    """Writes what is new or has changed, so that Sphinx builds only that. If a page is gone, it begins afresh."""
    wanted = pages()
    for old in [file for file in SOURCE.rglob("*") if file.is_file() and file.relative_to(SOURCE) not in wanted]:
        old.unlink()
        UNFINISHED.touch()
    for place, content in wanted.items():
        file = SOURCE / place
        if not file.exists() or file.read_bytes() != content:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


if __name__ == "__main__":
    main()
