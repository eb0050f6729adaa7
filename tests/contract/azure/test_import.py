"""The import of job collections and jobs from templates of ARM and from what Azure's API answered."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sweephand.cli import main
from sweephand.cli.imports.azure_file import Found, Names, found_in, read_json, read_parameters
from sweephand.cli.imports.import_azure import Importing
from sweephand.cli.imports.service import Failed, Service
from sweephand.local.settings import CHECKOUT
from tests.contract.azure.api import COLLECTION, COLLECTIONS, EVERY_HOUR, HTTP, JOB, OTHER, TENANT, Azure
from tests.contract.calls import event
from tests.contract.native.filled import certificates

EXAMPLE = CHECKOUT / "examples" / "azure_import"
NAMES = Names("sub-1", "group", "West US")
"""The place that COLLECTION and JOB have."""
TYPE = "Microsoft.Scheduler/jobCollections"
PASSWORD = "of the file"


def service(api: Azure, caller: str = TENANT) -> Service:
    """Returns a client of the stack; the facade in this process answers."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        headers = dict(request.headers) | {"authorization": api.credentials.get(caller, "Basic eDp5")}
        query = request.url.query.decode()
        told = api.facade.handle(event(request.method, request.url.path, query, headers, request.content.decode()), "i")
        return httpx2.Response(told["statusCode"], headers=told["headers"], text=told["body"])

    client = httpx2.Client(base_url="https://here.example", transport=httpx2.MockTransport(answer))
    return Service("https://here.example", client, api.stage.clock)


def imported(
    api: Azure, *contents: Any, names: Names = NAMES, caller: str = TENANT, tenant: str | None = None, **options: Any
) -> tuple[int, list[str]]:
    """Imports files. Returns the status and the lines."""
    out, err = io.StringIO(), io.StringIO()
    found = [each for content in contents for each in found_in(content, names)]
    status = Importing(service(api, caller), tenant, **options).run(found, out, err)
    return status, out.getvalue().splitlines() + err.getvalue().splitlines()


def template(*resources: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"$schema": "deploymentTemplate.json#", "contentVersion": "1.0.0.0", **more, "resources": list(resources)}


def collection(name: str = "Nightly", **more: Any) -> dict[str, Any]:
    return {"type": TYPE, "name": name, "location": "West US", "properties": {}, **more}


def job(name: str = "Nightly/Report", **properties: Any) -> dict[str, Any]:
    return {"type": f"{TYPE}/jobs", "name": name, "properties": {"action": HTTP, **properties}}


def example() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((EXAMPLE / "template.json").read_text())
    return content


def parameters(tmp_path: Path, **values: str) -> dict[str, Any]:
    """Writes the parameters that the example needs into a file of ARM, and returns them as they are read."""
    needed = {"apiPassword": "canary", "storageSas": "sv=1&sp=a&sig=canary", **values}
    path = tmp_path / "parameters.json"
    path.write_text(json.dumps({"parameters": {name: {"value": value} for name, value in needed.items()}}))
    return read_parameters(str(path))


# Templates


def test_a_template_passes_dry_run_import_and_second_run(api, tmp_path):
    names = replace(NAMES, parameters=parameters(tmp_path, target="https://example.org"))
    with api.native.unchanged():
        assert imported(api, example(), names=names, dry_run=True)[1][-1] == (
            "would be created 11, changed 0, unchanged 0, failed 0"
        )

    status, lines = imported(api, example(), names=names)

    assert (status, lines[-1]) == (0, "created 11, changed 0, unchanged 0, failed 0")
    shown = api.get(f"{COLLECTIONS}/Shop/jobs").json["value"]
    assert [each["name"] for each in shown] == [
        f"Shop/{name}"
        for name in (
            *("Invoices", "Meeting", "Parcels", "Prices", "Stock-north", "Stock-south", "Stock-west", "Stopped"),
            *("Week", "Welcome"),
        )
    ]
    by_name = {each["name"]: each["properties"] for each in shown}
    assert by_name["Shop/Stock-south"]["action"]["request"]["body"] == '{"region": "south"}'
    assert by_name["Shop/Parcels"]["action"]["queueMessage"]["message"] == '["collect"]'
    assert by_name["Shop/Stopped"]["state"] == "Disabled"
    assert api.get(f"{COLLECTIONS}/Shop").json["location"] == "West US"
    api.stage.run(5)
    before = api.get(f"{COLLECTIONS}/Shop/jobs").json
    for dry_run in (True, False):
        again = imported(api, example(), names=names, dry_run=dry_run)
        assert again[0] == 0
        assert again[1][-1].endswith("created 0, changed 0, unchanged 11, failed 0")
    assert api.get(f"{COLLECTIONS}/Shop/jobs").json == before


