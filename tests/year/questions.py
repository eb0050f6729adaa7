"""Questions about single instants, whose answers must follow from the ledger as it is at that moment."""

from __future__ import annotations

from datetime import datetime, timedelta

from sweephand.domain.instants import epoch_s
from sweephand.domain.run import Kind, Run
from sweephand.domain.schedule import StateReason
from sweephand.server.store.jobs import jobs
from tests.contract.calls import Reply
from tests.support.stage import TENANT
from tests.year.courses import CLOCKS, OLD_PLAN, Course, Span
from tests.year.rules import shown
from tests.year.tenant import Tenant

KNOWN = timedelta(days=14)
"""The ledger keeps a row for a day longer at least."""


def ask(tenant: Tenant, course: Course, instant: datetime) -> None:
    """Asks why that instant ran, or did not, and notes an answer that the ledger contradicts."""

    def then(reply: Reply, _span: Span) -> None:
        if reply.status < 400 and course.gone is None:  # people may delete it in the middle of the question
            tenant.wrong += [
                f"explain {shown(instant)} of {course.id} {each}" for each in _at_odds(tenant, course, instant, reply)
            ]

    path = f"/v1/jobs/{course.job_id}/schedules/{course.id}/explain"
    tenant.ask("GET", path, query={"at": shown(instant)}, then=then, expects=(404,))


def some(tenant: Tenant, number: int) -> None:
    """Asks about instants of living schedules, past and future, and about some that are none."""
    courses = [course for course in tenant.courses if course.gone is None]
    for _ in range(number if courses else 0):
        course = tenant.chance.choice(courses)
        near = min(KNOWN, tenant.length / 10)
        since = tenant.now + tenant.chance.uniform(-1, 0.2) * near
        instants = course.allowed(since + near / 10) if tenant.chance.random() < 0.9 else set()
        close = sorted(each for each in instants if since < each)[:3]
        ask(tenant, course, tenant.chance.choice(close) if close else since.replace(microsecond=0))


def count(tenant: Tenant) -> None:
    """Notes schedules that have planned more than their count or their quota allows, or have ended with fewer."""
    table = tenant.service.scene.world.table
    for course in tenant.courses:
        if course.gone is not None or len(course.plans) > 1 or course.rule.count is None:
            continue
        stored = jobs.read_schedule(table, TENANT, course.job_id, course.id)
        if stored is None:
            continue
        used_up = stored.state_reason in {StateReason.COUNT_REACHED, StateReason.QUOTA_REACHED}
        planned, limit = stored.planned_total, course.rule.count
        if planned > limit or (used_up and planned != limit):
            tenant.wrong.append(f"{planned} planned of {limit}: {course.id} {dict(course.rule.body)} {stored.state}")


def _at_odds(tenant: Tenant, course: Course, instant: datetime, reply: Reply) -> list[str]:
    answer, now = reply.json, tenant.now
    runs = [run for run in tenant.service.watch.runs_of(course.id) if run.kind is Kind.SCHEDULED]
    kept = [run for run in runs if run.expires_at is None or epoch_s(run.expires_at) > epoch_s(now)]
    own = [run for run in kept if run.range_count is None and run.planned_at == instant]
    lines = [run for run in kept if run.range_until is not None and run.planned_at <= instant <= run.range_until]
    said = f"says {answer}"
    if own:
        return [] if _is_of(answer, own[0]) else [f"{said}, its row is {own[0].state} {own[0].reason} {own[0].id}"]
    owed = instant in course.owed(instant)
    if owed and lines and now - instant < KNOWN:
        return [] if any(_is_of(answer, line) for line in lines) else [f"{said}, its line is {lines}"]
    if not lines and answer["runId"] is not None:
        return [f"{said}, but it has no row"]
    if owed and instant > now + CLOCKS + OLD_PLAN and not course.perhaps_off(now, instant) and not answer["occurs"]:
        return [f"{said}, but it will run"]
    if answer["occurs"] and not own and not course.free and instant not in course.allowed(instant):
        return [f"{said}, but it is of no plan"]
    return []


def _is_of(answer: dict[str, object], run: Run) -> bool:
    return (answer["runId"], answer["state"]) == (run.id, run.state.value)
