"""A nightly chain: each step starts the next one when it has succeeded. A failure calls for help.

python examples/nightly_chain/chain.py apply http://127.0.0.1:9000      creates or updates the jobs
python examples/nightly_chain/chain.py show                             prints the latest runs of all steps
"""

from __future__ import annotations

import sys
from typing import Any

from sweephand.sdk import Sweephand, cron, http

CHAIN = "nightly-chain"
STEPS = ("extract", "transform", "publish")
FIRST_STARTS = cron("30 2 * * *", zone="Europe/Berlin", name="nightly")
RETRY = {"type": "exponential", "maxRetries": 3, "delaySeconds": 10}


def job(step: str, starts: str | None, address: str) -> dict[str, Any]:
    """Returns a job of the chain. starts: the step that follows it."""
    hooks = {"onFailure": http.post(f"{address}/alarm", payload={"failed": step})}
    if starts:
        hooks["onSuccess"] = {"type": "job", "jobKey": starts}
    return {
        "key": step,
        "name": f"{CHAIN}-{step}",
        "action": http.post(f"{address}/{step}", payload={"step": step}, retry=RETRY),
        "schedules": [FIRST_STARTS] if step == STEPS[0] else [],
        "tags": [CHAIN],
        "hooks": hooks,
        "policies": {"overlap": "skip"},
    }


def apply(sh: Sweephand, address: str) -> None:
    """Applies the chain as a job set: its jobs name each other by their keys."""
    followers = [*STEPS[1:], None]
    sh.job_sets.put(CHAIN, jobs=[job(step, starts, address) for step, starts in zip(STEPS, followers, strict=True)])
    print("first:", *(each.job_id for each in sh.job_sets.get(CHAIN).jobs if each.key == STEPS[0]))


def show(sh: Sweephand) -> None:
    runs = list(sh.runs.list(tag=CHAIN, max_items=20))
    for run in sorted(runs, key=lambda run: run.started_at or run.planned_at):
        print(run.job_name, run.kind, run.state, run.reason)


if __name__ == "__main__":
    with Sweephand() as client:
        match sys.argv[1:]:
            case ["apply", address]:
                apply(client, address)
            case ["show"]:
                show(client)
            case _:
                sys.exit(__doc__)
