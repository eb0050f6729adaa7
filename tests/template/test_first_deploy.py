"""The script of a first deploy: it asks before it spends, spares what it has not made, and leaves no unknown out."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sweephand.base.ids import run_uuid, uuid7
from tests.template.cloudformation import ROOT
from tools.aws import first_deploy as script


@pytest.fixture
def run(tmp_path):
    return script.Run("sh-accept", "eu-central-1", 1, 40, 1, None, tmp_path)


def test_nothing_happens_before_the_name_of_the_stack_is_typed(tmp_path):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tools.aws.first_deploy"),
            *("--stack", "sh-accept", "--region", "eu-central-1", "--out", tmp_path / "found.json"),
        ],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT / "layers" / "sweephand" / "python"), "AWS_EC2_METADATA_DISABLED": "true"},
        input="y\n",
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "It costs about a dollar" in done.stdout
    assert done.stdout.endswith("Nothing was done.\n")
    assert list(tmp_path.iterdir()) == []


def test_a_region_is_never_guessed_on_aws():
    done = subprocess.run(
        [sys.executable, "-m", "tools.aws.first_deploy", "--stack", "sh-accept"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT / "layers" / "sweephand" / "python")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert "name a region" in done.stderr


def test_every_open_question_is_answered_by_exactly_one_step():
    answered = [unknown for step in (*script.STEPS, script.LAST) for unknown in step.unknowns]

    assert sorted(answered) == sorted(script.UNKNOWNS)


def test_a_failed_step_ends_the_rest_and_still_cleans_up(run, monkeypatch):
    taken = []

    def taken_step(name, outcome):
        def do(_run):
            taken.append(name)
            if outcome == "fails":
                raise script.StepFailed("it does")
            return {}

        return do

    def replaced(step, outcome):
        return script.Step(step.name, taken_step(step.name, outcome), step.unknowns)

    steps = tuple(replaced(step, "fails" if step.name == "door" else "") for step in script.STEPS)
    monkeypatch.setattr(script.steps, "deployed", steps[1].do)
    monkeypatch.setattr(script, "STEPS", steps)
    monkeypatch.setattr(script, "LAST", replaced(script.LAST, ""))

    assert script.drive(run) is False

    assert taken == ["before", "deploy", "door", "delete"]
    assert [step["outcome"] for step in run.steps] == ["done", "done", "failed", "done"]


def test_a_stack_that_existed_before_is_never_deleted(run, monkeypatch):
    deleted = []

    def there(_run):
        raise script.StepFailed("a stack sh-accept exists already")

    before = script.Step("before", there, ())
    monkeypatch.setattr(script, "STEPS", (before, *script.STEPS[1:]))
    monkeypatch.setattr(script, "LAST", script.Step("delete", lambda run: deleted.append(run) or {}, ()))

    assert script.drive(run) is False

    assert deleted == []


def test_the_lateness_of_a_call_is_read_from_the_id_of_its_run():
    instant_ms = 1_790_000_000_000
    run_id = f"{uuid7(instant_ms, bytes(10))}_{run_uuid('accept', 'a schedule', instant_ms, 'scheduled')}"

    assert script.steps.late_ms({"runId": run_id, "attempt": 1, "atMs": instant_ms + 250}) == 250


def test_a_step_skipped_locally_says_why(run):
    run.endpoint = "http://127.0.0.1:1"
    left_out = [step for step in script.STEPS if step.needs_aws]

    assert all(script._taken(run, step) for step in left_out)

    assert [step.name for step in left_out] == ["faults", "update", "idle", "other processor"]
    assert [taken["why"] for taken in run.steps] == [step.needs_aws for step in left_out]
