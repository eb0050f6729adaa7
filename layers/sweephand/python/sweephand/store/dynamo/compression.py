"""Large JSON in one attribute, compressed to a string, so that an item stays well below DynamoDB's 400 KB."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any


def pack(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(zlib.compress(text.encode())).decode()


def unpack(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(text)))
