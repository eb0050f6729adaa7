"""Clients that two usual generators make from the OpenAPI document, against the running stack.

`make setup` and `make setup-generated-clients` install the generators (`make test-all` does so first).
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sweephand.local.settings import CHECKOUT
from sweephand.server.facades.native.document import FILE
from tests.local_stack.conftest import LocalStack

pytestmark = pytest.mark.emulator

DRIVES = CHECKOUT / "tests" / "contract" / "native" / "clients"
INSTALLED = CHECKOUT / ".cache" / "generated-clients"
MAKES_S = 180


def output(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=MAKES_S, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def credential(stack: LocalStack) -> tuple[str, str, str]:
    found = stack.file.tenants["acme"]
    return stack.base_url, found.client_id, found.secret


def check(told: dict[str, Any]) -> None:
    assert told["listed"] == [told["created"]]
    assert told["runs"] == [told["created"]]


def test_a_python_client_lists_jobs_creates_one_and_reads_its_runs(stack: LocalStack, tmp_path: Path) -> None:
    python = CHECKOUT / ".venv" / "bin"
    made = tmp_path / "made"

    said = output(
        python / "openapi-python-client",
        "generate",
        "--path",
        FILE,
        "--output-path",
        made,
        "--meta",
        "none",
        cwd=tmp_path,
    )
    told = json.loads(output(python / "python", DRIVES / "drive.py", tmp_path, *credential(stack), cwd=tmp_path))

    assert "Unable" not in said
    assert "WARNING" not in said
    check(told)
    assert told["refused"] == ["Problem409", 409]


def test_a_typescript_client_lists_jobs_creates_one_and_reads_its_runs(stack: LocalStack, tmp_path: Path) -> None:
    node, modules = (INSTALLED / "node").read_text().strip(), INSTALLED / "node_modules"
    (tmp_path / "node_modules").symlink_to(modules)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    shutil.copy(DRIVES / "drive.ts", tmp_path)

    output(node, modules / "openapi-typescript" / "bin" / "cli.js", FILE, "-o", "made.d.ts", cwd=tmp_path)
    compiled = ("--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom", "drive.ts")
    output(node, modules / "typescript" / "bin" / "tsc", *compiled, cwd=tmp_path)
    told = json.loads(output(node, "drive.js", *credential(stack), cwd=tmp_path))

    check(told)
    assert told["refused"] == 409
