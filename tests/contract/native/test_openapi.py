"""The description of the API: it is what the declarations make, it is valid, and its examples are true."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from sweephand.domain.runs import retry
from sweephand.schedules.timing import TIMING_MEMBERS
from sweephand.server.facades.native.document import FILE
from sweephand.server.facades.native.members.job_members import JOB
from sweephand.server.facades.native.members.schedule_members import SCHEDULE
from sweephand.server.facades.native.routes import ROUTES
from tests.contract.native import described
from tests.contract.native.walk import walk
from tools.openapi import descriptions
from tools.openapi.examples import REQUESTS
from tools.openapi.schemas import SCHEMAS
from tools.openapi.write import written

ROOT = Path(__file__).resolve().parents[3]
PATH = "/v1/openapi.json"
OPEN_OBJECTS = {
    "attributes",
    "redirects",
    "customMessageProperties",
    "environment",
    "Document",
    "headers",
    "GatewayRefusal",
} | {
    "request",
    "result",
}
"""Any document; the names that a caller chose; what API Gateway says; what an operation's kind knows."""


@pytest.fixture(scope="module")
def walked():
    return walk()


# The document itself


def test_the_file_equals_the_output_of_routes_and_schemas():
    assert FILE.read_text(encoding="utf-8") == written(), "make openapi"


def test_the_document_is_valid_openapi():
    OpenAPIV31SpecValidator(copy.deepcopy(described.DOCUMENT)).validate()


def test_every_route_is_described_and_nothing_more():
    there = {(method.upper(), path) for path, methods in described.DOCUMENT["paths"].items() for method in methods}

    assert there == {(route.method, route.path) for route in ROUTES.all}


def test_every_schema_is_used_and_every_reference_resolves():
    text = FILE.read_text(encoding="utf-8")
    used = {name for name in SCHEMAS if f'"#/components/schemas/{name}"' in text}

    assert used == SCHEMAS.keys() - {"Problem"}, "each status has its own; this one is for other paths"
    assert {route.takes for route in ROUTES.all} - {""} == REQUESTS.keys()


# That it is true


def test_every_route_answers_as_declared(walked):
    wanted = {(route.method, route.path): route.status for route in ROUTES.all if route.path != PATH}

    assert walked.statuses == wanted


def test_the_examples_show_real_answers(walked):
    for (method, path), body in walked.answers.items():
        operation = described.DOCUMENT["paths"][path][method.lower()]
        status = str(walked.statuses[method, path])  # some have a second one, where they begin long work
        content = operation["responses"][status]["content"]
        shown = next(iter(content.values()))["examples"]["answer"]["value"]
        assert shown == json.loads(json.dumps(body)), (method, path)


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_examples_of_requests_match_their_schema(name):
    for example in REQUESTS[name].values():
        described.validate(f"/components/schemas/{name}", example, "POST")


def test_answers_have_only_members_that_their_schema_declares():
    for path, methods in described.DOCUMENT["paths"].items():
        for method, operation in methods.items():
            for status in operation["responses"]:
                for name, schema in _objects(operation["responses"][status], set()):
                    assert name in OPEN_OBJECTS or schema.get("additionalProperties") is False, (path, method, name)


def _objects(there: Any, seen: set[str], name: str = "") -> list[tuple[str, Any]]:
    """Yields every schema of an object below, with its name."""
    if isinstance(there, list):
        return [found for each in there for found in _objects(each, seen, name)]
    if not isinstance(there, dict):
        return []
    if "$ref" in there:
        pointer = there["$ref"].removeprefix("#")
        if pointer in seen:
            return []
        seen.add(pointer)
        return _objects(described.at(pointer), seen, pointer.rpartition("/")[2])
    own = [(name, there)] if "object" in there.get("type", ()) else []
    below = [(key, each) for key, each in there.items() if key not in {"example", "examples"}]
    return own + [found for key, each in below for found in _objects(each, seen, name if key == "schema" else key)]


