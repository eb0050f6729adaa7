"""Filters of the list of jobs: alone, several at once, and page by page."""

from __future__ import annotations

import pytest

from tests.contract.native.api import JOB
from tests.contract.native.test_lists import names


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
