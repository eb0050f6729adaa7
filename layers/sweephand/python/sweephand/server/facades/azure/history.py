"""The history of a job: a record for each attempt of the action and the error action, latest start first."""

from __future__ import annotations

import heapq
import re
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import timedelta
from http import HTTPStatus
from itertools import chain, groupby, islice
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from sweephand.base.errors import InvalidRequest
from sweephand.domain.instants import EPOCH, FAR, epoch_ms, from_ms
from sweephand.domain.job import ActionSpec, Job
from sweephand.domain.occurrences import generations
from sweephand.domain.run import RAN, Attempt, Kind, Reason, Run, State
from sweephand.domain.runs import retry
from sweephand.domain.runs.run_action import action_of
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.formats.azure.actions import ANSWERS_WITHIN_S
from sweephand.server.facades.azure import bodies, lists
from sweephand.server.facades.azure.context import Context
from sweephand.server.facades.http import Answer
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.store.views import runs as views
from sweephand.server.store.views import totals

TYPE = f"{bodies.TYPE}/history"
STATUSES = ("Completed", "Failed", "Postponed")
STATES = ("Enabled", "Disabled", "Completed", "Faulted")
SHOWN = frozenset({Kind.SCHEDULED, Kind.MANUAL, Kind.BACKFILL, Kind.ERROR_ACTION})
MOST_EXECUTIONS = 1_000
MOST_LOOKED_AT = 1_000
"""How many records one answer with a filter examines, if it may have a next page."""
MOST_NEWEST = 20
_PLACE = re.compile(r"[0-9]{1,14}(?:-[0-9]{1,10}){4}", re.ASCII)
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_TICKS_OF_YEAR_1 = 621_355_968_000_000_000
_MOST_TICKS = 3_155_378_975_999_999_999


class Record(NamedTuple):
    """An attempt. ordinal: the number of its execution."""

    run: Run
    attempt: Attempt
    ordinal: int
    failed: bool


class Mark(NamedTuple):
    """A planned instant in a history. left: its highest ordinal. before: the number of later instants."""

    instant_ms: int
    left: int
    before: int


class Place(NamedTuple):
    """A position in a history. began_ms: the start of the record before it. same: how many records before it have that
    start. left, before: of the mark at that time. reach_s: see `_reach_s`.
    """

    began_ms: int
    same: int
    left: int
    before: int
    reach_s: int

    def __str__(self) -> str:
        """Returns the form in a link to a next page."""
        return "-".join(map(str, self))

    @classmethod
    def read(cls, text: str | None) -> Place | None:
        """Reads `$skiptoken`. Raises InvalidRequest."""
        if text is None:
            return None
        if not _PLACE.fullmatch(text):
            raise InvalidRequest("$skiptoken", "must come from a nextLink, unchanged")
        return cls(*map(int, text.split("-")))


def list_all(ctx: Context) -> Answer:
    """Lists the records. If a filter would examine too many of them, the page ends early, with a link to the next."""
    wanted = lists.filters_of(ctx, {"status": STATUSES, "state": STATES})
    page, place = lists.page_of(ctx), Place.read(ctx.query.get("$skiptoken"))
    collection = ctx.collection()
    planned = ctx.job(collection)
    status = wanted.get("status")
    most = page.end if status is None else MOST_LOOKED_AT
    records = _records(ctx, planned, place, page.end)
    if status == "Postponed" or wanted.get("state") not in {None, bodies.state_of(planned)}:
        records = iter(())
    executions: list[Record] = []
    left, link = page.skip, None
    for looked_at, (after, record) in enumerate(records):
        if page.top is None and (len(executions) == lists.PAGE or looked_at == most):
            link = lists.next_link(ctx, skip=left, skiptoken=place)
            break
        place = after
        if status in {None, _status(record)}:
            if left == 0:
                executions.append(record)
            left = max(0, left - 1)
        if len(executions) == page.top:
            break
    base, name = bodies.job_id(collection, planned.job), bodies.job_name(collection, planned.job)
    return Answer(200, {"value": [_body(each, planned.job, base, name) for each in executions], "nextLink": link})


