"""Many jobs deleted by one request: those that are meant, and no others."""

from __future__ import annotations

import pytest

from sweephand.server.flow.bulk import delete_jobs, some_jobs
from tests.contract.native.api import JOB
from tests.contract.native.test_lists import joined, pages


def make(api, count, **members):
    return [api.create(name=f"{members.get('collection', 'j')}-{n:03}", **members)["id"] for n in range(count)]


def there(api):
    return {each["id"] for each in joined(pages(api, "/v1/jobs", 200))}


def delete(api, **query):
    return api("DELETE", "/v1/jobs", query=query)


def test_a_dry_run_reports_the_count_and_the_request_must_state_it(api):
    old, other = make(api, 3, tags=["old"]), api.create(name="other")["id"]

    with api.unchanged():
        dry = delete(api, tag="old", dryRun="true")
        wrong = delete(api, tag="old", expectedCount=2)
        wrong_too = delete(api, tag="old", expectedCount=2, dryRun="true")
    done = delete(api, tag="old", expectedCount=3)
    again = delete(api, tag="old", expectedCount=3)

    assert (dry.status, dry.json) == (200, {"count": 3, "deleted": 0, "operation": None})
    assert (wrong.status, wrong.code, wrong_too.status) == (412, "COUNT_MISMATCH", 412)
    assert "3 jobs" in wrong.json["detail"]
    assert (done.status, done.json) == (200, {"count": 3, "deleted": 3, "operation": None})
    assert (again.status, there(api)) == (412, {other})
    assert not set(old) & there(api)


@pytest.mark.parametrize(
    ("query", "gone"),
    [
        ({"collection": "side"}, "cd"),
        ({"state": "INACTIVE"}, "bd"),
        ({"resourceId": "r"}, "ac"),
        ({"name": "a"}, "a"),
        ({"search": "B"}, "b"),
        ({"collection": "side", "state": "INACTIVE"}, "d"),
        ({"tag": "nothing"}, ""),
        ({"tag": ""}, "abcd"),
        ({"tag": "", "collection": "side"}, "cd"),
    ],
)
def test_jobs_that_match_the_filters_are_deleted(api, query, gone):
    api("POST", "/v1/collections", {"name": "side"})
    ids = {
        "a": api.create(name="a", resourceId="r")["id"],
        "b": api.create(name="b", active=False)["id"],
        "c": api.create(name="c", collection="side", resourceId="r")["id"],
        "d": api.create(name="d", collection="side", active=False)["id"],
    }

    done = delete(api, **query, expectedCount=len(gone))

    assert done.json["deleted"] == len(gone)
    assert there(api) == {job for name, job in ids.items() if name not in gone}


@pytest.mark.parametrize("filters", [{"tag": "old"}, {"collection": "default"}])
def test_more_than_a_hundred_deletes_become_an_operation(api, monkeypatch, filters):
    monkeypatch.setattr(some_jobs, "AT_ONCE", 4)
    monkeypatch.setattr(some_jobs, "JOBS", 2)
    api("POST", "/v1/collections", {"name": "kept"})
    make(api, 5, tags=["old"])
    kept = make(api, 1, collection="kept")

    begun = delete(api, **filters, expectedCount=5)
    late = api.create(name="z-late", tags=["old"])["id"]
    assert (begun.status, begun.json["deleted"]) == (202, 0)
    assert begun.json["operation"]["request"] == filters
    api.stage.clock.advance(1)
    later = api.create(name="z-later", tags=["old"])["id"]
    api.stage.run(60)

    done = api.get(begun.headers["location"]).json
    assert (done["state"], done["progress"]["done"] >= 5) == ("DONE", True)
    assert {*kept, later} <= there(api) <= {*kept, later, late}


def test_deleting_jobs_without_tags_becomes_an_operation_too(api, monkeypatch):
    monkeypatch.setattr(some_jobs, "AT_ONCE", 2)
    monkeypatch.setattr(some_jobs, "JOBS", 1)
    make(api, 3)
    tagged = api.create(name="tagged", tags=["a"])["id"]

    begun = delete(api, tag="", expectedCount=3)
    api.stage.run(60)

    assert (begun.status, begun.json["operation"]["request"]) == (202, {"tag": ""})
    assert there(api) == {tagged}


def test_a_large_selection_becomes_an_operation(api, monkeypatch):
    monkeypatch.setattr(some_jobs, "PAGE_S", -1.0)
    make(api, 3, tags=["old"])

    begun = delete(api, tag="old", expectedCount=3)
    api.stage.run(60)

    assert (begun.status, begun.json["deleted"], begun.json["operation"]["progress"]["total"]) == (202, 1, 2)
    assert there(api) == set()
    assert api.get(begun.headers["location"]).json["state"] == "DONE"


def test_a_repeated_page_deletes_nothing_else_and_the_final_count_is_right(api, monkeypatch):
    monkeypatch.setattr(some_jobs, "AT_ONCE", 1)
    monkeypatch.setattr(some_jobs, "JOBS", 2)
    make(api, 3, tags=["old"])
    other = api.create(name="other")["id"]
    begun = delete(api, tag="old", expectedCount=3)
    operation = delete_jobs.verbs.find(api.stage.world, "acme", begun.json["operation"]["id"])
    delete_jobs.page(api.stage.world, operation)

    api.stage.run(60)

    done = api.get(begun.headers["location"]).json
    assert (done["state"], done["progress"]) == ("DONE", {"done": 3, "total": 3, "failed": 0, "waitsFor": None})
    assert there(api) == {other}


def test_a_job_changed_just_before_its_turn_is_left_alone(api, monkeypatch):
    (job,) = make(api, 1, tags=["old"])
    real = delete_jobs._delete

    def changed_before(world, by, there):
        assert api("PATCH", f"/v1/jobs/{there.id}", {"tags": ["new"]}).status == 200
        return real(world, by, there)

    monkeypatch.setattr(delete_jobs, "_delete", changed_before)

    assert delete(api, tag="old", expectedCount=1).json == {"count": 1, "deleted": 0, "operation": None}
    assert there(api) == {job}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({}, "path"),
        ({"expectedCount": 1}, "path"),
        ({"dryRun": "true"}, "path"),
        ({"tag": "x"}, "expectedCount"),
        ({"tag": "x", "dryRun": "false"}, "expectedCount"),
        ({"tag": "x", "dryRun": "yes"}, "dryRun"),
        *(({"tag": "x", "expectedCount": count}, "expectedCount") for count in ("-1", "1.0", "", "a", "01", 10**10)),
        ({"state": "GONE", "expectedCount": 1}, "state"),
        ({"tag": "x", "limit": 1, "expectedCount": 1}, "limit"),
    ],
)
def test_an_ambiguous_selection_is_refused(api, query, field):
    make(api, 1, tags=["x"])

    with api.unchanged():
        reply = delete(api, **query)

    assert (reply.status, reply.fields) == (400, [field])


def test_a_bulk_delete_needs_the_write_scope_and_reaches_no_other_tenant(api):
    make(api, 1, tags=["x"])
    api("POST", "/v1/jobs", {**JOB, "tags": ["x"]}, caller="globex")

    assert api("DELETE", "/v1/jobs", query={"tag": "x", "expectedCount": 1}, caller="globex").json["deleted"] == 1

    assert len(there(api)) == 1
