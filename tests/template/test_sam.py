"""The real SAM CLI: it finds the template good, builds it on this machine's Python, and deploys it to the emulator."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import contextmanager

import pytest

from sweephand.local.aws.emulator import Emulator
from sweephand.local.folder import StateFolder
from sweephand.sources import SystemClock
from tests.local_stack.runtime_emulator import free_port
from tests.template.cloudformation import ROOT

pytestmark = pytest.mark.sam

SAM = ROOT / ".venv-sam" / "bin" / "sam"
# The jobs are switched off after the load. A slow machine then has runs of the full minute left, which are skipped.
SPREAD, AT_THE_FULL_MINUTE, EACH_5_S = 30, 30, 11
FUNCTIONS = (
    *("ApiFunction", "SapApiFunction", "AzureApiFunction", "SweeperFunction", "ExecutorFunction", "AuditorFunction"),
    "OperationsFunction",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of `sam build`, away from the one that a user may be working with."""
    folder = tmp_path_factory.mktemp("sam")
    done = _run(
        [
            *(SAM, "build", "--config-file", ROOT / "samconfig.toml"),
            *("--build-dir", folder / "build", "--cache-dir", folder / "cache"),
        ]
    )
    assert done.returncode == 0, done.stderr
    return folder / "build"


def test_sam_validate_finds_nothing_to_lint():
    done = _run([SAM, "validate", "--lint"])

    assert done.returncode == 0, done.stdout + done.stderr
    assert "is a valid SAM Template" in done.stdout


def test_sam_build_makes_each_function_its_handler_alone(built):
    for function in FUNCTIONS:
        assert [path.name for path in (built / function).iterdir()] == ["app.py"]


def test_sam_build_makes_all_layers(built):
    assert (built / "CodeLayer" / "python" / "sweephand" / "wiring.py").is_file()
    assert (built / "DependenciesLayer" / "python" / "pynamodb").is_dir()
    for layer, machine in (("CryptographyX86Layer", "x86_64"), ("CryptographyArmLayer", "aarch64")):
        assert (built / layer / "python" / f"_cffi_backend.cpython-313-{machine}-linux-gnu.so").is_file()


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    """The address of an emulator on which nothing stands."""
    with _emulator(tmp_path_factory) as address:
        yield address


@pytest.fixture
def own_endpoint(tmp_path_factory):
    """The same for one test alone: no other stack of this emulator has queues that are polled."""
    with _emulator(tmp_path_factory) as address:
        yield address


@contextmanager
def _emulator(tmp_path_factory):
    emulator = Emulator(StateFolder(tmp_path_factory.mktemp("emulator")), SystemClock(), port=str(free_port()))
    emulator.start()
    emulator.release_queues()  # `Emulator.deploy` does it, and here the SAM CLI deploys
    try:
        yield emulator.credentials().endpoint_url
    finally:
        emulator.stop()


def test_the_documented_first_deploy_asks_for_the_change_set_and_nothing_else(built, endpoint):
    (command,) = re.findall(r"^\$ sam build && (sam deploy .*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    _, *options = shlex.split(command)

    done = _run(
        [SAM, *options, "--template-file", built / "template.yaml", "--config-file", ROOT / "samconfig.toml"],
        answers="y\n",
        AWS_ENDPOINT_URL=endpoint,
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",
    )

    assert re.findall(r"(.*)\[y/N\]", done.stdout) == ["Deploy this changeset? "], done.stdout + done.stderr
    assert "Successfully created/updated stack - sweephand" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


def test_whoever_does_not_confirm_the_change_set_has_made_nothing(built, endpoint):
    done = _run(
        [
            *(SAM, "deploy", "--region", "us-east-1", "--stack-name", "unconfirmed"),
            *("--template-file", built / "template.yaml", "--config-file", ROOT / "samconfig.toml"),
        ],
        answers="\n",
        AWS_ENDPOINT_URL=endpoint,
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",
    )

    assert "Successfully created/updated stack" not in done.stdout
    assert done.stdout.count("[y/N]") == 1


def test_sam_deploy_brings_up_a_stack_that_answers(built, endpoint):
    done = _run([sys.executable, ROOT / ".ci" / "sam_deploy_local.py", "--endpoint", endpoint, "--build-dir", built])

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"/v1/health: .*\"version\"", done.stdout)


def test_a_first_deploy_goes_through_its_steps_as_far_as_the_emulator_carries(built, own_endpoint, tmp_path):
    done = _run(
        [
            *(sys.executable, ROOT / ".ci" / "first_deploy.py", "--stack", "sh-accept", "--endpoint", own_endpoint),
            *("--build-dir", built, "--out", tmp_path / "found.json"),
        ]
    )

    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    outcomes = {step["step"]: step["outcome"] for step in found["steps"]}
    assert outcomes == {
        **dict.fromkeys(("before", "deploy", "door", "load", "burst", "delete"), "done"),
        **dict.fromkeys(("faults", "update", "idle", "other processor"), "only AWS can answer"),
    }
    assert list(found["unknowns"]) == [f"U{n}" for n in range(1, 15)]
    assert all(unknown["answer"] is None for unknown in found["unknowns"].values())
    said = {step["step"]: step["found"] for step in found["steps"] if step["outcome"] == "done"}
    door, load, burst = said["door"], said["load"], said["burst"]
    assert (door["wrongCredential"]["status"], door["unknownPath"], door["largeBody"]) == (401, 404, 413)
    assert sum(load["runs"].values()) >= SPREAD + AT_THE_FULL_MINUTE + EACH_5_S
    assert load["calls"] >= SPREAD + EACH_5_S
    assert (load["early"], load["lost"], load["doubled"]) == (0, 0, 0)
    assert (burst["arrived"], burst["early"], burst["doubled"]) == (40, 0, 0)


def _run(command, answers="", **environment):
    assert SAM.exists(), "the SAM CLI is not installed: make setup-sam"
    inherited = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}}
    return subprocess.run(
        list(map(str, command)),
        cwd=ROOT,
        env=inherited
        | {
            "AWS_DEFAULT_REGION": "us-east-1",
            "PATH": f"{SAM.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "layers" / "sweephand" / "python"),
            "SAM_CLI_TELEMETRY": "0",
        }
        | environment,
        input=answers,
        capture_output=True,
        text=True,
        check=False,
    )
