"""The import of jobs from SAP's service: one tenant is the source, another the target."""

from __future__ import annotations

import io

import httpx
import pytest

from sweephand.cli import import_sap, main
from sweephand.cli.import_sap import Service, copy
from tests.contract.native.api import event
from tests.contract.sap.api import JOB, OTHER, TENANT, Sap

HOURLY = {"repeatInterval": "1 hour", "description": "beat", "data": {"n": [1, "two"]}}
NIGHTLY = {"cron": "* * * * 2 30 0", "startTime": "2027-03-05 10:00:00"}


def service(api: Sap, url: str, caller: str) -> Service:
    """One side, its requests answered by a facade in this process."""

    def answer(request: httpx.Request) -> httpx.Response:
        headers = dict(request.headers) | {"authorization": api.credentials[caller]}
        query = request.url.query.decode()
        built = event(request.method, request.url.path, query, headers, request.content.decode() or None)
        facade = api.facade if request.url.path.startswith("/scheduler") else api.native.facade
        told = facade.handle(built, "import")
        return httpx.Response(told["statusCode"], headers=told["headers"], text=told["body"])

    return Service(url, httpx.Client(base_url=url, transport=httpx.MockTransport(answer)))


def imported(api: Sap, *, dry_run: bool = False) -> tuple[int, list[str]]:
    out = io.StringIO()
    source, target = service(api, "https://sap.example", TENANT), service(api, "https://here.example", OTHER)
    status = copy(source, target, dry_run=dry_run, out=out)
    return status, out.getvalue().splitlines()


def shown(api: Sap, caller: str) -> list[object]:
    """All jobs without what every stack gives by itself."""
    jobs = []
    for listed in api.get("/jobs", caller=caller, query={"page_size": 100, "sort_by": "name"}).json["results"]:
        job = api.get(f"/jobs/{listed['_id']}", caller=caller, query={"displaySchedules": "true"}).json
        schedules = [
            {name: value for name, value in each.items() if name not in {"scheduleId", "modifiedAt"}}
            for each in job["schedules"]
        ]
        jobs.append({**job, "_id": None, "jobId": None, "schedules": schedules})
    return jobs


def test_everything_is_copied_and_a_second_run_changes_nothing(api):
    for n in range(120):
        api.create(HOURLY, {**NIGHTLY, "active": n % 2 == 0}, name=f"job-{n:03}", calmConfig={"enabled": n % 3 == 0})

    status, lines = imported(api)

    assert (status, lines[-1]) == (0, "created 120, changed 0, unchanged 0, failed 0")
    assert shown(api, OTHER) == shown(api, TENANT)
    with api.native.unchanged():
        assert imported(api)[1][-1] == "created 0, changed 0, unchanged 120, failed 0"


def test_a_dry_run_says_what_would_be_done_and_does_nothing(api):
    api.create(HOURLY)

    with api.native.unchanged():
        status, lines = imported(api, dry_run=True)

    assert status == 0
    assert lines == ["created    report  (1 schedules)", "would be created 1, changed 0, unchanged 0, failed 0"]


def test_what_has_changed_since_is_changed_also_its_name(api):
    made = api.create(HOURLY)
    api.create(NIGHTLY, name="other")
    imported(api)
    api("PUT", f"/jobs/{made['_id']}", {"name": "renamed", "description": "new"})

    status, lines = imported(api)

    assert (status, lines[-1]) == (0, "created 0, changed 1, unchanged 1, failed 0")
    assert shown(api, OTHER) == shown(api, TENANT)


def test_a_job_with_a_password_arrives_without_it_and_switched_off(api):
    api.create(HOURLY, user="joe", password="canary-secret")

    status, lines = imported(api)

    assert status == 0
    assert lines[0] == "created    report  (1 schedules)  has the user joe: give its password, and switch it on"
    (job,) = shown(api, OTHER)
    assert (job["active"], job["user"]) == (False, None)
    assert imported(api)[1][-1] == "created 0, changed 0, unchanged 1, failed 0"


def test_a_job_that_is_refused_does_not_hold_up_the_others(api):
    api.create(HOURLY, name="a")
    api.create(HOURLY, name="b")
    api("POST", "/jobs", {**JOB, "name": "a", "schedules": []}, caller=OTHER)
    api.native("PATCH", "/v1/collections/sap", {"quota": {"maxJobs": 1}}, caller=OTHER)

    status, lines = imported(api)

    assert status == 1
    assert lines[-1] == "created 1, changed 0, unchanged 0, failed 1"
    assert lines[1].startswith("failed     b")


@pytest.mark.parametrize("missing", ["--credentials", "--to", "--to-credentials"])
def test_a_missing_option_is_named(monkeypatch, capsys, missing):
    for name in ("SWEEPHAND_IMPORT_CREDENTIALS", "SWEEPHAND_URL", "SWEEPHAND_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    given = {"--credentials": "a:b", "--to": "http://127.0.0.1:1", "--to-credentials": "a:b"}
    del given[missing]

    status = main(["import", "sap", "--from", "http://127.0.0.1:1", *(text for pair in given.items() for text in pair)])

    assert (status, capsys.readouterr().err) == (2, f"{missing} is missing\n")


def test_a_source_that_does_not_answer_is_told_in_one_line(capsys):
    both = ["--credentials", "a:b", "--to", "http://127.0.0.1:1", "--to-credentials", "a:b"]

    assert main(["import", "sap", "--from", "http://127.0.0.1:9", *both]) == 1

    assert capsys.readouterr().err.count("\n") == 1


def test_the_mark_tells_sources_apart():
    assert import_sap.marked("https://a", 1) != import_sap.marked("https://b", 1)
