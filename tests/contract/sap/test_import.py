"""The import of jobs from SAP's service: one tenant is the source, another the target."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from sweephand.cli import main
from sweephand.cli.imports import import_sap
from sweephand.cli.imports.import_sap import Copying
from sweephand.cli.imports.sap_service import SapService
from sweephand.testing.sources import VirtualClock
from tests.contract.calls import event
from tests.contract.sap.api import OTHER, TENANT, Sap

HOURLY = {"repeatInterval": "1 hour", "description": "beat", "data": {"n": [1, "two"]}}
BRIEF = {"repeatInterval": "10 minutes"}
NIGHTLY = {"cron": "* * * * 2 30 0", "startTime": "2027-03-05 10:00:00"}


def service(api: Sap, url: str, caller: str) -> SapService:
    """Makes one side, whose requests a facade in this process answers."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        headers = dict(request.headers) | {"authorization": api.credentials[caller]}
        query = request.url.query.decode()
        built = event(request.method, request.url.path, query, headers, request.content.decode() or None)
        facade = api.facade if request.url.path.startswith("/scheduler") else api.native.facade
        told = facade.handle(built, "import")
        return httpx2.Response(told["statusCode"], headers=told["headers"], text=told["body"])

    return SapService(url, httpx2.Client(base_url=url, transport=httpx2.MockTransport(answer)), api.stage.clock)


def imported(api: Sap, source: str = TENANT, target: str = OTHER, **options: Any) -> tuple[int, list[str]]:
    """Returns the status and the lines. source, target: who asks."""
    out, err = io.StringIO(), io.StringIO()
    sides = service(api, "https://sap.example", source), service(api, "https://here.example", target)
    status = Copying(*sides, **options).run(out, err)
    return status, out.getvalue().splitlines() + err.getvalue().splitlines()


def shown(api: Sap, caller: str) -> list[object]:
    """Returns all jobs without the members that each stack sets."""
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


def test_a_dry_run_reports_what_it_would_do_and_changes_nothing(api):
    api.create(HOURLY)

    with api.native.unchanged():
        status, lines = imported(api, dry_run=True)

    assert status == 0
    assert lines == ["created    report  (1 schedules)", "would be created 1, changed 0, unchanged 0, failed 0"]


def test_a_second_import_applies_changes_including_names(api):
    made = api.create(HOURLY)
    api.create(NIGHTLY, name="other")
    imported(api)
    api("PUT", f"/jobs/{made['_id']}", {"name": "renamed", "description": "new"})

    status, lines = imported(api)

    assert (status, lines[-1]) == (0, "created 0, changed 1, unchanged 1, failed 0")
    assert shown(api, OTHER) == shown(api, TENANT)


def test_a_job_with_a_password_arrives_inactive_and_without_it(api):
    api.create(HOURLY, user="joe", password="canary-secret")

    status, lines = imported(api)

    assert status == 0
    assert lines[0] == "created    report  (1 schedules)  has the user joe: give its password, and switch it on"
    (job,) = shown(api, OTHER)
    assert (job["active"], job["user"]) == (False, None)
    assert imported(api)[1][-1] == "created 0, changed 0, unchanged 1, failed 0"


def test_a_refused_job_does_not_stop_the_others(api):
    api.create(HOURLY, name="a")
    api.create(HOURLY, name="b")
    api("DELETE", f"/jobs/{api.create(name='x', caller=OTHER)['_id']}", caller=OTHER)
    api.native("PATCH", "/v1/collections/sap", {"quota": {"maxJobs": 1}}, caller=OTHER)

    status, lines = imported(api)

    assert status == 1
    assert lines[-1] == "created 1, changed 0, unchanged 0, failed 1"
    assert lines[1].startswith("failed     b")


# Names and tenants


@pytest.mark.parametrize("dry_run", [True, False])
def test_the_import_leaves_a_job_alone_that_has_the_same_name_but_is_no_copy(api, dry_run):
    api.create(HOURLY)
    api.create(NIGHTLY, caller=OTHER, action="https://example.org/made-here")

    with api.native.unchanged():
        status, lines = imported(api, dry_run=dry_run)

    assert (status, lines[0]) == (
        1,
        "failed     report  its name is taken by a job that is not a copy of it: rename one of them",
    )


