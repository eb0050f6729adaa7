"""Settings of every unit test."""

from __future__ import annotations

from tests.support.examples import by_steps

by_steps()
