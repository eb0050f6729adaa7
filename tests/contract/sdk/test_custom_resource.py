"""A job set as a custom resource of CloudFormation, through the whole service."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from sweephand.sdk import TransportError, custom_resource
from sweephand.sdk.transport.request import Answer
from tests.contract.native.api import Api
from tests.contract.sdk.stack import Gateway, connected

NIGHTLY = {
    "key": "nightly",
    "action": {"type": "http", "url": "https://example.org/run"},
    "schedules": [{"cron": "30 2 * * *", "count": 5}],
}
EXAMPLE = Path(__file__).parents[3] / "examples" / "job_set_template" / "template.yaml"


class Intrinsics(yaml.SafeLoader):
    """Reads a template; `!Sub` and the like become their argument."""


Intrinsics.add_multi_constructor("!", lambda loader, _, node: loader.construct_scalar(node))

IDS = {"StackId": "stack-1", "RequestId": "request-1", "LogicalResourceId": "Jobs"}


def entry(key: str) -> dict[str, Any]:
    return {**NIGHTLY, "key": key}


@pytest.fixture
def gateway(api: Api, monkeypatch: pytest.MonkeyPatch) -> Gateway:
    """The gateway of the client that each request makes."""
    made, gateway = connected(api)
    monkeypatch.setattr("sweephand.sdk.sync.client.Sweephand", lambda: made)
    return gateway


@pytest.fixture
def ask(gateway: Gateway) -> Callable[..., dict[str, Any]]:
    """Sends a request of CloudFormation; jobs: None for a request without the property."""

    def asked(kind: str, jobs: object, physical: str | None = None, /, remaining_s: float = 100, **more: Any) -> Any:
        given = {"ServiceToken": "arn", "Set": "billing", **more}
        if jobs is not None:
            given["Jobs"] = jobs if isinstance(jobs, str | dict) else json.dumps(jobs)
        event = {"RequestType": kind, **IDS, "ResponseURL": "https://s3.example/answer", "ResourceProperties": given}
        if physical is not None:
            event["PhysicalResourceId"] = physical
        answer = custom_resource.answered(event, lambda: remaining_s)
        assert {name: answer[name] for name in IDS} == IDS
        return answer

    return asked


def _names(api: Api) -> set[str]:
    return {each["key"] for each in api.get("/v1/jobs").json["items"]}


def test_the_resource_can_be_created_updated_and_deleted(api: Api, ask: Callable[..., dict[str, Any]]) -> None:
    created = ask("Create", [entry("a"), entry("b")])
    updated = ask("Update", [entry("a"), {**entry("b"), "description": "new"}, entry("c")], "job-set/billing")

    assert (created["Status"], created["PhysicalResourceId"]) == ("SUCCESS", "job-set/billing")
    assert created["Data"] == {"Created": 2, "Updated": 0, "Deleted": 0, "Unchanged": 0}
    assert updated["Data"] == {"Created": 1, "Updated": 1, "Deleted": 0, "Unchanged": 1}
    assert updated["PhysicalResourceId"] == "job-set/billing"
    assert _names(api) == {"a", "b", "c"}

    deleted = ask("Delete", [], "job-set/billing")

    assert (deleted["Status"], deleted["Data"]["Deleted"]) == ("SUCCESS", 3)
    assert _names(api) == set()
    assert ask("Delete", [], "job-set/billing")["Status"] == "SUCCESS"


def test_a_repeated_request_changes_nothing_more(api: Api, ask: Callable[..., dict[str, Any]]) -> None:
    first, again = ask("Create", [NIGHTLY]), ask("Create", [NIGHTLY])

    assert first["PhysicalResourceId"] == again["PhysicalResourceId"] == "job-set/billing"
    assert again["Data"] == {"Created": 0, "Updated": 0, "Deleted": 0, "Unchanged": 1}
    assert len(_names(api)) == 1


def test_more_changes_than_one_request_makes_are_continued(
    api: Api, ask: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sweephand.server.facades.native.jobs.job_sets.APPLIED_S", -1.0)
    jobs = [entry(f"job-{n}") for n in range(4)]

    out_of_time = ask("Create", jobs, remaining_s=19)
    done = ask("Create", jobs)

    assert out_of_time["Status"] == "FAILED"
    assert "changes remain: give the function a longer Timeout" in out_of_time["Reason"]
    assert done["Status"] == "SUCCESS"
    assert len(_names(api)) == 4


def test_many_deletions_are_refused_unless_their_number_is_given(api: Api, ask: Callable[..., dict[str, Any]]) -> None:
    ask("Create", [entry(f"job-{n}") for n in range(12)])

    refused = ask("Update", [], "job-set/billing")
    wrong = ask("Update", [], "job-set/billing", AllowDeletes="all")
    done = ask("Update", [], "job-set/billing", AllowDeletes="12")

    assert (refused["Status"], refused["PhysicalResourceId"]) == ("FAILED", "job-set/billing")
    assert "deletes 12 of 12 jobs; the limit is 10: to allow it, use AllowDeletes=12 (" in refused["Reason"]
    assert wrong["Reason"] == "AllowDeletes must be a whole number, not 'all'"
    assert done["Data"]["Deleted"] == 12


def test_deleting_the_resource_deletes_all_its_jobs(api: Api, ask: Callable[..., dict[str, Any]]) -> None:
    """The guard is for a list that has lost its lines, not for a resource that was taken out of the template."""
    ask("Create", [entry(f"job-{n}") for n in range(12)])

    assert ask("Delete", None, "job-set/billing")["Data"]["Deleted"] == 12
    assert _names(api) == set()


def test_a_failed_creation_leaves_an_existing_set_unchanged(api: Api, ask: Callable[..., dict[str, Any]]) -> None:
    api("PUT", "/v1/job-sets/billing", {"jobs": [entry("a")]})

    failed = ask("Create", [{**entry("b"), "action": {"type": "http"}}])
    rolled_back = ask("Delete", None, failed["PhysicalResourceId"])

    assert (failed["Status"], failed["PhysicalResourceId"]) == ("FAILED", "job-set/billing")
    assert "jobs[0].action.url: is required" in failed["Reason"]
    assert rolled_back["Status"] == "SUCCESS"
    assert _names(api) == {"a"}


def test_a_new_set_name_replaces_the_resource(api: Api, ask: Callable[..., dict[str, Any]]) -> None:
    ask("Create", [entry("a")])

    moved = ask("Update", [entry("b")], "job-set/billing", Set="shipping")

    assert moved["PhysicalResourceId"] == "job-set/shipping"
    assert _names(api) == {"a", "b"}
    ask("Delete", None, "job-set/billing")
    assert _names(api) == {"b"}


@pytest.mark.parametrize(
    ("jobs", "more", "reason"),
    [
        (None, {}, "Jobs must be a JSON string"),
        ({"key": "a"}, {}, "Jobs must be a JSON string"),
        ("[", {}, "Jobs is not valid JSON"),
        ('[{"key": "a", "key": "b"}]', {}, 'Jobs cannot be used: the member "key" appears twice'),
        ("{}", {}, "Jobs must be a JSON list"),
        ("[]", {"Set": ""}, "Set must name the job set"),
        ("[]", {"Job": "x"}, "Job is not a property of a job set"),
        ("[]", {"OnDrift": "never"}, "onDrift"),
        ("[]", {"Set": ".."}, "must not be '..'"),
    ],
)
def test_invalid_properties_are_named(
    ask: Callable[..., dict[str, Any]], jobs: object, more: dict[str, str], reason: str
) -> None:
    answer = ask("Create", jobs, **more)

    assert answer["Status"] == "FAILED"
    assert reason in answer["Reason"]


def test_the_examples_jobs_are_accepted_and_its_handler_exists(api: Api, ask: Callable[..., dict[str, Any]]) -> None:
    resources = yaml.load(EXAMPLE.read_text(encoding="utf-8"), Intrinsics)["Resources"]
    module, _, name = resources["JobSetFunction"]["Properties"]["Handler"].rpartition(".")
    given = resources["Jobs"]["Properties"]
    given["Jobs"] = given["Jobs"].replace("${ReportUrl}", "https://example.org/report")

    assert getattr(import_module(module), name) is custom_resource.handler
    assert ask("Create", given.pop("Jobs"), **given)["Data"]["Created"] == 1
    assert _names(api) == {"report"}


def test_an_unexpected_error_is_reported_without_its_text(
    ask: Callable[..., dict[str, Any]], gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Answer:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(gateway, "send", broken)
    answer = ask("Create", [NIGHTLY])

    assert (answer["Status"], answer["Reason"]) == ("FAILED", "ZeroDivisionError: see the function's log")


def test_a_missing_credential_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SWEEPHAND_CLIENT_ID", raising=False)
    event = {"RequestType": "Create", **IDS, "ResourceProperties": {"Set": "billing", "Jobs": "[]"}}

    answer = custom_resource.answered(event, lambda: 100)

    assert answer["Status"] == "FAILED"
    assert "the credential is missing" in answer["Reason"]


class Uploads:
    """CloudFormation's address. answers: a status, or None for an answer that is lost."""

    def __init__(self, *answers: int | None) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[str, str, dict[str, str], Any]] = []

    def send(self, method: str, url: str, headers: Any, content: bytes | None, timeout_s: float) -> Answer:
        self.sent.append((method, url, headers, json.loads(content or b"")))
        status = self.answers.pop(0)
        if status is None:
            raise TransportError("lost")
        return Answer(status, {}, b"")

    def close(self) -> None: ...


