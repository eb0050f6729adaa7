"""Lists of jobs and schedules: pages, cursors, filters and what an item shows."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from sweephand.domain.collection import Collection
from sweephand.server.flow.tenants import tenancy
from sweephand.server.store.dynamo import keys
from sweephand.server.store.jobs import directory
from sweephand.server.store.views import jobs as views
from tests.contract.native import shapes
from tests.contract.native.api import JOB, TENANT, example

ACTION = {"action": JOB["action"]}


def pages(api, path, limit, query="", **more):
    """Yields the items of each page, walked by its cursors."""
    found, cursor = [], None
    while True:
        asked = "&".join(filter(None, [query, f"limit={limit}", cursor and f"cursor={cursor}"]))
        reply = api.get(path, query=asked, **more)
        assert reply.status == 200, reply.text
        shapes.check_page(reply.json)
        found.append(reply.json["items"])
        cursor = reply.json["nextCursor"]
        if cursor is None:
            return found
        assert len(found[-1]) == limit, "without filters every page but the last is full"


def joined(found):
    return [item for page in found for item in page]


def names(items):
    return [each["name"] for each in items]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("query", ["", "collection=default", "tag=t", "resourceId=r"])
def test_following_the_cursors_shows_each_job_once_in_order(api, count, query):
    made = []
    for n in range(count):
        api.stage.clock.advance(1)
        made.append(api.create(ACTION, name=f"job-{9 - n}", tags=["t"], resourceId="r")["name"])

    found = pages(api, "/v1/jobs", 2, query)

    assert [len(page) for page in found] == {0: [0], 1: [1], 2: [2], 3: [2, 1], 4: [2, 2], 5: [2, 2, 1]}[count]
    wanted = sorted(made) if query == "collection=default" else made
    assert names(joined(found)) == wanted


def test_a_listed_job_has_all_members_except_payloads_and_totals(api):
    made = api.create(example())

    (item,) = api.get("/v1/jobs").json["items"]

    shapes.check_job(item, listed=True)
    for name in shapes.LISTED_JOB - {"action", "errorAction"}:
        assert item[name] == made[name]
    for name in shapes.LISTED_ACTION:
        assert item["action"][name] == made["action"][name]


def test_a_list_includes_schedules_and_totals_on_request(api):
    made = api.create(example())
    api.stage.run(45)
    read = api.get(f"/v1/jobs/{made['id']}", query="include=schedules").json

    (item,) = api.get("/v1/jobs", query="include=schedules").json["items"]

    shapes.check_job(item, listed=True, schedules=True)
    assert item["totals"] == read["totals"]
    assert read["totals"]["succeeded"] >= 3
    for listed, whole in zip(item["schedules"], read["schedules"], strict=True):
        assert listed == {name: value for name, value in whole.items() if name not in {"payload", "hooks"}}


def test_concurrent_creates_and_deletes_do_not_disturb_the_cursors(api):
    made = [api.create(ACTION, name=f"j{n}") for n in range(4) if api.stage.clock.advance(1) is None]
    first = api.get("/v1/jobs", query="limit=2").json
    api("DELETE", f"/v1/jobs/{made[1]['id']}")
    api("DELETE", f"/v1/jobs/{made[2]['id']}")
    api.stage.clock.advance(1)
    api.create(ACTION, name="new")

    rest = api.get("/v1/jobs", query={"cursor": first["nextCursor"]}).json

    assert names(first["items"] + rest["items"]) == ["j0", "j1", "j3", "new"]


def test_schedules_are_listed_by_creation_time(api):
    made = api.create(schedules=[{"name": f"s{n}", "every": "PT1H", "payload": n} for n in (3, 1, 2)])
    place = f"/v1/jobs/{made['id']}/schedules"

    for limit in (1, 2, 3, 4):
        found = joined(pages(api, place, limit))
        assert names(found) == ["s3", "s1", "s2"]
        assert found == made["schedules"]
    for schedule in found:
        shapes.check_schedule(schedule)


def test_the_limit_is_50_by_default_and_200_at_most(api):
    for n in range(202):
        tenancy.create_collection(api.stage.world, Collection("acme", f"c{n:03d}"))

    assert len(api.get("/v1/collections").json["items"]) == 50
    assert len(api.get("/v1/collections", query="limit=200").json["items"]) == 200


def test_a_page_too_large_for_lambdas_answer_is_shortened(api, monkeypatch):
    made = api.create(schedules=[{"name": f"s{n}", "every": "PT1H", "payload": '"' * 4_000} for n in range(8)])
    monkeypatch.setattr("sweephand.server.facades.http.LARGEST_ANSWER", 60_000)
    place = f"/v1/jobs/{made['id']}/schedules"

    found, cursor, sizes = [], {}, []
    while cursor is not None:
        reply = api.get(place, query={"limit": 8, **cursor})
        sizes.append(len(json.dumps(reply.text)))
        found += reply.json["items"]
        cursor = reply.json["nextCursor"] and {"cursor": reply.json["nextCursor"]}

    assert names(found) == [f"s{n}" for n in range(8)]
    assert len(sizes) > 2
    assert max(sizes) <= 60_000


def test_a_job_too_large_for_an_answer_can_be_read_and_changed_without_its_schedules(api, monkeypatch):
    made = api.create(schedules=[{"name": f"s{n}", "every": "PT1H", "payload": "x" * 4_000} for n in range(8)])
    monkeypatch.setattr("sweephand.server.facades.http.LARGEST_ANSWER", 30_000)
    place = f"/v1/jobs/{made['id']}"

    whole, alone = api.get(place, query="include=schedules"), api.get(place)
    changed = api("PATCH", place, {"description": "x"})

    assert (whole.status, whole.fields) == (400, ["include"])
    assert alone.status == 200
    assert (changed.status, changed.revision) == (200, 2)
    assert "schedules" not in changed.json


def test_a_page_costs_the_same_however_long_the_list_is(api):
    """Cursors go on where the page ended: the second page costs what the first did.

    The last one looks for more in the rest of its block.
    """
    for n in range(12):
        api.stage.clock.advance(1)
        api.create(ACTION, name=f"j{n:02d}")
    counts, cursor = [], ""
    for _ in range(4):
        api.stage.taps.passed.clear()
        page = api.get("/v1/jobs", query=f"limit=3{cursor}").json
        counts.append(len(api.stage.taps.passed))
        cursor = f"&cursor={page['nextCursor']}"

    assert all(one == other for one, other in pairwise(counts[:-1]))
    assert counts[0] <= 7
    assert counts[-1] == counts[0] + 3


# Offsets, totals and searches


def filled(api, count, **members):
    for n in range(count):
        api.stage.clock.advance(1)
        api.create(ACTION, name=f"job-{n:03d}", **members)


@pytest.fixture
def small_blocks(monkeypatch):
    """A directory of blocks of ten numbers."""
    monkeypatch.setattr("sweephand.server.store.jobs.directory.BLOCK", 10)
    monkeypatch.setattr("sweephand.server.store.jobs.directory.PART", 5)
    monkeypatch.setattr("sweephand.server.store.views.jobs.AT_ONCE", 2)


@pytest.mark.parametrize("query", ["", "collection=default", "tag=t", "state=ACTIVE", "search=JOB", "resourceId=r"])
def test_a_page_by_offset_equals_the_page_reached_by_cursors(api, small_blocks, query):
    filled(api, 25, tags=["t"], resourceId="r")
    whole = names(joined(pages(api, "/v1/jobs", 7, query)))

    for offset in (0, 1, 9, 10, 19, 24, 25, 26, 999_999_999):
        page = api.get("/v1/jobs", query=f"limit=7&offset={offset}&include=total&{query}".strip("&")).json
        assert names(page["items"]) == whole[offset : offset + 7]
        assert page["total"] == 25
        assert (page["nextCursor"] is None) == (offset + 7 >= 25)


@pytest.mark.parametrize("query", ["search=JOB", "collection=default&search=job", "tag=t&state=ACTIVE"])
def test_a_search_and_its_total_read_the_jobs_once_on_every_page(api, small_blocks, monkeypatch, query):
    filled(api, 25, tags=["t"])
    looked = []
    own = views.listed
    monkeypatch.setattr(views, "listed", lambda *args: looked.append(args) or own(*args))

    found = [api.get("/v1/jobs", query=f"limit=10&include=total&{query}").json]
    while cursor := found[-1]["nextCursor"]:
        found.append(api.get("/v1/jobs", query=f"limit=10&include=total&{query}&cursor={cursor}").json)

    assert names(joined(each["items"] for each in found)) == [f"job-{n:03}" for n in range(25)]
    assert [each["total"] for each in found] == [25, 25, 25]
    assert len(looked) == 3


def test_offsets_count_existing_jobs_not_deleted_ones(api, small_blocks):
    filled(api, 45)
    for gone in api.get("/v1/jobs", query="limit=45").json["items"][3::4]:
        api("DELETE", f"/v1/jobs/{gone['id']}")
    whole = names(joined(pages(api, "/v1/jobs", 50)))

    for offset in range(len(whole) + 2):
        for limit in (1, 6, 50):
            page = api.get("/v1/jobs", query=f"limit={limit}&offset={offset}").json
            assert names(page["items"]) == whole[offset : offset + limit]


def test_the_last_page_reads_only_its_own_block(api, small_blocks):
    filled(api, 29)
    api.stage.taps.passed.clear()

    page = api.get("/v1/jobs", query="offset=27&limit=5").json

    assert names(page["items"]) == ["job-027", "job-028"]
    limits = [passing.request.get("Limit") for passing in api.stage.taps.passed if passing.operation == "Query"]
    counted = [None] * directory.SPREAD
    assert limits == [*counted, 14, 14], "eight of its block are skipped, five asked for, one tells whether more follow"


@pytest.mark.parametrize("offset", [9, 12, 14, 15])
@pytest.mark.parametrize("change", ["create", "delete"])
def test_concurrent_changes_shift_no_later_page(api, small_blocks, change, offset):
    """Between the counts of the blocks and the rows: all stand where they stood."""
    filled(api, 17)
    last = api.get("/v1/jobs", query="offset=16&limit=1").json["items"][0]

    usual, happened = api.stage.taps.fault, []

    def meanwhile(passing, act):
        if not happened and keys.directory_part(TENANT, 2) in str(passing.request):
            happened.append(change)
            if change == "create":
                api.create(ACTION, name="job-017")
            else:
                assert api("DELETE", f"/v1/jobs/{last['id']}").status == 204
        return usual(passing, act)

    api.stage.taps.fault = meanwhile
    page = api.get("/v1/jobs", query=f"limit=3&offset={offset}").json

    assert happened
    there = 18 if change == "create" else 16
    assert names(page["items"]) == [f"job-{n:03d}" for n in range(offset, min(offset + 3, there))]


def test_the_cursor_of_an_offset_page_continues_the_list(api, small_blocks):
    filled(api, 25)
    page = api.get("/v1/jobs", query="limit=3&offset=8").json

    rest = api.get("/v1/jobs", query=f"limit=100&cursor={page['nextCursor']}").json

    assert names(page["items"] + rest["items"]) == [f"job-{n:03d}" for n in range(8, 25)]


def test_an_offset_cannot_be_combined_with_a_cursor(api):
    filled(api, 2)
    cursor = api.get("/v1/jobs", query="limit=1").json["nextCursor"]

    reply = api.get("/v1/jobs", query=f"limit=1&cursor={cursor}&offset=0")

    assert (reply.status, reply.fields) == (400, ["offset"])


def test_an_offset_reads_only_up_to_its_page(api, small_blocks):
    """The counts of the blocks say where it lies: of 60 jobs, three partitions, whatever the offset."""
    filled(api, 60)

    for offset in (0, 5, 25, 55):
        api.stage.taps.passed.clear()
        assert len(api.get("/v1/jobs", query=f"offset={offset}&limit=5").json["items"]) == 5
        assert api.stage.taps.count("dynamodb.Query") <= directory.SPREAD + 3
        assert api.stage.taps.count("dynamodb.BatchGetItem") <= 3, "jobs, their schedules, and what holds them"


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({"search": "nightly"}, "Nightly-A nightly-b"),
        ({"search": "LY-"}, "Nightly-A nightly-b"),
        ({"search": "-b"}, "nightly-b"),
        ({"search": "straße"}, "STRASSE"),
        ({"search": "%"}, "50%"),
        ({"search": "nothing"}, ""),
        ({"search": "nightly", "tag": "x"}, "Nightly-A"),
        ({"search": "nightly", "resourceId": "r"}, "nightly-b"),
        ({"search": "nightly", "tag": "x", "resourceId": "r"}, ""),
        ({"search": "nightly", "collection": "default"}, "Nightly-A nightly-b"),
        ({"search": "nightly", "collection": "other"}, ""),
        ({"search": "nightly", "state": "INACTIVE"}, "nightly-b"),
        ({"search": "nightly", "name": "nightly-b"}, "nightly-b"),
        ({"name": "nightly-b", "tag": "x"}, ""),
    ],
)
def test_a_search_finds_parts_of_names_in_any_case(api, query, wanted):
    api("POST", "/v1/collections", {"name": "other"})
    api.create(ACTION, name="Nightly-A", tags=["x"])
    api.create(ACTION, name="nightly-b", resourceId="r", active=False)
    api.create(ACTION, name="STRASSE")
    api.create(ACTION, name="50%")

    found = api.get("/v1/jobs", query={**query, "include": "total"}).json

    assert names(found["items"]) == wanted.split()
    assert found["total"] == len(wanted.split())


@pytest.mark.parametrize(
    "query", ["state=ACTIVE", "search=x", "tag=t&search=x", "tag=t&include=total", "tag=t&offset=9"]
)
def test_a_search_that_would_read_too_much_is_refused_with_the_reason(api, monkeypatch, query):
    monkeypatch.setattr("sweephand.server.store.views.jobs.FILTERED_MOST", 5)
    filled(api, 7, tags=["t"])

    reply = api.get("/v1/jobs", query=query)

    assert (reply.status, reply.code) == (400, "INVALID_QUERY")
    assert reply.fields[0] in query
    assert "narrow" in reply.json["errors"][0]["reason"]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "include=total",
        "offset=6",
        "tag=t",
        "collection=default",
        "collection=default&include=total",
        "name=job-001",
    ],
)
def test_a_list_that_reads_only_its_page_is_never_refused(api, monkeypatch, query):
    monkeypatch.setattr("sweephand.server.store.views.jobs.FILTERED_MOST", 5)
    filled(api, 7, tags=["t"])

    reply = api.get("/v1/jobs", query=f"limit=2&{query}".strip("&"))

    assert reply.status == 200
    assert reply.json["items"]


def test_a_total_excludes_deleted_jobs(api, small_blocks):
    filled(api, 12)
    for item in api.get("/v1/jobs", query="limit=11").json["items"]:
        api("DELETE", f"/v1/jobs/{item['id']}")

    page = api.get("/v1/jobs", query="include=total").json

    assert (names(page["items"]), page["total"]) == (["job-011"], 1)


def test_no_list_scans(api):
    """Neither these lists nor any other operation of the walk of openapi.json: see test_walk."""
    filled(api, 3, tags=["t"])
    api.stage.taps.passed.clear()

    for query in ("", "state=ACTIVE", "search=x", "tag=t", "collection=default", "include=total", "name=job-001"):
        api.get("/v1/jobs", query=query)
    api.get("/v1/runs")

    assert {passing.operation for passing in api.stage.taps.passed} <= {"Query", "GetItem", "BatchGetItem"}
