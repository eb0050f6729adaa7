"""Our additions to the emulator's process: its state is saved often, and does not grow for ever."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from sweephand.local import settings
from sweephand.local.aws.child import (
    KEPT_POINTS,
    KEPT_STREAMS,
    SAVE_ATTEMPTS,
    _also_on,
    _hold_queues,
    save,
    trim_logs,
    trim_metrics,
)
from sweephand.local.aws.launcher import clean_environment
from sweephand.local.failures import LocalFailure


class Store:
    """A store like MiniStack's: values under scoped keys."""

    def __init__(self, **values):
        self.values = values

    def all_items(self):
        return list(self.values.items())


def test_each_service_is_saved_and_one_without_state_is_skipped():
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


def test_queues_are_polled_only_after_the_deploy_is_complete(tmp_path, monkeypatch):
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


class Server:
    """A server like hypercorn's Config. taken: an address that another process has."""

    taken = None

    def __init__(self):
        self.bind = ["127.0.0.1:4570"]

    def create_sockets(self):
        if self.taken in self.bind:
            raise OSError("address already in use")
        return list(self.bind)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("SWEEPHAND_EMULATOR_ALSO_ON", "172.17.0.1")
    monkeypatch.setenv("SWEEPHAND_EMULATOR_PORT", "4570")

    class Fresh(Server):
        def create_sockets(self):
            return super().create_sockets()

    _also_on(Fresh)
    return Fresh()


def test_the_server_listens_on_the_bridge_in_addition_to_loopback(server):
    assert server.create_sockets() == ["127.0.0.1:4570", "172.17.0.1:4570"]


def test_an_unavailable_bridge_stops_the_start(server):
    server.taken = "172.17.0.1:4570"

    with pytest.raises(OSError, match="in use"):
        server.create_sockets()
    assert server.bind == ["127.0.0.1:4570"]  # with more than one, MiniStack drops what follows the first


def test_the_server_listens_only_on_loopback_by_default(tmp_path):
    assert "SWEEPHAND_EMULATOR_ALSO_ON" not in clean_environment({}, tmp_path, 4570)
    assert clean_environment({}, tmp_path, 4570, "172.17.0.1")["SWEEPHAND_EMULATOR_ALSO_ON"] == "172.17.0.1"
    assert settings.read({}).aws_also_on is None
    assert settings.read({"SWEEPHAND_AWS_ALSO_ON": ""}).aws_also_on is None


def test_the_address_of_a_bridge_is_accepted():
    assert settings.read({"SWEEPHAND_AWS_ALSO_ON": "172.17.0.1"}).aws_also_on == "172.17.0.1"


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1", "8.8.8.8", "::", "docker0", "172.17.0.1/16"])
def test_an_address_that_exposes_the_emulator_beyond_containers_is_refused(address):
    with pytest.raises(LocalFailure, match="SWEEPHAND_AWS_ALSO_ON"):
        settings.read({"SWEEPHAND_AWS_ALSO_ON": address})


def test_parameters_are_parsed_like_shell_words():
    read = settings.read(
        {"SWEEPHAND_PARAMETERS": "OidcIssuers='http://127.0.0.1:9;tenant=acme' OidcScopes=a=jobs:read"}
    )

    assert read.chosen == {"OidcIssuers": "http://127.0.0.1:9;tenant=acme", "OidcScopes": "a=jobs:read"}
    given = settings.parameters("http://127.0.0.1:8080", read.chosen)
    assert given["PublicBaseUrl"] == "http://127.0.0.1:8080"
    assert given["OidcScopes"] == "a=jobs:read"


@pytest.mark.parametrize("text", ["OidcIssuers", "=x", "a b", "Oidc'", "PublicBaseUrl=http://x"])
def test_invalid_parameters_are_refused(text):
    with pytest.raises(LocalFailure, match="SWEEPHAND_PARAMETERS"):
        settings.read({"SWEEPHAND_PARAMETERS": text})
