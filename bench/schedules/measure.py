"""Times of questions, with all engines in one process, so that a busy machine is as busy for each of them."""

from __future__ import annotations

import compileall
import gc
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from bench.schedules.cases import AFTERS, NEVER, NOW, Case
from bench.schedules.engines import ENGINES, Engine
from sweephand.base.errors import InvalidRequest
from sweephand.schedules.notations import NOTATIONS
from sweephand.schedules.timing import parse

ROUNDS, PASSES = 5, 4
PACKAGE = Path(import_module("sweephand").__file__ or "").parent
BEFORE_IMPORT = """import zoneinfo, dateutil.rrule, tzdata, json, datetime, typing
now = datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC)"""
SINGLE = 1_500
"""Questions timed one by one, for the slowest hundredth."""


class Measured(NamedTuple):
    """us by engine: the least mean of all rounds. agrees: engines that answered every question as Sweephand did."""

    case: Case
    text_us: dict[str, float]
    read_us: dict[str, float]
    agrees: frozenset[str]
    p99_us: float


def measure(case: Case) -> Measured:
    engines = {name: engine for name, make in ENGINES.items() if (engine := _made(make, case)) is not None}
    ours = [engines["Sweephand"].text(after) for after in AFTERS]
    agrees = frozenset(name for name, each in engines.items() if [_asked(each, after) for after in AFTERS] == ours)
    text_us: dict[str, float] = {}
    read_us: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, engine in engines.items():
            text_us[name] = min(text_us.get(name, 1e9), _mean_us(engine.text))
            read_us[name] = min(read_us.get(name, 1e9), _mean_us(engine.read))
    return Measured(case, text_us, read_us, agrees, _p99_us(engines["Sweephand"].read))


def _made(make: Callable[[Case], Engine | None], case: Case) -> Engine | None:
    try:
        return make(case)
    except (KeyError, ValueError, InvalidRequest):
        return None  # a dialect that it does not speak


def _asked(engine: Engine, after: datetime) -> datetime | None:
    try:
        return engine.text(after)
    except Exception:  # noqa: BLE001 - another engine's fault is an answer that differs
        return None


def _mean_us(ask: Callable[[datetime], object]) -> float:
    """Returns the best of a few passes: the first finds the processor full of the engine before."""
    gc.disable()
    taken = []
    for _ in range(PASSES):
        begun = time.perf_counter_ns()
        for after in AFTERS:
            ask(after)
        taken.append(time.perf_counter_ns() - begun)
    gc.enable()
    return min(taken) / len(AFTERS) / 1_000


def _p99_us(ask: Callable[[datetime], object]) -> float:
    """Measures by the thread's own clock: what other processes take is not counted."""
    taken = []
    for number in range(SINGLE):
        after = AFTERS[number % len(AFTERS)]
        begun = time.thread_time_ns()
        ask(after)
        taken.append(time.thread_time_ns() - begun)
    return statistics.quantiles(taken, n=100)[98] / 1_000


def refusals() -> list[tuple[str, str, float]]:
    """Yields (notation, text, milliseconds until it is refused as one that never fires), with empty caches."""
    found = []
    for notation, text in NEVER:
        if notation not in NOTATIONS:
            continue
        taken = min(_refused_ms(notation, text, number) for number in range(5))
        found.append((notation, text, taken))
    return found


def _refused_ms(notation: str, text: str, number: int) -> float:
    spelled = text.replace(" ", " " * (number + 1), 1) if notation == "cron" else text  # another text each time
    begun = time.perf_counter_ns()
    try:
        parse({notation: spelled}, now=NOW)
    except InvalidRequest as refused:
        taken = (time.perf_counter_ns() - begun) / 1e6
        if refused.code == "NEVER_FIRES":
            return taken
    raise AssertionError(f"{text} is not refused as one that never fires")


def import_ms(*programs: str) -> list[float]:
    """Milliseconds of process time that each adds to what stands before it, the least of several processes.

    Measures with byte code next to the package, as it is shipped.
    """
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(
            PACKAGE, Path(folder, PACKAGE.name), ignore=shutil.ignore_patterns("__pycache__", "openapi.json")
        )
        compileall.compile_dir(folder, quiet=2)
        return [min(_import_ms(folder, program) for _ in range(15)) for program in programs]


def _import_ms(folder: str, program: str) -> float:
    timed = "import time\nbegun = time.process_time()\n{}\nprint((time.process_time() - begun) * 1000)"
    command = [sys.executable, "-c", f"{BEFORE_IMPORT}\n{timed.format(program)}"]
    environment = {**os.environ, "PYTHONPATH": folder}
    return float(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def mix(measured: Iterable[Measured], engine: str, *, read: bool) -> tuple[float, float, int]:
    """Returns (one question of each case: the engine's time over Sweephand's; the worst case; how many cases both
    answer).
    """
    pairs = []
    for each in measured:
        us = each.read_us if read else each.text_us
        if engine in us and engine in each.agrees:
            pairs.append((us[engine], us["Sweephand"]))
    if not pairs:
        return 0.0, 0.0, 0
    ratio = sum(theirs for theirs, _ in pairs) / sum(ours for _, ours in pairs)
    return ratio, min(theirs / ours for theirs, ours in pairs), len(pairs)
