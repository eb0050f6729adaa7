"""NServiceBus's page on scheduling, as a worker: each of its limits, and the line that removes it.

Run it against the local stack, in as many processes as you like; the README says how.
"""

from __future__ import annotations

from datetime import timedelta

from sweephand.sdk.worker import TaskRun, Worker

worker = Worker("nservicebus")


# A task at an interval, in one line. The schedule is kept by the service, so a restart loses nothing.
@worker.every(timedelta(seconds=5))
def send_message() -> None:
    print("call me back", flush=True)


# With a name, which is the durable key here: under it, the task keeps its id, its runs and its rhythm.
@worker.every("5s", name="MyTask")
def my_task(run: TaskRun) -> None:
    print(f"MyTask, planned for {run.planned_at:%H:%M:%S}", flush=True)


# At a time of day, which NServiceBus's scheduler could not do.
@worker.cron("0 9 * * 1-5", name="Report", zone="Europe/Berlin", payload={"month": "last"})
def report(month: str) -> str:
    return f"the report of {month} month"


# A task that takes longer than its interval: NServiceBus started it twice; here, the next occurrence is skipped.
@worker.every("10s", name="LongTask", overlap="skip")
def long_task(run: TaskRun) -> None:
    """Ends early if the process is about to stop, or has lost the run."""
    if run.should_stop:
        return
    print("LongTask runs alone", flush=True)


# An exception still does not end the process, and here the task is retried.
@worker.every("10s", name="Shaky")
def shaky(run: TaskRun) -> None:
    if run.attempt == 1:
        raise RuntimeError("the first attempt fails")
    print(f"Shaky, attempt {run.attempt}", flush=True)


if __name__ == "__main__":
    worker.run()
