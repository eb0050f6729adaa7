"""Wrong parameters of lists: limits, offsets, cursors, filters."""

from __future__ import annotations

import base64
import json

import pytest

from tests.contract.native.api import example
from tests.contract.native.test_lists import ACTION


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
