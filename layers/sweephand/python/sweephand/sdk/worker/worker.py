"""The worker: its tasks become jobs of the service, and its threads carry out their runs.

The worker has no clock. The service plans each run, sends it to the application's queue at its instant, and plans the
next one even if no worker is running. All processes of an application share the queue.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from sweephand.base.lazy import lazy
from sweephand.base.sources import SystemChance, SystemClock
from sweephand.sdk import bodies
from sweephand.sdk.bodies import Body
from sweephand.sdk.errors import ApiError, ConfigError, NoAccess, TransportError
from sweephand.sdk.receiving.queues import Message, Queue, SqsQueue
from sweephand.sdk.transport import skew
from sweephand.sdk.worker.attempts import Attempts
from sweephand.sdk.worker.loop import Loop
from sweephand.sdk.worker.tasks import (
    LONGEST_NAME,
    Function,
    Task,
    TaskRun,
    Tasks,
    exception_types,
    interval_text,
    name_of,
)
from sweephand.sdk.worker.threads import Signals, Slots
from sweephand.sdk.worker.verdicts import Hook

if TYPE_CHECKING:
    from sweephand.sdk import models
    from sweephand.sdk.sync.client import Sweephand

with lazy():
    from sweephand.domain import application as limits
    from sweephand.sdk.sync import client as clients

log = logging.getLogger("sweephand.worker")
F = TypeVar("F", bound=Function)
USUAL_RETRY: Mapping[str, Any] = {"type": "two_level", "maxAgeSeconds": 86_400}
"""The default of NServiceBus: five retries at once, then three rounds after 10, 20 and 30 s; none after a day."""
LEASE_S = 60
WAIT_S, SHORT_WAIT_S = 10, 1
"""How long a receive waits for a message. The wait is short for several queues, because they share the free threads."""
PAUSE_S = 5.0
"""The pause after a queue failed to answer."""
POLL_S = 0.5
"""How often a stopping worker checks whether all tasks have ended, or one of its threads has died."""
MOST_THREADS = 100
CANNOT_BEGIN = 2
"""The exit status of a worker that cannot start."""


class Worker:
    """The tasks of an application, and the process that carries them out.

    application: its durable name, which all processes share. version: of this program, if several versions run side by
    side: a worker with a version deletes no jobs of tasks it does not have, and tasks can be pinned to the version.
    client: by default one from the environment. threads: how many runs at the same time. lease_s: how long a run may go
    without a heartbeat before another process takes it over. retry: the policy of tasks that set none. hook: decides on
    failed attempts. allow_deletes: how many jobs of removed tasks the start may delete; needed if they are more than 10
    and more than a fifth of the set. queue: for tests.
    """

    def __init__(
        self,
        application: str,
        *,
        version: str | None = None,
        client: Sweephand | None = None,
        threads: int = 10,
        lease_s: int = LEASE_S,
        retry: Mapping[str, Any] | None = None,
        hook: Hook | None = None,
        allow_deletes: int | None = None,
        queue: Queue | None = None,
    ) -> None:
        if not 1 <= threads <= MOST_THREADS:
            raise ConfigError(f"threads must be within 1..{MOST_THREADS}, not {threads}")
        shortest_s, longest_s = limits.SHORTEST_LEASE_S, limits.LONGEST_LEASE_S
        if not shortest_s <= lease_s <= longest_s:
            raise ConfigError(f"lease_s must be within {shortest_s}..{longest_s} seconds, not {lease_s}")
        _check_name("application", application)
        if version is not None:
            _check_name("version", version)
        self.application, self.version = application, version
        self._client, self.queue = client, queue
        self._threads, self._lease_s = threads, lease_s
        self._retry, self._hook = dict(USUAL_RETRY if retry is None else retry), hook
        self._allow_deletes = allow_deletes
        self._tasks = Tasks()
        self._loop = Loop(self._thread)
        self._numbers = count(1)
        self._me = f"{socket.gethostname()[:60]}/{os.getpid()}/{SystemChance().token(4).hex()}"
        self._ended = threading.Event()
        self._dead: BaseException | None = None

    # Tasks

    def every(self, interval: str | float | timedelta, **members: Any) -> Callable[[F], F]:
        """Runs the function at an interval: `5m`, `PT5M`, seconds or a timedelta. members: see `task`."""
        _check_called(interval, 'every("5m")')
        text = interval_text(interval)
        return self._scheduled(lambda **more: bodies.every(text, **more), members)

    def cron(self, expression: str, **members: Any) -> Callable[[F], F]:
        """Runs the function on a cron expression, such as `0 9 * * 1-5` with `zone="Europe/Berlin"`."""
        _check_called(expression, 'cron("0 9 * * *")')
        return self._scheduled(lambda **more: bodies.cron(expression, **more), members)

    def at(self, instant: str | datetime, **members: Any) -> Callable[[F], F]:
        """Runs the function once, at an instant. An instant without an offset is the wall time in `zone`."""
        _check_called(instant, 'at("2027-03-01T18:00:00Z")')
        return self._scheduled(lambda **more: bodies.at(instant, **more), members)

    def rrule(self, rule: str, **members: Any) -> Callable[[F], F]:
        """Runs the function on a recurrence rule of RFC 5545."""
        _check_called(rule, 'rrule("FREQ=WEEKLY;BYDAY=MO")')
        return self._scheduled(lambda **more: bodies.rrule(rule, **more), members)

    def _scheduled(self, schedule: Callable[..., Body], members: dict[str, Any]) -> Callable[[F], F]:
        timing = {name: members.pop(name) for name in _OF_SCHEDULE if name in members}
        return self.task(schedules=[schedule(**timing)], **members)

    def task(
        self,
        *bare: object,
        name: str | None = None,
        was: str | None = None,
        schedules: Sequence[Body] = (),
        payload: Any = None,
        overlap: str = "skip",
        retry: Mapping[str, Any] | None = None,
        never_on: type[BaseException] | Iterable[type[BaseException]] = (),
        schema: Callable[[Any], Any] | None = None,
        pinned: bool = False,
        policies: Mapping[str, Any] | None = None,
        **members: Any,
    ) -> Callable[[F], F]:
        """Registers the function as a task. Without `schedules` it is started by hand, as a hook or by another job.

        name: the durable name, by default the module and name of the function. was: its previous name. overlap: what to
        do while an earlier run is active. never_on: types of exceptions after which no attempt follows. schema: makes
        the payload from JSON, such as `Model.model_validate`. pinned: True if only workers of this version carry the
        task out. members: further members of the job, such as `tags`, in snake case. Raises ConfigError for a name used
        twice, and for invalid values.
        """
        _check_called(bare[0] if bare else None, "task()")
        never = exception_types(never_on)
        if pinned and self.version is None:
            raise ConfigError("a pinned task needs Worker(..., version=...)")

        def register(function: F) -> F:
            known = name_of(function) if name is None else name
            action: Body = {"type": "queue", "application": self.application, "task": known}
            action |= {"retry": dict(self._retry if retry is None else retry)}
            action |= {"version": self.version} if pinned else {}
            action |= {} if payload is None else {"payload": payload}
            key = self._key(known, pinned=pinned)
            body: Body = {
                "key": key,
                **self._name(key),
                "action": action,
                "schedules": list(schedules),
            }
            body |= {} if was is None else {"was": was}
            at_end = {"onNothingLeft": "complete"} if schedules else {}
            body |= {"policies": {"overlap": overlap, **at_end, **(policies or {})}}
            body |= bodies.camel(members)
            self._tasks.add(Task(known, function, body, never, schema, pinned))
            return function

        return register

    def call(self, name: str, payload: Any = None, *, planned_at: datetime | None = None) -> Any:
        """Calls a task in this process, for tests: with the schema, without a retry. Raises what the task raises."""
        task = self._tasks.get(name)
        if task is None:
            raise KeyError(f'no task has the name "{name}"')
        run = TaskRun("test", name, planned_at or SystemClock().now(), 1, 1, task.read(payload))
        return task.carry_out(run, self._loop)

    # The service

    @property
    def job_set(self) -> str:
        """The name of the job set that contains the jobs of the tasks."""
        return f"worker.{self.application}"

    def _name(self, key: str) -> Body:
        """Returns the name of a task's job, prefixed with the application; no name if that would be too long."""
        name = f"{self.application}/{key}".strip()
        return {"name": name} if len(name) <= LONGEST_NAME else {}

    def _key(self, name: str, *, pinned: bool) -> str:
        """Returns the key of a task's job in the set. Each version has its own jobs for the tasks pinned to it."""
        return f"{name}@{self.version}" if pinned else name

    @property
    def client(self) -> Sweephand:
        """The client. Without one, it is created from the environment on first use."""
        if self._client is None:
            self._client = clients.Sweephand()
        return self._client

    def attach(self, client: Sweephand, queue: Queue) -> None:
        """Uses this client and queue from now on, as a test needs for a worker that its module made."""
        self._client, self.queue = client, queue

    def apply(self, *, prune: bool | None = None) -> None:
        """Applies the tasks to the jobs of the service. Unchanged jobs keep their next occurrences.

        prune: True to delete the jobs of removed tasks. By default they are deleted unless the worker has a version,
        because another version may still have these tasks. Raises ApiError, TransportError.
        """
        jobs = [task.body for task in self._tasks.all()]
        prune = self.version is None if prune is None else prune
        while True:
            done = self.client.job_sets.put(self.job_set, jobs=jobs, prune=prune, allow_deletes=self._allow_deletes)
            for refused in done.failed or ():
                log.error('the job of the task "%s" was refused: %s', refused.key, refused.reason)
            self._warn_of_passed([*(done.created or ()), *(done.updated or ())])
            if not done.remaining:
                return

    def _warn_of_passed(self, changed: Iterable[models.JobSetChange]) -> None:
        """Logs the changed tasks that have no occurrence left, and therefore never run. Other tasks are unaffected."""
        may_be_over = {task.body["key"] for task in self._tasks.all() if any(map(_ends, task.body["schedules"]))}
        for each in changed:
            if each.key not in may_be_over or each.job_id is None:
                continue
            if self.client.jobs.get(each.job_id).next_run_at is None:
                log.warning('the task "%s" has no occurrence in the future: it will not run', each.key)

    def cancel(self, name: str) -> None:
        """Pauses a task until `resume`, even across restarts. Raises KeyError for a task without a job."""
        self.client.jobs.pause(self._job_of(name), note="cancelled by its worker")

    def resume(self, name: str) -> None:
        """Ends the pause of a task that `cancel` began. Raises KeyError for a task without a job."""
        self.client.jobs.resume(self._job_of(name))

    def _job_of(self, name: str) -> str:
        task = self._tasks.get(name)
        key = name if task is None else task.body["key"]
        for each in self.client.job_sets.get(self.job_set).jobs:
            if each.key == key:
                return each.job_id
        raise KeyError(f'the application has no job for the task "{name}"')

    # Running

    def attempts(self, queue: Queue) -> Attempts:
        """Returns the object that processes this worker's messages."""
        return Attempts(
            self.client,
            queue,
            self._tasks,
            application=self.application,
            owner=lambda: f"{self._me}/{next(self._numbers)}",
            lease_s=self._lease_s,
            loop=self._loop,
            hook=self._hook,
        )

    def start(self) -> list[tuple[str, str | None]]:
        """Registers the application and applies its tasks. Returns its queues, each with its version.

        Logs a warning if this machine's clock is off.
        """
        versions = [None] if self.version is None else [None, self.version]
        registered = [self._registered(version) for version in versions]
        self.apply()
        skew.warn(log, self.client.clock_ahead_s)
        if self.queue is None:
            self.queue = SqsQueue(registered[0].region, endpoint=self.client.aws_endpoint)
        return [(each.queue_url, each.version) for each in registered]

    def _registered(self, version: str | None) -> Any:
        members: dict[str, Any] = {}
        if version is not None:
            members = {"version": version, "tasks": sorted(task.name for task in self._tasks.all())}
        return self.client.applications.register(self.application, **members)

    def run(self) -> None:
        """Carries out tasks until SIGTERM or SIGINT. Running tasks then finish; a later signal ends them at once.

        If the worker cannot start, because of an address, a credential, a permission or a refused request, it writes
        one sentence to stderr and exits with status 2; outside the main thread it raises the error. If one of its
        threads dies, it raises that thread's error, so that the process does not seem to be alive.
        """
        try:
            self._run(self.start())
        except (ApiError, ConfigError, TransportError) as error:
            if threading.current_thread() is not threading.main_thread():
                raise
            sys.stderr.write(f"the worker cannot start: {error}\n")
            raise SystemExit(CANNOT_BEGIN) from error

    def _run(self, queues: Sequence[tuple[str, str | None]]) -> None:
        assert self.queue is not None
        attempts = self.attempts(self.queue)
        slots = Slots(self._threads)
        receivers = [self._thread(self._receive, attempts, slots, url, version, len(queues)) for url, version in queues]
        beat = self._thread(self._beat, attempts)
        with Signals(self.stop, SystemClock()):
            sys.stderr.write(f"{self._announcement()}\n")
            self._ended.wait()
            attempts.stop()
            while self._dead is None and not (slots.all_free and not any(each.is_alive() for each in receivers)):
                slots.wait(POLL_S)
        self._beating = False
        self._loop.close()
        beat.join(timeout=1)
        if self._dead is not None:
            raise self._dead

    def _announcement(self) -> str:
        """Returns one line for people: what the worker carries out, and when the first of it is due."""
        tasks = len(self._tasks.all())
        served = f"{self.application}: {tasks} {'task' if tasks == 1 else 'tasks'}, worker {self._me}"
        try:
            first = self.client.jobs.list(job_set=self.job_set, sort="nextRunAt", max_items=1).first()
        except (ApiError, TransportError):  # it only informs
            return served
        if first is None or first.next_run_at is None:
            return f"{served}, nothing scheduled"
        return f"{served}, next {first.next_run_at.astimezone():%Y-%m-%d %H:%M:%S%z} ({first.name})"

    def stop(self) -> None:
        """Stops `run` from another thread, as SIGTERM does."""
        self._ended.set()

    def _thread(self, work: Callable[..., None], *arguments: Any) -> threading.Thread:
        def guarded() -> None:
            try:
                work(*arguments)
            except BaseException as error:
                log.critical("a thread of the worker died", exc_info=error)
                self._die(error)

        thread = threading.Thread(target=guarded, name="sweephand-worker", daemon=True)
        thread.start()
        return thread

    def _die(self, error: BaseException) -> None:
        self._dead = error
        self._ended.set()

    def _receive(self, attempts: Attempts, slots: Slots, url: str, version: str | None, queues: int) -> None:
        wait_s = WAIT_S if queues == 1 else SHORT_WAIT_S
        answered = False
        while not self._ended.is_set():
            free = slots.take(queues)
            if not free:
                self._ended.wait(0.2)
                continue
            try:
                messages = attempts.receive(url, free, wait_s=wait_s)
                answered = True
            except TransportError as fault:
                if isinstance(fault, NoAccess) and not answered:
                    slots.give_back(free)
                    self._die(fault)
                    return
                log.warning("no message was received: %s", fault)
                messages = []
                self._ended.wait(PAUSE_S)
            slots.give_back(free - len(messages))
            for message in messages:
                self._thread(self._take, attempts, slots, message, version)

    def _take(self, attempts: Attempts, slots: Slots, message: Message, version: str | None) -> None:
        try:
            attempts.take(message, version)
        finally:
            slots.give_back(1)

    _beating = True

    def _beat(self, attempts: Attempts) -> None:
        pause = threading.Event()
        while self._beating:
            pause.wait(self._lease_s / 3)
            attempts.beat()


def _ends(schedule: Body) -> bool:
    """Returns whether a schedule has an instant after which it plans nothing."""
    return "at" in schedule or "endTime" in schedule


def _check_name(argument: str, name: object) -> None:
    if not (isinstance(name, str) and name):
        raise ConfigError(f'{argument} must be a name, such as "billing", not {name!r}')


def _check_called(function: object, example: str) -> None:
    """Raises ConfigError for a decorator without parentheses, which receives the function itself."""
    if callable(function):
        raise ConfigError(f"`@worker.{example.partition('(')[0]}` needs parentheses: write `@worker.{example}`")


_OF_SCHEDULE = (
    "zone",
    "start_time",
    "end_time",
    "count",
    "align",
    "jitter_seconds",
    "dst_gap",
    "dst_overlap",
    "month_overflow",
    "calendars",
)
"""Members of the schedule; all others belong to the job."""
