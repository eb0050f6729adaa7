"""The programs of the guides for movers run against the whole service."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sweephand import sdk
from sweephand.sdk import worker as workers
from tests.contract.sdk.hands import started
from tests.contract.sdk.stack import connected

GUIDES = Path(__file__).resolve().parents[3] / "docs" / "migrate"
EVENTS = {each.stem for each in (GUIDES.parents[1] / "events" / "schemas").glob("*.json")}
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def _run(page: str, api, monkeypatch):
    client, gateway = connected(api)
    monkeypatch.setattr(sdk, "Sweephand", lambda: client, raising=False)
    known: dict[str, object] = {}
    for number, block in enumerate(BLOCK.findall((GUIDES / page).read_text())):
        exec(compile(block, f"{page}, block {number}", "exec"), known)
    return client, gateway, known


def test_a_root_bot_reconciles_at_its_start_and_a_second_start_changes_nothing(api, monkeypatch, capsys):
    client, _, known = _run("root.md", api, monkeypatch)
    before = [job.to_json() for job in client.jobs.list(job_set="watchers", sort="nextRunAt")]
    api.stage.clock.advance(60)

    known["reconcile"](client)

    assert capsys.readouterr().out.splitlines() == ["2 created, 0 unchanged", "0 created, 2 unchanged"]
    assert [job.to_json() for job in client.jobs.list(job_set="watchers", sort="nextRunAt")] == before
    assert {job["resourceId"] for job in before} == {"repo-1", "repo-2"}


def test_tasks_and_timeouts_of_nservicebus_can_be_created_changed_and_revoked(api, monkeypatch):
    client, gateway, _ = _run("nservicebus.md", api, monkeypatch)

    (job,) = client.jobs.list()
    assert (job.name, job.policies.overlap, job.action.retry.type) == ("clean-up", "skip", "two_level")
    assert [schedule.every for schedule in client.jobs.get(job, include="schedules").schedules] == ["PT5M"]
    patched = next(each for each in gateway.sent if each.startswith("PATCH"))
    assert [each for each in gateway.sent if not each.startswith("GET")] == [
        "POST /v1/jobs",
        "POST /v1/collections",
        "POST /v1/jobs",
        patched,
        "DELETE /v1/jobs",
        "DELETE /v1/jobs",
    ]


def test_the_worker_of_nservicebus_s_page_cleans_up_every_five_minutes(api, monkeypatch, capsys):
    first = BLOCK.findall((GUIDES / "nservicebus.md").read_text())[0]
    programs = []

    def declare(worker):
        monkeypatch.setattr(workers, "Worker", lambda name: programs.append(name) or worker)
        exec(compile(first, "nservicebus.md", "exec"), {"__name__": "tasks"})

    hands = started(api, declare)
    hands.live(1_000)

    assert programs == ["billing"]
    assert capsys.readouterr().out == "cleaned up\n" * 3
    assert [job["key"] for job in api.get("/v1/jobs").json["items"]] == ["clean-up"]


@pytest.mark.parametrize("page", ["root.md", "nservicebus.md"])
def test_the_pages_name_only_existing_members(page):
    methods = set(re.findall(r"`(?:client\.)?((?:jobs|runs|errors|job_sets)\.\w+)", (GUIDES / page).read_text()))

    assert methods
    for each in methods - EVENTS:
        resource, method = each.split(".")
        assert hasattr(getattr(connected_nowhere(), resource), method), each


def test_the_nservicebus_page_names_only_existing_events():
    section = (GUIDES / "nservicebus.md").read_text().partition("## Events")[2]
    named = set(re.findall(r"`([a-z]+[.][a-z]+)`", section))

    assert len(named) >= 8
    assert named <= EVENTS


def connected_nowhere():
    return sdk.Sweephand("https://sweephand.example", client_id="a.b", secret="c")
