"""The description of the API: it is what the declarations make, it is valid, and its examples are true."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from sweephand.domain import retry
from sweephand.facades.native import shapes
from sweephand.facades.native.document import FILE
from sweephand.facades.native.examples import REQUESTS
from sweephand.facades.native.routes import ROUTES
from sweephand.facades.native.schemas import SCHEMAS
from sweephand.schedules.timing import TIMING_MEMBERS
from tests.contract.native import described
from tests.contract.native.walk import walk

ROOT = Path(__file__).resolve().parents[3]
PATH = "/v1/openapi.json"
OPEN_OBJECTS = {"redirects", "customMessageProperties", "environment", "Document", "headers", "GatewayRefusal"} | {
    "request",
    "result",
}
"""Any document; the names that a caller chose; what API Gateway says; what an operation's kind knows."""


@pytest.fixture(scope="module")
def walked():
    return walk()


# What it is


def test_the_file_is_what_routes_and_schemas_make():
    spec = importlib.util.spec_from_file_location("openapi_generator", ROOT / ".ci" / "openapi.py")
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)

    assert FILE.read_text(encoding="utf-8") == generator.written(), "make openapi"


def test_the_document_is_valid_openapi():
    OpenAPIV31SpecValidator(copy.deepcopy(described.DOCUMENT)).validate()


def test_every_route_is_described_and_nothing_else():
    there = {(method.upper(), path) for path, methods in described.DOCUMENT["paths"].items() for method in methods}

    assert there == {(route.method, route.path) for route in ROUTES.all}


def test_every_schema_is_used_and_every_use_has_its_schema():
    text = FILE.read_text(encoding="utf-8")
    used = {name for name in SCHEMAS if f'"#/components/schemas/{name}"' in text}

    assert used == SCHEMAS.keys()
    assert {route.takes for route in ROUTES.all} - {""} == REQUESTS.keys()


# That it is true


def test_the_walk_meets_every_route_and_each_answers_as_declared(walked):
    wanted = {(route.method, route.path): route.status for route in ROUTES.all if route.path != PATH}

    assert walked.statuses == wanted


def test_what_the_examples_show_is_what_was_answered(walked):
    for (method, path), body in walked.answers.items():
        operation = described.DOCUMENT["paths"][path][method.lower()]
        status = str(walked.statuses[method, path])  # some have a second one, where they begin long work
        content = operation["responses"][status]["content"]
        shown = next(iter(content.values()))["examples"]["answer"]["value"]
        assert shown == json.loads(json.dumps(body)), (method, path)


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_examples_of_requests_fit_their_schema(name):
    for example in REQUESTS[name].values():
        described.validate(f"/components/schemas/{name}", example, "POST")


def test_answers_have_no_member_that_their_schema_does_not_name():
    for path, methods in described.DOCUMENT["paths"].items():
        for method, operation in methods.items():
            for status in operation["responses"]:
                for name, schema in _objects(operation["responses"][status], set()):
                    assert name in OPEN_OBJECTS or schema.get("additionalProperties") is False, (path, method, name)


def _objects(there: Any, seen: set[str], name: str = "") -> list[tuple[str, Any]]:
    """Every schema of an object below, with the name under which it stands."""
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


def test_the_schemas_of_requests_name_what_is_read():
    def members(name):
        return SCHEMAS[name]["properties"].keys()

    assert members("JobDraft") == {*shapes.JOB_MEMBERS}
    assert members("JobReplacement") == members("JobPatch") == {*shapes.JOB_MEMBERS, *shapes.READ_ONLY_OF_JOB}
    assert members("ScheduleDraft") == {*shapes.SCHEDULE_MEMBERS} - {"id"}
    for name in ("ScheduleReplacement", "SchedulePatch"):
        assert members(name) == {*shapes.SCHEDULE_MEMBERS, *shapes.READ_ONLY_OF_SCHEDULE}
    assert members("PreviewRequest") == TIMING_MEMBERS | {"collection", "after", "limit", "explain"}
    assert members("Retry") == {*retry._MEMBERS}


# How it ships


def test_a_cold_start_loads_neither_the_schemas_nor_the_builder():
    program = "import sys, sweephand.facades.native.api; print(*(name for name in sys.modules if 'native' in name))"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "layers" / "sweephand" / "python")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)

    loaded = {name.rpartition(".")[2] for name in done.stdout.split()}
    assert "document" in loaded
    assert not loaded & {"openapi", "schemas", "json_schema", "examples"}
