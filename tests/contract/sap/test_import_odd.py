"""The import of jobs that the stack takes in several requests, changes in part, or does not take."""

from __future__ import annotations

import io
import json
from typing import Any

import httpx2
import pytest

from sweephand.cli import main
from sweephand.cli.imports.import_sap import Copying
from sweephand.cli.imports.sap_place import first_of
from sweephand.cli.imports.sap_service import SapService
from tests.contract.sap.api import OTHER, Sap
from tests.contract.sap.test_import import BRIEF, HOURLY, NIGHTLY, imported, service, shown

MANY = 45


def old_job(*schedules: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Returns a job as the old service shows it."""
    job = {"_id": 7, "name": "odd", "description": "", "action": "https://example.org/run", "active": True}
    kept = [{"scheduleId": f"s{n}", "active": True, **each} for n, each in enumerate(schedules)]
    return {**job, "httpMethod": "POST", "schedules": kept, **members}


def copied(api: Sap, *jobs: dict[str, Any], **options: Any) -> list[str]:
    """Returns the lines. jobs: all that the old service has."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/scheduler/jobs":
            return httpx2.Response(200, json={"total": len(jobs), "results": jobs, "next_url": None})
        return httpx2.Response(200, json=next(job for job in jobs if request.url.path.endswith(f"/{job['_id']}")))

    client = httpx2.Client(base_url="https://sap.example", transport=httpx2.MockTransport(answer))
    source = SapService("https://sap.example", client, api.stage.clock)
    out = io.StringIO()
    Copying(source, service(api, "https://here.example", OTHER), **options).run(out, out)
    return out.getvalue().splitlines()


# Many schedules


def many() -> dict[str, Any]:
    return old_job(*({"cron": f"* * * * 2 {n} 0", "description": str(n), "data": None} for n in range(MANY)))


def test_a_job_with_more_schedules_than_one_request_allows_is_copied(api):
    assert copied(api, many())[0] == f"created    odd  ({MANY} schedules)"

    (job,) = shown(api, OTHER)
    assert {each["description"] for each in job["schedules"]} == {str(n) for n in range(MANY)}
    assert job["active"]
    with api.native.unchanged():
        assert copied(api, many())[0] == f"unchanged  odd  ({MANY} schedules)"


def losing(api: Sap, monkeypatch: Any, path: str, nth: int, *, for_good: bool = False) -> None:
    """Loses the nth answer to POST of a path's end, or puts the service out of order from then on."""
    handle, seen = api.facade.handle, []

    def lossy(request: Any, name: str) -> Any:
        if for_good and len(seen) >= nth:
            return {"statusCode": 500, "headers": {}, "body": "{}"}
        answer = handle(request, name)
        if request["requestContext"]["http"]["method"] == "POST" and request["rawPath"].endswith(path):
            seen.append(path)
            if len(seen) == nth:
                return {**answer, "statusCode": 502}
        return answer

    monkeypatch.setattr(api.facade, "handle", lossy)


@pytest.mark.parametrize("nth", [1, 5])
def test_a_schedule_whose_answer_was_lost_is_not_created_twice(api, monkeypatch, nth):
    losing(api, monkeypatch, "/schedules", nth)

    assert copied(api, many())[0] == f"created    odd  ({MANY} schedules)"

    assert len(shown(api, OTHER)[0]["schedules"]) == MANY


def test_an_interrupted_copy_is_inactive_and_the_next_run_completes_it(api, monkeypatch):
    with monkeypatch.context() as patch:
        losing(api, patch, "/schedules", 3, for_good=True)
        assert copied(api, many())[0].startswith("failed     odd  POST ")
    (job,) = shown(api, OTHER)
    assert (job["active"], len(job["schedules"])) == (False, 43)

    assert copied(api, many())[0] == f"changed    odd  ({MANY} schedules)"

    (job,) = shown(api, OTHER)
    assert (job["active"], len(job["schedules"])) == (True, MANY)


def test_a_job_with_many_schedules_copied_as_inactive_stays_so_until_the_switch(api):
    copied(api, many(), inactive=True)

    assert not shown(api, OTHER)[0]["active"]


@pytest.mark.parametrize(("size", "fitting"), [(100, 40), (30_000, 3), (200_000, 0)])
def test_one_request_holds_40_schedules_and_100_kb(size, fitting):
    body = {"name": "big", "schedules": [{"cron": "* * * * 2 0 0", "data": {"a": "x" * size}} for _ in range(50)]}

    first, rest = first_of(body)

    assert (len(first), len(rest)) == (fitting, 50 - fitting)
    assert [*first, *rest] == body["schedules"]


def test_large_data_of_several_schedules_is_copied(api):
    data = json.dumps({"a": "ü" * 20_000})

    lines = copied(api, old_job(*({"repeatInterval": f"{n} hours", "data": data} for n in (1, 2, 3, 4))))

    assert lines[0] == "created    odd  (4 schedules)"
    assert {len(each["data"]) for each in shown(api, OTHER)[0]["schedules"]} == {len('{"a":""}') + 20_000}


# Changes of one schedule


def test_one_changed_schedule_keeps_the_rhythm_of_the_others(api):
    made = api.create(HOURLY, NIGHTLY, BRIEF)
    imported(api)
    before = shown(api, OTHER)[0]["schedules"]
    api.stage.clock.advance(300)
    where = f"/jobs/{made['_id']}/schedules"
    changes = {"cron": "* * * * 3 0 0", "description": "later", "startTime": None, "data": {"a": 1}}
    assert api("PUT", f"{where}/{made['schedules'][1]['scheduleId']}", changes).status == 200

    assert imported(api)[1][-1] == "created 0, changed 1, unchanged 0, failed 0"

    after = shown(api, OTHER)[0]["schedules"]
    assert [after[0], after[2]] == [before[0], before[2]]
    assert after == shown(api, "acme")[0]["schedules"]
    with api.native.unchanged():
        assert imported(api)[1][-1] == "created 0, changed 0, unchanged 1, failed 0"


def test_members_that_a_schedule_no_longer_has_are_removed(api):
    made = api.create({**HOURLY, "endTime": "2030-01-01 00:00:00"})
    imported(api)
    where = f"/jobs/{made['_id']}/schedules/{made['schedules'][0]['scheduleId']}"
    assert api("PUT", where, {"data": None, "description": "", "endTime": None}).status == 200

    imported(api)

    (schedule,) = shown(api, OTHER)[0]["schedules"]
    assert (schedule["data"], schedule["description"], schedule["endTime"]) == (None, "", None)


# Rejected jobs


GOOD = {"repeatInterval": "2 hours"}
WORDS = 'a number of seconds, minutes, hours, days, weeks, months or years, such as "2 hours"'
REFUSED = [
    (
        old_job(GOOD, name="with blanks"),
        'name: must consist of letters, digits, - and _, and must not be a number, not "with blanks"',
    ),
    (old_job(GOOD, ansConfig={"foo": True}), "'foo' is not an allowed property for object 'ansConfig'"),
    (old_job(GOOD, httpMethod="PATCH"), 'httpMethod: must be one of GET, POST, PUT, DELETE, not "PATCH"'),
    (
        old_job(GOOD, {**GOOD, "description": "d" * 1_500}),
        "schedules[1] s1: description: must have 0 to 1,000 characters, not 1,500",
    ),
    (old_job({**GOOD, "data": "[1]"}), "schedules[0] s0: data: must be an object, not a list"),
    (
        old_job({**GOOD, "data": json.dumps({"a": "x" * 105_000})}),
        "schedules[0] s0: data: must have at most 102,400 bytes",
    ),
    (
        old_job(GOOD, {"repeatInterval": "two hours"}),
        f'schedules[1] s1: repeatInterval: must be {WORDS}, not "two hours"',
    ),
    (
        old_job({"cron": "* * 40 * * * *"}),
        'schedules[0] s0: cron "* * 40 * * * *": day must be -31 to -1, or 1 to 31, not "40"',
    ),
    (old_job(GOOD, {}), "schedules[1] s1: has none of cron, time, repeatInterval, repeatAt"),
]


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(("job", "why"), REFUSED)
def test_a_dry_run_refuses_the_same_jobs_as_the_run_and_says_where(api, job, why, dry_run):
    with api.native.unchanged():
        lines = copied(api, job, dry_run=dry_run)

    assert lines[0] == f"failed     {job['name']}  {why}"


def test_a_method_in_lower_case_is_the_same_method(api):
    assert copied(api, old_job(GOOD, httpMethod="post"))[0].startswith("created")

    assert shown(api, OTHER)[0]["httpMethod"] == "POST"
    assert copied(api, old_job(GOOD, httpMethod="post"))[0].startswith("unchanged")


def test_a_null_alert_member_counts_as_absent(api):
    job = old_job(GOOD, ansConfig={"onSuccess": None, "onError": True}, calmConfig={"enabled": None})
    copied(api, job)

    with api.native.unchanged():
        assert copied(api, job)[0].startswith("unchanged")
    assert shown(api, OTHER)[0]["ansConfig"] == {"onSuccess": False, "onError": True}


def test_a_job_whose_active_is_the_string_false_is_copied_as_inactive(api):
    copied(api, old_job({**GOOD, "active": "false"}, active="false"))

    (job,) = shown(api, OTHER)
    assert (job["active"], job["schedules"][0]["active"]) == (False, False)


def test_a_dry_run_of_the_switch_lists_the_jobs_to_switch(api):
    with api.native.unchanged():
        lines = copied(api, old_job(GOOD), switch=True, dry_run=True)

    assert lines[0] == "created    odd  (1 schedules)  to be switched"


@pytest.mark.parametrize("other", ["--from", "--credentials", "--token-url"])
def test_a_service_key_excludes_the_options_that_it_replaces(tmp_path, capsys, other):
    assert main(["import", "sap", "--service-key", str(tmp_path / "key.json"), other, "x"]) == 2

    assert capsys.readouterr().err == f"{other} and --service-key exclude each other: leave out {other}\n"