def test_the_schemas_of_requests_declare_exactly_the_members_that_are_read():
    def members(name):
        return SCHEMAS[name]["properties"].keys()

    assert members("JobDraft") == {*JOB.sent, "schedules"}
    assert members("JobReplacement") == members("JobPatch") == {*JOB.table, "schedules", "totals"}
    assert members("ScheduleDraft") == {*SCHEDULE.sent, *TIMING_MEMBERS}
    for name in ("ScheduleReplacement", "SchedulePatch"):
        assert members(name) == {*SCHEDULE.table, *TIMING_MEMBERS}
    assert members("PreviewRequest") == TIMING_MEMBERS | {"collection", "after", "limit", "explain"}
    assert members("Retry") == {*retry._MEMBERS}


# How it ships


def test_a_cold_start_does_not_load_the_description():
    program = (
        "import sys, sweephand.server.facades.native.api; print(*(name for name in sys.modules if 'native' in name))"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "layers" / "sweephand" / "python")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)

    loaded = {name.rpartition(".")[2] for name in done.stdout.split()}
    assert "routes" in loaded
    assert "document" not in loaded


def _members(place: str, schema: Any) -> Iterator[tuple[str, Any]]:
    """Yields (where, schema) of every member of a schema, however deep."""
    if isinstance(schema, list):
        for each in schema:
            yield from _members(place, each)
    elif isinstance(schema, dict):
        for name, each in schema.get("properties", {}).items():
            yield f"{place}.{name}", each
            yield from _members(f"{place}.{name}", each)
        for word in ("items", "additionalProperties", "oneOf", "anyOf", "allOf"):
            yield from _members(place, schema.get(word))


def _is_sentence(text: object) -> bool:
    return isinstance(text, str) and len(text) > 3 and text.rstrip()[-1] in ".:`"


def test_every_operation_and_every_member_has_a_description():
    shown = described.DOCUMENT
    operations = [each for methods in shown["paths"].values() for each in methods.values()]
    members = [found for name, schema in shown["components"]["schemas"].items() for found in _members(name, schema)]
    parameters = [each for operation in operations for each in operation.get("parameters", []) if "$ref" not in each]

    assert [each["operationId"] for each in operations if not _is_sentence(each.get("description"))] == []
    assert [place for place, schema in members if not schema.get("description")] == []
    assert [each["name"] for each in parameters if not each.get("description")] == []
    assert len(members) > 1_500


def test_every_description_belongs_to_an_existing_name():
    shown = described.DOCUMENT
    places = {place for name, schema in SCHEMAS.items() for place, _ in _members(name, schema)}
    names = {place.rpartition(".")[2] for place in places}
    of_one = {f"{place.partition('.')[0]}.{place.rpartition('.')[2]}" for place in places}
    ids = {each["operationId"] for methods in shown["paths"].values() for each in methods.values()}

    assert set(descriptions.OPERATIONS) <= ids
    assert [each for each in descriptions.MEMBERS if each not in (of_one if "." in each else names)] == []


def test_every_error_has_a_schema_that_a_generator_can_use():
    shown = described.DOCUMENT
    text = json.dumps(shown)
    responses = shown["components"]["responses"]

    assert "allOf" not in text
    assert {"400", "401", "403", "404", "409", "412", "413", "415", "422", "429", "431", "500", "503"} <= set(responses)
    for response in responses.values():
        assert all("$ref" in media["schema"] for media in response["content"].values())
    for methods in shown["paths"].values():
        for operation in methods.values():
            assert {"429", "431"} <= set(operation["responses"])


def test_each_form_of_an_object_has_a_name():
    schemas = described.DOCUMENT["components"]["schemas"]

    for name, schema in schemas.items():
        forms = schema.get("oneOf", [])
        if all(form.get("type") == "object" or "$ref" in form for form in forms):
            assert all("$ref" in form for form in forms), name
    assert "ShownAuthenticationBasic" in schemas


def test_the_changes_of_a_job_accept_every_include_of_the_description(api):
    job = api.create()["id"]
    spec = api.get("/v1/openapi.json", caller=None).json["paths"]["/v1/jobs/{job}/changes"]["get"]["parameters"]
    (include,) = [each for each in spec if each.get("name") == "include"]

    for name in include["schema"]["items"]["enum"]:
        assert api.get(f"/v1/jobs/{job}/changes", query={"include": name}).status == 200