def test_an_unchanged_import_without_secrets_sends_nothing(api):
    content = template(collection(), job(recurrence=EVERY_HOUR, startTime="2017-01-01"))
    imported(api, content)

    with api.native.unchanged():
        assert imported(api, content)[1][-1] == "created 0, changed 0, unchanged 2, failed 0"


def test_jobs_that_differ_are_changed(api):
    imported(api, template(collection(), job(recurrence=EVERY_HOUR), job("Nightly/Other")))

    changed = template(collection(tags={"a": "b"}), job(recurrence={"frequency": "Day"}), job("Nightly/Other"))
    for dry_run in (True, False):
        status, lines = imported(api, changed, dry_run=dry_run)
        assert status == 0
        assert lines[:3] == [
            "changed    Nightly  (job collection)",
            "changed    Nightly/Report",
            "unchanged  Nightly/Other",
        ]

    assert api.properties()["recurrence"] == {"frequency": "Day", "interval": 1}
    assert imported(api, changed)[1][-1] == "created 0, changed 0, unchanged 3, failed 0"


def test_defaults_added_by_the_api_are_no_difference(api):
    policy = {"retryPolicy": {"retryType": "fixed"}, "errorAction": {**HTTP, "retryPolicy": {"retryType": "none"}}}
    occurrences = {"monthlyOccurrences": [{"day": "friday", "occurrence": 1}], "hours": [3]}
    recurrence = {"frequency": "month", "schedule": occurrences, "endTime": "2031-01-01", "count": 5}
    written = job(action={**HTTP, "type": "http", **policy}, recurrence=recurrence, startTime="2027-01-01T00:00Z")
    content = template(collection(properties={"quota": {"maxJobCount": 7}}, location="westus"), written)
    assert imported(api, content)[0] == 0

    assert imported(api, content)[1][-1] == "created 0, changed 0, unchanged 2, failed 0"


def test_a_missing_parameter_is_reported_in_the_line_of_its_job(api):
    status, lines = imported(api, example())

    assert status == 1
    none = "has no value: give it in the file of --parameters"
    assert f"failed     Shop/Week  the parameter target {none}" in lines
    assert f"failed     Shop/Parcels  the parameter storageSas {none}" in lines
    assert f"failed     Shop/Invoices  the parameter target {none}; the parameter apiPassword {none}" in lines
    assert lines[0] == "created    Shop  (job collection)"
    assert lines[-1] == "created 1, changed 0, unchanged 0, failed 10"


def test_a_template_without_a_location_names_the_options_that_set_one(api):
    status, lines = imported(api, template(collection(), job()), names=Names())

    assert status == 1
    assert lines[0] == "failed     Nightly  has no id: give --subscription and --group"


def test_other_resources_of_a_template_are_left_out_with_a_reason(api):
    nested = {"type": "Microsoft.Resources/deployments", "name": "more", "properties": {}}
    site = {"type": "Microsoft.Web/sites", "name": "site"}
    off = {**job("Nightly/Off"), "condition": "[equals('a', 'b')]"}

    assert imported(api, template(site, collection(), job(), off))[0] == 0
    status, lines = imported(api, template(site, off, nested, collection(), job(), {**job(), "comments": "again"}))

    assert status == 1
    assert lines[2:] == [
        "left out   Nightly/Report  is in the files twice",
        "left out   site  Microsoft.Web/sites does not belong to Azure Scheduler",
        "left out   Nightly/Off  its condition is false",
        "failed     more  is a nested template: import it as a file of its own",
        "created 0, changed 0, unchanged 2, failed 1, left out 3",
    ]


