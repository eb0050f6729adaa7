"""Job sets: a client sends the whole list of the jobs it wants, and the service makes the necessary changes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from sweephand.base.errors import (
    Conflict,
    InvalidRequest,
    Mistakes,
    PreconditionFailed,
    SweephandError,
    Unavailable,
)
from sweephand.base.json_schema import or_null, text
from sweephand.base.json_text import dumps
from sweephand.base.members import fields
from sweephand.base.records import dataclass
from sweephand.domain.answers import Table, answered
from sweephand.domain.job import SCHEDULES_AT_ONCE, JobDraft
from sweephand.domain.job_set import MOST_JOBS, Change, Member, Plan, Verb, Wanted
from sweephand.domain.schema_words import INSTANT_MS, TEXT
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import problems
from sweephand.server.facades.native.context import Context, canonical
from sweephand.server.facades.native.jobs import changes, job_keys, jobs, set_figures, set_plans
from sweephand.server.facades.native.members import job_members
from sweephand.server.facades.native.query import exact_instant, instant, number
from sweephand.server.flow.job_parts.change_log import Operation
from sweephand.server.flow.job_parts.membership import NOT_OF_THE_SET, PLAN_STALE
from sweephand.server.flow.job_sets import apply
from sweephand.server.flow.job_sets.apply import SetPlan
from sweephand.server.flow.jobs import lookup
from sweephand.server.store.views import resources as views

if TYPE_CHECKING:
    from sweephand.domain.collection import Home
    from sweephand.domain.job import Job
    from sweephand.server.store.views.resources import JobSet

LARGEST_LIST = 4_194_304
"""The most bytes of a list. Lambda accepts 6 MB."""
LARGEST_JOB = 262_144
DETAILED = 50
"""How many jobs that others have changed are shown with the changes."""
RUN = "runs:write"
APPLIED_S = 7.0
"""No further change begins after this time. A request has 14 s, including a cold start; the next request continues."""
FIGURES = frozenset({"figures"})
FIGURES_BACK = timedelta(days=1)
LARGEST_LIMIT_S = 86_400
MOST_ALLOWED = 9_999
MOST_OWNER = 512


@dataclass(frozen=True)
class Listed:
    """A list of wanted jobs. bodies: of the jobs, by key. prune: whether other jobs of the set are deleted.

    owner: of the set, once the whole list is applied; None to leave it. creates: whether there is no set yet.
    """

    wanted: Sequence[Wanted]
    bodies: Mapping[str, Mapping[str, Any]]
    prune: bool = True
    owner: str | None = None
    creates: bool = False


@dataclass
class Done:
    """The result of the changes that were tried.

    made: how many succeeded. shown: the changes as JSON, by key. jobs: the ids of the jobs, by key. unchanged: jobs
    that were already as wanted. failed: the refusals, by key; if the key is also in `jobs`, only its run was refused.
    """

    made: int = 0
    tried: set[str] = field(default_factory=set)
    shown: dict[str, dict[str, Any]] = field(default_factory=dict)
    jobs: dict[str, str] = field(default_factory=dict)
    unchanged: set[str] = field(default_factory=set)
    failed: dict[str, SweephandError] = field(default_factory=dict)

    @property
    def refused(self) -> set[str]:
        """Returns the keys of changes that were refused, except for those whose job had changed meanwhile."""
        return {key for key, refused in self.failed.items() if refused.code != PLAN_STALE}


def put(ctx: Context) -> Answer:
    prune = ctx.choice("prune", frozenset({"true", "false"})) != "false"
    listed = replace(_listed(ctx.body(LARGEST_LIST)), prune=prune, owner=ctx.text("owner", MOST_OWNER))
    name = ctx.plain("job_set", made_as="set")
    if listed.owner is not None:
        current = views.job_set(ctx.world.table, ctx.tenant, name)
        if current is not None and current.owner not in {None, listed.owner}:
            raise Conflict(f"the set {name} belongs to {current.owner}, not to {listed.owner}: choose another name")
        listed = replace(listed, creates=current is None)
    return _apply(ctx, name, listed)


def delete(ctx: Context) -> Answer:
    """Deletes a set with its jobs. For a day, a repeated request gets the answer of the first one."""
    name, owner = ctx.plain("job_set"), ctx.text("owner", MOST_OWNER)
    if not apply.may_delete(ctx.world, ctx.tenant, name):
        raise apply.no_such_set(name)
    current = views.job_set(ctx.world.table, ctx.tenant, name)
    if owner is not None and current is not None and current.owner != owner:
        belongs = "has no owner" if current.owner is None else f"belongs to {current.owner}"
        raise Conflict(f"the set {name} {belongs}, not to {owner}: to delete it all the same, leave out owner")
    return _apply(ctx, name, Listed((), {}), forget=True)


def release(ctx: Context) -> Answer:
    """Makes a set belong to nothing; its jobs stay."""
    owner = ctx.text("owner", MOST_OWNER)
    assert owner is not None
    apply.release(ctx.world, ctx.tenant, ctx.plain("job_set"), owner)
    return Answer(204)


def _apply(ctx: Context, name: str, listed: Listed, *, forget: bool = False, again: bool = True) -> Answer:
    """Makes the changes of the plan, unless the request only asks for the plan.

    again: True to plan once more if the plan is stale before anything was changed.
    """
    only_plan = ctx.choice("plan", frozenset({"true", "false"})) == "true"
    at_drift = ctx.choice("onDrift", frozenset({"keep_next", "run_now"})) or "keep_next"
    if at_drift == "run_now":
        ctx.require(RUN)
    token, allowed = ctx.text("token", 64), number(ctx.query, "allowDeletes", 0, MOST_ALLOWED)
    set_plan, drafts = _set_plan(ctx, name, listed)
    plan, until = set_plan.plan, ctx.world.clock.monotonic() + APPLIED_S
    if only_plan:
        return Answer(200, set_plans.plan_body(ctx, set_plan, drafts))
    wrong = _forbidden(plan, token, allowed or 0)
    if wrong is not None:
        return _refusal(ctx, wrong, set_plan, drafts)
    try:
        with apply.applying(ctx.world, ctx.tenant, set_plan, ctx.by(Operation.APPLY)):
            done = _carry_out(ctx, set_plan, drafts, until, at_drift=at_drift)
    except PreconditionFailed as refused:
        if refused.code != PLAN_STALE:
            raise
        if token is None and again:
            return _apply(ctx, name, listed, forget=forget, again=False)
        return _refusal(ctx, refused, *_set_plan(ctx, name, listed))
    remaining, token = _left(ctx, name, listed, plan, done)
    whole = not done.failed and not remaining
    if forget and whole:
        apply.forget(ctx.world, ctx.tenant, name)
    if listed.owner is not None and whole:
        apply.claim(ctx.world, ctx.tenant, name, listed.owner)
    return Answer(202 if remaining else 200, {**_result(plan, done), "remaining": remaining, "token": token})


def _left(ctx: Context, name: str, listed: Listed, plan: Plan, done: Done) -> tuple[int, str | None]:
    """Returns how many changes remain, and their token: for lack of time, or because of a concurrent list."""
    left = plan.without(done.tried)
    if left.changes:
        return len(left.changes), plan.without(done.tried - (done.failed.keys() - done.jobs.keys())).token
    if not done.made or not apply.is_overtaken(
        ctx.world, ctx.tenant, name, listed.wanted, done.refused, prune=listed.prune
    ):
        return 0, None
    plan = _set_plan(ctx, name, listed)[0].plan
    return len(plan.changes), plan.token if plan.changes else None


def _set_plan(ctx: Context, name: str, listed: Listed) -> tuple[SetPlan, Mapping[str, JobDraft]]:
    """Returns the current plan, checked, and the drafts of its jobs."""
    set_plan = apply.plan(ctx.world, ctx.tenant, name, listed.wanted, prune=listed.prune)
    set_plan = replace(set_plan, owner=listed.owner if listed.creates else None)
    known: dict[str, Home] = {}

    def read(each: Change) -> JobDraft:
        assert each.wanted is not None
        return _draft(ctx, set_plan, each, each.wanted.place, listed.bodies[each.key], known)

    return apply.check(ctx.world, ctx.tenant, set_plan, read, sum(map(_schedules_in, listed.bodies.values())))


def _forbidden(plan: Plan, token: str | None, allowed: int) -> SweephandError | None:
    """Returns why a plan may not be applied: a stale token, or too many deletes. allowed: how many deletes."""
    if plan.changes and token not in {None, plan.token}:
        reason = f"the set {plan.job_set} or the list has changed since this plan was made: look at the new plan"
        return PreconditionFailed(reason, code=PLAN_STALE)
    if plan.deletes > plan.deletes_most and allowed < plan.deletes:
        reason = (
            f"deletes {plan.deletes} of {plan.stored} jobs; the limit is {plan.deletes_most}: "
            f"to allow it, use allowDeletes={plan.deletes}"
        )
        return Conflict(reason, code="TOO_MANY_DELETES")
    return None


def _refusal(ctx: Context, refused: SweephandError, set_plan: SetPlan, drafts: Mapping[str, JobDraft]) -> Answer:
    """Returns a problem with the current plan."""
    answer = problems.of_error(refused, ctx.request.request_id)
    plan = set_plans.plan_body(ctx, set_plan, drafts)
    return Answer(answer.status, {**answer.body, "plan": plan}, answer.headers, answer.media_type)


# Reading


def _listed(body: object) -> Listed:
    """Reads a list of wanted jobs. Raises InvalidRequest for a repeated key, and for too many jobs."""
    wrong = Mistakes()
    members = fields.members(body, "", ("jobs",), wrong)
    wrong.check()
    value = fields.listed(fields.required(members, "jobs"), "jobs", MOST_JOBS)
    read = [wrong.of(_job, each, n) for n, each in enumerate(value)]
    wrong.check()
    _check_keys([entry for entry, _ in read], wrong)
    wrong.check()
    bodies = {entry.key: entry_body for entry, entry_body in read}
    for entry, entry_body in read:
        for path, key in job_keys.references(entry_body, f"jobs[{entry.place}]", wrong).items():
            if key not in bodies:
                wrong.add(InvalidRequest(path, f'no job of this list has the key "{key}"'))
    wrong.check()
    return Listed([entry for entry, _ in read], bodies)


def _check_keys(wanted: Sequence[Wanted], wrong: Mistakes) -> None:
    """Finds repeated keys. wrong: collects the mistakes."""
    places: dict[str, int] = {}
    for entry in wanted:
        if entry.key in places:
            reason = f'is repeated: jobs[{places[entry.key]}] also has the key "{entry.key}"'
            wrong.add(InvalidRequest(f"jobs[{entry.place}].key", reason))
        places.setdefault(entry.key, entry.place)
    taken: set[str] = set()
    for entry in wanted:
        if entry.was in places:
            wrong.add(InvalidRequest(f"jobs[{entry.place}].was", f'another job of this list has the key "{entry.was}"'))
        elif entry.was in taken:
            wrong.add(InvalidRequest(f"jobs[{entry.place}].was", f'another job of this list was "{entry.was}"'))
        if entry.was is not None:
            taken.add(entry.was)


def _job(value: object, place: int) -> tuple[Wanted, Mapping[str, Any]]:
    """Reads an entry: its keys and the body of its job. The members of the body are read later, if it has changed."""
    path = f"jobs[{place}]"
    value = fields.an_object(value, path)
    members = {name: member for name, member in value.items() if member is not None}
    wrong = Mistakes()
    key = wrong.of(lambda: fields.line(fields.required(members, "key", path), f"{path}.key", 128))
    was = wrong.of(fields.line, members["was"], f"{path}.was", 128) if "was" in members else None
    body = {name: member for name, member in members.items() if name not in job_keys.OWN_MEMBERS}
    refers = job_keys.references(body, path, wrong)
    wrong.check()
    text = dumps(canonical(body))
    if len(text) > LARGEST_JOB:
        raise InvalidRequest(path, f"must have at most {LARGEST_JOB:,} characters, not {len(text):,}")
    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    return Wanted(key, digest, place, was, tuple(refers.values())), jobs.with_names(
        body
    ) if "schedules" in body else body


def _schedules_in(body: Mapping[str, Any]) -> int:
    schedules = body.get("schedules")
    return min(len(schedules), SCHEDULES_AT_ONCE) if isinstance(schedules, list) else 0


def _draft(ctx: Context, set_plan: SetPlan, each: Change, place: int, body: Any, known: dict[str, Home]) -> JobDraft:
    planned = set_plan.job_of(each)
    try:
        body = {"name": _usual_name(set_plan.plan.job_set, each.key), **job_keys.with_ids(body, set_plan.ids)}
        body = jobs.filled(ctx, body, known)
        if planned is None:
            return jobs.new_draft(ctx, body)
        job_members.check_settable(body)
        body = {"schedules": [], **body}
        return jobs.changed_draft(ctx, body, planned, lookup.payloads_of(ctx.world, planned))
    except InvalidRequest as wrong:
        raise job_keys.with_entry_members(wrong, body).within(f"jobs[{place}]") from wrong


def _usual_name(job_set: str, key: str) -> str:
    """Returns the name of a job whose entry has none, which people read in lists and messages."""
    name = f"{job_set}/{key}"
    return name if len(name) <= jobs.LONGEST_NAME else key


# Changing


def _carry_out(ctx: Context, set_plan: SetPlan, drafts: Mapping[str, JobDraft], until: float, *, at_drift: str) -> Done:
    """Makes the changes until the time limit (monotonic). A refusal does not stop the others.

    Jobs that a changed job refers to are made in the same request, because their ids would be unknown later. Raises the
    first refusal if no change could be made.
    """
    done, plan = Done(), set_plan.plan
    by = ctx.by(Operation.APPLY)
    for n, each in enumerate(plan.changes):
        if done.made and ctx.world.clock.monotonic() > until and not _awaited(set_plan, done):
            break
        before = set_plan.job_of(each)
        done.shown[each.key] = set_plans.entry(ctx, set_plan, each, detailed=n < set_plans.DETAILED)
        done.tried.add(each.key)
        try:
            _check_references(each, done)
            job = apply.apply_change(ctx.world, ctx.tenant, set_plan, each, drafts.get(each.key), by)
        except Unavailable:
            raise
        except SweephandError as refused:
            done.failed[each.key] = _within(each, refused)
            continue
        done.made += 1
        if job is None and each.wanted is not None:
            done.unchanged.add(each.key)
        elif job is not None:
            done.jobs[each.key] = job.id
            if before is not None and before.job.revision == job.revision:
                done.unchanged.add(each.key)
            elif each.verb is Verb.REPAIR and at_drift == "run_now" and before is not None and _is_on(job):
                _run_now(ctx, each.key, job, done)
    if done.failed and not done.made:
        raise next(iter(done.failed.values()))
    return done


def _awaited(set_plan: SetPlan, done: Done) -> bool:
    """Returns whether a changed job refers to one that is not made yet, because they refer to each other."""
    new = {each.key for each in set_plan.plan.changes if each.wanted is not None and set_plan.job_of(each) is None}
    made = [each.wanted for each in set_plan.plan.changes if each.key in done.jobs and each.wanted is not None]
    return any(key in new and key not in done.tried for wanted in made for key in wanted.refers)


def _check_references(each: Change, done: Done) -> None:
    """Raises Conflict if a new job to which this one refers was refused, because its id does not exist."""
    for key in each.wanted.refers if each.wanted is not None else ():
        if key in done.failed and done.shown[key]["jobId"] is None:
            raise Conflict(f'it refers to the job "{key}", which was refused: {done.failed[key].reason}')


def _is_on(job: Job) -> bool:
    return job.active and job.pause is None


def _run_now(ctx: Context, key: str, job: Job, done: Done) -> None:
    """Starts a run of a repaired job. If the run is refused, the repair stays, and the answer says so."""
    try:
        apply.run_now(ctx.world, ctx.tenant, job)
    except SweephandError as refused:
        reason = f"it is repaired, but its run did not start: {refused.reason}: to start it, POST /v1/jobs/{job.id}/run"
        done.failed[key] = Conflict(reason, code=refused.code)


def _within(each: Change, refused: SweephandError) -> SweephandError:
    """Returns a refusal with the path of its entry, if it names a member."""
    if isinstance(refused, InvalidRequest) and each.wanted is not None:
        return refused.within(f"jobs[{each.wanted.place}]")
    return refused


# Showing


def _result(plan: Plan, done: Done) -> dict[str, Any]:
    """Returns the tried changes as JSON. A job that was already as wanted counts as unchanged."""
    left = {*(done.failed.keys() - done.jobs.keys()), *done.unchanged}
    shown = [(each, body) for each in plan.changes if each.key not in left and (body := done.shown.get(each.key))]
    made = [(each, {**body, "jobId": done.jobs.get(each.key, body["jobId"])}) for each, body in shown]
    failed = [{"key": key, "code": refused.code, "reason": refused.reason} for key, refused in done.failed.items()]
    return {
        **set_plans.lists_body(plan, made),
        "unchanged": plan.unchanged + len(done.unchanged),
        "failed": failed,
    }


# Lists

LISTED = Table(
    {
        "name": answered(TEXT, says="The name of the set."),
        "appliedAt": answered(INSTANT_MS, says="When a list that creates or changes jobs was last applied."),
        "appliedBy": answered(or_null(TEXT), says="The client id of the caller who applied it."),
        "owner": answered(or_null(text(1, 512)), says="The owner of the set; null if no request has named one."),
    }
)


def list_all(ctx: Context) -> Answer:
    def rows(last: str | None, limit: int) -> Iterator[JobSet]:
        return views.job_sets(ctx.world.table, ctx.tenant, last, limit)

    return ctx.page_of(rows, LISTED.show, mark=lambda each: each.name, fits=lambda mark: 1 <= len(mark) <= 128)


def read(ctx: Context) -> Answer:
    """Returns the set with its jobs by key, and what others have changed since it was applied.

    With `include=figures`, also returns how late and how long its latest runs were.
    """
    include, since = ctx.include(FIGURES), instant(ctx.query, "from", exact_instant)
    limit_s = number(ctx.query, "limitSeconds", 1, LARGEST_LIMIT_S)
    current, members = _find(ctx, ctx.plain("job_set"))
    shown = [_member_body(ctx, member, detailed=n < DETAILED) for n, member in enumerate(_drifted_first(members))]
    body = {**LISTED.show(current), "jobs": sorted(shown, key=lambda each: str(each["key"]))}
    if not include and (idle := next((name for name in ("from", "limitSeconds") if name in ctx.query), None)):
        raise InvalidRequest(idle, "has an effect only with include=figures", code="INVALID_QUERY")
    if include:
        body["figures"] = set_figures.body(ctx, members, since or ctx.now - FIGURES_BACK, limit_s)
    return Answer(200, body)


def _drifted_first(members: Sequence[Member]) -> list[Member]:
    return sorted(members, key=lambda member: member.digest is not None)


def _find(ctx: Context, name: str) -> tuple[JobSet, list[Member]]:
    current = views.job_set(ctx.world.table, ctx.tenant, name)
    if current is None:
        raise apply.no_such_set(name)
    return current, views.members(ctx.world.table, ctx.tenant, name)


def _member_body(ctx: Context, member: Member, *, detailed: bool) -> dict[str, Any]:
    body = {"key": member.key, "jobId": member.job_id, "state": "applied", "changes": []}
    if member.digest is not None:
        return body
    if member.gone:
        return {**body, "state": "deleted"}
    return {**body, "state": "changed", "changes": _changes(ctx, member) if detailed else None}


def _changes(ctx: Context, member: Member) -> list[dict[str, Any]]:
    """Returns the entries of the change log since the set was applied, newest first."""
    entries = []
    for entry in islice(views.changes(ctx.world.table, ctx.tenant, member.job_id, None, DETAILED), DETAILED):
        if entry.operation == Operation.APPLY:
            break
        if entry.actor is not None and entry.operation not in NOT_OF_THE_SET:
            entries.append(changes.entry_body(ctx, entry))
    return entries
