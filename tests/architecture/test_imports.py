"""Which package may import which, and where the clock is read."""

from __future__ import annotations

import ast
import configparser
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "layers" / "sweephand" / "python" / "sweephand"
CONTRACTS = configparser.ConfigParser()
CONTRACTS.read(ROOT / ".importlinter")
CONTRACT_NAMES = [s.rpartition(":")[2] for s in CONTRACTS.sections() if s.startswith("importlinter:contract:")]
MAKES_THE_REAL_ONES = PACKAGE / "server" / "wiring.py"
SOURCES = PACKAGE / "base" / "sources.py"
RECORDS = PACKAGE / "base" / "records.py"
LOADED_BY_FUNCTIONS = ("base", "domain", "formats", "schedules", "server")


@pytest.mark.parametrize("contract", CONTRACT_NAMES)
def test_imports_follow_the_contract(contract):
    done = _lint("--contract", contract)

    assert done.returncode == 0, done.stdout
    assert "Contracts: 1 kept, 0 broken." in done.stdout


def test_an_upward_import_breaks_the_contract(tmp_path):
    """Seen failing: the same contracts, a package with one import from the pure floor to the floors above."""
    floors = CONTRACTS["importlinter:contract:floors"]["layers"].replace("|", " ").split()
    for floor in floors:
        folder = tmp_path / floor.strip("()").replace(".", "/")
        folder.mkdir(parents=True, exist_ok=True)
        for each in (folder, *folder.relative_to(tmp_path).parents):
            (tmp_path / each / "__init__.py").touch()
    (tmp_path / "sweephand" / "schedules" / "__init__.py").write_text("import sweephand.server.flow\n")

    done = _lint("--contract", "floors", package=tmp_path)

    assert done.returncode == 1
    assert "sweephand.schedules -> sweephand.server.flow" in done.stdout


@pytest.mark.parametrize("folder", LOADED_BY_FUNCTIONS)
def test_only_the_wiring_creates_the_real_clock_and_randomness(folder):
    """Elsewhere they are arguments: only the names of their kinds may be imported."""
    for source in {*(PACKAGE / folder).rglob("*.py")} - {MAKES_THE_REAL_ONES, SOURCES}:
        names = {name for where, name in _imported(source) if where == "sweephand.base.sources"}
        assert names <= {"Clock", "Chance"}, source


@pytest.mark.parametrize("folder", LOADED_BY_FUNCTIONS)
def test_modules_loaded_by_a_function_make_their_classes_as_records(folder):
    """The standard library compiles each frozen class at each cold start. Only `replace` and the like are its own."""
    for source in {*(PACKAGE / folder).rglob("*.py")} - {RECORDS}:
        assert ("dataclasses", "dataclass") not in set(_imported(source)), source


def test_the_package_imports_nothing_else_of_the_repository():
    """Neither a layer nor the wheel contains it."""
    for source in PACKAGE.rglob("*.py"):
        folders = {where.split(".")[0] for where, _ in _imported(source)}
        assert not folders & {"bench", "examples", "tests", "tools"}, source


def _imported(source):
    """Yields (module, name) for each `from module import name`, and (module, "") for each `import module`."""
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
            yield from ((f"{node.module}.{alias.name}", "") for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def _lint(*arguments, package=PACKAGE.parent):
    command = [
        Path(sys.executable).parent / "lint-imports",
        "--config",
        ROOT / ".importlinter",
        "--no-cache",
        *arguments,
    ]
    return subprocess.run(
        list(map(str, command)),
        cwd=package,
        env=os.environ | {"PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )
