"""`make test` and `make test-rest`: run the parts of the tests, and print the time of each.

`make test PARTS="unit template"` runs only these parts, `make test-rest PARTS=unit` what `make test` leaves out of one.
With UNSTABLE=FILE, up to three failed tests of a part run once more, alone. If they pass, FILE names them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]

# Two processes; the tests of a module stay together, because some share what is expensive to make.
BY_TWO = ("-n", "2", "--dist", "loadscope")
SAMPLE = ("--only", "sample")
REST = ("--only", "rest")

# An engine that answers as DynamoDB does. With it, each call to the table in memory is made to both, and the answers
# are compared. `make test` uses it only with TABLE_ENGINE=1, because npm installs it.
ENGINE = ROOT / ".cache" / "table-engine" / "node_modules" / "@dynoxide" / "linux-x64" / "dynoxide"
HELD_AGAINST_IT = {"unit", "contract"}
SHORT = {"EXAMPLES_TIMES": "0.2"}
FAILED = 1
"""pytest's status if some tests failed and nothing else went wrong."""
MOST_TRIED_AGAIN = 3

WITH_THE_TEMPLATE = ("tests/local_stack/test_sdk.py", "tests/local_stack/test_events.py")

# Fast ones first, so that a mistake shows early. Each is a folder of tests, and a selection.
PARTS = {
    "architecture": ["tests/architecture", *SAMPLE, "-n", "2"],
    "template": ["tests/template", "-m", "not sam", *SAMPLE, *BY_TWO],
    "unit": ["tests/unit", "tests/engine", "tests/upgrade", *SAMPLE, *BY_TWO],
    "contract": ["tests/contract", *SAMPLE, *BY_TWO],
    "faults": ["tests/faults", *SAMPLE, "-n", "2"],
    "year": ["tests/year", *SAMPLE, "-n", "2"],
    "local_stack": [*WITH_THE_TEMPLATE],
}
PARTS_OF_THE_REST = {
    "documentation": ["tests/documentation"],
    "template": ["tests/template", "-m", "not sam", *REST, *BY_TWO],
    "unit": ["tests/unit", *REST, *BY_TWO],
    "contract": ["tests/contract", *REST, *BY_TWO],
    "faults": ["tests/faults", *REST, "-n", "2"],
    "year": ["tests/year", *REST, "-n", "2"],
    "local_stack": ["tests/local_stack", *(f"--ignore={file}" for file in WITH_THE_TEMPLATE)],
    "sam": ["tests/template", "-m", "sam", *BY_TWO],
    "browser": ["tests/browser", "--durations=5"],
}
ONLY_BY_NAME = {"browser"}
"""Parts for which something has to be there that is not installed here: Chromium."""


def main(arguments: list[str]) -> int:
    rest = "--rest" in arguments
    parts = PARTS_OF_THE_REST if rest else PARTS
    names = [name for name in arguments if name != "--rest"]
    unknown = set(names) - parts.keys()
    if unknown:
        sys.exit(f"no such part: {', '.join(sorted(unknown))}; there are: {', '.join(parts)}")
    chosen = [name for name in parts if name in (names or parts.keys() - ONLY_BY_NAME)]
    engine = _engine() if HELD_AGAINST_IT & set(chosen) and (rest or os.environ.get("TABLE_ENGINE")) else {}
    results = [
        (name, *_part(parts[name], (engine if name in HELD_AGAINST_IT else {}) | ({} if rest else SHORT)))
        for name in chosen
    ]
    for name, status, seconds in results:
        sys.stdout.write(f"{name:<14} {seconds:7.1f} s  {'passed' if status == 0 else f'FAILED ({status})'}\n")
    failed = sum(status != 0 for _, status, _ in results)
    sys.stdout.write(f"{'all':<14} {sum(seconds for *_, seconds in results):7.1f} s\n")
    sys.stdout.write(f"parts: {len(results) - failed} passed, {failed} failed\n")
    return 1 if failed else 0


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


def _part(options: list[str], more: dict[str, str]) -> tuple[int, float]:
    """Returns exit status and seconds of a part, with a second try of its failed tests if UNSTABLE names a file."""
    unstable = os.environ.get("UNSTABLE")
    if unstable is None:
        return _run(options, more)
    with TemporaryDirectory() as folder:
        status, seconds = _run([*options, "-o", f"cache_dir={folder}"], more)
        noted = Path(folder, "v", "cache", "lastfailed")
        failed = list(json.loads(noted.read_text())) if noted.exists() else []
    if status != FAILED or not 0 < len(failed) <= MOST_TRIED_AGAIN:
        return status, seconds
    status, seconds_again = _run([*failed, "-n", "0"], more)
    if status == 0:
        with Path(unstable).open("a") as file:
            file.writelines(f"{test}\n" for test in failed)
    return status, seconds + seconds_again


def _run(options: list[str], more: dict[str, str]) -> tuple[int, float]:
    """Returns exit status and seconds. A part without a test has failed: pytest says so with status 5."""
    sys.stdout.write(f"== {' '.join(options)}\n")
    sys.stdout.flush()
    began = time.monotonic()  # noqa: TID251 - how long a part takes is no decision of the service
    environment = {name: value for name, value in os.environ.items() if name != "TABLE_ENGINE"}
    done = subprocess.run(  # noqa: S603 - our own tests
        [sys.executable, "-m", "pytest", *options],
        cwd=ROOT,
        env=environment | {"PYTHONPATH": "layers/sweephand/python"} | more,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode, time.monotonic() - began  # noqa: TID251


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
