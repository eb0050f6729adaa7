"""How many random examples a test takes: few in the ordinary run, many under `make test-long`."""

from __future__ import annotations

import os

from hypothesis import settings

TIMES = int(os.environ.get("EXAMPLES_TIMES", "1"))


def examples(count: int) -> settings:
    """A decorator: `count` examples in the ordinary run, EXAMPLES_TIMES as many in a long one."""
    return settings(max_examples=count * TIMES)
