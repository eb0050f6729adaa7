"""The figures of a job set: how late and how long its latest runs were."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sweephand.base.json_schema import answer, or_null, whole
from sweephand.domain.answers import Table, answered
from sweephand.domain.job_set import Member
from sweephand.domain.runs.figures import Figures, figures_of
from sweephand.domain.schema_words import INSTANT_MS
from sweephand.server.facades.native.context import Context
from sweephand.server.flow.runs import run_lists
from sweephand.server.store.views.runs import Span

MOST_RUNS = 1_000


class _Shown(NamedTuple):
    """The figures of the runs since an instant. limit_s: of the request. complete: whether all runs are counted."""

    figures: Figures
    since: datetime
    limit_s: int | None
    complete: bool


def _spread(words: str, name: str) -> Any:
    return answered(
        or_null({"type": "number", "minimum": 0}),
        lambda spread: None if (value := getattr(spread, name)) is None else round(value, 3),
        f"{words} of the runs took at most this; null: no runs.",
    )


SPREAD = Table({"p50": _spread("Half", "p50"), "p99": _spread("99 of 100", "p99")})
FIGURES = Table(
    {
        "from": answered(INSTANT_MS, "since", "Runs planned at or after this instant are counted."),
        "complete": answered(
            {"type": "boolean"},
            says=f"Whether all runs since `from` are counted. At most the latest {MOST_RUNS:,} are.",
        ),
        "runs": answered(whole(), "figures.runs", "How many runs were carried out and have ended."),
        "failed": answered(whole(), "figures.failed", "How many runs failed for good."),
        "retried": answered(whole(), "figures.retried", "How many runs had more than one attempt."),
        "latenessSeconds": answered(
            answer(SPREAD.answer()),
            lambda shown: SPREAD.show(shown.figures.lateness),
            "From the planned instant to the first attempt.",
        ),
        "criticalSeconds": answered(
            answer(SPREAD.answer()),
            lambda shown: SPREAD.show(shown.figures.critical),
            "From the planned instant to the end of the run.",
        ),
        "limitSeconds": answered(or_null(whole(1)), "limit_s", "The limit of the request."),
        "breachInSeconds": answered(
            or_null(whole()),
            lambda shown: shown.figures.breach_in_s and round(shown.figures.breach_in_s),
            "When the critical time will reach the limit if it grows as before; 0: it has. Null: it does not grow, or "
            "no limit was given.",
        ),
    }
)


def body(ctx: Context, members: Sequence[Member], since: datetime, limit_s: int | None) -> dict[str, Any]:
    jobs = [member.job_id for member in members if not member.gone]
    runs = run_lists.latest_of(ctx.world, ctx.tenant, jobs, Span(since, ctx.now), MOST_RUNS + 1)
    return FIGURES.show(_Shown(figures_of(runs[:MOST_RUNS], limit_s), since, limit_s, len(runs) <= MOST_RUNS))
