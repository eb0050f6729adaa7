"""The parts of the SDK that are made are as they would be made now, and leave nothing of the API out."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import sweephand.sdk
from sweephand.server.facades.native.document import FILE
from tests.unit.sdk.scripted import async_client, client
from tools.sdk.methods import LEFT_OUT, METHODS
from tools.sdk.resources import parameters
from tools.sdk.write import made

ROOT = Path(__file__).resolve().parents[3]


def test_the_generated_files_are_current():
    differ = [str(path) for path, text in made().items() if not path.exists() or path.read_text() != text]

    assert not differ, "run `make sdk`"


def test_every_operation_of_the_api_is_a_method_or_left_out_for_a_reason():
    told = json.loads(FILE.read_text())
    operations = {each["operationId"] for methods in told["paths"].values() for each in methods.values()}
    named = [each for methods in METHODS.values() for each in methods]

    assert len(named) == len(set(named))
    assert set(named) | LEFT_OUT.keys() == operations
    assert not set(named) & LEFT_OUT.keys()


def test_every_post_that_creates_something_sends_a_key():
    told = json.loads(FILE.read_text())
    posts = [methods["post"] for methods in told["paths"].values() if "post" in methods]
    makes = {each["operationId"] for each in posts if {"201", "202"} & each["responses"].keys()} | {"rotateCredentials"}

    assert {each["operationId"] for each in posts if "Idempotency-Key" in parameters(each)[0]} == makes


def test_both_clients_have_each_resource_with_each_method():
    for sweephand_client, awaited in ((client()[0], False), (async_client()[0], True)):
        for resource, methods in METHODS.items():
            for name in methods.values():
                method = getattr(getattr(sweephand_client, resource), name)
                is_list = "Pages" in str(inspect.signature(method).return_annotation)
                assert inspect.iscoroutinefunction(method) == (awaited and not is_list), (resource, name)


def test_the_public_names_exist():
    for name in sweephand.sdk.__all__:
        assert getattr(sweephand.sdk, name) is not None
    assert sorted(sweephand.sdk._PLACES) == sweephand.sdk.__all__


def _modules(code: str) -> set[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "layers" / "sweephand" / "python")}
    asked = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, env=environment)
    return set(done.stdout.split())


def test_the_client_loads_little_besides_its_http_client():
    """The count stands for the time: the client starts within 1.3 times of httpx2 alone (docs/guide/sdk.md)."""
    alone = _modules("import httpx2")

    client = _modules("from sweephand.sdk import Sweephand")

    assert len(client) <= 1.1 * len(alone)
    assert not [name for name in client if name.startswith("sweephand.sdk.sync.resources.")]
    assert "sweephand.sdk.models" not in client
    assert "asyncio" not in client - alone
    assert len([name for name in client if name.startswith("sweephand")]) <= 20
