"""Root's page on its job scheduler, as a bot of a gaming community that reminds players of raids and reads feeds.

Each part has the page's own heading. Run it against the local stack; the README says how. It takes one command per
line: `remind RAID SECONDS`, `call off RAID`, `list`, `quit`.
"""

from __future__ import annotations

import json
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sweephand.sdk import Dropped, JobData, JobInterval, JobScheduler, Sweephand, event, every

ROWS = Path(sys.argv[1])
"""The bot's own database: how often each feed is read, `{"news": "PT5S"}`."""
BOT, LEASE_S = "raids", 10

client = Sweephand()
scheduler = JobScheduler(client, collection="raids", consumer=BOT, holder=f"{BOT}-1", receive=True)


def say(text: str) -> None:
    """Prints a line in one write, because events come in a thread of their own."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


# Subscribe. Both events come to functions of this process, as on the page.
@scheduler.on_job
def due(data: JobData) -> None:
    execute(data, "")


# Missed jobs. Each comes once, oldest first, before `start` returns. If an outage is longer
# than the job's `missed` allows, the dropped ones are counted.
@scheduler.on_missed
def missed(data: JobData) -> None:
    execute(data, "missed: ")


@scheduler.on_dropped
def dropped(what: Dropped) -> None:
    say(f"dropped {what.count} of {what.resource_id}")


# Execute. Tag and resource id come back, and say what to do. An event may come twice, under the same `data.id`.
def execute(data: JobData, note: str) -> None:
    what = "remind the raiders of" if data.tag == "raid-start" else "read the feed"
    say(f"{note}{what} {data.resource_id}, {data.job_time:%H:%M:%S}")


# Create. One job before each raid; none is early, and none is a minute late.
def remind(raid: str, seconds: float) -> None:
    at = datetime.now(UTC) + timedelta(seconds=seconds)
    scheduler.create(resource_id=raid, tag="raid-start", start=at, job_interval=JobInterval.ONE_TIME)
    say(f"will remind of {raid}")


# Delete. A resource id, a tag or an id names what to delete; the answer is how many jobs were deleted.
def call_off(raid: str) -> None:
    say(f"{scheduler.delete_by_resource_id(raid)} called off")


# How to identify a job. Use your own two strings, or the id that `create` returned.
def show() -> None:
    planned = sorted(job.resource_id for job in scheduler.list_by_tag("raid-start"))
    say(f"raids: {', '.join(planned) or 'none'}")


# Reconcile on startup. Root's page walks the bot's rows, compares, creates and removes. Here, the rows are a list
# of jobs that the service compares. A feed whose row was written just before a crash gets its job now, and a feed whose
# row is gone loses it. An interval below a day needs no chain of one-time jobs, so no chain can break.
def wanted() -> list[dict[str, object]]:
    action = event(consumer=BOT, application=BOT)
    return [
        {"key": feed, "resourceId": feed, "action": action, "schedules": [every(interval)]}
        for feed, interval in json.loads(ROWS.read_text()).items()
    ]


# Error notification. Each method has a counterpart `try_...`, which does not raise: its result has Root's error number.
def start() -> None:
    tried = scheduler.try_start(job_set="feeds", jobs=wanted(), lease_s=LEASE_S)
    if tried.error is not None:
        sys.exit(f"error {getattr(tried.error, 'root_code', 0)}: {tried.error}")
    assert tried.value is not None
    say(f"feeds: {len(tried.value.created)} created, {tried.value.unchanged} unchanged")


def obey(line: str) -> None:
    match line.split():
        case ["remind", raid, seconds]:
            remind(raid, float(seconds))
        case ["call", "off", raid]:
            call_off(raid)
        case ["list"]:
            show()
        case ["quit"]:
            raise SystemExit


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    start()
    try:
        for line in sys.stdin:
            obey(line)
    finally:
        scheduler.close()
