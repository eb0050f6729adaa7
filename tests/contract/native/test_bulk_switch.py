"""Many jobs activated, deactivated, paused or resumed by one request: those that are meant, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.server.flow.bulk import some_jobs, switch_jobs
from tests.contract.calls import Reply
from tests.contract.native.api import JOB, OTHER, Api
from tests.contract.native.test_lists import joined, pages

KEY = {"idempotency-key": "k"}
SWITCHES = ["activate", "deactivate", "pause", "resume"]
STATES = {"activate": "ACTIVE", "deactivate": "INACTIVE", "pause": "PAUSED", "resume": "ACTIVE"}


def make(api: Api, count: int, **members: Any) -> list[str]:
    return [api.create(name=f"{members.get('collection', 'j')}-{n:03}", **members)["id"] for n in range(count)]


def switch(api: Api, verb: str, body: Any = None, *, headers: dict[str, str] | None = None, **query: object) -> Reply:
    return api("POST", f"/v1/jobs:{verb}", body, query=query, headers=headers)


def states(api: Api) -> dict[str, str]:
    return {each["name"]: each["state"] for each in joined(pages(api, "/v1/jobs", 200))}


@pytest.mark.parametrize("verb", SWITCHES)
def test_all_jobs_that_match_the_filters_are_switched(api: Api, verb: str) -> None:
    make(api, 3, tags=["t"])
    api.create(name="other")
    if verb in {"activate", "resume"}:
        switch(api, "deactivate" if verb == "activate" else "pause", tag="t", expectedCount=3)

    done = switch(api, verb, tag="t", expectedCount=3)
    again = switch(api, verb, tag="t", expectedCount=3)

    assert (done.status, done.json) == (200, {"count": 3, "changed": 3, "refused": 0, "operation": None})
    assert again.json == done.json, "they are counted whether or not they stood so before"
    assert states(api) == {f"j-00{n}": STATES[verb] for n in range(3)} | {"other": "ACTIVE"}


def test_a_dry_run_reports_the_count_and_the_request_must_state_it(api: Api) -> None:
    make(api, 3, tags=["t"])

    with api.unchanged():
        dry = switch(api, "deactivate", tag="t", dryRun="true")
        dry_with_a_key = switch(api, "deactivate", tag="t", dryRun="true", headers=KEY)
        wrong = switch(api, "deactivate", tag="t", expectedCount=2)

    assert (dry.status, dry.json) == (200, {"count": 3, "changed": 0, "refused": 0, "operation": None})
    assert dry_with_a_key.json == dry.json
    assert (wrong.status, wrong.code) == (412, "COUNT_MISMATCH")


def test_a_pause_accepts_a_note_and_an_end(api: Api) -> None:
    (job,) = make(api, 1, tags=["t"])

    done = switch(api, "pause", {"note": "stocktaking", "until": "2027-03-01T12:05:00Z"}, tag="t", expectedCount=1)
    paused = api.get(f"/v1/jobs/{job}").json["pause"]
    change = api.get(f"/v1/jobs/{job}/changes").json["items"][0]
    api.stage.run(400)

    assert done.status == 200
    assert (paused["note"], paused["until"]) == ("stocktaking", "2027-03-01T12:05:00Z")
    assert (change["operation"], change["actor"]) == ("pause", api.get("/v1/credentials").json["items"][0]["clientId"])
    assert states(api) == {"j-000": "ACTIVE"}


def test_jobs_already_in_the_requested_state_get_no_new_revision(api: Api) -> None:
    (job,) = make(api, 1, tags=["t"])

    switch(api, "activate", tag="t", expectedCount=1)

    assert api.get(f"/v1/jobs/{job}").revision == 1


@pytest.mark.parametrize("verb", SWITCHES)
def test_more_than_a_hundred_are_switched_as_an_operation(api: Api, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    monkeypatch.setattr(some_jobs, "AT_ONCE", 4)
    monkeypatch.setattr(some_jobs, "JOBS", 2)
    make(api, 5, tags=["t"])
    api.create(name="other")
    body = {"note": "n", "until": "2027-03-02T00:00:00Z"} if verb == "pause" else None

    begun = switch(api, verb, body, tag="t", expectedCount=5)
    api.stage.clock.advance(1)
    api.create(name="later", tags=["t"])
    api.stage.run(60)

    done = api.get(begun.headers["location"]).json
    assert (begun.status, begun.json["count"], begun.json["changed"]) == (202, 5, 0)
    assert (done["kind"], done["state"], done["request"]["tag"], done["request"]["to"]) == (
        "switch_jobs",
        "DONE",
        "t",
        verb,
    )
    assert (done["progress"]["done"], done["progress"]["failed"], done["result"]["kept"]) == (5, 0, 1)
    expected = {f"j-00{n}": STATES[verb] for n in range(5)} | {"other": "ACTIVE", "later": "ACTIVE"}
    assert states(api) == expected


def test_a_repeated_key_returns_the_first_request(api: Api) -> None:
    make(api, 2)

    first = switch(api, "deactivate", state="ACTIVE", expectedCount=2, headers=KEY)
    api.stage.run(60)
    second = switch(api, "deactivate", state="ACTIVE", expectedCount=2, headers=KEY)
    other = switch(api, "deactivate", state="INACTIVE", expectedCount=2, headers=KEY)

    assert (first.status, second.status) == (202, 202)
    assert second.json["operation"]["id"] == first.json["operation"]["id"]
    assert (second.json["count"], second.json["operation"]["state"]) == (2, "DONE")
    assert (other.status, other.code) == (422, "KEY_REUSED")
    assert set(states(api).values()) == {"INACTIVE"}


def test_a_large_selection_becomes_an_operation(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(some_jobs, "PAGE_S", -1.0)
    make(api, 3, tags=["t"])

    begun = switch(api, "pause", tag="t", expectedCount=3)
    api.stage.run(60)

    assert begun.status == 202
    assert set(states(api).values()) == {"PAUSED"}
    assert api.get(begun.headers["location"]).json["progress"]["done"] == 3


def test_a_repeated_page_switches_nothing_else(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(some_jobs, "AT_ONCE", 1)
    monkeypatch.setattr(some_jobs, "JOBS", 2)
    jobs = make(api, 3, tags=["t"])
    begun = switch(api, "deactivate", tag="t", expectedCount=3)
    operation = switch_jobs.verbs.find(api.stage.world, "acme", begun.json["operation"]["id"])
    switch_jobs.page(api.stage.world, operation)

    api.stage.run(60)

    assert api.get(begun.headers["location"]).json["progress"]["done"] == 3
    assert {api.get(f"/v1/jobs/{job}").revision for job in jobs} == {2}


def test_a_job_changed_just_before_its_turn_is_left_alone(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    make(api, 1, tags=["t"])
    real = switch_jobs._switch

    def changed_before(world: Any, asked: Any, actor: Any, job: Any) -> Any:
        assert api("PATCH", f"/v1/jobs/{job.id}", {"tags": ["new"]}).status == 200
        return real(world, asked, actor, job)

    monkeypatch.setattr(switch_jobs, "_switch", changed_before)

    done = switch(api, "deactivate", tag="t", expectedCount=1).json

    assert (done["count"], done["changed"], done["refused"]) == (1, 0, 0)
    assert states(api) == {"j-000": "ACTIVE"}


def test_jobs_that_cannot_be_switched_are_counted_and_left_unchanged(api: Api) -> None:
    final = {"policies": {"afterEnd": "final"}, "schedules": [{"at": "2027-03-01T12:01:00Z"}]}
    api.create({"action": JOB["action"], **final}, name="over")
    make(api, 1)
    api.stage.run(90)

    done = switch(api, "pause", collection="default", expectedCount=2).json

    assert (done["changed"], done["refused"]) == (1, 1)
    assert states(api) == {"over": "COMPLETED", "j-000": "PAUSED"}


@pytest.mark.parametrize("verb", SWITCHES)
@pytest.mark.parametrize(
    ("query", "field"),
    [({}, "path"), ({"tag": "x"}, "expectedCount"), ({"tag": "x", "dryRun": "yes"}, "dryRun")],
)
def test_an_ambiguous_selection_is_refused(shared: Api, verb: str, query: dict[str, str], field: str) -> None:
    with shared.unchanged():
        refused = switch(shared, verb, **query)

    assert (refused.status, refused.fields) == (400, [field])


def test_a_pause_that_ends_in_the_past_is_refused(shared: Api) -> None:
    refused = switch(shared, "pause", {"until": "2027-02-01T00:00:00Z"}, tag="x", expectedCount=0)

    assert (refused.status, refused.fields) == (422, ["until"])
    assert refused.json["errors"][0]["reason"] == "must be in the future"


def test_jobs_of_another_tenant_are_not_reached(api: Api) -> None:
    make(api, 1, tags=["t"])

    theirs = api("POST", "/v1/jobs:deactivate", query="tag=t&expectedCount=0", caller=OTHER)

    assert theirs.json["count"] == 0
    assert states(api) == {"j-000": "ACTIVE"}
