"""The wheel alone in a clean environment: what comes with it, that all of it loads, and a call to the whole service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.azure.test_clients import served
from tests.contract.sdk.stack import credential

ROOT = Path(__file__).resolve().parents[3]
OF_HTTPX2 = {"anyio", "h11", "httpcore2", "httpx2", "idna", "truststore", "typing_extensions"}
LOADS = """
import importlib, pkgutil, sweephand
for room in ("base", "cli", "domain", "formats", "schedules", "sdk"):
    importlib.import_module(f"sweephand.{room}")
    for module in pkgutil.walk_packages(sys.modules[f"sweephand.{room}"].__path__, f"sweephand.{room}."):
        importlib.import_module(module.name)
""".replace("import importlib", "import sys, importlib")
APP_TEST = """
from datetime import datetime, timezone
from sweephand.sdk import cron, http

def test_the_report_comes_at_nine_and_is_tried_again(sweephand_stack):
    def answer(call):
        return 503 if call.attempt == 1 else 200

    sh = sweephand_stack(now=datetime(2027, 3, 1, tzinfo=timezone.utc), answer=answer)
    retry = {"type": "fixed", "maxRetries": 1, "delaySeconds": 60}
    sh.jobs.create("report", http.post("https://shop.example.org/r", retry=retry), cron("0 9 * * *"))

    assert [f"{call.at:%H:%M} {call.attempt}" for call in sh.advance("1d")] == ["09:00 1", "09:01 2"]
"""
CALLS = """
from sweephand.sdk import Sweephand, every, http
with Sweephand() as sh:
    job = sh.jobs.create("from the wheel", http.post("https://example.org/run"), every("PT5M"))
    print(job.name, job.next_run_at.isoformat(), len(list(sh.jobs.list())))
"""
PROGRAM = """
from datetime import datetime
from sweephand.sdk import AsyncSweephand, JobScheduler, Sweephand, cron, http

with Sweephand() as sh:
    job = sh.jobs.create("a", http.post("https://example.org"), cron("0 9 * * *"), tags=["x"])
    sh.jobs.put(job, action=job.action, schedules=job.schedules, if_match=job)
    at: datetime | None = job.next_run_at
    runs: list[str] = [run.id for run in sh.runs.list(job_id=job)]
    name: int = job.name  # wrong
    job.nmae  # wrong
    sh.jobs.create("a", http.get("https://example.org"), colour="red")  # wrong
    sh.jobs.creat("a")  # wrong
    JobScheduler(sh).delete_by_tag(None)

async def main() -> str:
    async with AsyncSweephand() as sh:
        sh.runs.get("r").id  # wrong
        return [run.id async for run in sh.runs.list()][0]
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory) -> Path:
    """The Python of an environment that has the wheel and what it needs, and nothing else."""
    return _environment(tmp_path_factory.mktemp("clean") / "venv", str(wheel))


def _environment(folder: Path, *wanted: str) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    found = folder / "bin" / "python"
    uv = Path(sys.executable).with_name("uv")
    install = [str(uv), "pip", "install", "--quiet", "--python", str(found), *wanted]
    if subprocess.run([*install, "--offline"], check=False, capture_output=True).returncode:
        subprocess.run(install, check=True)
    return found


def _run(python: Path, *arguments: str, **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SWEEPHAND"))}
    command = [python, "-I", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=inherited | environment, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_installs_only_an_http_client_a_command_line_and_time_zones(python):
    asked = "import importlib.metadata as m; print(*(each.name for each in m.distributions()))"

    found = {name.lower().replace("-", "_") for name in _run(python, "-c", asked).split()}

    assert found == {"sweephand", "click", "tzdata", *OF_HTTPX2}


def test_every_module_of_the_wheel_can_be_imported(python):
    _run(python, "-W", "error", "-c", LOADS)


def test_the_extra_for_testing_brings_all_that_an_applications_test_needs(wheel, tmp_path):
    test = tmp_path / "test_app.py"
    test.write_text(APP_TEST)
    with_extra = _environment(tmp_path / "venv", f"{wheel}[testing]", "pytest")

    told = _run(
        with_extra, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", str(tmp_path / "test_app.py")
    )

    assert "1 passed" in told


def test_the_command_line_starts(python):
    assert "ARM" in _run(python, "-m", "sweephand", "import", "azure", "--help")
    assert "Usage" in _run(python, "-m", "sweephand", "import", "sap", "--help")
    assert "List the tenant's jobs" in _run(python, "-m", "sweephand", "jobs", "list", "--help")
    assert "_SWEEPHAND_COMPLETE" in _run(python, "-m", "sweephand", "completion", "zsh")


def test_the_local_stack_names_the_extra_that_it_needs(python):
    asked = [python, "-I", "-m", "sweephand", "dev"]

    done = subprocess.run(asked, check=False, capture_output=True, text=True, cwd="/")

    assert done.returncode == 2
    assert 'pip install "sweephand[local]"' in done.stderr


def test_a_type_checker_sees_methods_arguments_and_members(python, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MYPY"))}
    check = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(python), "--cache-dir", str(tmp_path)]

    done = subprocess.run(
        [*check, str(program)], check=False, capture_output=True, text=True, env=environment, cwd=tmp_path
    )

    wrong = [int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line]
    marked = [number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# wrong")]
    assert wrong == marked, done.stdout


def test_the_installed_client_calls_the_service(python, api):
    mine = credential(api)

    with served(api) as url:
        environment = {
            "SWEEPHAND_URL": url,
            "SWEEPHAND_CLIENT_ID": mine["client_id"],
            "SWEEPHAND_SECRET": mine["secret"],
        }
        told = _run(python, "-W", "error", "-c", CALLS, **environment)
        asked = _run(python, "-W", "error", "-m", "sweephand", "whoami", **environment)

    assert asked.startswith(f"url\t{url}\n")
    assert told.split() == ["from", "the", "wheel", "2027-03-01T12:05:01+00:00", "1"]
    assert json.loads(api.get("/v1/jobs").text)["items"][0]["name"] == "from the wheel"
