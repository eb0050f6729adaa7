"""Settings of every unit test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Tests bound steps, not milliseconds: a busy machine is no failure.
settings.register_profile("unit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unit")
