"""The change log of a job: who changed it, when and how, with the old and new members."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from sweephand.base.json_schema import items, one_of, or_null, ref, whole
from sweephand.base.json_text import Difference, differences, dumps
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.answers import Table, answered
from sweephand.domain.job import SCHEDULES_AT_ONCE, ActionSpec, Job, Payload
from sweephand.domain.jobs.job_state import Entry
from sweephand.domain.schedule import Schedule
from sweephand.domain.schema_words import INSTANT_MS, REVISION, TEXT
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.members import job_members, schedule_members
from sweephand.server.facades.native.members.defaults import waits_of
from sweephand.server.facades.native.members.stored_hooks import StoredHooks
from sweephand.server.flow.job_parts.change_log import Operation, Pair
from sweephand.server.flow.jobs import lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.store.views import resources as views

with lazy():
    from sweephand.server.facades.native.jobs import own_hooks

INCLUDES = frozenset({"before"})
LONGEST_VALUE = 4_000
"""The most characters of a value's JSON. If it is longer, only its beginning is shown."""
AS_ONE = frozenset({"payload", "body"})
MASK = "***"


class Logged(NamedTuple):
    """An entry of the change log, and the members that it changed."""

    entry: Entry
    lines: Sequence[Mapping[str, Any]]


CHANGE = Table(
    {
        "revision": answered(REVISION, says="The job's revision after the change."),
        "at": answered(INSTANT_MS, says="When the change was made."),
        "actor": answered(or_null(TEXT), says="The caller's client id; null: the service itself."),
        "operation": answered(one_of(Operation), says="The kind of change."),
        "reason": answered(or_null(TEXT), says="The caller's reason, from the header Sweephand-Reason."),
        "changes": answered(
            items(ref("ChangedMember")),
            lambda logged: list(logged.lines),
            "The changed members; empty if the job was created.",
        ),
        "omittedSchedules": answered(whole(), "omitted", "How many changed schedules the entry leaves out."),
    },
    "entry",
)


def list_all(ctx: Context) -> Answer:
    """Lists the changes, newest first. With `include=before`, each with the job as it was."""
    include = ctx.include(INCLUDES)
    limit, mark = ctx.page(lambda text: re.fullmatch("[1-9][0-9]{0,7}", text, re.ASCII) is not None)
    job = lookup.find_job(ctx.world, ctx.tenant, ctx.id("job"))
    newest = views.changes(ctx.world.table, ctx.tenant, job.id, int(mark[0]) if mark else None, limit + 1)
    entries = list(islice(newest, limit + 1))
    shown = [entry_body(ctx, entry, with_before="before" in include) for entry in entries[:limit]]
    cursor = ctx.cursor(str(entries[limit - 1].revision)) if len(entries) > limit else None
    return Answer(200, {"items": shown, "nextCursor": cursor})


def entry_body(ctx: Context, entry: Entry, *, with_before: bool = False) -> dict[str, Any]:
    """Returns an entry of the change log as JSON."""
    lines = [
        {"scheduleId": schedule_id, **member_body(difference)} for schedule_id, difference in _differences(ctx, entry)
    ]
    body = CHANGE.show(Logged(entry, lines))
    if with_before:
        body["before"] = _before(ctx, entry)
    return body


def member_body(difference: Difference, longest: int = LONGEST_VALUE) -> dict[str, Any]:
    """Returns a difference as JSON. longest: the most characters of a value's JSON that is shown whole."""
    (old, old_cut), (new, new_cut) = _shown(difference.old, longest), _shown(difference.new, longest)
    return {"path": difference.path or None, "old": old, "new": new, "cut": old_cut or new_cut}


def _shown(value: Any, longest: int) -> tuple[Any, bool]:
    text = dumps(value)
    return (text[:longest], True) if len(text) > longest else (value, False)


@dataclass(frozen=True)
class Shown:
    """A job with what is stored next to it: payloads by owner, and the own hooks of its schedules."""

    job: Job
    payloads: Mapping[str, Payload]
    hooks: StoredHooks | None


def _differences(ctx: Context, entry: Entry) -> Iterator[tuple[str | None, Difference]]:
    """Yields the differences of the job (None), then of its schedules by id."""
    if entry.before is None:
        return
    befores, afters = [before for before, _ in entry.schedules], [after for _, after in entry.schedules]
    was, is_ = shown_as_stored(ctx, entry.before, befores), shown_as_stored(ctx, entry.after, afters)
    for schedule, each in differences_between(was, is_, entry.schedules):
        yield None if schedule is None else schedule.id, each


