"""`make bench`: measures, prints, and writes docs/benchmarks.md between the marks of each part.

`make bench PARTS="azure units"` measures only these.
"""

from __future__ import annotations

import logging
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench import azure, cold_start, console, cpu, creation, lists, outcomes, runs, sap, units
from bench.runtime import measuring_python

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures of {}: written by make bench -->", "<!-- end of the figures of {} -->"
BUDGETS = {
    "sweeper, ready": "1.15",
    "sweeper, ready to send": "-",
    "executor, ready": "1.2",
    "executor, first HTTP call": "1.7",
    "auditor, ready": "-",
    "api, ready": "1.35",
    "api of Azure, ready": "1.35",
}
WRITE_BUDGETS = {
    "success": "5",
    "success, payload of 8 KB": "5",
    "failure without retry": "12",
    "202, then its callback": "13",
    "success of a job of Azure": "7",
}


def main() -> int:
    """Measures the parts that are named, or all of them."""
    logging.disable(logging.INFO)
    for name in sys.argv[1:] or PARTS:
        text = "\n".join(PARTS[name]())
        sys.stdout.write(text + "\n\n")
        begin, end = BEGIN.format(name), END.format(name)
        head, _, rest = PAGE.read_text().partition(begin)
        PAGE.write_text(f"{head}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}")
    return 0


def _starts() -> Iterator[str]:
    python = measuring_python()
    with tempfile.TemporaryDirectory() as folder:
        layers = cold_start.build(Path(folder), python)
        mib = cold_start.unpacked_mib(layers, python)
        starts = cold_start.measure(Path(folder), layers, python)
    which = (
        "the functions' own version" if python.is_runtime else "not the functions' version: none with boto3 was found"
    )
    yield f"Cold starts with Python {python.version} ({which}); {os.cpu_count()} processors, {platform.machine()}."
    yield f"At the end the load was {os.getloadavg()[0]:.1f} processes. Times are longer on a busy machine."
    yield ""
    yield f"Layers, unpacked: {mib:.1f} MiB (budget 16)."
    yield ""
    yield "| cold start | CPU ms, median | ratio to a bare boto3 client: median (least-most) | budget |"
    yield "| --- | --: | --: | --: |"
    for each in starts:
        ratio = f"{each.ratio:.2f} ({each.least:.2f}-{each.most:.2f})"
        yield f"| {each.name} | {each.ms:.0f} | {ratio} | {BUDGETS[each.name]} |"


def _units() -> Iterator[str]:
    counted, idle, shards = units.measure()
    yield "| a run, from the sweep's advance to its last effect | write units | read units | budget (writes) |"
    yield "| --- | --: | --: | --: |"
    for run in counted:
        yield f"| {run.name} | {run.writes:g} | {run.reads:g} | {WRITE_BUDGETS.get(run.name, '-')} |"
    for name, way in outcomes.WAYS.items():
        if name not in {run.name for run in counted}:
            yield f"| {name} | {way.units} | - | {WRITE_BUDGETS.get(name, '-')} |"
    yield ""
    calls = ", ".join(f"{count} {name}" for name, count in sorted(idle.items()))
    budget = "budget: one query for each shard, one for disabled owners, and no write"
    yield f"An idle tick over {shards} shards: {calls} ({budget})."


CPU_BUDGETS = {cpu.EACH_MINUTE: "200", cpu.EVERY_5_S: "200", runs.ALL_ON: "2,500"}


def _cpu() -> Iterator[str]:
    yield "| CPU, on AWS that answers at once | us, median | least-most | ratio to botocore alone | budget, us |"
    yield "| --- | --: | --: | --: | --: |"
    for each in cpu.measure():
        times = f"{each.us:.0f} | {each.least:.0f}-{each.most:.0f} | {each.ratio:.2f}"
        yield f"| {each.name} | {times} | {CPU_BUDGETS.get(each.name, '-')} |"


def _lists() -> Iterator[str]:
    """Times beyond the empty route's, as the budgets are."""
    found, at_many = lists.measure()
    empty = next(each for each in found if each.name == lists.EMPTY)
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


def _sap() -> Iterator[str]:
    return _routes(f"SAP's routes at {sap.JOBS:,} jobs", sap.measure(), sap.budget)


def _azure() -> Iterator[str]:
    what = f"Azure's routes in a collection of {azure.JOBS:,} jobs"
    return _routes(what, azure.measure(), lambda name: azure.BUDGETS.get(name, "100"))


def _routes(what: str, found: list[lists.Listed], budget: Callable[[str], str]) -> Iterator[str]:
    """Times beyond the empty route's, as the budgets are."""
    empty = next(each for each in found if each.name == lists.EMPTY)
    yield f"| {what}, ms beyond the empty route | p50 | p99 | CPU | calls | read units | write units | budget |"
    yield "| --- | --: | --: | --: | --: | --: | --: | --: |"
    for each in found:
        if each is not empty:
            times = (each.p50_ms - empty.p50_ms, each.p99_ms - empty.p99_ms, each.cpu_ms - empty.cpu_ms)
            p50, p99, used = (f"{value:.0f}" for value in times)
            counts = f"{each.calls} | {each.units:g} | {each.writes:g}"
            yield f"| {each.name} | {p50} | {p99} | {used} | {counts} | {budget(each.name)} |"


def _console() -> Iterator[str]:
    yield "| in the console, ms | p50 | worst of nine | the longest request in it | requests | budget |"
    yield "| --- | --: | --: | --: | --: | --: |"
    for each in console.measure():
        figures = f"{each.p50_ms:.0f} | {each.worst_ms:.0f} | {each.api_ms:.0f} | {each.requests}"
        yield f"| {each.name} | {figures} | {console.BUDGETS.get(each.name, 500)} |"
    yield ""
    yield f"At the end the load was {os.getloadavg()[0]:.1f} processes on {os.cpu_count()} processors."


def _creation() -> Iterator[str]:
    yield f"| {creation.CLIENTS} clients of one tenant create | a second | p50, ms | p99 | CPU ms of one | budget |"
    yield "| --- | --: | --: | --: | --: | --: |"
    for each in creation.measure():
        parts = " + ".join(f"{ms:.1f} {part}" for part, ms in each.cpu_ms.items())
        times = f"{each.rate:.0f} | {each.p50_ms:.0f} | {each.p99_ms:.0f}"
        yield f"| {each.name} | {times} | {sum(each.cpu_ms.values()):.1f}: {parts} | {creation.BUDGET_MS} |"
    yield ""
    yield f"At the end the load was {os.getloadavg()[0]:.1f} processes on {os.cpu_count()} processors."


PARTS: Mapping[str, Callable[[], Iterator[str]]] = {
    "starts": _starts,
    "units": _units,
    "cpu": _cpu,
    "lists": _lists,
    "sap": _sap,
    "azure": _azure,
    "console": _console,
    "creation": _creation,
}


if __name__ == "__main__":
    sys.exit(main())
