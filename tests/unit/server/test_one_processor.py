from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sweephand.server import one_processor

PACKAGE = Path(one_processor.__file__).resolve().parents[2]
needs_affinity = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no processor affinity here")


@needs_affinity
def test_every_thread_that_begins_later_stays_on_the_same_processor():
    """Seen failing without the call, on two processors."""
    code = "import os, threading; from sweephand.server import one_processor; one_processor.stay()"
    code += "; seen = [os.sched_getaffinity(0)]"
    code += "; thread = threading.Thread(target=lambda: seen.append(os.sched_getaffinity(0)))"
    code += "; thread.start(); thread.join(); print([len(each) for each in seen], seen[0] == seen[1])"

    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(PACKAGE)}, capture_output=True, text=True, check=True
    )

    assert done.stdout == "[1, 1] True\n"


@pytest.mark.parametrize(("number", "chosen"), [(300, 2), (301, 5), (302, 7), (303, 2)])
def test_processes_spread_over_the_processors_that_they_may_use(monkeypatch, number, chosen):
    asked = []
    monkeypatch.setattr(os, "getpid", lambda: number)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {7, 2, 5}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda who, which: asked.append((who, which)), raising=False)

    one_processor.stay()

    assert asked == [(0, {chosen})]


def test_the_function_starts_even_if_the_system_refuses(monkeypatch):
    def refused(*_):
        raise PermissionError("not here")

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", refused, raising=False)

    one_processor.stay()


def test_nothing_is_requested_on_a_system_without_the_option(monkeypatch):
    def asked(_):
        raise AssertionError("asked")

    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", asked, raising=False)

    one_processor.stay()
