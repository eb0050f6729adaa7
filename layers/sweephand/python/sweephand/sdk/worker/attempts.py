"""The path of one message through a worker: claim, carry out, settle, delete.

A message is deleted only after its run is settled. If the process dies before that, the run comes back under the same
id.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

from sweephand.base.errors import SweephandError
from sweephand.base.records import dataclass
from sweephand.sdk.bodies import Body
from sweephand.sdk.errors import ApiError, InvalidArgument, TransportError
from sweephand.sdk.receiving.queues import Message, Queue
from sweephand.sdk.transport.request import ABSENT
from sweephand.sdk.worker.dedupe import InProgress, Unsure
from sweephand.sdk.worker.loop import Loop
from sweephand.sdk.worker.tasks import BadPayload, BadReschedule, Task, TaskRun, Tasks
from sweephand.sdk.worker.verdicts import AS_USUAL, LONGEST_DELAY_S, Delay, Discard, Hook, MoveTo, Retry, Verdict

if TYPE_CHECKING:
    from sweephand.sdk import models
    from sweephand.sdk.sync.client import Sweephand

log = logging.getLogger("sweephand.worker")
MARGIN_S = 10
"""How much longer than its run's lease a message stays hidden, so that its next delivery can take over the run."""
COMES_BACK_S = 30
LONGEST_MESSAGE, LONGEST_DETAILS, LONGEST_TYPE = 1_000, 16_384, 200
LOST = {"LEASE_LOST"}
OVER = {"RESULT_CONFLICT", "NOT_FOUND"}
FOR_GOOD = range(400, 500)
MAY_CHANGE = frozenset({401, 404, 408, 409, 429})
"""Statuses that refuse a report for a reason other than its content: the same report may be accepted later."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of an attempt, as the members of the report. again: the next run, from TaskRun.reschedule."""

    outcome: str
    message: str | None = None
    exception: str | None = None
    details: str | None = None
    retry: bool | None = None
    delay_s: int | None = None
    again: Body | None = None


@dataclass(frozen=True)
class Held:
    """A claimed run, for its heartbeat. stop: set when the task must end."""

    run_id: str
    owner: str
    message: Message
    stop: Event


