"""`sweephand dev` from the wheel, in a folder that has nothing else."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sweephand.local.settings import CHECKOUT

pytestmark = [pytest.mark.emulator, pytest.mark.extended]
PROGRAM = """
import os, sys
from sweephand.sdk import Sweephand, every, http
with Sweephand() as sh:
    job = sh.jobs.create("mine", http.post("https://example.org/run"), every("PT5M"))
    print(job.name, [each.name for each in sh.jobs.list()], "AWS_ENDPOINT_URL" in os.environ)
sys.exit(7)
"""


@pytest.fixture(scope="module")
def sweephand(tmp_path_factory) -> Path:
    """The program in an environment that has the wheel with the extra `local`, and nothing else."""
    folder = tmp_path_factory.mktemp("dev")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    python = folder / "venv" / "bin" / "python"
    uv = Path(sys.executable).with_name("uv")
    install = [str(uv), "pip", "install", "--quiet", "--python", str(python), f"{wheel}[local]"]
    if subprocess.run([*install, "--offline"], check=False, capture_output=True).returncode:
        subprocess.run(install, check=True)
    return python.with_name("sweephand")


def _dev(sweephand: Path, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SWEEPHAND"))}
    path = f"{sweephand.parent}{os.pathsep}{inherited['PATH']}"
    env = {**inherited, **environment, "PATH": path}
    command = [str(sweephand), "dev", *arguments]
    return subprocess.run(command, cwd=folder, env=env, check=False, capture_output=True, text=True, timeout=300)


def test_a_command_runs_against_a_fresh_stack_and_its_status_is_the_answer(sweephand, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)

    done = _dev(sweephand, tmp_path, "--once", "python program.py")

    assert done.stdout == "mine ['mine'] True\n", done.stderr
    assert done.returncode == 7
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.py"], "its state was of this one run"


def test_it_starts_in_any_folder_and_keeps_its_state_there(sweephand, tmp_path):
    up = _dev(sweephand, tmp_path, "--detach", "--port", "0", SWEEPHAND_AWS_PORT="0")
    try:
        stack = json.loads((tmp_path / ".local" / "stack.json").read_text())
        again = _dev(sweephand, tmp_path, "--detach")
    finally:
        down = _dev(sweephand, tmp_path, "--stop")

    assert (up.returncode, again.returncode, down.returncode) == (0, 0, 0), up.stderr + again.stderr
    assert stack["baseUrl"] in up.stdout
    assert stack["baseUrl"] in again.stdout
    assert "the state is kept" in down.stdout


def test_a_port_in_use_is_named(sweephand, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])

        done = _dev(sweephand, tmp_path, "--port", port)

    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"Port {port}" in line


def test_a_state_of_another_version_is_refused_with_its_version(sweephand, tmp_path):
    _dev(sweephand, tmp_path, "--detach", "--port", "0", SWEEPHAND_AWS_PORT="0")
    _dev(sweephand, tmp_path, "--stop")
    manifest = next((tmp_path / ".local").glob("*manifest*.json"))
    kept = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**kept, "dataShape": "of later keys", "version": "9.9.9"}))

    done = _dev(sweephand, tmp_path, "--port", "0", SWEEPHAND_AWS_PORT="0")

    assert done.returncode == 2
    assert "written by Sweephand 9.9.9" in done.stderr


@pytest.mark.parametrize("options", [["--demo", "--detach"], ["--once", "true", "--stop"], ["--port", "70000"]])
def test_options_that_do_not_fit_are_refused(sweephand, tmp_path, options):
    assert _dev(sweephand, tmp_path, *options).returncode == 2
