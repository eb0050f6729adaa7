"""Lists what needs attention, each with the reason in a sentence and the next step. Every source has a limit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from sweephand.base.json_schema import answer, items, one_of, or_null, ref, whole
from sweephand.base.records import dataclass
from sweephand.domain.answers import Table, answered
from sweephand.domain.collection import CollectionState
from sweephand.domain.consumer import Phase
from sweephand.domain.failure import Group
from sweephand.domain.instants import text
from sweephand.domain.job import JobState
from sweephand.domain.operation import OperationState
from sweephand.domain.run import Reason
from sweephand.domain.runs.reasons import ISSUER, MEANINGS
from sweephand.domain.schema_words import ID, INSTANT, INSTANT_MS, TEXT
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.operations.operations import may_see
from sweephand.server.facades.native.overview import pace, sentences
from sweephand.server.facades.native.overview.timeline import MOST_KNOWN
from sweephand.server.facades.native.runs.errors import matching
from sweephand.server.flow.errors import failures
from sweephand.server.flow.errors.failures import OpenRuns
from sweephand.server.flow.errors.summaries import By, value_of
from sweephand.server.flow.runs.run_lists import JobNames
from sweephand.server.store.views import jobs, resources, tenants

MOST = 100
MOST_GROUPS, COUNTED = 20, 100
"""How many groups of errors are shown, and how many failed runs of a group are counted."""
MOST_OPERATIONS, MOST_NAMED = 20, 100
"""How many of the latest operations, and how many collections, flow keys and consumers are examined."""
KINDS = ("operation", "application", "consumer", "target", "errors", "circuit", "flowKey", "collection", "jobs")
UNANSWERED = frozenset({Reason.DNS, Reason.TLS, Reason.CONNECT, Reason.NO_ANSWER})
VERBS = ("look", "resume", "redrive", "start", "enable")


class Step(NamedTuple):
    """The next step. verb: one of VERBS. words: for people. href: the path of the API to start with."""

    verb: str
    words: str
    href: str


@dataclass(frozen=True)
class Item:
    """One thing that needs attention. count: how many things of this kind it stands for."""

    kind: str
    id: str
    name: str
    sentence: str
    step: Step
    count: int = 1
    since: datetime | None = None
    last_at: datetime | None = None
    job_id: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Attention:
    """All that needs attention, and the tenant's oldest instant that is due; None if nothing is."""

    now: datetime
    oldest_due_at: datetime | None
    items: list[Item]

    @property
    def behind_seconds(self) -> int:
        return 0 if self.oldest_due_at is None else max(0, int((self.now - self.oldest_due_at).total_seconds()))


STEP = Table(
    {
        "verb": answered(one_of(VERBS), says="The kind of the step."),
        "words": answered(TEXT, says="The step in words."),
        "href": answered(TEXT, says="The path to start with."),
    }
)
ITEM = Table(
    {
        "kind": answered(one_of(KINDS), says="The kind; `jobs` stands for all jobs in the state `id`."),
        "id": answered(TEXT, says="The id or the name of the resource."),
        "name": answered(TEXT, says="The name for people."),
        "jobId": answered(or_null(ID)),
        "since": answered(or_null(INSTANT_MS), says="When it began."),
        "lastAt": answered(or_null(INSTANT_MS), says="When it last happened."),
        "count": answered(whole(1), says="How many runs, targets, events or jobs it stands for."),
        "reason": answered(or_null(one_of(Reason))),
        "sentence": answered(TEXT, says="The problem, in a sentence."),
        "nextStep": answered(answer(STEP.answer()), lambda item: STEP.show(item.step), "The next step."),
    }
)
ATTENTION = Table(
    {
        "now": answered(INSTANT_MS, says="The clock of the service."),
        "oldestDueAt": answered(
            or_null(INSTANT), says="The tenant's oldest instant that is due and has not been sent."
        ),
        "behindSeconds": answered(whole(), says="How long ago that was; 0: nothing waits."),
        "items": answered(
            items(ref("AttentionItem"), maxItems=MOST), lambda attention: ITEM.show_all(attention.items[:MOST])
        ),
        "itemsLeftOut": answered(
            whole(), lambda attention: max(0, len(attention.items) - MOST), "How many more there are."
        ),
    }
)


def list_attention(ctx: Context) -> Answer:
    """Lists what needs attention, most serious first, and how late the tenant's due rows are."""
    return pace.priced(ctx, pace.ATTENTION, _attention)