class Attempts:
    """The processing of an application's messages, each in the calling thread.

    tasks: those that this process knows. owner: returns the owner of a claim, a new one for each received message.
    loop: runs async tasks.
    """

    def __init__(
        self,
        client: Sweephand,
        queue: Queue,
        tasks: Tasks,
        *,
        application: str,
        owner: Callable[[], str],
        lease_s: int,
        loop: Loop,
        hook: Hook | None = None,
    ) -> None:
        self._client, self._queue, self._tasks = client, queue, tasks
        self._application, self._owner, self._lease_s = application, owner, lease_s
        self._loop, self._hook = loop, hook
        self._held: dict[str, Held] = {}
        self._lock = Lock()
        self.stopping = Event()

    def receive(self, url: str, most: int, *, wait_s: int) -> Sequence[Message]:
        """Receives messages and hides them for the lease and its margin. Raises TransportError."""
        return self._queue.receive(url, most, hidden_s=self._lease_s + MARGIN_S, wait_s=wait_s)

    def take(self, message: Message, version: str | None) -> None:
        """Carries out the run of a message. version: of the queue that the message came from. Never raises an error."""
        if self.stopping.is_set():
            self._queue.hide(message, 0)  # its run has not begun: let another worker take it at once
            return
        try:
            self._take(message, version)
        except SweephandError as fault:
            log.warning("a message will be delivered again: %s", fault)
            self._queue.hide(message, COMES_BACK_S)

    def _take(self, message: Message, version: str | None) -> None:
        run_id = run_id_of(message.body)
        if run_id is None:
            log.error("a message does not belong to a run; it is left for the dead-letter queue")
            return
        owner = self._owner()
        claimed = self._client.runs.claim(
            run_id,
            message=message.body,
            owner=owner,
            application=self._application,
            version=ABSENT if version is None else version,
            lease_seconds=self._lease_s,
            sent_at=message.sent_at,
        )
        if claimed.verdict == "delete":
            self._queue.delete(message)
        elif claimed.verdict != "run" or claimed.task is None:
            self._queue.hide(message, claimed.wait_seconds or COMES_BACK_S)
        else:
            self._carry_out(Held(claimed.task.run_id, owner, message, Event()), claimed.task)

    def _carry_out(self, held: Held, claimed: models.Task) -> None:
        task = self._tasks.get(claimed.name)
        if task is None:
            log.warning('the task "%s" is unknown to this worker; the run %s is returned', claimed.name, held.run_id)
            self._settle(held, claimed.attempt, Outcome("unknown_task"))
            return
        with self._lock:
            self._held[held.owner] = held
        try:
            outcome = self._outcome(task, run_of(claimed, held.stop))
        finally:
            with self._lock:
                del self._held[held.owner]
        self._settle(held, claimed.attempt, outcome)

    def _outcome(self, task: Task, run: TaskRun) -> Outcome:
        """Calls the task. Turns everything it raises into an outcome, so that no task ends its worker."""
        try:
            run = _with_payload(run, task.read(run.payload))
            task.carry_out(run, self._loop)
        except BadPayload as wrong:
            log.warning('the payload of the run %s does not fit the task "%s": %s', run.id, task.name, wrong)
            return Outcome("bad_payload", _cut(str(wrong), LONGEST_MESSAGE))
        except BaseException as error:
            log.exception('the task "%s" failed (run %s, attempt %d)', task.name, run.id, run.attempt)
            return self._failure(task, run, error)
        return Outcome("success", again=run.again or None)

    def _failure(self, task: Task, run: TaskRun, error: BaseException) -> Outcome:
        """Returns the outcome of a failed attempt: an error without a retry if the hook or its verdict fails."""
        failed = _failed(error)
        try:
            return self._decided(task, run, error, failed)
        except Exception:
            log.exception("the hook's verdict cannot be carried out; the run %s becomes an error", run.id)
            return _final(failed, failed.message or "")

    def _decided(self, task: Task, run: TaskRun, error: BaseException, failed: Outcome) -> Outcome:
        verdict, message = self._verdict(run, error), failed.message or ""
        if isinstance(verdict, Discard):
            return Outcome("discarded", _cut(verdict.reason, LONGEST_MESSAGE))
        if isinstance(verdict, MoveTo):
            moved = self._moved(run, verdict, failed)
            return _final(failed, f"moved to {verdict.queue_url}: {message}" if moved else message)
        if isinstance(error, (*task.never_on, Unsure, BadReschedule)):
            return _final(failed, message)
        if isinstance(verdict, Delay):
            return Outcome(*failed_members(failed), delay_s=verdict.delay_s)
        return failed

    def _verdict(self, run: TaskRun, error: BaseException) -> Verdict:
        """Returns the hook's verdict. Raises RuntimeError if the hook fails, TypeError if it returns anything else."""
        usual = Delay(min(error.wait_s, LONGEST_DELAY_S)) if isinstance(error, InProgress) else AS_USUAL
        if self._hook is None:
            return usual
        try:
            verdict = self._hook(error, run)
        except BaseException as broken:
            raise RuntimeError("the hook failed") from broken
        if verdict is None:
            return usual
        if not isinstance(verdict, Retry | Delay | MoveTo | Discard):
            raise TypeError(f"the hook must return a verdict or None, not {verdict!r}")
        return verdict

    def _moved(self, run: TaskRun, verdict: MoveTo, failed: Outcome) -> bool:
        body = {
            "runId": run.id,
            "task": run.task,
            "plannedAt": run.planned_at.isoformat(),
            "attempt": run.attempt,
            "payload": run.payload,
            "exception": failed.exception,
            "message": failed.message,
        }
        try:
            self._queue.send(verdict.queue_url, json.dumps(body, default=str))
        except TransportError as fault:
            log.warning("the run %s was not moved and becomes an error: %s", run.id, fault)
            return False
        return True

    def _settle(self, held: Held, attempt: int, ended: Outcome) -> None:
        """Reports the outcome, then deletes the message. Raises TransportError; the message is then delivered again.

        A report that is not valid JSON, or that the service refuses for good, would be refused each time. The run then
        becomes an error with that reason, and its task is not repeated.
        """
        try:
            self._report(held, attempt, ended)
        except (ApiError, InvalidArgument) as refused:
            if isinstance(refused, ApiError) and not _is_for_good(refused.status):
                raise
            log.exception("the report of the run %s was refused; the run becomes an error", held.run_id)
            message = _cut(f"the report of the outcome {ended.outcome} was refused: {refused}", LONGEST_MESSAGE)
            self._report(held, attempt, Outcome("failure", message, retry=False))

    def _report(self, held: Held, attempt: int, ended: Outcome) -> None:
        try:
            self._client.runs.settle(
                held.run_id,
                owner=held.owner,
                attempt=attempt,
                outcome=ended.outcome,
                message=ABSENT if ended.message is None else ended.message,
                exception=ABSENT if ended.exception is None else ended.exception,
                details=ABSENT if ended.details is None else ended.details,
                retry=ABSENT if ended.retry is None else ended.retry,
                delay_seconds=ABSENT if ended.delay_s is None else ended.delay_s,
                reschedule=ABSENT if ended.again is None else ended.again,
            )
        except ApiError as refused:
            if refused.code in LOST:
                log.warning("the run %s was taken over by another worker: %s", held.run_id, refused)
                return
            if refused.code not in OVER:
                raise
            log.warning("the run %s had ended already: %s", held.run_id, refused)
        self._queue.delete(held.message)

    # While tasks run

    def beat(self) -> None:
        """Extends the leases of this process's runs, and hides their messages. Tells the task of a lost run to stop."""
        for held in self._now_held():
            try:
                self._client.runs.heartbeat(held.run_id, owner=held.owner, lease_seconds=self._lease_s)
            except ApiError as refused:
                if refused.code in LOST | OVER:
                    log.warning("the run %s is lost; its task must stop: %s", held.run_id, refused)
                    held.stop.set()
                continue
            except TransportError as fault:
                log.warning("no heartbeat for the run %s: %s", held.run_id, fault)
                continue
            self._queue.hide(held.message, self._lease_s + MARGIN_S)

    def stop(self) -> None:
        """Lets no further task begin, and tells the running tasks to end soon."""
        self.stopping.set()
        for held in self._now_held():
            held.stop.set()

    def _now_held(self) -> Iterable[Held]:
        with self._lock:
            return list(self._held.values())


