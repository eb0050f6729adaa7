"""Unreadable parts of a request."""

from __future__ import annotations

import pytest

from sweephand.base.errors import InvalidRequest
from sweephand.server.facades.http import read_request
from tests.contract.calls import event


@pytest.mark.parametrize(
    ("path", "query", "field", "reason"),
    [
        ("/scheduler/jobs/a%00b", "", None, "the path contains a control character"),
        ("/v1/jobs", "a%00=b", None, "the name of a parameter contains a control character"),
        ("/v1/jobs", "q=%00", "q", "contains a control character"),
        ("/v1/jobs", "a=1&b=2&a=3", "a", "is given twice"),
    ],
)
def test_a_refusal_names_its_subject(path, query, field, reason):
    with pytest.raises(InvalidRequest) as refused:
        read_request(event("GET", path, query, {}, None), "request")

    assert (refused.value.field, refused.value.reason) == (field, reason)


@pytest.mark.parametrize("query", ["&&&", "&a=1&&b=2&"])
def test_empty_parts_of_a_query_are_no_parameters(query):
    request = read_request(event("GET", "/v1/jobs", query, {}, None), "request")

    assert request.query == ({"a": "1", "b": "2"} if "a" in query else {})
