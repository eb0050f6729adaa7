"""Trial subscriptions: a reminder at nine, three days before the end, and the end itself."""

from __future__ import annotations

from datetime import datetime, timedelta

from sweephand.sdk import Sweephand, at, http

URL = "https://shop.example.org/trials"


def begin(sh: Sweephand, customer: str, started: datetime, zone: str) -> str:
    """Plans the reminder and the end of a trial. Returns the job's id. started: wall time in the zone."""
    end = started + timedelta(days=14)
    reminder = (end - timedelta(days=3)).replace(hour=9, minute=0)
    schedules = [
        at(reminder, zone=zone, name="reminder", payload={"customer": customer, "step": "reminder"}),
        at(end, zone=zone, name="end", payload={"customer": customer, "step": "end"}),
    ]
    again = {"type": "fixed", "maxRetries": 3, "delaySeconds": 60}
    return sh.jobs.create(f"trial-{customer}", http.post(URL, retry=again), schedules, resource_id=customer).id


def buy(sh: Sweephand, customer: str) -> None:
    """Deletes everything that is still planned for a customer who has bought."""
    for job in sh.jobs.list(resource_id=customer):
        sh.jobs.delete(job)
