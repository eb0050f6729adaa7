"""`make openapi`: writes the description of the native API, which the service serves at /v1/openapi.json, and the SDK.

It is made from the routes and schemas. Its example answers come from a walk through all routes, on a virtual clock.
tests/contract/native/test_openapi.py fails if the file differs from the generated one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "layers" / "sweephand" / "python")]

from tests.contract.native.walk import walk  # noqa: E402

from sweephand.domain.members.json_text import dumps  # noqa: E402
from sweephand.facades.native.document import FILE  # noqa: E402
from sweephand.facades.native.openapi.openapi import document  # noqa: E402


def written() -> str:
    return json.dumps(json.loads(dumps(document(walk().answers))), indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    text = written()
    if not FILE.exists() or FILE.read_text(encoding="utf-8") != text:
        FILE.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{FILE.relative_to(ROOT)}\n")
    return subprocess.run([sys.executable, ROOT / ".ci" / "sdk.py"], check=False).returncode  # noqa: S603 - made of it


if __name__ == "__main__":
    sys.exit(main())
