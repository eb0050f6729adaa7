"""`make quick`: runs the checks and tests nearest to your changes, in under a minute.

Changes are all differences from the commit where this branch left main, including uncommitted ones. Tests run in order
of their distance in imports. Tests for which no time was left are counted in the output.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "layers/sweephand/python"
SECONDS = 55
TAKES_LONG = (
    "tests/local_stack",
    "tests/sam_local",
    "tests/faults",
    "tests/year",
    "tests/mutants",
    "tests/support",
)


def main() -> int:
    began = time.monotonic()  # noqa: TID251 - it times the checks, not the service
    changed = _changed()
    sys.stdout.write(f"changed: {len(changed)} files\n")
    python = [name for name in changed if name.endswith(".py") and (ROOT / name).is_file()]
    checks = [
        ["ruff", "check", "-q", *python],
        ["ruff", "format", "--check", "-q", *python],
        ["lint-imports", "--config", ".importlinter", "--no-logo"],
        ["mypy"],
    ]
    for check in checks if python else ():
        done = _run(str(ROOT / ".venv/bin" / check[0]), *check[1:])
        sys.stdout.write(f"{check[0]}: {'passed' if done.returncode == 0 else done.stdout + done.stderr}\n")
        if done.returncode:
            return 1
    tests = nearest(python, _imports())
    left_s = SECONDS - (time.monotonic() - began)  # noqa: TID251 - as above
    return _test(tests, left_s)


def _changed() -> list[str]:
    base = _git("merge-base", "HEAD", "main") or _git("rev-parse", "HEAD")
    names = [*_git("diff", "--name-only", base).split(), *_git("ls-files", "--others", "--exclude-standard").split()]
    return sorted(set(names))


def _git(*arguments: str) -> str:
    return _run("git", *arguments).stdout.strip()


def _run(*command: str, timeout_s: float | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - commands of this file
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": PACKAGE, "EXAMPLES_TIMES": "0.2"},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def _imports() -> Mapping[str, set[str]]:
    """Returns the modules that import each module."""
    sys.path[:0] = [str(ROOT), str(ROOT / PACKAGE)]
    import grimp  # noqa: PLC0415 - only where something has changed

    graph = grimp.build_graph("sweephand", "bench", "tools", "tests", cache_dir=None)
    return {module: graph.find_modules_that_directly_import(module) for module in graph.modules}


def nearest(changed: Iterable[str], importers: Mapping[str, set[str]]) -> list[str]:
    """Returns the test files that import the changed files, directly or not, nearest first.

    Leaves out tests that need a stack or several minutes.
    """
    reached = dict.fromkeys(_module(name) for name in changed)
    edge = list(reached)
    while edge:
        edge = [each for module in edge for each in sorted(importers.get(module, ())) if each not in reached]
        reached |= dict.fromkeys(edge)
    found = [module.replace(".", "/") + ".py" for module in reached if module.rpartition(".")[2].startswith("test_")]
    return [name for name in dict.fromkeys(found) if not name.startswith(TAKES_LONG)]


def _module(name: str) -> str:
    return name.removeprefix(f"{PACKAGE}/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _test(files: list[str], left_s: float) -> int:
    """Runs test files until the time limit or the first failure."""
    until = time.monotonic() + left_s  # noqa: TID251 - as above
    ran = 0
    for begin in range(0, len(files), 4):
        left_s = until - time.monotonic()  # noqa: TID251 - as above
        if left_s < 2:
            break
        some = files[begin : begin + 4]
        try:
            done = _run(sys.executable, "-m", "pytest", "-q", "-x", *some, timeout_s=left_s)
        except subprocess.TimeoutExpired:
            break
        if done.returncode:
            sys.stdout.write(done.stdout)
            return 1
        ran += len(some)
    left = f"; {len(files) - ran} further files were left out, `make test` runs them" if ran < len(files) else ""
    sys.stdout.write(f"tests: {ran} files passed{left}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
