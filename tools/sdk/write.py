"""`make sdk`: writes the generated parts of the SDK, from openapi.json and from the asyncio half.

- `models.py`, `api_errors.py` and `aio/resources/` are made from the description of the API and the table of codes, by
  `answers.py` and `resources.py`. The names of methods are in `methods.py`.
- `sync/` is made from `aio/` by replacing words.

All of them are checked in. tests/unit/sdk/test_generated.py fails if a file differs from the generated one.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from sweephand.server.facades.native.document import FILE
from tools.sdk.answers import api_errors, models
from tools.sdk.document import Document
from tools.sdk.methods import METHODS
from tools.sdk.resources import resource

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "layers" / "sweephand" / "python"
SDK = PACKAGE / "sweephand" / "sdk"
RUFF = ROOT / ".venv" / "bin" / "ruff"
WORDS = (
    ("sweephand.sdk.transport.clocks", "sweephand.base.sources"),
    ("sweephand.sdk.aio", "sweephand.sdk.sync"),
    ("async def", "def"),
    ("async with", "with"),
    ("async for", "for"),
    ("await ", ""),
    ("AsyncIterator", "Iterator"),
    ("__aiter__", "__iter__"),
    ("__aenter__", "__enter__"),
    ("__aexit__", "__exit__"),
    ("aclose", "close"),
    ("Awaitable[T]", "T"),
    ("Awaitable[None]", "None"),
)
ASYNC_NAME = re.compile(r"\bAsync([A-Z])")


def in_turn(text: str) -> str:
    """Returns the blocking form of a module of `aio`."""
    for word, other in WORDS:
        text = text.replace(word, other)
    return ASYNC_NAME.sub(r"\1", text)


def made() -> dict[Path, str]:
    """Returns the text of each generated file, by its path."""
    document = Document(json.loads(FILE.read_text(encoding="utf-8")))
    files = {Path("aio/resources") / f"{name}.py": resource(document, name, each) for name, each in METHODS.items()}
    files[Path("models.py")] = models(document)
    files[Path("api_errors.py")] = api_errors()
    files = _formed(files)
    own = {path.relative_to(SDK): path.read_text() for path in SDK.glob("aio/*.py")}
    resources = {path: text for path, text in files.items() if path.parts[0] == "aio"}
    halves = {path: f"{_sign(path)}{text}" for path, text in own.items()} | resources
    blocking = {Path("sync", *path.parts[1:]): in_turn(text) for path, text in halves.items()}
    files |= _formed(blocking)
    return {SDK / path: text for path, text in files.items()}


def _sign(path: Path) -> str:
    """Returns the first line of a module of `sync`: a linter knows it, and so does a person who opens the file."""
    return f"# Generated from {path.as_posix()} by `make sdk`. Do not edit.\n"


def _formed(files: Mapping[Path, str]) -> dict[Path, str]:
    """Returns the files as ruff formats them, with sorted imports and without unused ones."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / path).write_text(text)
        rules = ["--config", str(ROOT / "pyproject.toml"), "--config", 'lint.isort.known-first-party = ["sweephand"]']
        for command in (["check", "--fix-only", "--quiet", "--select", "I,F401"], ["format", "--quiet"]):
            subprocess.run([str(RUFF), *command, *rules, folder], check=True)  # noqa: S603 - fixed arguments
        return {path: (Path(folder) / path).read_text() for path in files}


def main(arguments: list[str]) -> int:
    files = made()
    differ = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    known = {*files, *SDK.glob("aio/*.py")}
    left = [path for half in ("aio", "sync") for path in (SDK / half).rglob("*.py") if path not in known]
    strays = [path for path in left if path.parent.name != "resources" or path.name != "__init__.py"]
    for path in [*differ, *strays]:
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    if "--check" in arguments:
        return 1 if differ or strays else 0
    for path in differ:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path])
    for path in strays:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
