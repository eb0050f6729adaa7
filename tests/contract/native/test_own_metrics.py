"""Metrics of single collections and applications, which the operator lists (parameter MetricsOf)."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path

import pytest

from sweephand.base.errors import Unavailable
from sweephand.server import wiring
from sweephand.server.flow.delivery import backlogs
from tests.contract.native.api import Api
from tests.contract.native.test_workers import Hand, create, due, register
from tests.support.endpoint import BUSY, OK
from tests.support.stage import TENANT

ROOT = Path(__file__).resolve().parents[3]
LISTED = f"{TENANT}/nightly,{TENANT}/app:billing"
NIGHTLY, BILLING = {"collection": f"{TENANT}/nightly"}, {"application": f"{TENANT}/billing"}
SOON = [{"at": "2027-03-01T12:00:10Z"}]


@pytest.fixture
def listing(api: Api) -> Api:
    """The stack with the parameter, and two collections."""
    world = api.stage.world
    api.stage.world = replace(world, settings=replace(world.settings, metrics_of=LISTED))
    api.facade.world = api.stage.world
    for name in ("nightly", "daily"):
        assert api("POST", "/v1/collections", {"name": name}).status == 201
    return api


def of_parts(api: Api) -> list[tuple[dict[str, str], str, object]]:
    return [(part, name, value) for part, values in api.stage.journal.of_parts for name, value in values.items()]


def test_a_listed_collection_has_lateness_and_failures_of_its_own_runs(listing):
    listing.create(collection="nightly", schedules=SOON, action={"type": "http", "url": "https://a.example/x"})
    listing.create(collection="daily", schedules=SOON, action={"type": "http", "url": "https://a.example/y"})
    listing.stage.endpoint.script = [BUSY, BUSY, OK]

    listing.stage.run(60)

    (late, failed) = of_parts(listing)
    assert (late[:2], failed[:2]) == ((NIGHTLY, "Lateness"), (NIGHTLY, "Failed"))
    assert (len(late[2]), failed[2]) == (1, [1])
    stack = listing.stage.journal.measures
    assert sum(len(line["Failed"]) for line in stack if "Failed" in line) == 2, "the stack's own metric has all runs"


def test_without_the_parameter_nothing_more_is_written(api):
    api.create(schedules=SOON)

    api.stage.run(60)

    assert api.stage.journal.measures
    assert api.stage.journal.of_parts == []


@pytest.mark.parametrize(("outcome", "failed"), [("success", 0), ("failure", 1)])
def test_a_listed_application_has_metrics_of_what_its_workers_do(listing, outcome, failed):
    hand = Hand(listing, register(listing))
    create(listing, {"type": "queue", "application": "billing", "task": "report", "retry": {"type": "none"}})
    due(listing)
    listing.stage.run(2)
    [message] = hand.receive()

    hand.report(hand.claim(message).json["task"], message, outcome)

    (late, end) = of_parts(listing)
    assert (late[:2], end) == ((BILLING, "Lateness"), (BILLING, "Failed", [failed]))


def test_the_backlog_of_a_listed_application_counts_its_versions_and_what_is_with_workers(listing):
    hand = Hand(listing, register(listing))
    register(listing, version="2")
    register(listing, "mailing")
    action = {"type": "queue", "task": "report"}
    for application in ("billing", "billing", "mailing"):
        create(listing, {**action, "application": application})
    create(listing, {**action, "application": "billing", "version": "2"})
    backlogs.measure(listing.stage.world)
    assert of_parts(listing) == [], "messages that wait for their second are not open, and none is not written"

    due(listing)
    hand.receive()
    listing.stage.journal.of_parts.clear()
    backlogs.measure(listing.stage.world)

    assert of_parts(listing) == [(BILLING, "Open", 3)]


def test_an_executor_measures_backlogs_each_minute_and_takes_dead_letters_even_if_it_cannot(listing, monkeypatch):
    monkeypatch.setattr(wiring, "build", lambda: listing.stage.world)
    executor = runpy.run_path(str(ROOT / "functions" / "executor" / "app.py"))
    register(listing)
    asked = []

    def away(lane):
        asked.append(lane)
        raise Unavailable("away")

    monkeypatch.setattr(type(listing.stage.world.queue), "backlog_of", lambda _, lane: away(lane))

    assert executor["handler"]({"deadLetters": True}, None) == {"taken": 0}
    assert len(asked) == 1
    assert "the backlog of an application is measured again in a minute" in listing.stage.journal.at("warning")