def test_a_copy_never_takes_the_name_of_another_job(api):
    made = api.create(HOURLY)
    imported(api)
    api.create(NIGHTLY, name="own", caller=OTHER)
    api("PUT", f"/jobs/{made['_id']}", {"name": "own"})

    with api.native.unchanged():
        status, lines = imported(api)

    assert status == 1
    assert "its name is taken" in lines[0]


def both_tenants(api: Sap) -> None:
    """Makes a job of the same name in each tenant."""
    for caller in (TENANT, OTHER):
        api.create(HOURLY, name="nightly", caller=caller, action=f"https://{caller}.example.org/run")


def make_tenants(api: Sap, *names: str) -> None:
    for name in names:
        assert api.native("POST", "/v1/tenants", {"name": name}, caller="provider").status == 201


@pytest.mark.parametrize("dry_run", [True, False])
def test_the_first_of_two_tenants_jobs_with_one_name_gets_the_name(api, dry_run):
    both_tenants(api)
    make_tenants(api, "third")

    status, lines = imported(api, "provider", "provider", to_tenants=["third"], dry_run=dry_run)

    assert status == 1
    assert lines[-1].endswith("created 1, changed 0, unchanged 0, failed 1")
    assert "its name is taken" in lines[1]


def test_a_provider_credential_imports_each_tenants_jobs_into_the_named_tenant(api):
    both_tenants(api)
    make_tenants(api, "third", "fourth")
    to_tenants = [f"{TENANT}=third", f"{OTHER}=fourth"]

    status, lines = imported(api, "provider", "provider", to_tenants=to_tenants)

    assert (status, lines[-1]) == (0, "created 2, changed 0, unchanged 0, failed 0")
    for name, was in (("third", TENANT), ("fourth", OTHER)):
        (job,) = api.get("/jobs", caller="provider", query={"tenantId": name}).json["results"]
        assert job["action"] == f"https://{was}.example.org/run"
    again = imported(api, "provider", "provider", to_tenants=to_tenants, tenant=TENANT)
    assert again[1][-1] == "created 0, changed 0, unchanged 1, failed 0"


def test_a_provider_credential_imports_jobs_into_the_tenant_of_the_same_name(api):
    """Here source and target are one stack, so the names are taken: by those jobs of the same tenants."""
    both_tenants(api)

    with api.native.unchanged():
        status, lines = imported(api, "provider", "provider")

    assert status == 1
    assert [line.count("its name is taken") for line in lines] == [1, 1, 0]


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_missing_tenant_is_reported(api, dry_run):
    api.create(HOURLY)

    with api.native.unchanged():
        status, lines = imported(api, TENANT, "provider", to_tenants=["nowhere"], dry_run=dry_run)

    assert status == 1
    assert lines[0].startswith("failed     report  the stack has no tenant nowhere")


def test_a_tenants_credential_imports_only_into_its_own_tenant(api):
    api.create(HOURLY)

    status, lines = imported(api, to_tenants=["third"])

    assert status == 1
    assert lines[-1] == "ended early: --to-tenant needs --to-credentials of provider level"


# Schedules that are over, and words


def test_a_time_in_words_is_copied_as_its_planned_instant(api):
    made = api.create({"time": "in 2 hours"})
    planned = made["schedules"][0]["nextRunAt"]
    api.stage.run(3_000)

    imported(api)

    (job,) = shown(api, OTHER)
    assert (job["schedules"][0]["nextRunAt"], job["schedules"][0]["time"]) == (planned, planned)
    assert imported(api)[1][-1] == "created 0, changed 0, unchanged 1, failed 0"


