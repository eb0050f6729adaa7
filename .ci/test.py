"""`make test`: runs every part of the tests and prints its time. `.ci/test.py unit template` runs only those parts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Two processes; the tests of a module stay together, because some share what is expensive to make.
BY_TWO = ("-n", "2", "--dist", "loadscope")

# An engine that answers as DynamoDB does. With it, each call to the table in memory is made to both, and the answers
# are compared.
ENGINE = ROOT / ".cache" / "table-engine" / "node_modules" / "@dynoxide" / "linux-x64" / "dynoxide"
HELD_AGAINST_IT = {"unit", "contract"}

# Fast ones first, so that a mistake shows early. Each is a folder of tests, and a selection by marker.
PARTS = {
    "architecture": ["tests/architecture", "-n", "2"],
    "template": ["tests/template", "-m", "not sam", *BY_TWO],
    "documentation": ["tests/documentation"],
    "unit": ["tests/unit", "tests/engine", *BY_TWO],
    "contract": ["tests/contract", *BY_TWO],
    "faults": ["tests/faults", "-n", "2"],
    "year": ["tests/year", "-n", "2"],
    "local_stack": ["tests/local_stack"],
    "sam": ["tests/template", "-m", "sam", *BY_TWO],
}


def main(names: list[str]) -> int:
    unknown = set(names) - PARTS.keys()
    if unknown:
        sys.exit(f"no such part: {', '.join(sorted(unknown))}; there are: {', '.join(PARTS)}")
    chosen = [name for name in PARTS if name in names] if names else [name for name in PARTS if _has_tests(name)]
    engine = _engine() if HELD_AGAINST_IT & set(chosen) else {}
    results = [(name, *_run(name, engine if name in HELD_AGAINST_IT else {})) for name in chosen]
    for name, status, seconds in results:
        sys.stdout.write(f"{name:<14} {seconds:7.1f} s  {'passed' if status == 0 else f'FAILED ({status})'}\n")
    failed = sum(status != 0 for _, status, _ in results)
    sys.stdout.write(f"{'all':<14} {sum(seconds for *_, seconds in results):7.1f} s\n")
    sys.stdout.write(f"parts: {len(results) - failed} passed, {failed} failed\n")
    return 1 if failed or not results else 0


def _has_tests(name: str) -> bool:
    return any((ROOT / PARTS[name][0]).rglob("test_*.py"))


def _engine() -> dict[str, str]:
    """Returns the variable that switches the engine on. Says so if there is no engine; in CI, that is a failure."""
    if ENGINE.exists():
        return {"TABLE_ENGINE": "1"}
    sys.stdout.write(
        "There is no table engine here: calls to the table are NOT held against it (make setup-table-engine).\n"
    )
    if os.environ.get("CI") == "true":
        sys.exit("in CI that is a failure")
    return {}


def _run(name: str, more: dict[str, str]) -> tuple[int, float]:
    """Returns exit status and seconds. A part without a test has failed: pytest says so with status 5."""
    sys.stdout.write(f"== {name}\n")
    sys.stdout.flush()
    began = time.monotonic()  # noqa: TID251 - how long a part takes is no decision of the service
    done = subprocess.run(  # noqa: S603 - our own tests
        [sys.executable, "-m", "pytest", *PARTS[name]],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": "layers/sweephand/python"} | more,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode, time.monotonic() - began  # noqa: TID251


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
