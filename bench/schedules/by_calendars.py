"""The cost that calendars add: one next, a refusal of what they leave nothing, and all of a preview but its JSON."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from datetime import timedelta
from itertools import islice
from typing import Any, NamedTuple

from bench.schedules.cases import NOW
from sweephand.base.errors import InvalidRequest
from sweephand.schedules.calendars import calendar_content, calendars
from sweephand.schedules.explain import explain, gaps, preview_warnings
from sweephand.schedules.explain.preview_warnings import describe
from sweephand.schedules.timing import Timing, parse
from sweephand.schedules.zones.localtime import to_second

_DAYS = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]
CONTENTS: dict[str, dict[str, Any]] = {
    "always": {"weekly": [{"days": _DAYS}]},
    "weekdays": {"weekly": [{"days": _DAYS[:5]}]},
    "weekends": {"weekly": [{"days": _DAYS[5:]}]},
    "nights": {"weekly": [{"days": _DAYS, "from": "17:00", "to": "09:00"}]},
    "office": {"weekly": [{"days": _DAYS[:5], "from": "09:00", "to": "17:00"}]},
    "half hours": {"weekly": [{"days": _DAYS, "from": f"{n:02d}:10", "to": f"{n:02d}:40"} for n in range(24)]},
    "Christmas": {"dates": ["12-25"]},
    "2,000 Saturdays": {"dates": [(NOW.date() + timedelta(days=7 * n)).isoformat() for n in range(2_000)]},
}
QUESTIONS = 300


class Case(NamedTuple):
    """uses: "+office" includes, "-office" excludes; with ">" what is stopped rolls to the next day, with "<" back."""

    rule: dict[str, Any]
    uses: tuple[str, ...]
    zone: str = "America/New_York"

    def __str__(self) -> str:
        ((member, text),) = self.rule.items()
        return f"`{member}` `{text}`, {', '.join(self.uses)}"


_MINUTE, _HOUR, _MORNING, _END = (
    {"cron": "* * * * *"},
    {"cron": "0 * * * *"},
    {"cron": "0 9 * * *"},
    {"cron": "0 9 31 * *"},
)
NEXT = [
    *(Case(rule, ("-weekends",)) for rule in (_MINUTE, _MORNING, _END)),
    *(Case(rule, ("+office",)) for rule in (_MINUTE, _HOUR, _MORNING)),
    Case({"sapCron": "* * * * * * *"}, ("+half hours",)),
    Case(_MINUTE, ("-2,000 Saturdays", "-nights")),
    Case({"cron": "0 0 29 2 *"}, ("-weekends",)),
    *(Case(rule, ("-weekends>",)) for rule in (_HOUR, _MORNING, _END)),
    *(Case(rule, ("+office>",)) for rule in (_MORNING, _END)),
    Case({"rrule": "FREQ=MONTHLY;BYDAY=1SA;BYHOUR=12;BYMINUTE=0;BYSECOND=0"}, ("+office<",)),
    Case(_MORNING, ("+Christmas>",)),
]
NEVER = [
    Case(_MORNING, ("-always",)),
    Case(_MORNING, ("-always>",)),
    Case({"sapCron": "* * * * * * *"}, ("-weekdays", "-weekends")),
    Case({"cron": "30 2 * * *"}, ("+office",)),
    Case({"rrule": "FREQ=MONTHLY;BYDAY=1SA"}, ("+weekdays",)),
    Case(_MORNING, ("+2,000 Saturdays", "+nights")),
    Case(_END, ("+Christmas",)),
    Case({"cron": "0 9 * 3 *"}, ("+Christmas>",)),
    Case({"cron": "0 9 25 12 *"}, ("-Christmas",)),
    Case({"cron": "0 9 * * 1"}, ("+2,000 Saturdays",)),
]
PREVIEWS = [
    *(Case(_MINUTE, uses) for uses in (("-weekends",), ("-nights",), ("+office",), ("-2,000 Saturdays", "-nights"))),
    Case({"sapCron": "* * * * * * *"}, ("+half hours",)),
    *(Case(_HOUR, uses) for uses in (("-weekends>",), ("+office>",), ("+2,000 Saturdays<",))),
    Case(_MORNING, ("+office>",)),
]


def tables() -> list[str]:
    """Returns the lines of three tables."""
    return [
        "| next with calendars (- excludes, + includes, > and < roll) | us, median | slowest hundredth | goal |",
        "| --- | --: | --: | --: |",
        *(f"| {case} | {median:.0f} | {p99:.0f} | 1,000 |" for case in NEXT for median, p99 in [_next_us(case)]),
        "",
        "| refused, because its calendars exclude every time | ms | goal |",
        "| --- | --: | --: |",
        *(f"| {case} | {_least_ms(lambda case=case: _refused(case)):.2f} | 1 |" for case in NEVER),
        "",
        "| preview: the next five, gaps, warnings, what is left out | ms | gaps of days | goal |",
        "| --- | --: | --: | --: |",
        *(
            f"| {case} | {_least_ms(lambda timing=timing: _preview(timing)):.1f} | {_measured_days(timing)} | 20 |"
            for case in PREVIEWS
            for timing in [_timing(case)]
        ),
        "",
    ]


def _timing(case: Case) -> Timing:
    book, uses = {}, []
    for use in case.uses:
        name = use[1:].rstrip("<>")
        book[name] = f"bench-{name}"
        if not calendars.known(book[name]):
            calendars.keep(book[name], calendar_content.read(CONTENTS[name]))
        mode, roll = "include" if use[0] == "+" else "exclude", {">": "next", "<": "previous"}.get(use[-1], "none")
        uses.append({"name": name, "mode": mode, "roll": roll})
    return parse({**case.rule, "calendars": uses, "timezone": case.zone}, now=NOW, book=book)


def _next_us(case: Case) -> tuple[float, float]:
    """Measures by the thread's own clock. Instants nine days apart, for eight years."""
    rule, begin = _timing(case).rule, to_second(NOW)
    taken = []
    for number in range(QUESTIONS):
        begun = time.thread_time_ns()
        rule.after(begin + 777_777 * number)
        taken.append((time.thread_time_ns() - begun) / 1_000)
    return statistics.median(taken), statistics.quantiles(taken, n=100)[98]


def _refused(case: Case) -> None:
    try:
        _timing(case)
    except InvalidRequest as refused:
        if refused.code == "NEVER_FIRES":
            return
    raise AssertionError(f"{case} is not refused as one that never fires")


def _preview(timing: Timing) -> gaps.Stretch | None:
    begin, items = to_second(NOW), explain.preview(timing, NOW, 5)
    describe(timing, NOW)
    preview_warnings.cautions(timing, NOW)
    explain.dropped(timing, NOW, items[-1].instant, 100)
    list(islice(explain.left_out(timing, NOW, items[-1].instant), 100))
    return gaps.measure(timing.rule, begin, begin + preview_warnings.YEAR_S)


def _measured_days(timing: Timing) -> int:
    found = _preview(timing)
    return 0 if found is None else (found.until - to_second(NOW)) // 86_400


def _least_ms(ask: Callable[[], object]) -> float:
    taken = []
    for _ in range(5):
        begun = time.thread_time_ns()
        ask()
        taken.append((time.thread_time_ns() - begun) / 1e6)
    return min(taken)
