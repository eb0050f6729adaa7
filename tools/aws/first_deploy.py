"""`make first-deploy STACK=name`: deploys a new stack, runs load, measures what only AWS can show, and deletes it.

It asks before it costs anything, and writes first-deploy.json: one entry for each step and for each of the unknowns U1
to U14. With --local it runs against the local stack's emulator, and says why each omitted step needs AWS.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from botocore.exceptions import ClientError

from sweephand import __version__
from sweephand.local.failures import DeployFailed
from tools.aws import first_deploy_steps as steps
from tools.aws.first_deploy_run import CLOCK, ROOT, Run, StepFailed

UNKNOWNS = {
    "U1": "Does the HTTP API import at create, route settings included?",
    "U2": "Does an event source start right after its role was made?",
    "U3": "How late do calls arrive (p50, p99, in ms), and are any early, lost or doubled?",
    "U4": "How many messages come with one receive?",
    "U5": "How many empty receives has a queue in a month?",
    "U6": "Does the table cause KMS requests?",
    "U7": "How long do an idle tick, a cold start and an audit take?",
    "U8": "How do 401, 404, 413 and 429 look from outside?",
    "U9": "Do messages with a group keep their delay?",
    "U10": "How does the sweep bear a burst (throttles, advances sent again, seconds until all have begun)?",
    "U11": "Do the alarms begin and end?",
    "U12": "Do an update and a roll-back under load lose a run?",
    "U13": "What stays after sam delete, and can the same name be deployed again?",
    "U14": "Does a stack for arm64 seal a client certificate?",
}


@dataclass(frozen=True)
class Step:
    """One step. unknowns: those that it answers on AWS. needs_aws: why the emulator cannot run it; empty if it can."""

    name: str
    do: Callable[[Run], dict[str, Any]]
    unknowns: tuple[str, ...]
    needs_aws: str = ""


STEPS = (
    Step("before", steps.before, ()),
    Step("deploy", steps.deployed, ("U1", "U2")),
    Step("door", steps.door, ("U8",)),
    Step("load", steps.load_for_minutes, ("U3", "U4")),
    Step("burst", steps.burst, ("U9", "U10")),
    Step(
        *("faults", steps.faults, ("U11",)),
        needs_aws="the emulator judges an alarm only when a metric is put, so the alarm for no tick never begins",
    ),
    Step(
        *("update", steps.update, ("U12",)),
        needs_aws="the emulator accepts any number of reserved executions, so it never rolls an update back",
    ),
    Step(
        *("idle", steps.idle, ("U5", "U6", "U7")),
        needs_aws="the emulator counts no receive of a queue and records no KMS request, and its durations are its own",
    ),
    Step(
        *("other processor", steps.other_processor, ("U14",)),
        needs_aws="the emulator runs each function on the processor of this machine, whatever the template names",
    ),
)
LAST = Step("delete", steps.deleted, ("U13",))


def drive(run: Run) -> bool:
    """Runs the steps. The last one cleans up after all others. Returns whether none failed."""
    whole = True
    made = False
    try:
        for step in STEPS:
            made = made or step.do is steps.deployed
            if not _taken(run, step):
                whole = False
                break
    finally:
        if made:
            whole = _taken(run, LAST) and whole
    return whole


def _taken(run: Run, step: Step) -> bool:
    if run.local and step.needs_aws:
        _say(f"{step.name}: only AWS can answer {', '.join(step.unknowns)}: {step.needs_aws}")
        run.steps.append({"step": step.name, "outcome": "only AWS can answer", "why": step.needs_aws})
        return True
    _say(f"{step.name} ...")
    began = CLOCK.monotonic()
    try:
        found = step.do(run)
    except (StepFailed, ClientError, httpx.HTTPError, DeployFailed) as failure:
        _say(f"{step.name}: FAILED: {failure}")
        run.steps.append({"step": step.name, "outcome": "failed", "why": str(failure)})
        return False
    took = round(CLOCK.monotonic() - began)
    _say(f"{step.name}: {json.dumps(found, default=str)} ({took} s)")
    run.steps.append({"step": step.name, "outcome": "done", "tookSeconds": took, "found": found})
    return True


def report(run: Run) -> dict[str, Any]:
    by = {unknown: step.name for step in (*STEPS, LAST) for unknown in step.unknowns}
    return {
        "version": __version__,
        "at": CLOCK.now().isoformat(timespec="seconds"),
        "region": run.region,
        "where": "local stack" if run.local else "AWS",
        "steps": run.steps,
        "unknowns": {
            name: {"question": question, "step": by[name], "answer": run.answers.get(name)}
            for name, question in UNKNOWNS.items()
        },
    }


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _agreed(run: Run) -> bool:
    minutes = run.minutes + run.idle_hours * 60 + 45
    _say(
        f"This deploys the stack {run.stack} to {run.region}, drives it for {minutes:.0f} minutes, and deletes it.\n"
        "It costs about a dollar: some 20,000 runs, and by the hour a KMS key, a secret and alarms.\n"
        "The keys are deleted after seven days, during which they cost nothing."
    )
    return input(f"Type the name of the stack ({run.stack}) to go on: ").strip() == run.stack


def _endpoint() -> str:
    """Starts the local stack, or attaches to the one that is running."""
    subprocess.run([sys.executable, "-m", "sweephand", "dev", "--detach"], cwd=ROOT, check=True)
    return str(json.loads((ROOT / ".local" / "stack.json").read_text())["awsEndpointUrl"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stack", required=True, help="name of a stack that does not exist yet")
    parser.add_argument("--region", default=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"))
    parser.add_argument("--minutes", type=float, help="of load; default: 20, or 1.2 on the emulator")
    parser.add_argument("--burst", type=int, help="runs on one second; default: 10,000, or 40 on the emulator")
    parser.add_argument("--idle-hours", type=float, default=1)
    parser.add_argument("--local", action="store_true", help="against the local stack")
    parser.add_argument("--endpoint", help="of an emulator; implies --local")
    parser.add_argument("--build-dir", type=Path, default=ROOT / ".aws-sam" / "build")
    parser.add_argument("--out", type=Path, default=ROOT / "first-deploy.json")
    given = parser.parse_args()
    local = given.local or given.endpoint is not None
    region = given.region or ("us-east-1" if local else None)
    if region is None:
        parser.error("name a region: --region, or AWS_REGION")
    endpoint = (given.endpoint or _endpoint()) if local else None
    minutes = given.minutes or (1.2 if local else 20)
    of_burst = given.burst or (40 if local else 10_000)
    run = Run(given.stack, region, minutes, of_burst, given.idle_hours, endpoint, given.build_dir)
    if not local and not _agreed(run):
        _say("Nothing was done.")
        return 1
    try:
        whole = drive(run)
    finally:
        given.out.write_text(json.dumps(report(run), indent=2, default=str) + "\n")
        _say(f"Written: {given.out}")
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
