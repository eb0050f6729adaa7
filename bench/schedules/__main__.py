"""`make bench-schedules`: measures, prints, and writes docs/benchmarks.md between its own marks."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from bench.schedules import by_calendars
from bench.schedules.cases import CASES, LEAP_MONDAY
from bench.schedules.engines import ENGINES, without_caches
from bench.schedules.measure import Measured, import_ms, measure, mix, refusals
from sweephand.schedules.notations import NOTATIONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures: written by make bench-schedules -->", "<!-- end of the figures of schedules -->"
GOALS = {"limit": ("0.8", "0.7"), "cronsim": ("1.5", "-"), "dateutil": ("1", "-")}
_CRON = "import sweephand.schedules.timing, sweephand.schedules.notations.cron"
_FIRST = "sweephand.schedules.timing.parse({'cron': '30 2 * * 1-5', 'timezone': 'Europe/Berlin'}, now=now)"
IMPORTED = ("import sweephand.schedules.timing", _CRON, f"{_CRON}\n{_FIRST}.rule.next_after(now)")
PACKAGES = {"cronsim": "cronsim", "croniter": "croniter", "APScheduler": "apscheduler", "dateutil": "python-dateutil"}


def main() -> int:
    with without_caches():
        measured = [measure(case) for case in CASES if case.notation in NOTATIONS]
    tables = (_head, _engines, _ages, _others)
    lines = [line for table in tables for line in table(measured)]
    text = "\n".join([*lines, *by_calendars.tables(), *_cases(measured)])
    sys.stdout.write(text + "\n")
    head, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}")
    return 0


def _head(measured: list[Measured]) -> Iterator[str]:
    yield f"{len(measured)} expressions, Python {platform.python_version()}, {os.cpu_count()} processors."
    yield f"At the end of this run the load was {os.getloadavg()[0]:.1f} processes."
    yield ""


def _engines(measured: list[Measured]) -> Iterator[str]:
    yield "The numbers are their time divided by Sweephand's: over all cases, and in the worst case."
    yield ""
    yield "| engine | cases with the same answer | text to instant | goal | text read before | goal |"
    yield "| --- | --: | --: | --: | --: | --: |"
    for name in ENGINES:
        if name == "Sweephand":
            continue
        text, worst_text, cases = mix(measured, name, read=False)
        read, worst_read, _ = mix(measured, name, read=True)
        if not cases:
            continue
        shown = "minimal bit-mask loop" if name == "limit" else f"{name} {version(PACKAGES[name])}"
        asked = sum(name in each.text_us for each in measured)
        goal_text, goal_read = GOALS.get(name, ("-", "-"))
        ratios = f"{text:.2f}, {worst_text:.2f} | {goal_text} | {read:.2f}, {worst_read:.2f} | {goal_read}"
        yield f"| {shown} | {cases} of {asked} | {ratios} |"
    yield ""


def _ages(measured: list[Measured]) -> Iterator[str]:
    """Writes a rule's cost by the age of its anchor."""
    rules = {each.case.text: each.case.zone for each in measured if each.case.notation == "rrule"}
    if not rules:
        return
    yield "| rule, text to instant | us at 1, 5, 50 years | spread | goal | dateutil, us |"
    yield "| --- | --: | --: | --: | --: |"
    for text in rules:
        found = [each for each in measured if each.case.text == text and each.case != LEAP_MONDAY]
        if len(found) < 2:
            continue
        ours = [each.text_us["Sweephand"] for each in found]
        theirs = ", ".join(f"{each.text_us['dateutil']:.1f}" for each in found)
        shown = ", ".join(f"{us:.1f}" for us in ours)
        yield f"| `{text}` | {shown} | {max(ours) / min(ours):.2f} | 1.15 | {theirs} |"
    yield ""


def _others(measured: list[Measured]) -> Iterator[str]:
    slowest = max(measured, key=lambda each: each.p99_us)
    yield "| what | figure | goal |"
    yield "| --- | --: | --: |"
    yield f"| slowest hundredth of one next, of any case: `{slowest.case.text}` | {slowest.p99_us / 1000:.3f} ms | 1 |"
    for notation, text, taken in refusals():
        yield f"| `{notation}` `{text}` refused | {taken:.3f} ms | 1 |"
    timing, cron, asked = import_ms(*IMPORTED)
    yield f"| import beyond zoneinfo and dateutil | {timing:.1f} ms | 5 |"
    yield f"| the same with `cron` | {cron:.1f} ms | 5 |"
    yield f"| the same, and the first next of the first text, in Berlin | {asked:.1f} ms | - |"
    yield ""


def _cases(measured: list[Measured]) -> Iterator[str]:
    """Writes microseconds; an engine whose answers differ is in brackets."""
    yield "| us, text to instant | Sweephand | read before | " + " | ".join(list(ENGINES)[1:]) + " |"
    yield "| --- | --: | --: |" + " --: |" * (len(ENGINES) - 1)
    for each in measured:
        case = each.case
        where = "" if case.zone == "UTC" else f", {case.zone}"
        age = f", {case.anchor_years} y" if case.anchor_years else ""
        cells = []
        for name in list(ENGINES)[1:]:
            us = each.text_us.get(name)
            cells.append("" if us is None else f"{us:.1f}" if name in each.agrees else f"({us:.1f})")
        ours = f"{each.text_us['Sweephand']:.1f} | {each.read_us['Sweephand']:.1f}"
        yield f"| `{case.text}`{where}{age} | {ours} | {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
