"""Parameters of lists: filters, limits and cursors, right and wrong."""

from __future__ import annotations

import base64
import json

import pytest

from tests.contract.native.api import JOB, example
from tests.contract.native.test_lists import ACTION, names


@pytest.fixture(scope="module")
def seven(shared):
    """Seven jobs in two collections, in every state."""
    shared("POST", "/v1/collections", {"name": "other"})
    given = {
        "a": {"tags": ["x", "y"], "resourceId": "1"},
        "b": {"tags": ["y"], "active": False},
        "c": {"tags": ["x"], "resourceId": "1"},
        "d": {"collection": "other", "tags": ["x"], "resourceId": "2"},
        "e": {"collection": "other", "active": False, "resourceId": "1"},
        "ab": {"schedules": [{"at": "2027-03-01T12:00:30Z"}]},
        "a b/ü#%23&+?": {"collection": "other", "tags": ["ü #%23&+?/"], "resourceId": "#%23/&+ ü"},
    }
    ids = {}
    for name, members in given.items():
        shared.stage.clock.advance(1)
        ids[name] = shared.create(JOB, name=name, **members)["id"]
    shared("POST", f"/v1/jobs/{ids['c']}/pause")
    shared.stage.run(200)
    return shared


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({}, "a b c d e ab *"),
        ({"collection": "default"}, "a ab b c"),
        ({"collection": "other"}, "* d e"),
        ({"tag": "x"}, "a c d"),
        ({"tag": "y"}, "a b"),
        ({"tag": "X"}, ""),
        ({"tag": ""}, "e ab"),
        ({"tag": "", "collection": "other"}, "e"),
        ({"tag": "", "resourceId": "1"}, "e"),
        ({"tag": "", "name": "ab"}, "ab"),
        ({"tag": "", "search": "B"}, "ab"),
        ({"tag": "", "state": "INACTIVE"}, "e"),
        ({"tag": "", "name": "a"}, ""),
        ({"resourceId": "1"}, "a c e"),
        ({"name": "a"}, "a"),
        ({"name": "ab"}, "ab"),
        ({"name": "z"}, ""),
        ({"name": "a", "collection": "default"}, "a"),
        ({"name": "a", "collection": "other"}, ""),
        ({"name": "a b/ü#%23&+?"}, "*"),
        ({"name": "a b/ü#%23&+?", "collection": "other"}, "*"),
        ({"tag": "ü #%23&+?/"}, "*"),
        ({"resourceId": "#%23/&+ ü"}, "*"),
        ({"resourceId": "##/&+ ü"}, ""),
        ({"state": "ACTIVE"}, "a d *"),
        ({"state": "INACTIVE"}, "b e"),
        ({"state": "PAUSED"}, "c"),
        ({"state": "COMPLETED"}, "ab"),
        ({"state": "FAULTED"}, ""),
        ({"state": "ACTIVE", "collection": "default"}, "a"),
        ({"state": "ACTIVE", "tag": "x"}, "a d"),
        ({"tag": "x", "resourceId": "1"}, "a c"),
        ({"tag": "x", "resourceId": "1", "state": "PAUSED"}, "c"),
        ({"tag": "x", "collection": "other"}, "d"),
        ({"resourceId": "1", "collection": "other", "state": "INACTIVE", "name": "e"}, "e"),
        ({"resourceId": "1", "collection": "other", "state": "ACTIVE", "name": "e"}, ""),
        ({"tag": "y", "name": "b"}, "b"),
    ],
)
def test_several_filters_must_all_match(seven, query, wanted):
    found = seven.get("/v1/jobs", query=query).json

    assert names(found["items"]) == [each.replace("*", "a b/ü#%23&+?") for each in wanted.split()]
    assert found["nextCursor"] is None


@pytest.mark.parametrize(
    "query", [{"state": "ACTIVE"}, {"tag": "x"}, {"tag": ""}, {"collection": "other"}, {"resourceId": "1"}]
)
@pytest.mark.parametrize("limit", [1, 2])
def test_a_filtered_list_can_be_paged_too(seven, query, limit):
    whole = seven.get("/v1/jobs", query=query).json["items"]
    found, cursor = [], {}
    while cursor is not None:
        page = seven.get("/v1/jobs", query={**query, **cursor, "limit": limit}).json
        assert len(page["items"]) <= limit
        found += page["items"]
        cursor = page["nextCursor"] and {"cursor": page["nextCursor"]}

    assert found == whole


# Wrong limits and cursors


@pytest.fixture(scope="module")
def cursors(shared):
    """A valid cursor of each list."""
    job = shared.create(example(), name="of the cursors", resourceId=None)
    for n in range(2):
        shared("POST", "/v1/collections", {"name": f"c{n}"})
        shared("POST", "/v1/credentials", {})
        shared("POST", "/v1/credentials", {}, caller="provider")
        shared.create(ACTION)
        shared("POST", f"/v1/jobs/{job['id']}/run")
    lists = {
        "/v1/jobs": "",
        f"/v1/jobs/{job['id']}/schedules": "",
        f"/v1/jobs/{job['id']}/occurrences": "",
        "/v1/runs": f"jobId={job['id']}",
        "/v1/collections": "",
        "/v1/credentials": "",
    }
    found = {}
    for path, query in lists.items():
        cursor = shared.get(path, query=f"{query}&limit=1".strip("&")).json["nextCursor"]
        assert cursor is not None, path
        found[path] = (query, cursor)
    return found


LIMITS = ["0", "-1", "201", "1000000000", "1" * 5_000, "", "1.0", "1e1", " 1", "+1", "01", "٣", "1_0", "x", "null", "²"]


