"""A nightly chain: each step starts the next one when it has succeeded, and a failure calls for help.

python examples/nightly_chain/chain.py apply http://127.0.0.1:9000      makes the jobs, or changes those that are there
python examples/nightly_chain/chain.py show                             prints the latest runs of all steps
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from sweephand.sdk import Sweephand, cron, http
from sweephand.sdk.models import Job

CHAIN = "nightly-chain"
STEPS = ("extract", "transform", "publish")
FIRST_STARTS = cron("30 2 * * *", zone="Europe/Berlin", name="nightly")
RETRY = {"type": "exponential", "maxRetries": 3, "delaySeconds": 10}


@dataclass(frozen=True)
class Step:
    """A job of the chain. starts: the id of the job that follows it."""

    name: str
    starts: str | None
    schedules: tuple[dict[str, Any], ...] = ()

    def apply(self, sh: Sweephand, address: str) -> Job:
        """Makes the job as it is here, under the id that it has."""
        hooks = {"onFailure": http.post(f"{address}/alarm", payload={"failed": self.name})}
        if self.starts:
            hooks["onSuccess"] = {"type": "job", "jobId": self.starts}
        job = {
            "name": f"{CHAIN}-{self.name}",
            "action": http.post(f"{address}/{self.name}", payload={"step": self.name}, retry=RETRY),
            "schedules": self.schedules,
            "tags": [CHAIN],
            "hooks": hooks,
            "policies": {"overlap": "skip"},
        }
        there = sh.jobs.list(name=job["name"]).first()
        return sh.jobs.put(there, **job) if there else sh.jobs.create(**job)


def apply(sh: Sweephand, address: str) -> None:
    """Makes the jobs from the last one to the first, because a job names the id of the next."""
    starts = None
    for name in reversed(STEPS):
        schedules = (FIRST_STARTS,) if name == STEPS[0] else ()
        starts = Step(name, starts, schedules).apply(sh, address).id
    print("first:", starts)


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
