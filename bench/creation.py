"""Job creations a second of one tenant on the local stack: over HTTP, through every process of the stack.

This machine may not be quiet, so the CPU of each process is shown next to the rate.
"""

from __future__ import annotations

import http.client
import json
import os
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sweephand.local import control
from sweephand.local.folder import StateFolder
from sweephand.local.settings import CHECKOUT, Settings
from sweephand.local.stack_file import StackFile
from tests.local_stack.waiting import CLOCK

CLIENTS = 4
BUDGET_MS = 20
"""The CPU of a creation at which two processors make 100 a second."""
WARM, JOBS = 200, 1_000
RATES = {"TenantRateMost": "0", "ApiRateLimit": "10000"}
DAILY = {"cron": "0 6 * * *"}
PARTS = ("the API's functions", "the embedded AWS", "its HTTP front end")


@dataclass(frozen=True)
class Created:
    """A thousand creations. rate: a second. cpu_ms: of a creation, by part of the stack."""

    name: str
    rate: float
    p50_ms: float
    p99_ms: float
    cpu_ms: Mapping[str, float]


def measure() -> Iterator[Created]:
    """Measures a thousand jobs, and a thousand more."""
    with tempfile.TemporaryDirectory() as folder:
        place = Settings(StateFolder(Path(folder)), CHECKOUT / "template.yaml", port=0, aws_port="0", chosen=RATES)
        running = control.start(place, CLOCK, lambda _: None, owned=True)
        try:
            assert running.process is not None
            _create(running.stack, "warm", WARM)
            for name in ("the first 1,000 jobs", "1,000 jobs later"):
                yield _created(name, running.stack, running.process.pid)
        finally:
            control.release(running, place, CLOCK)


def _created(name: str, stack: StackFile, service: int) -> Created:
    before, began = _cpu_ms(service), time.perf_counter()
    taken = sorted(_create(stack, name, JOBS))
    wall_s = time.perf_counter() - began
    after = _cpu_ms(service)
    used = {part: (after[part] - before[part]) / JOBS for part in PARTS}
    return Created(name, JOBS / wall_s, taken[JOBS // 2], taken[JOBS * 99 // 100], used)


def _create(stack: StackFile, name: str, count: int) -> list[float]:
    """Creates jobs by some clients at once. Returns the milliseconds of each."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        parts = pool.map(lambda n: _some(stack, f"{name} {n}", count // CLIENTS), range(CLIENTS))
        return [each for part in parts for each in part]


def _some(stack: StackFile, name: str, count: int) -> list[float]:
    credential = stack.tenants["acme"]
    basic = b64encode(f"{credential.client_id}:{credential.secret}".encode()).decode()
    headers = {"authorization": f"Basic {basic}", "content-type": "application/json"}
    connection = http.client.HTTPConnection(stack.base_url.removeprefix("http://"), timeout=60)
    taken = []
    for n in range(count):
        job = {"name": f"{name}-{n}", "action": {"type": "http", "url": "https://example.com/"}, "schedules": [DAILY]}
        began = time.perf_counter()
        connection.request("POST", "/v1/jobs", json.dumps(job), headers)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 201, text
        taken.append((time.perf_counter() - began) * 1_000)
    connection.close()
    return taken


def _cpu_ms(service: int) -> dict[str, float]:
    """Returns the CPU so far of the service's process, of the emulator, its child, and of the functions below it."""
    (emulator,) = _children(service)
    functions = sum(_own_ms(each) for each in _children(emulator))
    return dict(zip(PARTS, (functions, _own_ms(emulator), _own_ms(service)), strict=True))


def _children(parent: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def _own_ms(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") * 1_000
