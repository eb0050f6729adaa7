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
MAKE_THE_REAL_ONES = ("wiring.py", "sources.py", "local", "cli", "sdk", "testing")
HAVE_THE_LIBRARYS = ("records.py", "local", "cli", "sdk", "testing")
# A process of the same time may make `__pycache__`: what is collected must not depend on it.
ENTRIES = sorted([path.parent for path in PACKAGE.glob("*/__init__.py")] + [*PACKAGE.glob("*.py")])


@pytest.mark.parametrize("contract", CONTRACT_NAMES)
def test_imports_follow_the_contract(contract):
    done = _lint("--contract", contract)

    assert done.returncode == 0, done.stdout
    assert "Contracts: 1 kept, 0 broken." in done.stdout


def test_an_upward_import_breaks_the_contract(tmp_path):
    """Seen failing: the same contracts, a package with one import from the pure floor to the floors above."""
    package = tmp_path / "sweephand"
    for module in ("schedules", "domain", "flow", "facades"):
        (package / module).mkdir(parents=True)
        (package / module / "__init__.py").touch()
    (package / "__init__.py").touch()
    for module in (
        "errors",
        "ids",
        "json_schema",
        "lazy",
        "records",
        "settings",
        "sources",
        "telemetry",
        "values",
        "wiring",
    ):
        (package / f"{module}.py").touch()
    for module in ("security", "store", "messaging", "actions"):
        (package / f"{module}.py").touch()
    (package / "schedules" / "__init__.py").write_text("import sweephand.flow\n")

    done = _lint("--contract", "floors", package=tmp_path)

    assert done.returncode == 1
    assert "sweephand.schedules -> sweephand.flow" in done.stdout


@pytest.mark.parametrize("module", [p for p in ENTRIES if p.name not in MAKE_THE_REAL_ONES], ids=lambda path: path.stem)
def test_only_the_wiring_creates_the_real_clock_and_randomness(module):
    """Elsewhere they are arguments: only the names of their kinds may be imported."""
    for source in module.rglob("*.py") if module.is_dir() else [module] * (module.suffix == ".py"):
        names = {name for where, name in _imported(source) if where == "sweephand.sources"}
        assert names <= {"Clock", "Chance"}, source


@pytest.mark.parametrize("module", [p for p in ENTRIES if p.name not in HAVE_THE_LIBRARYS], ids=lambda path: path.stem)
def test_modules_loaded_by_a_function_make_their_classes_as_records(module):
    """The standard library compiles each frozen class at each cold start. Only `replace` and the like are its own."""
    for source in module.rglob("*.py") if module.is_dir() else [module] * (module.suffix == ".py"):
        assert ("dataclasses", "dataclass") not in set(_imported(source)), source


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