@pytest.mark.parametrize("dry_run", [True, False])
def test_ended_schedules_are_left_out_and_reported_and_the_job_is_copied(api, dry_run):
    end = api.now(1_800)
    api.create({**BRIEF, "endTime": end}, NIGHTLY, {"time": api.now(600)}, name="some")
    api.create(BRIEF, name="ended", endTime=end)
    api.create({"time": "in 5 hours", "active": False}, name="words")
    api.stage.run(3_600)

    status, lines = imported(api, dry_run=dry_run)

    assert (status, lines[:3]) == (
        0,
        [
            "created    some  (1 schedules)  left out: 2 ended",
            "created    ended  (0 schedules)  left out: 1 ended",
            "created    words  (0 schedules)  left out: 1 with a time in words and no planned run",
        ],
    )
    if not dry_run:
        assert [len(job["schedules"]) for job in shown(api, OTHER)] == [0, 1, 0]
        assert imported(api)[1][-1] == "created 0, changed 0, unchanged 3, failed 0"


def test_a_change_of_the_job_keeps_the_rhythm_of_its_schedules(api):
    made = api.create(HOURLY)
    imported(api)
    before = shown(api, OTHER)[0]["schedules"][0]["nextRunAt"]
    api.stage.clock.advance(600)
    api("PUT", f"/jobs/{made['_id']}", {"description": "new"})

    assert imported(api)[1][-1] == "created 0, changed 1, unchanged 0, failed 0"

    (job,) = shown(api, OTHER)
    assert (job["description"], job["schedules"][0]["nextRunAt"]) == ("new", before)


def test_changed_schedules_are_updated(api):
    made = api.create(HOURLY, NIGHTLY)
    imported(api)
    where = f"/jobs/{made['_id']}/schedules"
    assert api("PUT", f"{where}/{made['schedules'][0]['scheduleId']}", {"repeatInterval": "2 hours"}).status == 200
    assert api("DELETE", f"{where}/{made['schedules'][1]['scheduleId']}").status == 200
    assert api("POST", where, {"repeatAt": "4.40pm", "active": True}).status == 201

    assert imported(api)[1][-1] == "created 0, changed 1, unchanged 0, failed 0"

    assert shown(api, OTHER) == shown(api, TENANT)


def test_a_lost_answer_does_not_turn_a_created_job_into_a_failure(api, monkeypatch):
    api.create(HOURLY)
    lost: list[int] = []
    handle = api.facade.handle

    def losing(request: Any, name: str) -> Any:
        answer = handle(request, name)
        if answer["statusCode"] == 201 and not lost:
            lost.append(201)
            return {**answer, "statusCode": 502}
        return answer

    monkeypatch.setattr(api.facade, "handle", losing)

    assert imported(api)[1][-1] == "created 1, changed 0, unchanged 0, failed 0"

    assert (lost, len(shown(api, OTHER))) == ([201], 1)


# The change-over


def active_in(api: Sap) -> dict[str, list[bool]]:
    return {caller: [job["active"] for job in shown(api, caller)] for caller in (TENANT, OTHER)}


def test_copies_stay_inactive_until_the_switch_deactivates_the_old_jobs(api):
    api.create(HOURLY, name="off", active=False)
    api.create(HOURLY, name="on")

    imported(api, inactive=True)
    assert active_in(api) == {TENANT: [False, True], OTHER: [False, False]}
    assert imported(api, inactive=True)[1][-1] == "created 0, changed 0, unchanged 2, failed 0"

    with api.native.unchanged():
        imported(api, switch=True, dry_run=True)
    assert imported(api, switch=True)[1][1:] == [
        "changed    on  (1 schedules)  switched",
        "created 0, changed 1, unchanged 1, failed 0",
    ]
    assert active_in(api) == {TENANT: [False, False], OTHER: [False, True]}

    with api.native.unchanged():
        assert imported(api, switch=True)[1][-1] == "created 0, changed 0, unchanged 2, failed 0"


def test_the_next_switch_completes_an_interrupted_one(api):
    """The copy is on already, the old job too."""
    api.create(HOURLY)
    imported(api)

    imported(api, switch=True)

    assert active_in(api) == {TENANT: [False], OTHER: [True]}


