"""Which random examples a test takes: in the ordinary run few and each time the same, `make test-long` many others."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("EXAMPLES_TIMES", "1"))


def by_steps() -> None:
    """Sets the defaults for all tests of the process that say nothing else. Tests bound steps, not milliseconds: a busy
    machine is no failure.
    """
    settings.register_profile(
        "by steps",
        max_examples=100 * TIMES,
        derandomize=TIMES == 1,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    settings.load_profile("by steps")


def examples(count: int) -> settings:
    """Returns a decorator: `count` examples in the ordinary run, EXAMPLES_TIMES as many in a long one."""
    return settings(max_examples=count * TIMES)