def _is_for_good(status: int) -> bool:
    return status in FOR_GOOD and status not in MAY_CHANGE


def failed_members(failed: Outcome) -> tuple[str, str | None, str | None, str | None]:
    return failed.outcome, failed.message, failed.exception, failed.details


def _failed(error: BaseException) -> Outcome:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        message = str(error)
    except Exception as broken:  # noqa: BLE001 - str() of a task's own class may raise anything
        message = f"its text cannot be read: {type(broken).__name__}"
    trace = "".join(traceback.format_exception(error))
    return Outcome("failure", _cut(message, LONGEST_MESSAGE), _cut(name, LONGEST_TYPE), _end(trace))


def _final(failed: Outcome, message: str) -> Outcome:
    outcome, _, exception, details = failed_members(failed)
    return Outcome(outcome, _cut(message, LONGEST_MESSAGE), exception, details, retry=False)


def _cut(text: str, longest: int) -> str:
    """Returns a text that the API accepts: without lone surrogates, and cut to the limit."""
    text = text.encode(errors="replace").decode()
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _end(trace: str) -> str:
    """Returns the end of a stack trace, which says what was raised and where."""
    return trace[-LONGEST_DETAILS:].encode(errors="replace").decode()


def run_id_of(body: str) -> str | None:
    """Returns the id of the run that a message points to; None if the message is not a run pointer."""
    with suppress(ValueError, TypeError, KeyError):
        pointer = json.loads(body)
        return f"{pointer['schedule'] or pointer['job']}_{pointer['run']}"
    return None


def run_of(claimed: models.Task, stop: Event) -> TaskRun:
    payload: Any = claimed.body if claimed.payload is None else claimed.payload
    return TaskRun(
        id=claimed.run_id,
        task=claimed.name,
        planned_at=claimed.planned_at,
        attempt=claimed.attempt,
        max_attempts=claimed.max_attempts,
        payload=payload,
        job_id=claimed.job_id,
        resource_id=claimed.resource_id,
        tags=tuple(claimed.tags or ()),
        traceparent=claimed.traceparent,
        stopping=stop,
    )


def _with_payload(run: TaskRun, payload: Any) -> TaskRun:
    members = {name: getattr(run, name) for name in TaskRun.__dataclass_fields__}
    return TaskRun(**{**members, "payload": payload})