def _attention(ctx: Context) -> dict[str, Any]:
    oldest = tenants.oldest_due_of(ctx.world.table, ctx.tenant, ctx.world.shards.read(), ctx.now)
    items = [each for source in SOURCES for each in source(ctx)]
    return ATTENTION.show(Attention(ctx.now, oldest, items))


def _operations(ctx: Context) -> Iterator[Item]:
    rows = resources.operations(ctx.world.table, ctx.tenant, None, MOST_OPERATIONS)
    for each in islice(rows, MOST_OPERATIONS):
        if each.state is OperationState.FAILED and may_see(ctx, each):
            words = each.kind.value.replace("_", " ")
            yield Item(
                "operation",
                each.id,
                words,
                f"The operation {words} stopped: {each.cause or 'without a cause'}.",
                Step("resume", "Look at its cause, then resume it", f"/v1/operations/{each.id}"),
                since=each.started_at,
            )


def _silences(ctx: Context, failed: Collection[str], shown: Collection[str]) -> Iterator[Item]:
    """Yields targets that do not answer now. failed: hosts in items about failed runs; shown: hosts with an item."""
    notes = tenants.silences(ctx.world.table, ctx.tenant)
    for target, noted in sorted(notes.items(), key=lambda pair: pair[1].since):
        if noted.until > ctx.now and urlsplit(target).hostname not in (shown if noted.hangs else failed):
            waits = "; its calls wait in the slow queue, and each tests it" if noted.hangs else ""
            yield Item(
                "target",
                target,
                target,
                f"{target} has not answered since {text(noted.since)}{waits}.",
                Step("look", "Look at the target; the first answer ends this", "/v1/errors:summary?groupBy=target"),
                since=noted.since,
                reason=noted.reason,
            )


def _errors(ctx: Context) -> Iterator[Item]:
    looked = (each for each in matching(ctx) if each.closed_through is None or each.closed_through < each.last_at)
    some = list(islice(looked, MOST_GROUPS))
    names = JobNames(ctx.world, ctx.tenant).by_id(each.signature.job_id for each in some)
    open_groups = {
        group: open_runs for group in some if (open_runs := failures.open_runs(ctx.world, group, COUNTED)).count
    }
    unanswered = _unanswered(ctx, open_groups)
    silent = {host: groups for host, groups in unanswered.items() if len(groups) > 1}
    yield from _silences(ctx, unanswered.keys(), silent.keys())
    for host, groups in silent.items():
        yield _host(host, groups, [open_groups[group] for group in groups])
    shown_above = {group for groups in silent.values() for group in groups}
    for group, open_runs in open_groups.items():
        if group not in shown_above:
            name = names[group.signature.job_id] or group.job_name or group.signature.job_id
            yield _group(group, name, open_runs.count, more=open_runs.more)


def _unanswered(ctx: Context, groups: Iterable[Group]) -> dict[str, list[Group]]:
    """Returns the groups of failures without an answer of their target, by host."""
    silent = [each for each in groups if each.signature.reason in UNANSWERED]
    unanswered = [each for each in silent if not each.signature.text.startswith(ISSUER)]
    known = jobs.named_jobs(ctx.world.table, ctx.tenant, {each.signature.job_id for each in unanswered})
    of_host: dict[str, list[Group]] = defaultdict(list)
    for each in unanswered:
        target = value_of(each, known.get(each.signature.job_id), By.TARGET)
        if target is not None and (host := urlsplit(target).hostname):
            of_host[host].append(each)
    return of_host


def _host(host: str, groups: Sequence[Group], runs: Sequence[OpenRuns]) -> Item:
    count, since = sum(each.count for each in runs), min(each.first_at for each in groups)
    number = len({each.signature.job_id for each in groups})
    which = "1 job" if number == 1 else f"{number} jobs"
    return Item(
        "target",
        host,
        host,
        f"{host} does not answer: {count:,} runs of {which} failed since {text(since)}.",
        Step("look", "Look at the target, then run the failed runs again", "/v1/errors:summary?groupBy=target"),
        count=count,
        since=since,
        last_at=max(each.last_at for each in groups),
        reason=groups[0].signature.reason,
    )


def _group(group: Group, name: str, count: int, *, more: bool) -> Item:
    times = "once" if count == 1 else f"{count:,}{' or more' if more else ''} times"
    failed = group.signature
    return Item(
        "errors",
        group.id,
        name,
        f"{name} failed {times}: {_why(group)}.",
        Step("redrive", "Look at the failed runs, then run them again or archive them", f"/v1/errors/{group.id}"),
        count=count,
        since=group.first_at,
        last_at=group.last_at,
        job_id=failed.job_id,
        reason=failed.reason,
    )


