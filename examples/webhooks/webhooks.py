"""Webhooks for customers: one job for each endpoint, one run for each message, retries, signatures and a history.

python examples/webhooks/webhooks.py subscribe CUSTOMER URL          prints the secret for the customer
python examples/webhooks/webhooks.py send CUSTOMER EVENT ID DATA     sends a message once, however often it is called
python examples/webhooks/webhooks.py deliveries CUSTOMER             prints the state of each message
python examples/webhooks/webhooks.py redeliver CUSTOMER              sends each message again that has failed
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Any

from sweephand.sdk import Sweephand, http
from sweephand.sdk.api_errors import NameTaken
from sweephand.sdk.models import Job

RETRY = {"type": "exponential", "delaySeconds": 2, "maxDelaySeconds": 3600, "maxRetries": 20}
"""Twenty retries within about five hours. A status such as 404 ends a run at once, because it will not go away."""


def subscribe(sh: Sweephand, customer: str, url: str) -> str:
    """Creates the customer's collection with its key, and the job without a schedule. Returns the secret."""
    with suppress(NameTaken):
        sh.collections.create(name=customer)
    sh.jobs.create("webhooks", http.post(url, retry=RETRY), collection=customer)
    return sh.signing_keys.create(customer).secret


def endpoint(sh: Sweephand, customer: str) -> Job:
    found = sh.jobs.list(collection=customer, name="webhooks").first()
    if found is None:
        sys.exit(f"{customer} has no endpoint")
    return found


def send(sh: Sweephand, customer: str, event: str, message: str, data: Any) -> str:
    """Starts the run of a message and returns its id. message: your id; sending it again starts no second run."""
    payload = {"type": event, "id": message, "data": data}
    return sh.jobs.run(endpoint(sh, customer), payload=payload, idempotency_key=f"{customer}-{message}").run_id


def deliveries(sh: Sweephand, customer: str) -> None:
    for run in sh.runs.list(collection=customer, max_items=50):
        print(f"{run.planned_at:%H:%M:%S} {run.state} {run.reason}, attempts: {run.attempt}", run.message or "")


def redeliver(sh: Sweephand, customer: str) -> None:
    for state in ("ERROR", "REQUEST_ERROR"):
        for run in sh.runs.list(collection=customer, state=state):
            if run.rerun_by is None:
                print("again:", sh.runs.rerun(run).run_id)


def main(command: str, customer: str, *more: str) -> None:
    with Sweephand() as sh:
        match command, more:
            case "subscribe", (url,):
                print(subscribe(sh, customer, url))
            case "send", (event, message, data):
                print(send(sh, customer, event, message, json.loads(data)))
            case "deliveries", ():
                deliveries(sh, customer)
            case "redeliver", ():
                redeliver(sh, customer)
            case _:
                sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
