"""`make test-sam-local`: an engine, the image of the functions, their build, then the tests, each with its time.

Exit status: that of the tests; 1 if the engine, the image or the build could not be had; 77 if no engine answers here
and CI is not "true", so that nothing was tested. That is said in one line, and the Makefile adds nothing to it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sweephand.base.sources import SystemClock
from sweephand.local.settings import CHECKOUT
from tests.sam_local import engine as engines
from tests.sam_local import image
from tests.sam_local.conftest import BRIDGE, READY

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_RUN = 77
CLOCK = SystemClock()


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    in_ci = os.environ.get("CI") == "true"
    if in_ci:
        os.environ["PATH"] += ":/usr/sbin:/sbin"  # where dockerd and debootstrap are; not every root has it on its path
    try:
        with timed("engine"):
            engine = engines.find_or_start(install=in_ci)
    except engines.NoEngine as reason:
        say(f"test-sam-local: NOT RUN: {reason}")
        return NOT_RUN
    except engines.NotPrepared as failure:
        say(f"test-sam-local: FAILED: {failure}")
        return 1
    try:
        with timed("image") as took:
            took.append(image.ensure(engine, build=in_ci))
        with timed("build"):
            _build()
        with timed("tests"):
            return _pytest(engine)
    except engines.NotPrepared as failure:
        say(f"test-sam-local: FAILED: {failure}")
        return 1
    finally:
        image.forget(engine)
        engine.stop()


def _build() -> None:
    command = ["make", "sam-build"]
    done = subprocess.run(command, cwd=CHECKOUT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise engines.NotPrepared(f"{' '.join(command)}:\n{(done.stdout + done.stderr)[-2_000:]}")


def _pytest(engine: engines.Engine) -> int:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/sam_local", "--durations=0", "--durations-min=1"],
        cwd=CHECKOUT,
        env=os.environ | engine.environment | {READY: "1", BRIDGE: engine.gateway() or ""},
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode


@contextmanager
def timed(what: str) -> Iterator[list[str]]:
    """Prints how long the block took, with what it adds to the list; nothing if it fails."""
    notes: list[str] = []
    began = CLOCK.monotonic()
    yield notes
    say(f"{what:<8} {CLOCK.monotonic() - began:6.1f} s  {' '.join(notes)}".rstrip())


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
