"""The functions' folders are thin, and start without what their first event does not need."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.template.cloudformation import raw_template, resolved

ROOT = Path(__file__).resolve().parents[2]
CONSOLE = ROOT / "functions" / "console" / "app.py"
HANDLERS = sorted(set((ROOT / "functions").glob("*/app.py")) - {CONSOLE})
FUNCTION_OF = {
    "api": "ApiFunction",
    "sweeper": "SweeperFunction",
    "executor": "ExecutorFunction",
    "auditor": "AuditorFunction",
    "operations": "OperationsFunction",
}
by_folder = pytest.mark.parametrize("handler", HANDLERS, ids=lambda path: path.parent.name)

# The standard library that a handler may need to take an event apart; every other thought belongs into the package.
PLAIN = {"__future__", "typing", "collections.abc"}
# The packages that each folder may use in addition to flow, wiring and telemetry: nouns, and for the API its facades.
REACHES = {
    "api": {"base", "cold_start", "facades", "flow", "security", "settings", "telemetry", "wiring"},
    "sweeper": {"cold_start", "domain", "flow", "telemetry", "wiring"},
    "executor": {"cold_start", "domain", "flow", "one_processor", "telemetry", "wiring"},
    "auditor": {"cold_start", "domain", "flow", "telemetry", "wiring"},
    "operations": {"cold_start", "domain", "flow", "telemetry", "wiring"},
}
MOST_LINES_OF_CODE = 60

# Dear at a cold start, and needed by some events only: an HTTP client, a token library, an SDK of AWS other than
# botocore's clients, anything asynchronous, validation libraries, tracing.
LOADED_LATER = {
    "anyio",
    "asyncio",
    "aws_lambda_powertools.event_handler",
    "aws_xray_sdk",
    "boto3",
    "cryptography",
    "h11",
    "httpcore2",
    "httpx",
    "jwt",
    "multiprocessing",
    "pydantic",
    "sqlite3",
    "sweephand.cli",
    "sweephand.local",
    "sweephand.sdk",
    "unittest",
}
# The package's own modules that the usual first event of a function does not need: a record costs half a millisecond.
OWN_LOADED_LATER = {
    "api": {
        "server.actions.http",
        "server.flow.audit.audit",
        "server.flow.runs.execute",
        "server.flow.sweep.sweep",
        "server.security.outbound",
        "server.security.key_service",
        "server.security.sealing",
    },
    "sweeper": {
        "server.actions",
        "domain.runs.admission",
        "domain.collection",
        "domain.job",
        "server.facades",
        "server.flow.retention",
        "server.flow.series.catch_up",
        "server.flow.runs.execute",
        "server.flow.jobs.change",
        "server.flow.jobs.creation",
        "server.security",
        "server.store.jobs.jobs",
        "server.store.runs.ledger",
        "server.store.runs.run_rows",
        "server.store.tenants.tenants",
        "server.store.views",
    },
    "executor": {
        "server.actions.http",
        "domain.occurrences.misfire",
        "domain.occurrences.series",
        "server.facades",
        "server.flow.jobs.change",
        "server.flow.jobs.creation",
        "server.flow.sweep.sweep",
        "schedules",
        "server.security.caller",
        "server.security.guard",
        "server.security.outbound",
        "server.security.key_service",
        "server.security.sealing",
        "server.security.tokens",
        "server.store.runs.attempts",
        "server.store.tenants.credentials",
        "server.store.index.next_run_index",
    },
    "auditor": {
        "server.actions",
        "server.facades",
        "server.flow.jobs.change",
        "server.flow.runs.execute",
        "server.flow.jobs.creation",
        "server.security",
    },
    "operations": {
        "server.actions.http",
        "server.facades",
        "server.flow.jobs.change",
        "server.flow.jobs.creation",
        "server.flow.sweep.sweep",
        "schedules",
        "server.security.outbound",
    },
}
COUNT_CLIENTS = (
    "import botocore.session as b; made = []; create = b.Session.create_client;"
    " b.Session.create_client = lambda self, name, *a, **k: made.append(name) or create(self, name, *a, **k)"
)
MOST_OWN_MODULES = {"api": 130, "sweeper": 50, "executor": 59, "auditor": 64, "operations": 45}


def test_every_folder_has_its_handler():
    assert [path.parent.name for path in HANDLERS] == sorted(REACHES)


def test_the_consoles_handler_needs_nothing_but_the_standard_library():
    """It has no layers, so that its cold start is that of an empty function."""
    assert {module.split(".")[0] for module in _modules(CONSOLE)} <= sys.stdlib_module_names


@by_folder
def test_a_handler_imports_only_the_package_and_no_library(handler):
    for module in _modules(handler):
        assert module in PLAIN or module.split(".")[0] == "sweephand", module


@by_folder
def test_a_handler_imports_nothing_below_the_flow(handler):
    reached = {
        module.removeprefix("sweephand.").removeprefix("server.").split(".")[0]
        for module in _modules(handler)
        if module.startswith("sweephand.")
    }

    assert reached <= REACHES[handler.parent.name]


@by_folder
def test_a_handler_contains_no_rule_and_no_state(handler):
    tree = ast.parse(handler.read_text())

    forbidden = (ast.ClassDef, ast.Global, ast.While, ast.Try, ast.AsyncFunctionDef)
    assert not [node for node in ast.walk(tree) if isinstance(node, forbidden)]
    assert "handler" in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@by_folder
def test_a_handler_is_short(handler):
    lines = [line for line in handler.read_text().splitlines() if line.strip() and not line.strip().startswith("#")]

    assert len(lines) <= MOST_LINES_OF_CODE


@by_folder
def test_a_handler_starts_without_modules_that_its_first_event_may_not_need(handler):
    loaded = _loaded_by(handler)

    assert sorted(loaded & LOADED_LATER) == []


@by_folder
def test_a_handler_starts_without_the_parts_of_the_package_for_others(handler):
    later = {f"sweephand.{name}" for name in OWN_LOADED_LATER[handler.parent.name]}

    assert sorted(_loaded_by(handler) & later) == []


def test_lazily_loaded_names_exist():
    """Else a module that was renamed would be loaded unseen."""
    package = ROOT / "layers" / "sweephand" / "python" / "sweephand"
    paths = [package / name.replace(".", "/") for names in OWN_LOADED_LATER.values() for name in names]

    assert [path for path in paths if not path.is_dir() and not path.with_suffix(".py").is_file()] == []


@by_folder
def test_a_handler_enables_garbage_collection_again_after_its_start(handler):
    found = _answer_of(handler, "import gc, app; print(gc.isenabled(), gc.get_freeze_count() > 10_000)")

    assert found == "True True\n"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no processor affinity here")
@by_folder
def test_only_the_executor_stays_on_one_processor(handler):
    """It saves the executor's own start-up (decision 0049): the others gain nothing, and share with nobody."""
    found = _answer_of(
        handler,
        "import os; before = os.sched_getaffinity(0); import app; print(len(before), len(os.sched_getaffinity(0)))",
    )
    before, after = map(int, found.split())

    assert after == (1 if handler.parent.name == "executor" else before)


