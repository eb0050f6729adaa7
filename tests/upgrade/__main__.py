"""python -m tests.upgrade: records the current version as tests/upgrade/recorded/<version>.json."""

from __future__ import annotations

import subprocess
import sys

import sweephand
from tests.support.aws import ROOT
from tests.upgrade import recording

if __name__ == "__main__":
    version = sweephand.__version__
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True)
    path = recording.FOLDER / f"{version}.json"
    recording.write(recording.record(head.stdout.strip()), path)
    sys.stdout.write(f"{path.relative_to(ROOT)}\n")
