"""Says at the end how many of the crash points' plans were played, and how many were left out."""

from __future__ import annotations

import pytest

from tests.support.examples import by_steps

by_steps()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    from tests.faults.crash_points import COUNTS, PLAYED  # noqa: PLC0415 - a run that plays none needs nothing of it

    reports = [report for status in ("passed", "failed") for report in terminalreporter.stats.get(status, [])]
    played = sum(count for report in reports for name, count in report.user_properties if name == PLAYED)
    if played:
        every = int(COUNTS.read_text().split()[-2])
        left_out = f"{max(0, every - played)} of {every} left out (pytest -m long tests/faults plays all)"
        terminalreporter.write_line(f"crash points: {played} plans played, {left_out}")