def _why(group: Group) -> str:
    """Returns why the last run of a group failed."""
    failed = group.signature
    if failed.http_status is not None:
        return f"the target answered with status {failed.http_status}"
    if message := (group.last_message or "").strip(" ."):
        return message
    return MEANINGS[Reason(failed.reason)].rstrip(".") if failed.reason else "for an unknown reason"


def _flow_keys(ctx: Context) -> Iterator[Item]:
    for key in islice(resources.flow_keys(ctx.world.table, ctx.tenant, None, MOST_NAMED), MOST_NAMED):
        place = f"/v1/flow-keys/{key.name}"
        broken = resources.open_circuits(ctx.world.table, ctx.tenant, key.name) if key.circuit is not None else []
        if broken:
            targets = "1 target" if len(broken) == 1 else f"{len(broken)} targets"
            yield Item(
                "circuit",
                key.name,
                key.name,
                f"{targets} under the flow key {key.name} cannot be reached: calls wait, and one a while tests each.",
                Step("look", "Look at the circuits and at what the targets answer", place),
                count=len(broken),
                since=min(each.opened_at for each in broken if each.opened_at is not None),
                reason=broken[0].reason,
            )
        if key.pause is not None:
            note = f": {key.pause.note}" if key.pause.note else "."
            yield Item(
                "flowKey",
                key.name,
                key.name,
                f"The flow key {key.name} is paused, and the runs of its jobs wait{note}",
                Step("resume", "Resume it", place),
                since=key.pause.since,
            )


def _applications(ctx: Context) -> Iterator[Item]:
    for each in tenants.applications(ctx.world.table, ctx.tenant):
        if each.away_at is not None and each.watched_since is not None:
            for_long = sentences.duration(ctx.now - each.watched_since)
            wait = "1 message waits" if each.waiting == 1 else f"{each.waiting:,} messages wait"
            yield Item(
                "application",
                each.name,
                each.title,
                f"No worker of {each.title} has taken a run for {for_long}: {wait} since {text(each.watched_since)}.",
                Step("start", "Start a worker, or delete the application", f"/v1/applications/{each.name}"),
                count=max(1, each.waiting),
                since=each.watched_since,
            )


def _consumers(ctx: Context) -> Iterator[Item]:
    for each in islice(resources.consumers(ctx.world.table, ctx.tenant, None, MOST_NAMED), MOST_NAMED):
        if each.phase_at(ctx.now) is not Phase.AWAY:
            continue
        held = resources.held(ctx.world.table, ctx.tenant, each.name, COUNTED)
        if held:
            number = f"{len(held)} or more" if len(held) == COUNTED else f"{len(held)}"
            yield Item(
                "consumer",
                each.name,
                each.name,
                f"The consumer {each.name} is away, and {number} of its events wait.",
                Step("start", "Start its program", f"/v1/consumers/{each.name}"),
                count=len(held),
                since=held[0],
            )


def _collections(ctx: Context) -> Iterator[Item]:
    named = islice(tenants.collections(ctx.world.table, ctx.tenant, None, MOST_NAMED), MOST_NAMED)
    disabled = [each for each in named if each.state is not CollectionState.ENABLED]
    for each, jobs_in_it in zip(disabled, tenants.job_counts(ctx.world.table, disabled), strict=True):
        if jobs_in_it:
            yield Item(
                "collection",
                each.name,
                each.name,
                f"The collection {each.name} is disabled: what falls due for its {jobs_in_it:,} jobs is skipped.",
                Step("enable", "Enable it", f"/v1/collections/{each.name}"),
                count=jobs_in_it,
                since=each.modified_at,
            )


def _jobs(ctx: Context) -> Iterator[Item]:
    known, _ = jobs.known(ctx.world.table, ctx.tenant, MOST_KNOWN)
    numbers = Counter(each.state for each in known)
    words = {
        JobState.FAULTED: ("over, because the last run failed", Step("look", "Look at them", "/v1/jobs?state=FAULTED")),
        JobState.PAUSED: ("paused", Step("resume", "Look at them, then resume them", "/v1/jobs?state=PAUSED")),
    }
    for state, (stands, step) in words.items():
        if numbers[state]:
            some = "1 job is" if numbers[state] == 1 else f"{numbers[state]:,} jobs are"
            yield Item("jobs", state.value, state.value, f"{some} {stands}.", step, count=numbers[state])


SOURCES = (_operations, _applications, _consumers, _errors, _flow_keys, _collections, _jobs)