@pytest.mark.parametrize("option", ["switch", "inactive"])
def test_a_second_import_leaves_switched_jobs_alone(api, option):
    """Once off, the old service has no run planned any more; and what leads is the copy."""
    api.create({"time": "in 2 hours"}, HOURLY)
    imported(api, inactive=True)
    imported(api, switch=True)
    (there,) = api.get("/jobs", caller=OTHER).json["results"]
    assert api("PUT", f"/jobs/{there['_id']}", {"description": "edited here"}, caller=OTHER).status == 200
    before = shown(api, OTHER)
    api.stage.clock.advance(600)

    with api.native.unchanged():
        status, lines = imported(api, **{option: True})

    assert (status, lines) == (
        0,
        ["unchanged  report  already switched", "created 0, changed 0, unchanged 1, failed 0"],
    )
    assert shown(api, OTHER) == before
    once = api.get(f"/jobs/{there['_id']}/schedules", caller=OTHER).json["results"][0]["scheduleId"]
    api.stage.run(6_660)
    runs = api.get(f"/jobs/{there['_id']}/schedules/{once}/runs", caller=OTHER).json["results"]
    assert [run["runStatus"] for run in runs] == ["COMPLETED"]


def test_a_one_time_schedule_is_kept_if_the_old_job_was_deactivated_before_the_switch(api):
    """Only the copy still knows the instant that its words meant."""
    words = {"time": "in 2 hours", "description": "once", "data": {"n": 1}}
    made = api.create(words, {**words, "data": {"n": 2}}, HOURLY)
    imported(api, inactive=True)
    before = shown(api, OTHER)
    assert [each["time"] is None for each in before[0]["schedules"]] == [False, False, True]
    api("PUT", f"/jobs/{made['_id']}", {"active": False})

    with api.native.unchanged():
        assert imported(api, switch=True)[1][-1] == "created 0, changed 0, unchanged 1, failed 0"

    assert shown(api, OTHER) == before


def test_a_job_without_its_password_is_not_switched(api):
    api.create(HOURLY, user="joe", password="canary-secret")
    imported(api)

    status, lines = imported(api, switch=True)

    assert (status, lines[0]) == (
        1,
        "failed     report  not switched: has the user joe: give its password, and switch it on, or the job off",
    )
    assert active_in(api) == {TENANT: [True], OTHER: [False]}
    (there,) = api.get("/jobs", caller=OTHER).json["results"]
    api("PUT", f"/jobs/{there['_id']}", {"user": "joe", "password": "canary-secret"}, caller=OTHER)
    assert imported(api, switch=True)[0] == 0
    assert active_in(api) == {TENANT: [False], OTHER: [True]}
    assert shown(api, OTHER)[0]["user"] == "joe"


# Options


