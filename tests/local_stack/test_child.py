"""What we add to the emulator's process: its state is saved often, and does not grow for ever."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from sweephand.local.child import KEPT_POINTS, KEPT_STREAMS, SAVE_ATTEMPTS, _hold_queues, save, trim_logs, trim_metrics
from sweephand.local.launcher import clean_environment


class Store:
    """As MiniStack's: values under scoped keys."""

    def __init__(self, **values):
        self.values = values

    def all_items(self):
        return list(self.values.items())


def test_each_service_is_saved_and_one_without_state_is_left_alone():
    written = {}

    missed = save({"sqs": lambda: {"a": 1}, "s3": lambda: None}, written.__setitem__)

    assert written == {"sqs": {"a": 1}}
    assert missed == []


@pytest.mark.parametrize("unquiet", [1, SAVE_ATTEMPTS - 1, SAVE_ATTEMPTS])
def test_a_service_that_changes_while_it_is_copied_is_copied_again(unquiet):
    attempts = []
    written = {}

    def snapshot():
        attempts.append(1)
        if len(attempts) <= unquiet:
            raise RuntimeError("dictionary changed size during iteration")
        return {"a": 1}

    missed = save({"dynamodb": snapshot, "sqs": dict}, written.__setitem__)

    assert missed == ([] if unquiet < SAVE_ATTEMPTS else ["dynamodb"])
    assert ("dynamodb" in written) is (unquiet < SAVE_ATTEMPTS)
    assert "sqs" in written


def test_old_log_streams_and_metric_points_are_forgotten():
    streams = {str(number): {} for number in range(KEPT_STREAMS + 7)}
    points = list(range(KEPT_POINTS + 7))

    trim_logs(Store(group={"streams": streams}))
    trim_metrics(Store(metric=points))

    assert next(iter(streams)) == "7"
    assert len(streams) == KEPT_STREAMS
    assert points == list(range(7, KEPT_POINTS + 7))


def test_no_queue_is_polled_before_the_deploy_is_done(tmp_path, monkeypatch):
    hold = tmp_path / "hold"
    hold.touch()
    monkeypatch.setenv("SWEEPHAND_HOLD", str(hold))
    polls = []
    functions = SimpleNamespace(_poll_sqs=lambda: polls.append(1) or True)

    _hold_queues(functions)

    assert functions._poll_sqs() is False
    assert polls == []
    hold.unlink()
    assert functions._poll_sqs() is True


def test_the_emulator_listens_on_loopback_and_sees_nothing_of_the_users_secrets(tmp_path):
    user = {"PATH": "/bin", "AWS_ACCESS_KEY_ID": "AKIA", "AWS_PROFILE": "p", "GITHUB_TOKEN": "t", "PYTHONPATH": "/x"}

    environment = clean_environment(user, tmp_path, 4570)

    assert environment["BIND_HOST"] == "127.0.0.1"
    assert environment["IOT_MTLS_ENABLED"] == "0"
    assert environment["AWS_ACCESS_KEY_ID"] == "test"
    assert environment["AWS_CONFIG_FILE"] == os.devnull
    assert not {"AWS_PROFILE", "GITHUB_TOKEN", "PYTHONPATH"} & set(environment)