def _records(ctx: Context, planned: Planned, begin: Place | None, wanted: int) -> Iterator[tuple[Place, Record]]:
    """Yields the records of the last 1,000 executions by their start, latest first.

    Each comes with the position after it. wanted: how many records the caller will probably take. Reads that many rows,
    and those of runs whose retries may have begun after them.
    """
    if not planned.schedules:
        return
    schedule = planned.schedules[0]
    until = None if begin is None else from_ms(begin.began_ms)
    with_attempts = views.with_attempts(ctx.world.table, schedule.tenant, schedule.id, until, wanted + 2)
    kept = ((run, attempts) for run, attempts in with_attempts if not run.is_gone(ctx.now))
    newest: list[tuple[Run, list[Attempt]]] = []
    if begin is None:
        newest = _newest(schedule, kept)
        left = _last_ordinal(ctx, schedule, [run for run, _ in newest])
        begin = Place(epoch_ms(FAR), 0, left, 0, _reach_s(planned.job))
    same, last_ms = 0, begin.began_ms
    for mark, began_ms, record in _by_start(_executions(begin, chain(newest, kept)), begin.reach_s * 1_000):
        same = same + 1 if began_ms == last_ms else 1
        last_ms = began_ms
        if (began_ms, -same) < (begin.began_ms, -begin.same):
            yield Place(began_ms, same, mark.left, mark.before, begin.reach_s), record


def _reach_s(job: Job) -> int:
    """Returns how long after its planned instant an execution's last attempt may begin, if nothing is late."""
    policies = [retry.load(each.retry) for each in (job.action, job.error_action) if each is not None]
    return sum((each.max_attempts - 1) * each.delay_s + each.max_attempts * ANSWERS_WITHIN_S for each in policies)


def _executions(begin: Place, runs: Iterator[tuple[Run, list[Attempt]]]) -> Iterator[tuple[Mark, list[Record]]]:
    """Yields the planned instants up to a position, latest first, each with its records."""
    left = begin.left
    by_instant = groupby(runs, key=lambda each: epoch_ms(each[0].planned_at))
    for before, (instant_ms, same) in zip(range(begin.before, MOST_EXECUTIONS), by_instant, strict=False):
        mark = Mark(instant_ms, left, before)
        made, left = _of_instant(left, list(same))
        yield mark, made


def _by_start(executions: Iterator[tuple[Mark, list[Record]]], reach_ms: int) -> Iterator[tuple[Mark, int, Record]]:
    """Yields records by their start, latest first, each with the last mark before its start, and the start.

    reach_ms: how long after its instant a record may begin. One that began later is treated as if it began then.
    """
    marks: deque[Mark] = deque()
    waiting: list[tuple[int, int, bool, int, str, Record]] = []
    for mark, made in chain(executions, [(Mark(-reach_ms, 0, 0), [])]):
        while waiting and -waiting[0][0] > mark.instant_ms + reach_ms:
            began_ms, *_, record = heapq.heappop(waiting)
            while marks[0].instant_ms > -began_ms:
                marks.popleft()
            yield marks[0], -began_ms, record
        marks.append(mark)
        for each in made:
            began_ms = min(max(epoch_ms(each.attempt.started_at), mark.instant_ms), mark.instant_ms + reach_ms)
            is_main = each.run.kind is not Kind.ERROR_ACTION
            place = (-began_ms, -each.ordinal, is_main, -each.attempt.number, each.run.uuid, each)
            heapq.heappush(waiting, place)


def _of_instant(left: int, runs: Sequence[tuple[Run, list[Attempt]]]) -> tuple[list[Record], int]:
    """Returns the records of one instant, and the ordinal before it. left: its highest ordinal."""
    shown = [(run, _attempts(run, attempts)) for run, attempts in runs if run.kind in SHOWN]
    ordinals = {}
    for run, _ in shown:
        counts = _has_ordinal(run)
        ordinals[run.uuid] = left if counts else left + 1
        left -= counts
    made = [
        Record(run, each, ordinals.get(run.parent_uuid or run.uuid, left + 1), _fails(run, each))
        for run, attempts in shown
        for each in attempts
    ]
    return made, left


def _newest(schedule: Schedule, runs: Iterator[tuple[Run, list[Attempt]]]) -> list[tuple[Run, list[Attempt]]]:
    """Returns the runs up to the first one whose occurrence the sweep has counted, MOST_NEWEST at most."""
    taken = []
    for run, attempts in islice(runs, MOST_NEWEST):
        taken.append((run, attempts))
        if run.kind is Kind.SCHEDULED and not _is_uncounted(schedule, run):
            break
    return taken


def _is_uncounted(schedule: Schedule, run: Run) -> bool:
    """Returns whether a run was sent although the sweep has not counted its occurrence yet."""
    begin = schedule.unsent_from if schedule.state is ScheduleState.ACTIVE else None
    return begin is not None and run.planned_at >= begin