@pytest.mark.parametrize("missing", ["--credentials", "--to", "--to-credentials"])
def test_a_missing_option_is_named(monkeypatch, capsys, missing):
    for name in ("SWEEPHAND_IMPORT_CREDENTIALS", "SWEEPHAND_URL", "SWEEPHAND_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    given = {"--credentials": "a:b", "--to": "http://127.0.0.1:1", "--to-credentials": "a:b"}
    del given[missing]

    status = main(["import", "sap", "--from", "http://127.0.0.1:1", *(text for pair in given.items() for text in pair)])

    assert (status, capsys.readouterr().err) == (2, f"{missing} is missing\n")


def test_a_source_that_does_not_answer_is_reported_in_one_line(capsys, monkeypatch):
    clock = VirtualClock()
    monkeypatch.setattr(import_sap, "SystemClock", lambda: clock)
    both = ["--credentials", "a:b", "--to", "http://127.0.0.1:1", "--to-credentials", "a:b"]

    assert main(["import", "sap", "--from", "http://127.0.0.1:9", *both]) == 1

    told = capsys.readouterr()
    assert told.out == "created 0, changed 0, unchanged 0, failed 0\n"
    assert told.err.count("\n") == 1
    assert clock.slept_s == 1 + 2 + 4


def test_the_mark_distinguishes_sources():
    assert import_sap.marked("https://a", 1) != import_sap.marked("https://b", 1)


# Times in words

SOON, TOMORROW = {"time": "in 2 hours"}, {"time": "tomorrow at 4pm", "active": False}


def words(api, caller=OTHER):
    """Returns the times of the copies of one-time schedules."""
    return sorted(each["time"] for job in shown(api, caller) for each in job["schedules"] if each["time"])


@pytest.mark.parametrize("order", [(SOON, TOMORROW), (TOMORROW, SOON)])
@pytest.mark.parametrize("option", [{}, {"inactive": True}])
def test_an_inactive_time_in_words_never_gets_the_instant_of_another_schedule(api, order, option):
    api.create(*order)

    first, second, third = (imported(api, **option)[1] for _ in range(3))

    left_out = "report  (1 schedules)  left out: 1 with a time in words and no planned run"
    assert first[0] == f"created    {left_out}"
    assert second[0] == third[0] == f"unchanged  {left_out}"
    assert words(api) == ["2027-03-01 14:00:01"]


@pytest.mark.parametrize("order", [(SOON, TOMORROW), (TOMORROW, SOON)])
def test_times_in_words_are_left_out_once_the_other_schedule_is_inactive_too(api, order):
    made = api.create(*order)
    imported(api, inactive=True)
    soon = next(each for each in made["schedules"] if each["time"] == SOON["time"])
    assert api("PUT", f"/jobs/{made['_id']}/schedules/{soon['scheduleId']}", {"active": False}).status == 200

    lines = imported(api, inactive=True)[1]

    assert "left out: 2 with a time in words and no planned run" in lines[0]
    assert words(api) == []


def test_two_copied_times_in_words_keep_their_own_instants(api):
    made = api.create(SOON, {"time": "in 3 hours"})
    imported(api, inactive=True)
    before = words(api)
    for each in made["schedules"]:
        assert api("PUT", f"/jobs/{made['_id']}/schedules/{each['scheduleId']}", {"active": False}).status == 200

    for _ in range(2):
        assert "left out" not in imported(api, inactive=True)[1][0]

    assert words(api) == before == ["2027-03-01 14:00:01", "2027-03-01 15:00:01"]


# Deleted jobs


@pytest.mark.parametrize("option", [{}, {"inactive": True}, {"switch": True}, {"dry_run": True}])
@pytest.mark.parametrize("state", ["on", "off"])
def test_a_copy_whose_original_was_deleted_is_reported_each_time_and_kept(api, option, state):
    gone = api.create(HOURLY, name="gone")
    api.create(HOURLY, name="stays")
    api.create(HOURLY, name="own", caller=OTHER)
    imported(api, inactive=state == "off")
    api("DELETE", f"/jobs/{gone['_id']}")

    lines = imported(api, **option)[1]

    why = f"its job no longer exists in the old service; the copy is {state}: delete it, or keep it"
    assert f"gone       gone  {why}" in lines
    assert [line.split()[1] for line in lines if line.startswith("gone ")] == ["gone"]
    assert lines[-1].endswith(", gone 1")
    assert {"gone", "own"} <= {job["name"] for job in shown(api, OTHER)}


def test_a_job_whose_copy_failed_is_not_reported_as_gone(api):
    made = api.create(HOURLY)
    imported(api)
    api.create(HOURLY, name="taken", caller=OTHER)
    api("PUT", f"/jobs/{made['_id']}", {"name": "taken"})

    lines = imported(api)[1]

    assert lines[0].startswith("failed")
    assert not [line for line in lines if line.startswith("gone")]


# Jobs without an Authorization header


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    ("identity", "of_tls"),
    [(True, "switched"), (False, "the stack has no identity (parameter OutboundIdentity)")],
)
def test_a_switch_names_the_targets_that_get_no_header(api, dry_run, identity, of_tls):
    world = api.native.facade.world
    if not identity:
        api.native.facade.world = replace(world, outbound=replace(world.outbound, identity=None))
    api.facade.guard = replace(api.facade.guard, plain_http=True)
    api.create(HOURLY, name="plain", action="http://example.org/run")
    api.create(HOURLY, name="tls")

    lines = imported(api, switch=True, dry_run=dry_run)[1]

    by_name = {line.split()[1]: line for line in lines[:2]}
    assert by_name["plain"].endswith("the stack sends its token over https only")
    assert by_name["tls"].endswith(of_tls)
    assert not [line for line in imported(api, switch=False)[1] if "Authorization" in line]