def test_two_resources_with_one_name_stay_separate(api):
    status, lines = imported(api, template(collection(), job(), job("nightly/REPORT", recurrence=EVERY_HOUR)))

    assert status == 1
    assert lines[2] == "failed     nightly/REPORT  is in the files twice, with differences: the first was used"


# Answers of the API


def answers(api: Azure, caller: str = TENANT) -> list[Any]:
    return [api.get(path, caller=caller).json for path in (COLLECTIONS, f"{COLLECTION}/jobs")]


def rich(api: Azure) -> None:
    """Creates a collection with a job for each secret that there is."""
    api.collection(sku={"name": "Standard"})
    request = HTTP["request"]
    proofs: dict[str, dict[str, Any]] = {
        "Basic": {"type": "Basic", "username": "joe", "password": "canary"},
        "Certificate": {"type": "ClientCertificate", "pfx": certificates()["pfx"], "password": PASSWORD},
        "OAuth": {
            "type": "ActiveDirectoryOAuth",
            "tenant": "t.example",
            "audience": "https://a",
            "clientId": "me",
            "secret": "canary",
        },
    }
    for name, proof in proofs.items():
        action = {"type": "Https", "request": {**request, "authentication": proof}}
        api.job(f"{COLLECTION}/jobs/{name}", action=action, recurrence=EVERY_HOUR)
    key = {"type": "SharedAccessKey", "sasKeyName": "send", "sasKey": "canary"}
    bus = {"namespace": "acmebus", "queueName": "orders", "authentication": key, "message": "x"}
    storage = {"storageAccount": "acme", "queueName": "orders", "sasToken": "sv=1&sig=canary", "message": "x"}
    error = {"type": "StorageQueue", "queueMessage": storage}
    action = {"type": "ServiceBusQueue", "serviceBusQueueMessage": bus, "errorAction": error}
    api.job(f"{COLLECTION}/jobs/Queues", action=action, recurrence=EVERY_HOUR)


def given() -> dict[str, str]:
    """Returns the secrets of `rich`, by their names."""
    return {
        "password of joe at https://example.org": "canary",
        "pfx of the certificate for https://example.org": certificates()["pfx"],
        "password of the certificate for https://example.org": PASSWORD,
        "secret of me in t.example": "canary",
        "sasKey of send at acmebus/orders": "canary",
        "sasToken of acme/orders": "sv=1&sig=canary",
    }


@pytest.mark.parametrize("dry_run", [True, False])
def test_secrets_that_an_export_lacks_are_requested_by_name(api, dry_run):
    rich(api)

    certificate = "the certificate for https://example.org"

    status, lines = imported(api, *answers(api), caller=OTHER, dry_run=dry_run)

    assert status == 1
    assert lines[1:5] == [
        "failed     Nightly/Basic  needs the password of joe at https://example.org",
        f"failed     Nightly/Certificate  needs the pfx of {certificate}, the password of {certificate}",
        "failed     Nightly/OAuth  needs the secret of me in t.example",
        "failed     Nightly/Queues  needs the sasKey of send at acmebus/orders, the sasToken of acme/orders",
    ]
    asked = json.loads("\n".join(lines[7:]))
    assert asked == dict.fromkeys(given(), "")


def test_an_export_is_imported_with_its_secrets_and_again_without_them(api):
    rich(api)
    exported = answers(api)

    status, lines = imported(api, *exported, caller=OTHER, secrets={**given(), "other": "x"})

    assert (status, lines[-2]) == (0, "created 5, changed 0, unchanged 0, failed 0")
    assert lines[-1] == "secrets that no job needs: other"
    assert "canary" not in "".join(lines)
    copied = answers(api, OTHER)
    assert [strip(each) for each in copied] == [strip(each) for each in exported]
    with api.native.unchanged():
        assert imported(api, *exported, caller=OTHER)[1] == [
            f"unchanged  {name}"
            for name in (
                *("Nightly  (job collection)", "Nightly/Basic", "Nightly/Certificate", "Nightly/OAuth"),
                "Nightly/Queues",
            )
        ] + ["created 0, changed 0, unchanged 5, failed 0"]


