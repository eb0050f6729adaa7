"""A worker of its own process against the running stack: its queue, its credentials of AWS, its signals."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

from sweephand.base.sources import SystemClock
from sweephand.local.settings import CHECKOUT
from sweephand.sdk import Sweephand
from sweephand.sdk.models import JobSetJob
from tests.local_stack.waiting import WITHIN_S, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.local_stack.conftest import LocalStack

pytestmark = pytest.mark.emulator

PROGRAM = """
import sys
from datetime import UTC, datetime
from sweephand.sdk.worker import Worker

worker = Worker("local", lease_s=10)


@worker.every("2s", name="tick")
def tick(run):
    with open(sys.argv[1], "a") as seen:
        seen.write(f"{run.id} {run.planned_at.timestamp()} {datetime.now(UTC).timestamp()}\\n")


if __name__ == "__main__":
    worker.run()
"""


def start(stack: LocalStack, place: Path, seen: Path) -> subprocess.Popen[bytes]:
    program = place / "tasks.py"
    program.write_text(PROGRAM)
    return subprocess.Popen([sys.executable, str(program), str(seen)], env=environment(stack))


def environment(stack: LocalStack) -> dict[str, str]:
    credential = stack.file.tenants["acme"]
    return {
        **os.environ,
        "SWEEPHAND_URL": stack.base_url,
        "SWEEPHAND_CLIENT_ID": credential.client_id,
        "SWEEPHAND_SECRET": credential.secret,
        "AWS_ENDPOINT_URL": stack.file.aws_endpoint_url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


def end(worker: subprocess.Popen[bytes]) -> None:
    worker.kill()
    worker.wait()


def lines(seen: Path) -> list[list[str]]:
    return [line.split() for line in seen.read_text().splitlines()] if seen.exists() else []


def jobs_of(sh: Sweephand, name: str) -> list[JobSetJob]:
    """Returns the jobs of a set so far: a worker's set is there a moment before them."""
    return [job for each in sh.job_sets.list() if each.name == name for job in sh.job_sets.get(name).jobs]


def test_a_task_runs_at_its_second_and_never_early(stack: LocalStack, tmp_path: Path, capsys) -> None:
    seen = tmp_path / "seen"
    worker = start(stack, tmp_path, seen)
    try:
        until(lambda: len(lines(seen)), lambda count: count >= 10)
        worker.send_signal(signal.SIGTERM)

        assert worker.wait(timeout=WITHIN_S) == 0
    finally:
        end(worker)
        with Sweephand.local(stack.folder.root / "stack.json", tenant="acme") as sh:
            states = [run.state for run in sh.runs.list(job_id=sh.job_sets.get("worker.local").jobs[0].job_id)]
            sh.job_sets.delete("worker.local", allow_deletes=1)

    late = sorted(float(begun) - float(planned) for _, planned, begun in lines(seen))
    with capsys.disabled():
        print(  # noqa: T201 - a figure for whoever reads the log
            f"\nworker: due to function p50 {statistics.median(late):.2f} s, p99 {late[-1]:.2f} s, {len(late)} runs"
        )
    assert late[0] >= 0
    assert len({run for run, *_ in lines(seen)}) == len(lines(seen))
    assert states.count("SUCCESS") >= 10


def test_the_nservicebus_page_runs_as_a_program(stack: LocalStack, tmp_path: Path) -> None:
    printed = tmp_path / "printed"
    with printed.open("w") as out:
        program = CHECKOUT / "examples" / "nservicebus" / "tasks.py"
        worker = subprocess.Popen([sys.executable, str(program)], env=environment(stack), stdout=out)
    try:
        expected = ("call me back", "MyTask, planned for", "LongTask runs alone", "Shaky, attempt 2")
        until(printed.read_text, lambda text: all(line in text for line in expected))
        worker.send_signal(signal.SIGTERM)

        assert worker.wait(timeout=WITHIN_S) == 0
    finally:
        end(worker)
        with Sweephand.local(stack.folder.root / "stack.json", tenant="acme") as sh:
            keys = {each.key for each in sh.job_sets.get("worker.nservicebus").jobs}
            sh.job_sets.delete("worker.nservicebus", allow_deletes=5)
    assert keys == {"tasks.send_message", "MyTask", "Report", "LongTask", "Shaky"}


def test_the_payment_of_the_example_happens_once_for_each_invoice(stack: LocalStack, tmp_path: Path) -> None:
    example = CHECKOUT / "examples" / "once"
    stack.boto("cloudformation").create_stack(StackName="effects", TemplateBody=(example / "table.yaml").read_text())
    [table] = until(
        lambda: stack.boto("cloudformation").describe_stacks(StackName="effects")["Stacks"][0].get("Outputs", []), bool
    )
    printed = tmp_path / "printed"
    with printed.open("w") as out:
        environ = {
            **environment(stack),
            "EFFECTS_TABLE": table["OutputValue"],
            "AWS_DEFAULT_REGION": stack.file.region,
        }
        worker = subprocess.Popen([sys.executable, str(example / "payments.py")], env=environ, stderr=out)
    try:
        with Sweephand.local(stack.folder.root / "stack.json", tenant="acme") as sh:
            [job] = until(lambda: jobs_of(sh, "worker.payments"))
            begun = [sh.jobs.run(job.job_id, payload={"invoice": "4711"}) for _ in range(3)]
            ended = [until(partial(sh.runs.get, run.run_id), lambda run: run.finished_at is not None) for run in begun]
            sh.job_sets.delete("worker.payments", allow_deletes=1)
    finally:
        end(worker)

    assert [run.state for run in ended] == ["SUCCESS"] * 3
    assert printed.read_text().splitlines().count("paid 4711") == 1
    assert printed.read_text().splitlines().count("receipt for 4711, attempt 2") == 3


@pytest.mark.long
def test_three_processes_killed_every_five_seconds_lose_no_run(stack: LocalStack, tmp_path: Path) -> None:
    clock, seen = SystemClock(), tmp_path / "seen"
    workers = [start(stack, tmp_path, seen) for _ in range(3)]
    until_s = clock.monotonic() + 60
    number = 0
    try:
        while clock.monotonic() < until_s:
            clock.sleep(5)
            end(workers[number % 3])
            workers[number % 3] = start(stack, tmp_path, seen)
            number += 1
        with Sweephand.local(stack.folder.root / "stack.json", tenant="acme") as sh:
            job = sh.job_sets.get("worker.local").jobs[0].job_id
            sh.jobs.pause(job)
            runs = until(
                lambda: list(sh.runs.list(job_id=job)),
                lambda found: all(run.finished_at is not None for run in found),
            )
            sh.job_sets.delete("worker.local", allow_deletes=1)
    finally:
        for worker in workers:
            end(worker)

    planned = {run.planned_at for run in runs}
    assert len(planned) == len(runs) >= 20
    assert {run.state for run in runs} <= {"SUCCESS", "SKIPPED", "UNKNOWN"}
    assert {run.id for run in runs if run.state == "SUCCESS"} <= {run for run, *_ in lines(seen)}
