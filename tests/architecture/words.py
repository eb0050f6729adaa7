"""The mechanical part of the rules for plain English (CONTRIBUTING.md), for the whole repository.

python -m tests.architecture.words          lists every breach
python -m tests.architecture.words FILE...  those of these files
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CODE = ("layers/sweephand/python/sweephand", "functions", "tools", "bench", "tests", "examples")
PROSE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "examples")

FRAGMENT = re.compile(r"(?:^|[.!?:] |\n\n)(What|Of|As|By(?! default)|Those|Who)\b")
AVOIDED = re.compile(
    r"\b(behind|beside|shall|parted by|told (?:on|of|to)|comes? to be|is none of|by itself|at will)\b", re.IGNORECASE
)
LINK_TARGET = re.compile(r"(?<=\])\([^()\s]+(?: \"[^\"]*\")?\)")
MADE = re.compile(r"^```.*?^```$|<!-- (?:generated|file): .*?<!-- end -->", re.DOTALL | re.MULTILINE)
NO_PROSE = re.compile(r"#|\||:::|!\[")
ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")
NAMED = (CODE[0], "tests/support")
"""Folders whose variables are named for the thing that they hold."""
NO_NAMES = {"found", "there", "given", "met", "lately", "brought", "unsaid", "rare", "Below"}
VERB = re.compile(r"[A-Z][a-z]+s$")
NO_VERBS = {"Its", "This", "Is", "Always", "Less", "Perhaps", "Besides", "Others", "Does"}


class Breach(NamedTuple):
    path: str
    line: int
    why: str


def breaches(path: Path) -> Iterator[Breach]:
    name = str(path.relative_to(ROOT))
    if path.suffix == ".md":
        yield from _of_page(name, path.read_text())
        return
    source = path.read_text()
    tree = ast.parse(source)
    if name.startswith(NAMED):
        for line, bound in _bound_names(tree):
            if bound.strip("_") in NO_NAMES:
                yield Breach(name, line, f"name it for the thing that it holds, not {bound!r}")
    for line, text, of_function in (*_docstrings(tree), *_comments(source)):
        plain = re.sub(r"`[^`]*`", "", text)
        for found in FRAGMENT.findall(plain):
            yield Breach(name, line, f"a sentence begins with {found!r}")
        for found in AVOIDED.findall(plain):
            yield Breach(name, line, f"avoid {found.lower()!r}")
        first = plain.split()[0] if plain.split() else ""
        if of_function and first and (not VERB.match(first) or first in NO_VERBS):
            yield Breach(name, line, f"a function's docstring begins with a verb, not {first!r}")


def _of_page(name: str, page: str) -> Iterator[Breach]:
    page = LINK_TARGET.sub("", page)
    for number, line in enumerate(page.split("\n"), 1):
        for found in AVOIDED.findall(re.sub(r"`[^`]*`", "", line)):
            yield Breach(name, number, f"avoid {found.lower()!r}")
    for start, paragraph in _paragraphs(page):
        for found in FRAGMENT.findall(re.sub(r"`[^`]*`", "`", paragraph)):
            yield Breach(name, start, f"a sentence begins with {found!r}")


def _paragraphs(page: str) -> Iterator[tuple[int, str]]:
    """Yields paragraphs and items of lists with their lines: no headings, tables, blocks or generated parts."""
    prose = MADE.sub(lambda found: "\n" * found[0].count("\n"), page)
    lines: list[str] = []
    for number, line in enumerate([*prose.split("\n"), ""], 1):
        begins = not line.strip() or NO_PROSE.match(line) or ITEM.match(line)
        if begins and lines:
            yield number - len(lines), " ".join(lines)
            lines = []
        if line.strip() and not NO_PROSE.match(line):
            lines.append(ITEM.sub("", line).strip())


def _bound_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields the names of variables, parameters, members, functions and classes, where they are made."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=bound, ctx=ast.Store()) | ast.arg(arg=bound):
                yield node.lineno, bound
            case ast.FunctionDef(name=bound) | ast.AsyncFunctionDef(name=bound) | ast.ClassDef(name=bound):
                yield node.lineno, bound
            case ast.MatchAs(name=str(bound)) | ast.MatchStar(name=str(bound)):
                yield node.lineno, bound


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Yields line, text, and whether it is a function's: those of tests are sentences of any form."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for each in body if isinstance(body, list) else ():
            if (
                isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ):
                function = isinstance(node, ast.FunctionDef) and each is node.body[0] and not _is_noun(node)
                yield each.lineno, each.value.value, function


def _is_noun(function: ast.FunctionDef) -> bool:
    """Returns whether the function is read like a member, or is a test."""
    return function.name.startswith("test_") or any(
        "property" in ast.unparse(each) or "fixture" in ast.unparse(each) for each in function.decorator_list
    )


def _comments(source: str) -> Iterator[tuple[int, str, bool]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(noqa|type:|pragma|!)", token.string):
            yield token.start[0], token.string.lstrip("# "), False


def files() -> Iterator[Path]:
    for folder in CODE:
        yield from sorted((ROOT / folder).rglob("*.py"))
    for page in PROSE:
        found = ROOT / page
        yield from sorted(found.rglob("*.md")) if found.is_dir() else [found]


def main(arguments: list[str]) -> int:
    chosen = [Path(argument).resolve() for argument in arguments] or [path for path in files() if path.is_file()]
    for path in chosen:
        for breach in breaches(path):
            sys.stdout.write(f"{breach.path}:{breach.line}: {breach.why}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
