"""`make bench`: measures, prints, and writes docs/benchmarks.md between its marks."""

from __future__ import annotations

import logging
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench import cold_start, cpu, lists, outcomes, runs, sap, units
from tests.bench.runtime import Python, measuring_python

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures: written by make bench -->", "<!-- end of figures -->"
BUDGETS = {
    "sweeper, ready": "1.15",
    "sweeper, ready to send": "-",
    "executor, ready": "1.2",
    "executor, first HTTP call": "1.7",
    "auditor, ready": "-",
    "api, ready": "1.35",
}
WRITE_BUDGETS = {
    "success": "5",
    "success, payload of 8 KB": "5",
    "failure without retry": "12",
    "202, then its callback": "13",
}


def main() -> int:
    logging.disable(logging.INFO)
    python = measuring_python()
    with tempfile.TemporaryDirectory() as folder:
        layers = cold_start.build(Path(folder), python)
        mib = cold_start.unpacked_mib(layers, python)
        starts = cold_start.measure(Path(folder), layers, python)
    counted, idle, shards = units.measure()
    pages = [
        _page(python, starts, mib, counted, idle, shards),
        _cpu(cpu.measure()),
        _lists(*lists.measure()),
        _sap(sap.measure()),
    ]
    text = "\n".join(line for page in pages for line in page)
    sys.stdout.write(text + "\n")
    head, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}")
    return 0


def _page(
    python: Python,
    starts: list[cold_start.ColdStart],
    mib: float,
    counted: list[units.Units],
    idle: dict[str, int],
    shards: int,
) -> Iterator[str]:
    which = (
        "the functions' own version" if python.is_runtime else "not the functions' version: none with boto3 was found"
    )
    yield f"Cold starts with Python {python.version} ({which}); {os.cpu_count()} processors, {platform.machine()}."
    yield f"At the end of this run {os.getloadavg()[0]:.1f} processes wanted them: times of a busy machine are long."
    yield ""
    yield f"Layers, unpacked: {mib:.1f} MiB (budget 16)."
    yield ""
    yield "| cold start | CPU ms, median | ratio to a bare boto3 client: median (least-most) | budget |"
    yield "| --- | --: | --: | --: |"
    for each in starts:
        ratio = f"{each.ratio:.2f} ({each.least:.2f}-{each.most:.2f})"
        yield f"| {each.name} | {each.ms:.0f} | {ratio} | {BUDGETS[each.name]} |"
    yield ""
    yield "| a run, from the sweep's advance to its last effect | write units | read units | budget (writes) |"
    yield "| --- | --: | --: | --: |"
    for run in counted:
        yield f"| {run.name} | {run.writes:g} | {run.reads:g} | {WRITE_BUDGETS.get(run.name, '-')} |"
    for name, way in outcomes.WAYS.items():
        if name not in {run.name for run in counted}:
            yield f"| {name} | {way.units} | - | {WRITE_BUDGETS.get(name, '-')} |"
    yield ""
    calls = ", ".join(f"{count} {name}" for name, count in sorted(idle.items()))
    budget = "budget: a query a shard and one for what is disabled, no write"
    yield f"An idle tick over {shards} shards: {calls} ({budget})."


CPU_BUDGETS = {cpu.EACH_MINUTE: "200", cpu.EVERY_5_S: "200", runs.ALL_ON: "2,500"}


def _cpu(measured: list[cpu.Cpu]) -> Iterator[str]:
    yield ""
    yield "| CPU, on AWS that answers at once | us, median | least-most | budget |"
    yield "| --- | --: | --: | --: |"
    for each in measured:
        yield f"| {each.name} | {each.us:.0f} | {each.least:.0f}-{each.most:.0f} | {CPU_BUDGETS.get(each.name, '-')} |"


def _sap(found: list[lists.Listed]) -> Iterator[str]:
    empty = next(each for each in found if each.name == lists.EMPTY)
    yield ""
    what = f"SAP's routes at {sap.JOBS:,} jobs, ms beyond the empty route"
    yield f"| {what} | p50 | p99 | CPU | read units | write units | budget |"
    yield "| --- | --: | --: | --: | --: | --: | --: |"
    for each in found:
        if each is not empty:
            times = (each.p50_ms - empty.p50_ms, each.p99_ms - empty.p99_ms, each.cpu_ms - empty.cpu_ms)
            p50, p99, used = (f"{value:.0f}" for value in times)
            units_ = f"{each.units:g} | {each.writes:g}"
            yield f"| {each.name} | {p50} | {p99} | {used} | {units_} | {sap.budget(each.name)} |"


def _lists(found: list[lists.Listed], at_many: list[tuple[str, float]]) -> Iterator[str]:
    """Times beyond the empty route's, as the budgets are."""
    empty = next(each for each in found if each.name == lists.EMPTY)
    yield ""
    yield f"The empty route takes {empty.p50_ms:.0f} ms, p99 {empty.p99_ms:.0f} ms, {empty.cpu_ms:.0f} ms of CPU."
    yield ""
    yield f"| {lists.JOBS:,} jobs, ms beyond the empty route | p50 | p99 | CPU | read units | budget |"
    yield "| --- | --: | --: | --: | --: | --: |"
    for each in found:
        if each is not empty:
            times = (each.p50_ms - empty.p50_ms, each.p99_ms - empty.p99_ms, each.cpu_ms - empty.cpu_ms)
            p50, p99, used = (f"{value:.0f}" for value in times)
            yield f"| {each.name} | {p50} | {p99} | {used} | {each.units:g} | {lists.BUDGETS.get(each.name, '400')} |"
    yield ""
    yield f"| the directory of {lists.MANY:,} jobs | read units |"
    yield "| --- | --: |"
    for name, units_read in at_many:
        yield f"| {name} | {units_read:g} |"


if __name__ == "__main__":
    sys.exit(main())
