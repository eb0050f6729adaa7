"""Writes the requirements of the layers of third-party code: the runtime's lock without the packages that Lambda has.

`cryptography` and its dependencies are in a layer of their own, for the only function that may need them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements" / "runtime.txt"
LAYERS = ROOT / "layers"

# Part of every python3.13 function on Lambda: the SDK and its dependencies, three times the size of all other packages.
BROUGHT_BY_THE_RUNTIME = frozenset({"boto3", "botocore", "jmespath", "python-dateutil", "s3transfer", "six", "urllib3"})
CRYPTOGRAPHY = frozenset({"cryptography", "cffi", "pycparser"})
HEADER = "# Generated from requirements/runtime.txt by `make layer-lock`: {}. Do not edit.\n"
WHAT = {
    "dependencies": "all packages except cryptography and those of the Lambda runtime",
    "cryptography": "cryptography and its dependencies",
}


def layer_locks(lock: str) -> dict[str, str]:
    """Returns the text of each layer's requirements, by its folder. lock: the text of the runtime's lock."""
    blocks = re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)[1:]
    kept: dict[str, list[str]] = {layer: [] for layer in WHAT}
    for block in blocks:
        if _name(block) not in BROUGHT_BY_THE_RUNTIME:
            kept["cryptography" if _name(block) in CRYPTOGRAPHY else "dependencies"].append(block)
    return {layer: HEADER.format(WHAT[layer]) + "".join(kept[layer]) for layer in WHAT}


def _name(block: str) -> str:
    return block.split("==", 1)[0].strip().lower()


if __name__ == "__main__":
    for layer, text in layer_locks(LOCK.read_text()).items():
        target = LAYERS / layer / "requirements.txt"
        target.write_text(text)
        sys.stdout.write(f"{target.relative_to(ROOT)} written\n")