def strip(answer: Any) -> Any:
    """Returns the resources of a list without the status, which differs."""
    return [{**each, "properties": {**each["properties"], "status": None}} for each in answer["value"]]


def test_a_secret_for_a_new_destination_must_be_sent_again(api):
    rich(api)
    jobs = answers(api)[1]
    (basic,) = [each for each in jobs["value"] if each["name"] == "Nightly/Basic"]
    basic["properties"]["action"]["request"]["uri"] = "https://other.example/run"

    for dry_run in (True, False):
        status, lines = imported(api, basic, dry_run=dry_run)
        assert status == 1
        assert lines[0] == "failed     Nightly/Basic  needs the password of joe at https://other.example"


def test_finished_jobs_are_left_out(api):
    api.job()
    api.stage.run(5)
    exported = answers(api)

    status, lines = imported(api, *exported, caller=OTHER)

    assert status == 0
    assert lines[1:] == [
        "left out   Nightly/Report  is Completed: it has no runs left",
        "created 1, changed 0, unchanged 0, failed 0, left out 1",
    ]


def test_a_job_that_is_finished_in_the_stack_is_not_changed(api):
    imported(api, template(collection(), job()))
    api.stage.run(5)

    for dry_run in (True, False):
        assert imported(api, template(job()), dry_run=dry_run)[1][0] == "unchanged  Nightly/Report"
        status, lines = imported(api, template(job(recurrence=EVERY_HOUR)), dry_run=dry_run)
        final = "is Completed in the stack, which is a final state: delete it there to import it again"
        assert (status, lines[0]) == (1, f"failed     Nightly/Report  {final}")


def test_a_new_job_warns_about_unexpected_runs_and_counts(api):
    api.collection()
    count = {**EVERY_HOUR, "count": 9}
    exported = job(startTime="2017-01-01", recurrence=count)
    exported["properties"]["status"] = {"executionCount": 4}
    content = [exported, job("Nightly/Past", startTime="2017-01-01"), job("Nightly/Off", state="Disabled")]

    assert imported(api, content)[1][:3] == [
        "created    Nightly/Report  its count of 9 starts over; 4 runs have already taken place",
        "created    Nightly/Past  runs immediately",
        "created    Nightly/Off",
    ]


def test_a_disabled_import_runs_nothing_until_it_is_repeated_as_enabled(api):
    content = template(collection(properties={"State": "Enabled"}), job(recurrence=EVERY_HOUR), job("Nightly/Once"))

    for expected in ("created 3, changed 0, unchanged 0, failed 0", "created 0, changed 0, unchanged 3, failed 0"):
        status, lines = imported(api, content, disabled=True)
        assert (status, lines[-1]) == (0, expected)
        assert "runs immediately" not in "".join(lines)
        api.stage.run(7_200)
    assert api.stage.endpoint.received == []

    assert imported(api, content)[1][-1] == "created 0, changed 1, unchanged 2, failed 0"
    api.stage.run(7_200)

    assert api.properties(f"{COLLECTION}/jobs/Once")["state"] == "Completed"
    assert api.properties()["status"]["executionCount"] == 2


def test_ids_name_the_place_of_a_resource_and_options_override_it(api):
    exported = {"id": JOB, **job("ignored/name", recurrence=EVERY_HOUR)}
    there = {"id": COLLECTION.replace("resourceGroups", "resourcegroups"), **collection("ignored")}

    assert imported(api, {"value": [exported, there]}, names=Names())[0] == 0
    assert imported(api, [exported, there], names=Names("sub-2", "moved"))[0] == 0

    assert api.get(JOB).status == 200
    moved = JOB.replace("sub-1", "sub-2").replace("/group/", "/moved/")
    assert api.get(moved).status == 200


