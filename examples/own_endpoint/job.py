"""Creates a job that calls your own endpoint, waits for its first run, and prints the run's row of the ledger.

.venv/bin/python examples/own_endpoint/job.py [--url http://127.0.0.1:9000/] [--stack .local/stack.json]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import httpx

STACK = Path(__file__).parents[2] / ".local" / "stack.json"
RUN_WITHIN_S = 60.0
JOB: dict[str, Any] = {
    "tags": ["example"],
    "action": {
        "type": "http",
        "method": "POST",
        "payload": {"hello": "from Sweephand"},
        "retry": {"type": "exponential", "maxRetries": 3, "delaySeconds": 1},
    },
    "schedules": [{"name": "every 3 s, three times", "every": "PT3S", "count": 3}],
}


def make_job(api: httpx.Client, url: str) -> str:
    """Creates the job. Returns its id."""
    answer = api.post("/v1/jobs", json={**JOB, "action": {**JOB["action"], "url": url}})
    if answer.is_error:
        sys.exit(f"refused: {answer.text}")
    job = answer.json()
    print(f"job {job['id']}, next runs {', '.join(job['schedules'][0]['nextRuns'][:3])}")
    return str(job["id"])


def first_run(api: httpx.Client, job_id: str) -> dict[str, Any]:
    """Returns the job's first run, once it is over."""
    deadline = time.monotonic() + RUN_WITHIN_S
    while time.monotonic() < deadline:
        runs = api.get("/v1/runs", params={"jobId": job_id}).raise_for_status().json()["items"]
        if runs and runs[-1]["status"] == "COMPLETED":  # the list begins with the latest run
            return dict(runs[-1])
        time.sleep(0.2)
    sys.exit(f"no run within {RUN_WITHIN_S:.0f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:9000/", help="your endpoint (default %(default)s)")
    parser.add_argument("--stack", type=Path, default=STACK, help="stack.json of the local stack")
    given = parser.parse_args()
    stack = json.loads(given.stack.read_text())
    credential = stack["tenants"][0]
    auth = httpx.BasicAuth(credential["clientId"], credential["secret"])
    with httpx.Client(base_url=stack["baseUrl"], auth=auth, trust_env=False) as api:
        job_id = make_job(api, given.url)
        try:
            run = first_run(api, job_id)
        finally:
            api.delete(f"/v1/jobs/{job_id}")
    print(
        f"{run['plannedAt']}  {run['state']} {run['reason']}  HTTP {run['httpStatus']}  attempt {run['attempt']}"
        f"  {run['latenessMs']} ms late  {run['answer'] or run['message']}"
    )
    return 0 if run["state"] == "SUCCESS" else 1


if __name__ == "__main__":
    sys.exit(main())