def _last_ordinal(ctx: Context, schedule: Schedule, newest: Sequence[Run]) -> int:
    """Returns the ordinal of the last execution that has a run. newest: from `_newest`."""
    planned = [run for run in newest if run.kind is Kind.SCHEDULED]
    uncounted = sum(_is_uncounted(schedule, run) for run in planned)
    earliest = newest[-1].planned_at if newest else EPOCH
    latest = max((run.range_until or run.planned_at for run in planned), default=earliest)
    coming = len(generations.sent_after(schedule, latest, MOST_EXECUTIONS))
    return totals.executions_sent(ctx.world.table, schedule) + uncounted - coming


def _has_ordinal(run: Run) -> bool:
    """Returns whether a run is one of those that `executions_sent` counts."""
    if run.kind is Kind.SCHEDULED:
        return run.state in RAN or not run.finished
    return run.kind is Kind.MANUAL and run.state in RAN


def _attempts(run: Run, stored: Sequence[Attempt]) -> list[Attempt]:
    """Returns the attempts that have ended. The run's own row contains the last one, unless that has its own row."""
    began = run.started_at
    if not run.finished or began is None or any(each.number == run.attempt for each in stored):
        return list(stored)
    last = Attempt(
        number=run.attempt,
        started_at=began,
        finished_at=run.finished_at or began,
        reason=run.reason,
        http_status=run.http_status,
        message=run.message,
        answer=run.answer,
        answer_headers=run.answer_headers,
    )
    return [*stored, last]


def _fails(run: Run, attempt: Attempt) -> bool:
    return run.state is not State.SUCCESS or attempt.number != run.attempt


def _status(record: Record) -> str:
    return "Failed" if record.failed else "Completed"


def _body(record: Record, job: Job, job_id: str, job_name: str) -> dict[str, Any]:
    run, attempt = record.run, record.attempt
    name = _record_id(record)
    return {
        "id": f"{job_id}/history/{name}",
        "type": TYPE,
        "name": f"{job_name}/{name}",
        "properties": {
            "startTime": bodies.precise(attempt.started_at),
            "endTime": bodies.precise(attempt.finished_at),
            "expectedExecutionTime": bodies.precise(run.planned_at),
            "actionName": "ErrorAction" if run.kind is Kind.ERROR_ACTION else "MainAction",
            "status": _status(record),
            "retryCount": attempt.number - 1,
            "repeatCount": record.ordinal,
            "message": _message(action_of(job, run.kind), record),
        },
    }


def _record_id(record: Record) -> str:
    """Returns an id that sorts newest first as a string, as in Azure's own service."""
    ticks = _TICKS_OF_YEAR_1 + (record.attempt.started_at - EPOCH) // timedelta(microseconds=1) * 10
    return f"{_MOST_TICKS - ticks:020}:{_MOST_TICKS - record.ordinal * 100 - record.attempt.number:020}"


def _message(action: ActionSpec, record: Record) -> str:
    """Returns the message in the forms that tools parse."""
    attempt, params = record.attempt, action.params
    why = f" {attempt.message}" if record.failed and attempt.message else ""
    if action.kind == "http":
        return _http_message(urlsplit(params["url"]).hostname or "", attempt)
    if action.kind == "azure_storage_queue":
        return f"StorageQueue Action - {_queue_message(record, params['storageAccount'], params['queueName'])}{why}"
    kind, entity = ("Topic", params["topicPath"]) if "topicPath" in params else ("Queue", params["queueName"])
    how = "failed" if record.failed else "ok"
    return f"ServiceBus{kind} Action - {how}: {kind.lower()} '{entity}' namespace '{params['namespace']}'{why}"


def _http_message(host: str, attempt: Attempt) -> str:
    if attempt.http_status is None:
        return f"Http Action - Request to host '{host}' failed: {attempt.message or attempt.reason}"
    phrase = _PHRASES.get(attempt.http_status, str(attempt.http_status))
    content = f"Response Headers: {attempt.answer_headers or ''} Body: {attempt.answer or ''}"
    return f"Http Action - Response from host '{host}': '{phrase}' {content}"


def _queue_message(record: Record, account: str, queue: str) -> str:
    if not record.failed:
        return f"Post to storage account '{account}' queue '{queue}' succeeded."
    if record.attempt.http_status == HTTPStatus.NOT_FOUND:
        return f"Queue '{queue}' does not exist."
    if record.attempt.reason == Reason.DNS:
        return f"Storage account '{account}' could not be found."
    return f"Post to storage account '{account}' queue '{queue}' failed."
