"""Prints the events of the local stack: a rule on its bus fills a queue, and each new event becomes a line.

.venv/bin/python examples/listen/listen.py [--pattern '{"detail-type": ["run.failed"]}'] [--stack .local/stack.json]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3

STACK = Path(__file__).parents[2] / ".local" / "stack.json"
NAME = "sweephand-listen"
REMEMBERED = 1_000


@contextmanager
def heard_by_queue(events: Any, sqs: Any, bus: str, pattern: str) -> Iterator[str]:
    """Yields the URL of a queue to which a rule on the bus sends each event that matches. Deletes both at the end.

    On AWS, the queue also needs a policy that lets events.amazonaws.com send to it.
    """
    url = sqs.create_queue(QueueName=NAME)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    events.put_rule(Name=NAME, EventBusName=bus, EventPattern=pattern)
    events.put_targets(Rule=NAME, EventBusName=bus, Targets=[{"Id": "queue", "Arn": arn}])
    try:
        yield url
    finally:
        events.remove_targets(Rule=NAME, EventBusName=bus, Ids=["queue"])
        events.delete_rule(Name=NAME, EventBusName=bus)
        sqs.delete_queue(QueueUrl=url)


def new_events(sqs: Any, url: str) -> Iterator[dict[str, Any]]:
    """Yields each event once. It may arrive more than once, always with the same id."""
    seen: dict[str, None] = {}
    while True:
        answer = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1, MaxNumberOfMessages=10)
        for message in answer.get("Messages", []):
            event = json.loads(message["Body"])
            if event["detail"]["id"] not in seen:
                yield event
                seen[event["detail"]["id"]] = None
                if len(seen) > REMEMBERED:
                    del seen[next(iter(seen))]
            # Only now, after the event was printed.
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def line(event: dict[str, Any]) -> str:
    detail = event["detail"]
    what = " ".join(detail[name] for name in ("state", "reason", "finding") if detail.get(name))
    return f"{detail['occurredAt']}  {event['detail-type']:<20} {detail.get('jobName') or '-'}  {what}".rstrip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pattern", default='{"source": ["sweephand"]}', help="what to hear (default %(default)s)")
    parser.add_argument("--stack", type=Path, default=STACK, help="stack.json of the local stack")
    parser.add_argument("--json", action="store_true", help="whole events, one a line")
    given = parser.parse_args()
    stack = json.loads(given.stack.read_text())
    session = boto3.Session("test", "test", region_name=stack["region"])  # the embedded AWS checks no credentials
    events, sqs = (session.client(name, endpoint_url=stack["awsEndpointUrl"]) for name in ("events", "sqs"))
    with heard_by_queue(events, sqs, stack["eventBusName"], given.pattern) as url:
        print(f"listening on the bus {stack['eventBusName']}", flush=True)
        try:
            for event in new_events(sqs, url):
                print(json.dumps(event) if given.json else line(event), flush=True)
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
