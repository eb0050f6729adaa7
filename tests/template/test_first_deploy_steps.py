"""The first deploy, step by step, on the emulator: in a module of its own, because it mostly waits."""

from __future__ import annotations

import json
import sys

import pytest

from tests.template.sam_cli import emulator, run

pytestmark = pytest.mark.sam

# The jobs are switched off after the load. A slow machine then has runs of the full minute left, which are skipped.
SPREAD, AT_THE_FULL_MINUTE, EACH_5_S = 30, 30, 11


@pytest.fixture
def own_endpoint(tmp_path_factory):
    """The address of an emulator for one test alone: no other stack has queues that are polled."""
    with emulator(tmp_path_factory) as address:
        yield address


def test_a_first_deploy_passes_all_steps_that_the_emulator_supports(built, own_endpoint, tmp_path):
    done = run(
        [
            *(sys.executable, "-m", "tools.aws.first_deploy", "--stack", "sh-accept", "--endpoint", own_endpoint),
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
