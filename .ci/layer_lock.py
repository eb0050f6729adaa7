"""Writes layers/dependencies/requirements.txt: the runtime's lock without what the Lambda runtime brings itself."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "runtime.txt"
LAYER = ROOT / "layers" / "dependencies" / "requirements.txt"

# Part of every python3.13 function on Lambda, and three times the size of all else together.
BROUGHT_BY_THE_RUNTIME = frozenset({"boto3", "botocore", "s3transfer", "urllib3"})
HEADER = "# Made from requirements/runtime.txt by .ci/layer_lock.py: all but what the Lambda runtime brings itself.\n"


def layer_lock(lock: str) -> str:
    """The text of the layer's requirements, given the text of the runtime's lock."""
    blocks = re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)[1:]
    kept = [block for block in blocks if _name(block) not in BROUGHT_BY_THE_RUNTIME]
    return HEADER + "".join(kept)


def _name(block: str) -> str:
    return block.split("==", 1)[0].strip().lower()


if __name__ == "__main__":
    LAYER.write_text(layer_lock(LOCK.read_text()))
    sys.stdout.write(f"{LAYER.relative_to(ROOT)} written\n")
