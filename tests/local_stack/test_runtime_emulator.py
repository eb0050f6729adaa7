"""Each handler under AWS's own runtime client: its name in the template, its context, answers that JSON can carry."""

from __future__ import annotations

import json
import platform
import sys
from contextlib import ExitStack

import pytest

from tests.local_stack import quiet, runtime_emulator
from tests.local_stack.runtime_emulator import ROOT
from tests.template.cloudformation import raw_template

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(
        not sys.platform.startswith("linux") or platform.machine() not in runtime_emulator.MACHINES,
        reason="AWS builds its runtime interface emulator for Linux on x86_64 and arm64",
    ),
]


@pytest.fixture(scope="module")
def variables(tmp_path_factory):
    """variables("SweeperFunction"): the environment of a function of the template on an embedded AWS."""
    with quiet.stack(tmp_path_factory.mktemp("emulator")) as (aws, stack):
        yield lambda function: quiet.variables(aws, stack, function)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory, variables):
    """runtime("SweeperFunction"): the function's folder and handler, as the template names them, in AWS's runtime."""
    emulator = runtime_emulator.binary(tmp_path_factory.mktemp("rie"))
    template = raw_template()
    started = {}
    with ExitStack() as stack:

        def of(function):
            if function not in started:
                folder = ROOT / template["Resources"][function]["Properties"]["CodeUri"]
                handler = template["Globals"]["Function"]["Handler"]
                log = tmp_path_factory.mktemp(function) / "log"
                run = runtime_emulator.running(emulator, folder, handler, variables(function), log)
                started[function] = stack.enter_context(run)
            return started[function]

        yield of


@pytest.fixture(scope="module")
def event():
    """event("executor/runs"): one of events/, the same file as sam local takes."""
    return lambda name: json.loads((ROOT / "events" / f"{name}.json").read_text())


def test_the_api_answers_health_checks_without_credentials(runtime, event):
    answer = runtime("ApiFunction").invoke(event("api/get_health"))

    assert answer["statusCode"] == 200
    assert "version" in json.loads(answer["body"])


def test_the_api_refuses_an_anonymous_job_with_a_problem_document(runtime, event):
    answer = runtime("ApiFunction").invoke(event("api/post_jobs"))

    assert answer["statusCode"] == 401
    assert _header(answer, "content-type").startswith("application/problem+json")
    assert json.loads(answer["body"])["status"] == 401


def test_the_api_refuses_a_token_for_an_unknown_secret(runtime, event):
    answer = runtime("ApiFunction").invoke(event("api/post_token"))

    assert answer["statusCode"] == 401


@pytest.mark.parametrize("request_of_its_client", ["sap-api/get_jobs", "sap-api/post_jobs"])
def test_the_sap_facade_refuses_a_stranger_with_the_body_that_its_client_reads(runtime, event, request_of_its_client):
    answer = runtime("SapApiFunction").invoke(event(request_of_its_client))

    assert answer["statusCode"] == 401
    assert json.loads(answer["body"])["type"] == "Authentication Error"


@pytest.mark.parametrize("request_of_its_client", ["azure-api/get_collection", "azure-api/put_collection"])
def test_the_azure_facade_refuses_a_stranger_with_the_body_that_its_client_reads(runtime, event, request_of_its_client):
    answer = runtime("AzureApiFunction").invoke(event(request_of_its_client))

    assert answer["statusCode"] == 401
    assert json.loads(answer["body"])["error"]["code"] == "AuthenticationFailed"
    assert _header(answer, "x-ms-request-id")


def test_the_sweeper_reports_a_tick_with_nothing_due(runtime, event):
    counts = runtime("SweeperFunction").invoke(event("sweeper/tick"))

    assert "errorType" not in counts
    assert counts
    assert set(counts.values()) <= {0, None}


def test_the_sweeper_answers_several_ticks_in_one_process(runtime, event):
    answers = [runtime("SweeperFunction").invoke(event("sweeper/tick")) for _ in range(3)]

    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("function", ["ExecutorFunction", "ExecutorSlowFunction"])
def test_an_executor_settles_the_pointer_of_a_deleted_schedule(runtime, event, function):
    answer = runtime(function).invoke(event("executor/runs"))

    assert answer == {"batchItemFailures": []}


def test_the_executor_reports_an_unreadable_message_and_settles_its_neighbour(runtime, event):
    batch = event("executor/runs")
    batch["Records"].append(
        batch["Records"][0]
        | {
            "messageId": "unreadable",
            "receiptHandle": "AQEB-unreadable",
            "body": "not a pointer",
        }
    )

    answer = runtime("ExecutorFunction").invoke(batch)

    assert answer == {"batchItemFailures": [{"itemIdentifier": "unreadable"}]}


@pytest.mark.parametrize("function", ["ExecutorFunction", "ExecutorSlowFunction"])
def test_an_executor_accepts_the_end_of_a_task_whose_run_is_gone(runtime, event, function):
    assert runtime(function).invoke(event("executor/task_ended")) == {"batchItemFailures": []}


def test_the_executor_receives_dead_letters_each_minute(runtime, event):
    answer = runtime("ExecutorFunction").invoke(event("executor/dead_letters"))

    assert answer == {"taken": 0}


def test_the_message_of_a_deleted_operation_is_settled(runtime, event):
    assert runtime("OperationsFunction").invoke(event("operations/page")) == {"batchItemFailures": []}


@pytest.mark.parametrize("occasion", ["auditor/hour", "auditor/everything", "auditor/repeat_effects"])
def test_the_auditor_finds_nothing_in_an_empty_table(runtime, event, occasion):
    answer = runtime("AuditorFunction").invoke(event(occasion))

    assert "errorType" not in answer


def test_a_handler_that_raises_is_reported_as_on_lambda(runtime):
    answer = runtime("ExecutorFunction").invoke({"no": "records"})

    assert answer["errorType"] == "KeyError"


def _header(answer, name):
    (value,) = (value for key, value in answer["headers"].items() if key.lower() == name)
    return value