def shown_as_stored(ctx: Context, job: Job, schedules: Sequence[Schedule | None]) -> Shown:
    return Shown(job, _payloads(ctx, job, schedules), _hooks_of(ctx, job, schedules))


def differences_between(was: Shown, is_: Shown, pairs: Iterable[Pair]) -> Iterator[tuple[Schedule | None, Difference]]:
    """Yields the differences of the job (None), then of its schedules: whole bodies of new and deleted ones."""
    old, new, had, has = was.payloads, is_.payloads, was.hooks, is_.hooks
    for each in differences(_job(was.job, old), _job(is_.job, new), AS_ONE):
        yield None, each
    if None not in {was.job.secret_version, is_.job.secret_version} and (
        was.job.secret_version != is_.job.secret_version
    ):
        yield None, Difference("secrets", MASK, MASK)
    yield from _of_schedules(pairs, old, new, had, has)


def _of_schedules(
    pairs: Iterable[Pair],
    old: Mapping[str, Payload],
    new: Mapping[str, Payload],
    had: StoredHooks | None,
    has: StoredHooks | None,
) -> Iterator[tuple[Schedule | None, Difference]]:
    for before, after in pairs:
        was, is_ = (_schedule(before, old, had), _schedule(after, new, has))
        if before is None or after is None:
            yield before or after, Difference("", was, is_)
            continue
        for each in differences(was or {}, is_ or {}, AS_ONE):
            yield after, each
        if had is not None and has is not None and _new_secrets(before, had, has):
            yield after, Difference("hooks.secrets", MASK, MASK)


def _new_secrets(schedule: Schedule, had: StoredHooks, has: StoredHooks) -> bool:
    """Returns whether a hook that stayed has other secrets than it had."""
    old, new = (each.hooks.get(schedule.id, {}) for each in (had, has))
    return any(_sealed(old[name]) != _sealed(new[name]) for name in {*old} & {*new})


def _sealed(hook: ActionSpec) -> Mapping[str, str]:
    return hook.inline.sealed if hook.inline is not None else {}


def _before(ctx: Context, entry: Entry) -> dict[str, Any] | None:
    """Returns the job as it was, with the schedules that this change touched."""
    if entry.before is None:
        return None
    schedules = [before for before, _ in entry.schedules if before is not None]
    payloads = _payloads(ctx, entry.before, schedules)
    had = _hooks_of(ctx, entry.before, schedules)
    waits_s = waits_of(ctx, entry.before)
    return {
        **_job(entry.before, payloads, waits_s),
        "schedules": [_schedule(each, payloads, had) for each in schedules],
    }


def _payloads(ctx: Context, job: Job, schedules: Sequence[Schedule | None]) -> dict[str, Payload]:
    """Returns the payloads of the job and of a few of its schedules."""
    return lookup.payloads_of(ctx.world, Planned(job, _few(schedules, "payload_version")))


def _hooks_of(ctx: Context, job: Job, schedules: Sequence[Schedule | None]) -> StoredHooks | None:
    """Returns the own hooks of a few of the schedules."""
    bringing = _few(schedules, "hooks")
    if not bringing:
        return None
    return own_hooks.stored_hooks(ctx, job, bringing)


def _few(schedules: Sequence[Schedule | None], member: str) -> tuple[Schedule, ...]:
    """Returns the schedules that have this member, up to the number that one request may contain."""
    having = (each for each in schedules if each is not None and getattr(each, member) is not None)
    return tuple(islice(having, SCHEDULES_AT_ONCE))


def _job(job: Job, payloads: Mapping[str, Payload], waits_s: int | None = None) -> dict[str, Any]:
    """Returns the members that a caller may set, and the pause. waits_s: see defaults.Filling."""
    return {**job_members.editable(job, payloads, waits_s), "pause": job_members.pause_body(job)}


def _schedule(
    schedule: Schedule | None, payloads: Mapping[str, Payload], known: StoredHooks | None
) -> dict[str, Any] | None:
    if schedule is None:
        return None
    shown = schedule_members.schedule_editable(
        schedule, payloads.get(schedule.id), known.shown(schedule) if known else None
    )
    return {"id": schedule.id, **shown}
