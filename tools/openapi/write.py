"""`make openapi`: writes the description of the native API, which the service serves at /v1/openapi.json, and the SDK.

It is made from the routes and schemas. Its example answers come from a walk through all routes, on a virtual clock.
tests/contract/native/test_openapi.py fails if the file differs from the generated one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from sweephand.base.json_text import dumps
from sweephand.server.facades.native.document import FILE
from tests.contract.native.walk import walk
from tools.openapi.document import document

ROOT = Path(__file__).resolve().parents[2]


def written() -> str:
    return json.dumps(json.loads(dumps(document(walk().answers))), indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    text = written()
    if not FILE.exists() or FILE.read_text(encoding="utf-8") != text:
        FILE.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{FILE.relative_to(ROOT)}\n")
    return subprocess.run([sys.executable, "-m", "tools.sdk.write"], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