def test_an_answer_of_the_live_service_is_read_in_its_own_spelling(api):
    """The mixture of cases and forms is that of the sessions which Microsoft recorded with its SDKs."""
    action = {
        "type": "http",
        "request": {"uri": "https://example.org/run", "method": "GET"},
        "retryPolicy": {"retryType": "fixed", "retryInterval": "00:01:00", "retryCount": 2},
        "errorAction": {
            "type": "serviceBusQueue",
            "serviceBusQueueMessage": {
                "authentication": {"type": "sharedAccessKey", "sasKeyName": "send"},
                "brokeredMessageProperties": {"timeToLive": "1.02:03:04", "label": None},
                "transportType": "netMessaging",
                "namespace": "acmebus",
                "queueName": "orders",
                "message": "failed",
            },
        },
    }
    live = {
        "properties": {
            "startTime": "2014-09-01T00:00:00Z",
            "action": action,
            "recurrence": {"frequency": "week", "interval": 1, "schedule": {"weekDays": ["monday"], "hours": [5]}},
            "state": "enabled",
            "status": {"executionCount": 7, "failureCount": 0, "faultedCount": 0},
        },
        "id": JOB,
        "type": f"{TYPE}/jobs",
        "name": "Nightly/Report",
    }
    place = {"id": COLLECTION, "type": TYPE, "name": "Nightly", "location": "West US", "tags": {}}
    content = {"value": [live, {**place, "properties": {"sku": {"name": "standard"}, "state": "enabled"}}]}
    secrets = {"sasKey of send at acmebus/orders": "canary"}

    assert imported(api, content, secrets=secrets)[1][-1] == "created 2, changed 0, unchanged 0, failed 0"
    assert imported(api, content)[1][-1] == "created 0, changed 0, unchanged 2, failed 0"

    shown = api.properties()
    error = shown["action"]["errorAction"]["serviceBusQueueMessage"]
    assert error["brokeredMessageProperties"] == {"timeToLive": "P1DT2H3M4S"}
    assert (shown["action"]["retryPolicy"]["retryInterval"], shown["recurrence"]["frequency"]) == ("PT1M", "Week")


def test_objects_without_id_and_type_are_reported_as_failed(api):
    status, lines = imported(api, [{"JobName": "Report", "Status": "Enabled"}, "x"])

    assert status == 1
    assert lines[:2] == [
        "failed     a resource without a name  has neither an id nor a type",
        "failed     'x'  is not an object",
    ]


def test_an_incomplete_list_is_reported_as_failed(api):
    status, lines = imported(api, {"value": [collection()], "nextLink": "https://next"})

    assert status == 1
    assert lines[1] == "failed     the list  continues at its nextLink, which is not in the file"


# Refusals


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"action": None}, "properties.action: is required"),
        ({"recurrence": {"frequency": "Minute", "interval": 2_000}}, "properties.recurrence.interval: "),
        ({"recurrence": {"frequency": "Never"}}, "properties.recurrence.frequency: must be one of"),
        ({"startTime": "soon"}, "properties.startTime: "),
        ({"startTime": "2099-01-01"}, "properties.startTime: must be at most 18 months ahead"),
        ({"action": {**HTTP, "type": "Ftp"}}, "properties.action.type: must be one of"),
        ({"action": {"type": "StorageQueue"}}, "properties.action.queueMessage: is required"),
    ],
)
def test_a_dry_run_refuses_the_same_jobs_as_the_import(api, properties, reason):
    api.collection()

    dry = imported(api, [job(**properties)], dry_run=True)
    real = imported(api, [job(**properties)])

    assert dry[0] == real[0] == 1
    assert dry[1][0] == real[1][0]
    assert dry[1][0].startswith(f"failed     Nightly/Report  {reason}")


JUNK: list[Any] = [None, True, -1, "", "x", "[x]", "[parameters('none')]", [], {}, ["a"], {"a": 1}, 10**30, "null"]


