"""`python -m tests.sam_local` where there is no container engine: it never passes for a run that tested something."""

from __future__ import annotations

import os
import subprocess
import sys

from sweephand.local.settings import CHECKOUT


def _driven(folder, **environment):
    """Runs the driver on a machine that has none of the tools. folder: empty, for PATH."""
    return subprocess.run(
        [sys.executable, "-m", "tests.sam_local"],
        cwd=CHECKOUT,
        env={"PATH": str(folder), "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_on_a_users_machine_without_an_engine_it_says_so_in_one_line(tmp_path):
    done = _driven(tmp_path)

    assert done.returncode == 77
    assert done.stdout.startswith("test-sam-local: NOT RUN: no container engine answers here")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_in_ci_an_engine_that_cannot_be_installed_is_a_failure(tmp_path):
    done = _driven(tmp_path, CI="true")

    assert done.returncode == 1
    assert "test-sam-local: FAILED" in done.stdout
    assert "CI=true" in done.stdout


def test_the_makefile_lets_pass_only_that_nothing_was_there_to_test_with():
    (recipe,) = (line for line in (CHECKOUT / "Makefile").read_text().splitlines() if "-m tests.sam_local" in line)
    shell = recipe.strip().removeprefix("@").replace("$$", "$").replace("$(PY) -m tests.sam_local", "(exit $WANTED)")

    def status(of):
        return subprocess.run(["sh", "-c", shell], env={"WANTED": str(of)}, check=False).returncode

    assert [status(of) for of in (0, 77, 1, 2, 143)] == [0, 0, 1, 2, 143]