@pytest.mark.parametrize("limit", LIMITS)
def test_every_list_refuses_an_invalid_limit(shared, cursors, limit):
    for path, (query, _) in cursors.items():
        asked = dict(pair.split("=") for pair in query.split("&") if pair) | {"limit": limit}
        reply = shared.get(path, query=asked)
        assert (reply.status, reply.code, reply.fields) == (400, "INVALID_QUERY", ["limit"]), path
    reply = shared.get("/v1/tenants", query={"limit": limit}, caller="provider")
    assert (reply.status, reply.fields) == (400, ["limit"])


@pytest.mark.parametrize("offset", ["-1", "01", "1.0", "", "x", "1000000000", "1" * 5_000, "٣"])
def test_an_invalid_offset_is_refused(shared, offset):
    reply = shared.get("/v1/jobs", query={"offset": offset})

    assert (reply.status, reply.code, reply.fields) == (400, "INVALID_QUERY", ["offset"])


def forge(*members):
    return base64.urlsafe_b64encode(json.dumps(members).encode()).decode().rstrip("=")


def forged(cursor):
    """Builds a cursor as a caller could who knows its form."""
    text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    digest, *mark = json.loads(text)
    for value in ("", "~", "~" * 512, "x" * 600, "\x00", "#", "\ud800", "\U0010ffff" * 250, 7, None, [], {"a": 1}):
        yield forge(digest, *[value for _ in mark])
        yield forge(digest, *mark[:-1], value)
    yield forge(digest)
    yield forge(digest, *mark, "more")
    yield forge(mark[0])
    yield forge("0" * 16, *mark)
    yield forge()
    yield base64.urlsafe_b64encode(b"[" * 700).decode().rstrip("=")
    yield base64.urlsafe_b64encode(b"\xff\xfe").decode().rstrip("=")
    yield base64.urlsafe_b64encode(b'{"a":1}').decode().rstrip("=")
    yield from ("", "=", "a", "abc", "%00", "ü", cursor[:-1], cursor + "A", cursor[1:], cursor + "=", " " + cursor)
    yield "A" * 5_000


def test_every_list_refuses_an_invalid_cursor(shared, cursors):
    for path, (query, cursor) in cursors.items():
        asked = dict(pair.split("=") for pair in query.split("&") if pair)
        assert shared.get(path, query=asked | {"cursor": cursor}).status == 200
        for each in forged(cursor):
            reply = shared.get(path, query=asked | {"cursor": each})
            assert (reply.status, reply.code, reply.fields) == (400, "INVALID_CURSOR", ["cursor"]), (path, each)


def test_a_cursor_is_valid_only_for_its_list_query_and_tenant(shared, cursors):
    for path, (query, cursor) in cursors.items():
        for other_path, (other_query, other) in cursors.items():
            if other_path != path:
                reply = shared.get(path, query="&".join(filter(None, [query, f"cursor={other}"])))
                assert (reply.status, reply.code) == (400, "INVALID_CURSOR"), (path, other_path, other_query)
        if "/jobs/" not in path and "runs" not in path:
            reply = shared.get(path, query=f"cursor={cursor}", caller="globex")
            assert (reply.status, reply.code) == (400, "INVALID_CURSOR"), path
    jobs = cursors["/v1/jobs"][1]
    assert shared.get("/v1/jobs", query=f"cursor={jobs}&tag=x").code == "INVALID_CURSOR"
    assert shared.get("/v1/jobs", query=f"cursor={jobs}&limit=7").status == 200


def test_a_cursor_of_the_provider_is_invalid_for_a_tenant(shared, cursors):
    own = shared.get("/v1/credentials", query="limit=1", caller="provider").json["nextCursor"]
    acting = {"sweephand-tenant": "acme"}

    assert own is not None
    assert shared.get("/v1/credentials", query=f"cursor={own}", caller="provider").status == 200
    assert shared.get("/v1/credentials", query=f"cursor={own}", caller="provider", headers=acting).status == 400
    assert shared.get("/v1/credentials", query=f"cursor={own}").status == 400
    theirs = cursors["/v1/credentials"][1]
    assert shared.get("/v1/credentials", query=f"cursor={theirs}", caller="provider", headers=acting).status == 200


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("state=active", "state"),
        ("state=", "state"),
        ("state=SUCCESS", "state"),
        (f"tag={'x' * 129}", "tag"),
        (f"resourceId={'x' * 257}", "resourceId"),
        (f"resourceId={'%23' * 2_000}", "resourceId"),
        (f"name={'x' * 129}", "name"),
        ("name=", "name"),
        (f"collection={'%F0%9F%98%80' * 129}", "collection"),
        ("collection=", "collection"),
        (f"collection={'x' * 129}&name=y", "collection"),
        ("include=runs", "include"),
        ("include=schedules,x", "include"),
        ("Tag=x", "Tag"),
        ("unknown=1", "unknown"),
        ("=1", "path"),
        ("tag=a&tag=a", "tag"),
        ("tag=a&%74ag=b", "tag"),
        ("tag=%FF", "tag"),
        ("tag=%ED%A0%80", "tag"),
        ("tag=%00", "tag"),
        ("tag=a%0Ab", "tag"),
        ("%FF=1", "path"),
        ("x" * 9_000, "path"),
    ],
)
def test_an_invalid_query_is_refused_by_name(shared, query, field):
    reply = shared.get("/v1/jobs", query=query)

    assert (reply.status, reply.code) == (400, "INVALID_QUERY")
    assert reply.fields == [field]


@pytest.mark.parametrize("query", ["tag=%zz", "tag=%", "tag=%2", "tag=a%20b+c", "tag", "tag=a=b", "&&tag=x&"])
def test_unusual_escapes_are_taken_literally(shared, query):
    assert shared.get("/v1/jobs", query=query).status in {200, 400}
