"""The native API for workers, which register their application, claim runs from its queue and report outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from sweephand.base import json_text
from sweephand.base.errors import InvalidRequest, Mistakes, NotFound
from sweephand.base.json_schema import items, one_of, or_null, ref, whole
from sweephand.base.members import fields
from sweephand.domain.answers import Table, answered
from sweephand.domain.application import LEASE_S, LONGEST_LEASE_S, MOST_TASKS, SHORTEST_LEASE_S, Application
from sweephand.domain.instants import stamp, text_ms
from sweephand.domain.message import Pointer, Unreadable, decode
from sweephand.domain.run import Kind
from sweephand.domain.runs.run_members import run_body
from sweephand.domain.schema_words import ID, INSTANT_MS, RUN_ID, TEXT
from sweephand.server.actions.payloads import ANYTHING
from sweephand.server.actions.run_headers import traceparent_of
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import shapes
from sweephand.server.facades.native.context import TASKS, Context
from sweephand.server.facades.native.query import exact_instant
from sweephand.server.facades.native.runs import report
from sweephand.server.flow.runs import workers
from sweephand.server.flow.runs.follow_ups import FIELD
from sweephand.server.flow.runs.run_lists import JobNames
from sweephand.server.flow.runs.workers import Claim, Ended, Report, Task
from sweephand.server.flow.tenants import applications
from sweephand.server.flow.world import World
from sweephand.server.store.views import tenants as views

LONGEST_MESSAGE, LONGEST_DETAILS = 1_000, 16_384
LONGEST_DELAY_S = 3_600
LONGEST_OWNER = 200
COMES_BACK_S = 60
SEPARATOR = " "
"""Between name and version in the mark of a page: the order of the keys in the table, and part of no name."""


def register_application(ctx: Context) -> Answer:
    """Returns the queue of an application, which is created if it does not exist."""
    members = fields.members(ctx.body(), "", ("version", "tasks"))
    version = _version(members)
    tasks = fields.distinct(members["tasks"], "tasks", MOST_TASKS) if "tasks" in members else None
    if tasks is not None and version is None:
        raise fields.inactive("", "tasks", "it needs `version`: workers without one share a queue")
    name = ctx.plain("application", made_as="application")
    if len(name) > 64:
        raise InvalidRequest("application", f"must have 1 to 64 characters, not {len(name)}")
    return Answer(200, _application(ctx, applications.register(ctx.world, ctx.tenant, name, version, tasks)))


class _Shown(NamedTuple):
    """An application with its place."""

    application: Application
    world: World


APPLICATION = Table(
    {
        "name": answered(TEXT),
        "version": answered(or_null(TEXT)),
        "queueUrl": answered(
            TEXT,
            lambda shown: shown.world.queue.url(shown.application.lane),
            "The SQS queue from which its workers take messages.",
        ),
        "region": answered(or_null(TEXT), lambda shown: shown.world.settings.region),
        "visibilitySeconds": answered(whole(), lambda _: LEASE_S, "How long the queue hides a received message."),
        "tasks": answered(items(TEXT), says="The tasks that workers of this version know, if they have said it."),
        "createdAt": answered(INSTANT_MS),
        "since": answered(
            or_null(INSTANT_MS),
            lambda shown: shown.application.away_at and stamp(shown.application.watched_since),
            "Since when its first message waits, if it is away; otherwise null.",
        ),
        "awayAt": answered(
            or_null(INSTANT_MS), says="When it was found that nobody receives its messages; null: it is not away."
        ),
        "waiting": answered(whole(), says="How many messages waited at the last check while it is away."),
    },
    "application",
)


def _application(ctx: Context, application: Application) -> dict[str, Any]:
    return APPLICATION.show(_Shown(application, ctx.world))


def list_applications(ctx: Context) -> Answer:
    def rows(last: str | None, limit: int) -> list[Application]:  # noqa: ARG001 - there are at most a hundred
        listed = views.applications(ctx.world.table, ctx.tenant)
        return [each for each in listed if last is None or _mark(each) > last]

    return ctx.page_of(rows, partial(_application, ctx), mark=_mark, fits=lambda mark: SEPARATOR in mark)


def _mark(application: Application) -> str:
    return f"{application.name}{SEPARATOR}{application.version or ''}"


def read_application(ctx: Context) -> Answer:
    application = applications.find(ctx.world, ctx.tenant, ctx.plain("application"), ctx.text("version", 64))
    return Answer(200, _application(ctx, application))


def delete_application(ctx: Context) -> Answer:
    applications.delete(ctx.world, ctx.tenant, ctx.plain("application"), ctx.text("version", 64))
    return Answer(204)


def _version(members: Mapping[str, Any]) -> str | None:
    if "version" not in members:
        return None
    version = fields.text(members["version"], "version", 1, 64)
    shapes.check_plain(version, "version")
    return version


class Verdict(NamedTuple):
    """The answer to a claim. wait_seconds, task: with `wait` and with `run`."""

    verdict: str
    wait_seconds: int | None = None
    task: Task | None = None


def _payload(task: Task) -> Any:
    return json_text.loads(task.payload.text) if task.payload is not None and task.payload.is_json else None


def _string(task: Task) -> str | None:
    return task.payload.text if task.payload is not None and not task.payload.is_json else None


TASK = Table(
    {
        "runId": answered(RUN_ID, "run.id"),
        "jobId": answered(or_null(ID), "run.of_job"),
        "scheduleId": answered(or_null(ID), "run.schedule_id"),
        "name": answered(TEXT, lambda task: task.action.params["task"]),
        "kind": answered(one_of(Kind), "run.kind"),
        "plannedAt": answered(INSTANT_MS, lambda task: text_ms(task.run.occurrence_at or task.run.planned_at)),
        "attempt": answered(whole(), "run.attempt"),
        "maxAttempts": answered(whole(), "run.max_attempts"),
        "traceparent": answered(
            TEXT,
            lambda task: traceparent_of(task.run.id, task.run.attempt),
            "The parent of the attempt's spans, as in W3C Trace Context.",
        ),
        "leaseUntil": answered(or_null(INSTANT_MS), "run.lease_until"),
        "payload": answered(ANYTHING, _payload),
        "body": answered(or_null(TEXT), _string),
        "resourceId": answered(or_null(TEXT)),
        "tags": answered(items(TEXT)),
    }
)
VERDICT = Table(
    {
        "verdict": answered(
            one_of(("run", "delete", "wait")),
            says="`run`: carry out `task`, report, then delete the message. `delete`: there is nothing to do. "
            "`wait`: let the message reappear after `waitSeconds`.",
        ),
        "waitSeconds": answered(
            or_null(whole()), says="How long the message must stay hidden; null with other verdicts."
        ),
        "task": answered(
            or_null(ref("Task")),
            lambda verdict: None if verdict.task is None else TASK.show(verdict.task),
            "The task to carry out; null with other verdicts.",
        ),
    }
)


def claim_run(ctx: Context) -> Answer:
    """Claims the run of a message, or says that the message must be deleted or come back later."""
    wanted = _claim(ctx)
    said = workers.claim(ctx.world, wanted)
    if isinstance(said, Task):
        verdict = Verdict("run", task=said)
    elif said.acknowledged:
        verdict = Verdict("delete")
    else:
        verdict = Verdict("wait", max(1, round(said.back_in_s or COMES_BACK_S)))
    return Answer(200, VERDICT.show(verdict))


def _claim(ctx: Context) -> Claim:
    wrong = Mistakes()
    names = ("message", "owner", "application", "version", "leaseSeconds", "sentAt")
    members = fields.members(ctx.body(), "", names, wrong)
    pointer = wrong.of(_pointer, ctx, members)
    owner = wrong.of(_owner, members)
    name = wrong.of(lambda: fields.text(fields.required(members, "application"), "application", 1, 64))
    version = wrong.of(_version, members)
    lease_s = wrong.of(_lease_s, members)
    sent_at = wrong.of(_sent_at, members)
    wrong.check()
    return Claim(pointer, owner, name, version, lease_s, sent_at)


def _pointer(ctx: Context, members: Mapping[str, Any]) -> Pointer:
    body = fields.text(fields.required(members, "message"), "message", 1, 4_096)
    try:
        pointer = decode(body)
    except Unreadable as unreadable:
        raise InvalidRequest("message", "is not a message of this service") from unreadable
    if pointer.tenant != ctx.tenant or (pointer.owner, pointer.run) != ctx.run():
        raise NotFound("no such run: the message belongs to another run")
    return pointer


def _owner(members: Mapping[str, Any]) -> str:
    return fields.line(fields.required(members, "owner"), "owner", LONGEST_OWNER)


def _lease_s(members: Mapping[str, Any]) -> int:
    return fields.whole(members.get("leaseSeconds", LEASE_S), "leaseSeconds", SHORTEST_LEASE_S, LONGEST_LEASE_S)


def _sent_at(members: Mapping[str, Any]) -> datetime | None:
    return exact_instant(members["sentAt"], "sentAt") if "sentAt" in members else None


def heartbeat_run(ctx: Context) -> Answer:
    """Extends the lease of a run."""
    wrong = Mistakes()
    members = fields.members(ctx.body(), "", ("owner", "leaseSeconds"), wrong)
    owner, lease_s = wrong.of(_owner, members), wrong.of(_lease_s, members)
    wrong.check()
    until = workers.extend(ctx.world, ctx.tenant, *ctx.run(), owner, lease_s)
    return Answer(200, {"leaseUntil": text_ms(until)})


def settle_run(ctx: Context) -> Answer:
    """Settles the attempt that a worker has claimed."""
    run = workers.report(ctx.world, ctx.tenant, *ctx.run(), _report(ctx))
    return Answer(200, run_body(run, job_name=JobNames(ctx.world, ctx.tenant).of([run])[run.job_id]))


def _report(ctx: Context) -> Report:
    wrong = Mistakes()
    names = ("owner", "attempt", "outcome", "message", "exception", "details", "retry", "delaySeconds", FIELD)
    members = fields.members(ctx.body(), "", names, wrong)
    owner = wrong.of(_owner, members)
    attempt = wrong.of(lambda: fields.whole(fields.required(members, "attempt"), "attempt", 1, 50))
    ended = wrong.of(lambda: fields.one_of(fields.required(members, "outcome"), "outcome", tuple(Ended)))
    message = wrong.of(_text, members, "message", LONGEST_MESSAGE)
    exception = wrong.of(_text, members, "exception", 200)
    details = wrong.of(_text, members, "details", LONGEST_DETAILS)
    retry = wrong.of(fields.flag, members.get("retry", True), "retry")
    delay_s = (
        wrong.of(fields.whole, members["delaySeconds"], "delaySeconds", 0, LONGEST_DELAY_S)
        if "delaySeconds" in members
        else None
    )
    follow_up = wrong.of(report.follow_up, members, ctx.now, tasks=ctx.allows(TASKS))
    wrong.check()
    if follow_up is not None and ended != Ended.SUCCESS:
        raise fields.inactive("", FIELD, "it needs the outcome `success`; `delaySeconds` delays the next attempt")
    if ended != Ended.FAILURE:
        for name in ("retry", "delaySeconds"):
            if name in members:
                wrong.add(
                    fields.inactive("", name, "it needs the outcome `failure`, after which an attempt may follow")
                )
        wrong.check()
    return Report(owner, attempt, Ended(ended), message, exception, details, retry, delay_s, follow_up)


def _text(members: Mapping[str, Any], name: str, longest: int) -> str | None:
    return fields.free(members[name], name, 0, longest) if name in members else None