def places(value: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    """Yields the path of each value within a value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from places(each, *path, key)


def test_any_value_in_any_place_gets_a_line(api):
    for whole in (
        example(),
        {"value": [{"id": COLLECTION, **collection()}, {"id": JOB, **job(recurrence=EVERY_HOUR)}]},
    ):
        for n, (*path, last) in enumerate(list(places(whole))[1:]):
            changed = json.loads(json.dumps(whole))
            inner = changed
            for key in path:
                inner = inner[key]
            inner[last] = JUNK[n % len(JUNK)]

            with suppress(Failed):  # a file that has no resources at all
                status, lines = imported(api, changed, dry_run=True)
                assert status == ("failed 0" not in "".join(lines)), lines


def test_the_stack_refuses_values_that_only_it_can_judge(api):
    api.collection(quota={"maxJobCount": 1})

    status, lines = imported(api, [job("Nightly/A"), job("Nightly/B"), job("None/C")])

    assert status == 1
    assert lines[0].startswith("created    Nightly/A")
    assert lines[1].startswith(
        "failed     Nightly/B  the collection Nightly has 1 job, and its quota maxJobCount allows 1"
    )
    assert lines[2] == "failed     None/C  its job collection does not exist in the stack"


@pytest.mark.parametrize(
    "proof",
    [
        {"type": "Basic", "username": "joe", "password": "[canary"},
        {"type": "Basic", "username": "joe", "password": "[[canary" * 1_000},
        {"type": "Basic", "username": "joe", "password": ["canary"]},
        {"type": "ClientCertificate", "pfx": "canary", "password": "canary"},
    ],
)
def test_no_line_repeats_a_secret(api, proof):
    request = {**HTTP["request"], "authentication": proof}

    status, lines = imported(api, template(collection(), job(action={"type": "Http", "request": request})))

    assert status == 1
    assert lines[1].startswith("failed     Nightly/Report  properties.action.request.authentication.p")
    assert "canary" not in "".join(lines)


def test_a_refused_credential_ends_the_import(api):
    status, lines = imported(api, template(collection(), job()), caller="nobody")

    assert status == 1
    assert lines[0] == "created 0, changed 0, unchanged 0, failed 0"
    assert lines[1].startswith("ended early: GET https://here.example/providers/Microsoft.Scheduler/operations: 401")


def test_the_provider_names_the_tenant_of_an_import(api):
    content = template(collection(), job(recurrence=EVERY_HOUR))

    assert imported(api, content, caller="provider", tenant=OTHER)[0] == 0

    assert api.get(JOB, caller=OTHER).status == 200
    assert api.get(JOB).status == 404


# The command


@pytest.mark.parametrize(
    ("files", "more", "reason"),
    [
        ({}, ["none.json"], "none.json: "),
        ({"a.json": b"{"}, ["a.json"], "a.json: Expecting property name"),
        ({"a.json": b"[" * 100_000}, ["a.json"], "a.json: is nested too deeply"),
        ({"a.json": b'["\\ud800"]'}, ["a.json"], "a.json: 'utf-8' codec can't encode"),
        ({"a.json": b'{"parameters": {}}'}, ["a.json"], "a.json: is neither an ARM template nor an answer"),
        ({"a.json": b"[]", "p.json": b"[]"}, ["a.json", "--parameters", "p.json"], "p.json: must be a parameter file"),
        ({"a.json": b"[]", "s.json": b'{"a": 1}'}, ["a.json", "--secrets", "s.json"], "s.json: must be an object"),
        ({"a.json": b"[]"}, ["a.json"], "--to is missing"),
    ],
)
def test_wrong_usage_exits_with_status_2(tmp_path, monkeypatch, capsys, files, more, reason):
    for name in ("SWEEPHAND_URL", "SWEEPHAND_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)

    assert main(["import", "azure", *more]) == 2
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_files_written_by_powershell_are_read(api, tmp_path, encoding):
    path = tmp_path / "export.json"
    path.write_bytes(json.dumps([collection("Nächtlich")], ensure_ascii=False).encode(encoding))

    (found,) = found_in(read_json(str(path)), NAMES)

    assert isinstance(found, Found)
    assert found.place.collection == "Nächtlich"


def test_a_stack_without_the_facade_is_reported(api):
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(404, json={"message": "Not Found"})

    client = httpx2.Client(base_url="https://here.example", transport=httpx2.MockTransport(answer))
    out, err = io.StringIO(), io.StringIO()

    assert Importing(Service("https://here.example", client, api.stage.clock)).run([], out, err) == 1
    assert err.getvalue() == "ended early: the stack does not serve Azure's API: its parameter AzureFacade is off\n"
