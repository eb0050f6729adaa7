"""Headers with the service's name: each is read or refused, by every facade."""

from __future__ import annotations

import pytest

from sweephand.actions.run_headers import facts, headers
from sweephand.facades.api import OWN_HEADERS
from tests.contract.azure.api import COLLECTION
from tests.contract.native.api import JOB
from tests.contract.test_one_meter import Meters, apis
from tests.unit.actions.test_http import CALL

__all__ = ["apis"]


@pytest.mark.parametrize("name", ["Sweephand-Reason", "sweephand-tennant", "SWEEPHAND-NOTE"])
def test_an_unknown_header_with_the_services_name_is_refused_and_nothing_is_written(apis: Meters, name: str) -> None:
    asked = {name: "by hand"}
    before = len(apis.native.picture())

    replies = [
        apis.native("POST", "/v1/jobs", JOB, headers=asked),
        apis.native.get("/v1/jobs", headers=asked),
        apis.azure("PUT", COLLECTION, {"location": "x", "properties": {}}, headers=asked),
        apis.sap("POST", "/jobs", {"name": "x", "action": "https://e.org", "schedules": []}, headers=asked),
    ]

    for reply in replies:
        assert reply.status == 400
        assert f"{name.title()} is not a header of this API" in reply.text
    rows = [row for row in apis.native.picture() if "RATE#" not in row]
    assert len(rows) <= before


def test_a_job_can_call_this_api_with_all_headers_of_a_call(apis: Meters) -> None:
    sent = {name.lower() for name in facts(CALL)} | {name.lower() for name in headers("sweephand", CALL)}

    assert sent <= OWN_HEADERS
    calling = dict.fromkeys(sent - {"sweephand-callback-token"}, "1")
    assert apis.native.get("/v1/jobs", headers=calling).status == 200
