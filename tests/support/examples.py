"""How many random examples and plans a test takes: few in `make test`, some in the rest of the tests, each time the
same; `make test-long` takes many others.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

TIMES = float(os.environ.get("EXAMPLES_TIMES", "1"))


def by_steps() -> None:
    """Sets the defaults for all tests of the process that say nothing else. Tests bound steps, not milliseconds: a busy
    machine is no failure.
    """
    settings.register_profile(
        "by steps",
        max_examples=scaled(100),
        derandomize=TIMES <= 1,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    settings.load_profile("by steps")


def scaled(count: int) -> int:
    """Returns how many of `count` examples this run takes."""
    return max(1, round(count * TIMES))


def examples(count: int) -> settings:
    """Returns a decorator: `count` examples in the ordinary run, EXAMPLES_TIMES as many in a shorter or longer one."""
    return settings(max_examples=scaled(count))
