"""Settings of every unit test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.support.examples import TIMES

# Tests bound steps, not milliseconds: a busy machine is no failure.
settings.register_profile("unit", max_examples=100 * TIMES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unit")
