"""Alerts after three failures in a row: receives the calls of `onFailure` hooks and passes on only the third.

python examples/alerts/alerts.py --port 9000      prints each alert, and posts it to SLACK_URL if that is set
"""

from __future__ import annotations

import argparse
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import dropwhile, takewhile
from urllib.request import Request, urlopen

from sweephand.sdk import Sweephand

IN_A_ROW = 3
FAILED = {"ERROR", "REQUEST_ERROR", "UNKNOWN", "TIMEOUT"}
sh = Sweephand()


def failures_in_a_row(job: str, run_id: str) -> int:
    """Returns how many runs of the job failed in a row, of which this one is the latest."""
    latest = sh.runs.list(job_id=job, kind="scheduled", max_items=20)
    until_then = dropwhile(lambda run: run.id != run_id, latest)
    return sum(1 for _ in takewhile(lambda run: run.state in FAILED, until_then))


def alert(text: str) -> None:
    """Prints a message, and posts it to Slack if SLACK_URL is set. Teams, PagerDuty and others take JSON too."""
    print(text, flush=True)
    if url := os.environ.get("SLACK_URL"):
        urlopen(Request(url, json.dumps({"text": text}).encode(), {"Content-Type": "application/json"}), timeout=10)


class Hooks(BaseHTTPRequestHandler):
    """The receiver of the hooks' calls. The members of each body are those of the event `run.failed`."""

    def do_POST(self) -> None:
        end = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if failures_in_a_row(end["jobId"], end["runId"]) == IN_A_ROW:
            alert(f"{end['jobName']} failed {IN_A_ROW} times in a row, last with {end['reason']}")
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Writes nothing."""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9000, help="(default 9000)")
    ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Hooks).serve_forever()
