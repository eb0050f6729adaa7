"""The benchmarks that need no emulator still run: what they stub is what sweeper and executor call."""

from __future__ import annotations

from bench import common, cpu, runs


def test_cpu_is_measured_of_all_that_is_due_and_of_every_run(monkeypatch):
    monkeypatch.setattr(cpu, "DUE", 240)
    monkeypatch.setattr(runs, "RUNS", 20)
    monkeypatch.setattr(common, "ROUNDS", 1)

    measured = cpu.measure()

    assert [each.done for each in measured] == [240, 240, 20, 20, 20]
    assert all(each.us > 0 for each in measured)
