"""A payment that happens once for each invoice, whatever fails and however often a job asks for it.

Your own DynamoDB table has a mark for each payment: see table.yaml. The README says how to run this.
"""

from __future__ import annotations

import logging
import os

from sweephand.sdk.worker import Dedupe, DynamoMarks, TaskRun, Worker

worker = Worker("payments", lease_s=10)
log = logging.getLogger(__name__)  # its lines stay whole, whichever threads write them
dedupe = Dedupe(DynamoMarks(os.environ["EFFECTS_TABLE"]), lease_s=10)


@worker.task(name="pay", overlap="allow")
def pay(run: TaskRun, invoice: str) -> None:
    with dedupe(f"pay/{invoice}") as first:
        if first:
            log.info("paid %s", invoice)
    if run.attempt == 1:
        raise ConnectionError("the receipt could not be sent")  # the next attempt does not pay again
    log.info("receipt for %s, attempt %d", invoice, run.attempt)


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")
    log.setLevel(logging.INFO)
    worker.run()
