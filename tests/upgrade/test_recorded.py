"""Every recorded version's rows, messages, events and texts are read by this version, and the recorded life goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import sweephand
from sweephand.domain.event import SOURCE, EventType
from sweephand.domain.instants import up_to_second
from sweephand.domain.message import Pointer, decode
from sweephand.domain.run import State
from tests.contract.native.api import Api
from tests.support.aws import ROOT
from tests.support.bus import validator
from tests.support.stage import TENANT
from tests.upgrade import deploy, life, recording

RECORDED = sorted(recording.FOLDER.glob("*.json"))
NOT_RECORDED = {
    "ADDRESS": "of the Azure facade",
    "PLACES": "of the Azure facade",
    "UNUSED": "of the SAP facade",
    "CHANGE": "there for seconds, while a change of more than 40 schedules is carried out",
    "PART": "the same",
    "SPREAD": "of days on which a tenant has more than 100 runs that fail or wait",
    "RELEASE": "there for seconds, after a tenant or collection is enabled",
}
LISTS = ("jobs", "runs", "collections", "calendars", "flow-keys", "credentials", "job-sets", "consumers", "errors")


@pytest.fixture(scope="module", params=RECORDED, ids=lambda path: path.stem)
def recorded(request: pytest.FixtureRequest) -> dict[str, Any]:
    path: Path = request.param
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.fixture(scope="module")
def current() -> dict[str, Any]:
    """Returns the recording of this version."""
    found: dict[str, Any] = json.loads((recording.FOLDER / f"{sweephand.__version__}.json").read_text())
    return found


@pytest.fixture
def api(recorded: dict[str, Any]) -> Iterator[Api]:
    with recording.restored(recorded) as there:
        yield there


def test_the_recorded_life_goes_on_and_nothing_is_lost_doubled_or_early(api: Api, recorded: dict[str, Any]) -> None:
    began, now = (datetime.fromisoformat(recorded[name]) for name in ("began", "now"))
    before = [(name, datetime.fromisoformat(at)) for name, at in recorded["calls"]]

    api.stage.run(life.AFTER.total_seconds())
    after = list(life.calls(api))

    end = now + life.AFTER
    for name, period in life.PERIODS.items():
        called = {at for job, at in [*before, *after] if job == name}
        assert called == life.due(period, began, end), name
    assert life.repeated([*before, *after]) == set()
    assert [job for job, _ in after].count("later") == 1
    assert [job for job, _ in after].count("again") == 1
    resumes = datetime.fromisoformat(recorded["held"]["resumes"])
    assert {at for job, at in after if job == "paused"} == {resumes, *life.due(life.MINUTE, resumes, end)}
    assert "gone" not in {job for job, _ in after}
    assert api.stage.journal.at("error") == []
    assert api.stage.sqs.bodies("https://queue/archive") == []


def test_a_run_that_waits_takes_its_result_by_the_recorded_token(api: Api, recorded: dict[str, Any]) -> None:
    """The next run under its flow key is then called."""
    held = recorded["held"]
    token = {"sweephand-callback-token": held["token"]}

    reply = api("PUT", f"/v1/runs/{held['waits']}/result", {"success": True}, caller=None, headers=token)
    api.stage.run(120)

    assert reply.status == 200, reply.text
    assert api.get(f"/v1/runs/{held['waits']}").json["state"] == State.SUCCESS.value
    assert "next" in {job for job, _ in life.calls(api)}


def test_a_repeated_request_and_the_next_page_follow_the_recorded_ones(api: Api, recorded: dict[str, Any]) -> None:
    held = recorded["held"]
    body = {**life.job("once"), "schedules": []}

    again = api("POST", "/v1/jobs", body, headers={"idempotency-key": life.REQUEST_KEY})
    page = api.get("/v1/jobs", query={"limit": 2, "cursor": held["cursor"]})

    assert again.id == held["once"]
    assert page.status == 200
    assert len(page.json["items"]) == 2


def test_everything_recorded_can_be_read(api: Api, recorded: dict[str, Any]) -> None:
    for kind in LISTS:
        reply = api.get(f"/v1/{kind}")
        assert reply.status == 200, reply.text
        assert reply.json["items"] or kind == "errors", kind
    jobs = [item["pk"]["S"].rpartition("#")[2] for item in recorded["items"] if item["sk"]["S"] == "JOB"]
    for job in jobs:
        for path in ("", "/changes", "/next"):
            assert api.get(f"/v1/jobs/{job}{path}").status == 200


def test_everything_recorded_can_be_changed_and_deleted(api: Api, recorded: dict[str, Any]) -> None:
    jobs = [
        item["pk"]["S"].rpartition("#")[2]
        for item in recorded["items"]
        if item["sk"]["S"] == "JOB" and item["pk"]["S"].startswith(f"TENANT#{TENANT}#")
    ]
    for job in jobs:
        assert api("PATCH", f"/v1/jobs/{job}", {"description": "of this version"}).status == 200
        assert api("DELETE", f"/v1/jobs/{job}").status == 204
    api.stage.run(1_200)

    left = [item for item in api.stage.items() if re.search(r"#JOB#[0-9a-f-]{36}$", item["pk"]["S"])]
    assert left == []


def test_the_recording_of_this_version_has_a_message_of_each_subject_with_every_member(current: dict[str, Any]) -> None:
    now = up_to_second(datetime.fromisoformat(current["now"]))
    pointers = recording.pointers(now)

    assert {subject: decode(body) for subject, body in current["messages"].items()} == {
        pointer.subject.value: pointer for pointer in pointers
    }
    for each in fields(Pointer):
        assert getattr(pointers[-1], each.name) != each.default, each.name


def test_the_recording_of_this_version_has_rows_of_every_kind(current: dict[str, Any]) -> None:
    """A new kind of row needs a place in the life, or in NOT_RECORDED with its reason."""
    listed = re.findall(
        r"^\| [^|]+ \| `[^|]+` \| ([^|]+) \|$", (ROOT / "docs/reference/data.md").read_text(), re.MULTILINE
    )
    kinds = {each.partition("#")[0] for line in listed for each in re.findall(r"`([A-Z]+)[#`]", line)}
    stored = {item["sk"]["S"].partition("#")[0] for item in current["items"]}

    assert kinds - stored == NOT_RECORDED.keys()


def test_the_recording_of_this_version_has_the_attributes_that_rows_have_today(current: dict[str, Any]) -> None:
    """Before a release, `make record-version` records a changed row anew; after it, the change needs a new version."""
    today = recording.record(current["commit"])

    assert _attributes(current) == _attributes(today)


def test_every_recorded_message_and_event_is_understood(recorded: dict[str, Any]) -> None:
    messages = [message for queue in recorded["queues"].values() for message in queue]
    assert messages

    for message in messages:
        assert decode(message["body"]).tenant == TENANT
    for subject, body in recorded["messages"].items():
        assert decode(body).subject == subject
    for kind, detail in recorded["events"]:
        assert kind in set(EventType)
        validator(kind).validate({"source": SOURCE, "detail-type": kind, "detail": json.loads(detail)})


def test_changed_defaults_are_named_in_the_changelog(recorded: dict[str, Any]) -> None:
    """An update keeps the parameters of a stack, so its owner must learn of a new default."""
    today = recording.defaults()
    changed = {name for name, value in recorded["defaults"].items() if name in today and today[name] != value}
    named = (ROOT / "CHANGELOG.md").read_text().partition("### Changed defaults")[2].partition("\n### ")[0]

    assert {name for name in changed if f"`{name}`" not in named} == set()


def test_an_audit_of_the_recorded_rows_repairs_nothing(api: Api) -> None:
    api.stage.run(600)

    assert api.stage.audit().lost == 0


def test_an_upgrade_is_tried_from_the_version_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("0.9.0", "0.10.0", "0.11.0"):
        (tmp_path / f"{version}.json").touch()
    monkeypatch.setattr(recording, "FOLDER", tmp_path)

    assert deploy.last_before("0.11.0").stem == "0.10.0"
    assert deploy.last_before("0.10.0").stem == "0.9.0"


def _attributes(recorded: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Returns the kind of row, the name and the type of each attribute."""
    return {
        (item["sk"]["S"].partition("#")[0], name, kind)
        for item in recorded["items"]
        for name, value in item.items()
        for kind in value
    }
