"""An application whose worker of the SDK runs in the same process, dies like a function, and is away at times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from tests.faults.workers import Hand
from tests.support.stage import Stage
from tests.year.courses import Course, Job, Span, Switch
from tests.year.rules import EPOCH, Rule, in_steps
from tests.year.tenant import Tenant

RETRY = {"type": "fixed", "delaySeconds": 20, "maxRetries": 3}
MINUTES = (2, 5, 10, 20, 30)
MOST_RUNS = 600


@dataclass(frozen=True)
class _At:
    """The part of a play that a worker needs."""

    scene: Stage


def start(tenant: Tenant) -> None:
    """Starts the worker of a job that its application declares, if a life is short enough for what it repeats."""
    fitting = [each for each in MINUTES if tenant.length / timedelta(minutes=each) <= MOST_RUNS]
    if not fitting:
        return
    minutes, service = tenant.chance.choice(fitting), tenant.service
    cron = f"*/{minutes} * * * *"

    def declare(hand: Hand, worker: object) -> None:
        worker.cron(cron, name="report", retry=RETRY)(hand.task)  # type: ignore[attr-defined]

    hand = Hand(_At(service.scene), declare, {})  # type: ignore[arg-type]
    service.faults.calm, begun = True, tenant.now
    hand.start()
    service.faults.calm, service.worker = False, hand
    items = service.dynamo.items
    job_id = next(item["job_id"]["S"] for key, item in items.items() if key[1] == "JOB" and "key" in item)
    schedule = next(key[1] for key in items if key[0].endswith(job_id) and key[1].startswith("SCH#"))
    job = Job(job_id, "default", {}, Switch(), Switch(), foreign=True, of_worker=True)
    switches = (Switch(), job.switch, job.pause, tenant.tenant)
    course = Course(schedule.partition("#")[2], job_id, switches, {"misfire": {"type": "sap"}, "overlap": "skip"})
    course.follow(Rule({"cron": cron}, in_steps(60 * minutes, EPOCH)), Span(begun, tenant.now), None)
    job.courses.append(course)
    tenant.jobs.append(job)
    service.watch.exclusive.add(course.id)
