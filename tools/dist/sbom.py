"""Writes sbom.json (CycloneDX 1.6): the packages in the layers, from the locks that the build installs.

Lambda's runtime adds Python and the AWS SDK, which are not part of the build.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def document(root: Path = ROOT) -> dict[str, Any]:
    """Returns the bill of materials of the checkout. It has no time or random number: equal locks make equal bills."""
    own = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    name, version = own["name"], own.get("version") or _version(root)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": name, "name": name, "version": version}},
        "components": sorted(_components(root), key=lambda each: str(each["bom-ref"])),
    }


def _version(root: Path) -> str:
    text = (root / "layers" / "sweephand" / "python" / "sweephand" / "__init__.py").read_text()
    found = re.search(r'__version__ = "([^"]+)"', text)
    assert found is not None
    return found[1]


def _components(root: Path) -> Iterator[dict[str, Any]]:
    for lock in sorted(root.glob("layers/*/requirements.txt")):
        for block in re.split(r"^(?=[A-Za-z0-9])", lock.read_text(), flags=re.MULTILINE)[1:]:
            found = PINNED.match(block)
            assert found is not None, block
            name, version = found.groups()
            purl = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
            yield {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "purl": purl,
                "properties": [
                    {"name": "sweephand:layer", "value": lock.parent.name},
                    *({"name": "sweephand:sha256", "value": digest} for digest in HASH.findall(block)),
                ],
            }


if __name__ == "__main__":
    (ROOT / "sbom.json").write_text(json.dumps(document(), indent=1) + "\n")
    sys.stdout.write("sbom.json written\n")