@by_folder
def test_a_handler_creates_no_client_except_the_tables(handler):
    """One of SQS takes 5 ms and more, and an idle tick or an action that succeeds sends nothing."""
    found = _answer_of(handler, f"{COUNT_CLIENTS}; import app; print(made)")

    assert found == "['dynamodb']\n"


def test_no_start_reads_the_list_of_all_botocore_services():
    """Seen failing without the session's own loader: 400 folders are listed twice, 20 ms of CPU."""
    sweeper = ROOT / "functions" / "sweeper" / "app.py"
    code = "import os; seen = []; sys_listdir = os.listdir"
    code += "; os.listdir = lambda path='.': seen.append(path) or sys_listdir(path)"

    found = _answer_of(sweeper, f"{code}; import app; print(len(seen))")

    assert int(found) < 50


@by_folder
def test_a_handler_loads_a_limited_part_of_the_package(handler):
    assert 0 < len(_own(_loaded_by(handler))) <= MOST_OWN_MODULES[handler.parent.name]


FACADES = ("native", "sap", "azure")


@pytest.mark.parametrize("facade", FACADES)
def test_an_api_function_loads_only_the_facade_that_it_serves(facade):
    loaded = _loaded_by(ROOT / "functions" / "api" / "app.py", FACADE=facade)
    later = LOADED_LATER | {f"sweephand.{name}" for name in OWN_LOADED_LATER["api"]}

    assert [each for each in FACADES if f"sweephand.server.facades.{each}.routes" in loaded] == [facade]
    assert [each for each in FACADES if f"sweephand.server.facades.{each}" in loaded] == [facade]
    assert sorted(loaded & later) == []
    assert 0 < len(_own(loaded)) <= MOST_OWN_MODULES["api"]


def _own(loaded):
    """Returns the modules of the package that hold code."""
    return [module for module in loaded if module.split(".")[0] == "sweephand" and _holds_code(module)]


def _holds_code(module):
    """Returns whether a module is more than the empty __init__.py of a folder, which costs next to nothing."""
    source = ROOT / "layers" / "sweephand" / "python" / module.replace(".", "/")
    return not source.is_dir() or (source / "__init__.py").read_text() != ""


def _modules(handler):
    for node in ast.walk(ast.parse(handler.read_text())):
        if isinstance(node, ast.ImportFrom):
            bare = node.module == "sweephand.server"
            yield from (f"sweephand.server.{alias.name}" for alias in node.names) if bare else [node.module]
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _loaded_by(handler, **variables):
    """Names of all modules that are loaded once the handler is ready. variables: instead of the template's."""
    code = "import sys; before = set(sys.modules); import app; print(*(set(sys.modules) - before), sep='\\n')"
    return set(_answer_of(handler, code, **variables).split())


def _answer_of(handler, code, **variables):
    """Returns what the code prints in a separate process, where `app` is the handler, without any AWS."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join([str(handler.parent), str(ROOT / "layers" / "sweephand" / "python")]),
            "AWS_DEFAULT_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": "none",
            "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        }
        | _variables(FUNCTION_OF[handler.parent.name])
        | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _variables(function):
    template = raw_template()
    stack = resolved(template)
    shared = template["Globals"]["Function"]["Environment"]["Variables"]
    own = stack["Resources"][function]["Properties"]["Environment"]["Variables"]
    given = shared | own
    del given["AWS_ENDPOINT_URL"]
    defaults = {name: parameter["Default"] for name, parameter in template["Parameters"].items()}
    return {name: str(_plain(value, defaults)) for name, value in given.items()}


def _plain(value, defaults):
    """Replaces a reference to a parameter by its default, and one to a resource by some name."""
    return defaults.get(value.get("Ref"), "name") if isinstance(value, dict) else value
