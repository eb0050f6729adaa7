"""Cold starts: fresh processes import each built function as Lambda does, in turn with a bare boto3 client.

The package is built by the layers' own Makefiles, with all files dated 1980 as SAM ships them, and byte code valid.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.runtime import Python

ROOT = Path(__file__).resolve().parents[1]
SAM_DATE = 315_532_800
ROUNDS = 25

ENVIRONMENT = {
    "TABLE_NAME": "bench",
    "STACK_NAME": "bench",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_EC2_METADATA_DISABLED": "true",
    "FAST_QUEUE_URL": "http://127.0.0.1:9/1/fast",
    "SLOW_QUEUE_URL": "http://127.0.0.1:9/1/slow",
    "DEAD_LETTER_QUEUE_URL": "http://127.0.0.1:9/1/dead",
    "KEY_ID": "bench",
    "PYTHONTZPATH": "",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PATH": os.environ["PATH"],
}
TIMED = "import time; began = time.process_time(); {body}; print(time.process_time() - began)"
READY = "import app"
READY_TO_SEND = (
    "import app; from sweephand.server.wiring import Clients; Clients(app.world.table, app.world.settings).sqs"
)
AZURE = "import os; os.environ['FACADE'] = 'azure'; import app"
BASE = "import boto3; boto3.client('dynamodb')"
FIRST_CALL = (
    "import app; from sweephand.server.security import outbound; outbound.shared_ssl_context();"
    " from sweephand.server.actions import http"
)


@dataclass(frozen=True)
class ColdStart:
    """Milliseconds, median of the rounds; ratio to the bare client, pair by pair: median, least, most."""

    name: str
    ms: float
    ratio: float
    least: float
    most: float


def build(target: Path, python: Python) -> list[Path]:
    """Builds the layers' `python` folders as SAM would ship them, with byte code of the measuring Python. In order of
    the path.
    """
    folders = []
    for layer, goal in (("sweephand", "build-CodeLayer"), ("dependencies", "build-DependenciesLayer")):
        artifacts = target / layer
        subprocess.run(
            ["make", "-s", "-C", str(ROOT / "layers" / layer), goal, f"ARTIFACTS_DIR={artifacts}"], check=True
        )
        folders.append(artifacts / "python")
    shutil.copytree(ROOT / "functions", target / "functions", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [*folders, target / "functions"]:
        for path in folder.rglob("*"):
            os.utime(path, (SAM_DATE, SAM_DATE))
        # If the layers were made without byte code, or for another Python than measures: of the same kind.
        compiled = [python.path, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", str(folder)]
        subprocess.run(compiled, check=True)
    return folders


def unpacked_mib(folders: list[Path], python: Python) -> float:
    """Returns the size of the unpacked layers, with the byte code of one Python."""
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return (
        sum(path.stat().st_size for path in files if path.suffix != ".pyc" or path.name.endswith(f".{python.tag}.pyc"))
        / 2**20
    )


def measure(target: Path, folders: list[Path], python: Python) -> list[ColdStart]:
    functions = target / "functions"
    cases = {
        "sweeper, ready": ("sweeper", READY),
        "sweeper, ready to send": ("sweeper", READY_TO_SEND),
        "executor, ready": ("executor", READY),
        "executor, first HTTP call": ("executor", FIRST_CALL),
        "auditor, ready": ("auditor", READY),
        "api, ready": ("api", READY),
        "api of Azure, ready": ("api", AZURE),
    }
    results = []
    for name, (function, body) in cases.items():
        path = [str(functions / function), *map(str, folders)]
        pairs = [(_seconds(python, BASE, path), _seconds(python, body, path)) for _ in range(ROUNDS + 1)][1:]
        ratios = [ours / base for base, ours in pairs]
        median = statistics.median(ours for _, ours in pairs) * 1000
        results.append(ColdStart(name, median, statistics.median(ratios), min(ratios), max(ratios)))
    return results


def _seconds(python: Python, body: str, path: list[str]) -> float:
    environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join(path)}
    done = subprocess.run(
        [python.path, "-c", TIMED.format(body=body)], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])