def test_the_answer_is_sent_until_it_arrives() -> None:
    uploads = Uploads(None, 503, 200)

    custom_resource.send(uploads, "https://s3.example/answer", {"Status": "SUCCESS"})

    sent = ("PUT", "https://s3.example/answer", {"content-type": ""}, {"Status": "SUCCESS"})
    assert uploads.sent == [sent] * 3


@pytest.mark.parametrize("last", [403, None])
def test_an_answer_that_never_arrives_is_an_error(last: int | None) -> None:
    """Lambda then calls the function again."""
    with pytest.raises(TransportError):
        custom_resource.send(Uploads(None, 500, last), "https://s3.example/answer", {})


def test_the_handler_answers_by_http(monkeypatch: pytest.MonkeyPatch, gateway: Gateway) -> None:
    uploads = Uploads(200)
    monkeypatch.setattr("sweephand.sdk.sync.http.HttpTransport", lambda: uploads)

    class Context:
        def get_remaining_time_in_millis(self) -> int:
            return 100_000

    url = "https://s3.example/answer"
    event = {"RequestType": "Create", **IDS, "ResponseURL": url, "ResourceProperties": {"Set": "x", "Jobs": "[]"}}
    custom_resource.handler(event, Context())

    assert [(each[1], each[3]["Status"]) for each in uploads.sent] == [(url, "SUCCESS")]
    assert gateway.sent
