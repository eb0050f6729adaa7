"""The SDK through the whole service."""

from __future__ import annotations

import asyncio

import pytest

from sweephand.sdk import InvalidArgument, cron, every, http
from sweephand.sdk.api_errors import (
    CountMismatch,
    InvalidField,
    KeyReused,
    NameTaken,
    NotFound,
    PlanStale,
    RevisionMismatch,
    ScopeMissing,
    TooManyDeletes,
    Unauthenticated,
)
from tests.contract.native.api import Api
from tests.contract.sdk.stack import connected, connected_async
from tests.support.endpoint import WRONG

URL = "https://example.org/run"


def test_a_job_can_be_created_changed_run_and_deleted(api: Api):
    sh, _ = connected(api)

    job = sh.jobs.create(
        "nightly", http.post(URL, payload={"n": 1}), cron("30 2 * * 1-5", zone="Europe/Berlin"), tags=["a"]
    )
    changed = sh.jobs.patch(job, description="for finance", if_match=job)

    assert job.schedules[0].cron == "30 2 * * 1-5"
    assert job.next_run_at.isoformat() == "2027-03-02T01:30:00+00:00"
    assert (changed.description, changed.revision) == ("for finance", job.revision + 1)
    assert sh.jobs.get(job).id == job.id
    assert [each.id for each in sh.jobs.list(tag="a")] == [job.id]
    with pytest.raises(RevisionMismatch, match="412 REVISION_MISMATCH"):
        sh.jobs.put(job, action=http.get(URL), if_match=job)
    sh.jobs.pause(job, note="holiday")
    assert sh.jobs.get(job).state == "PAUSED"
    assert sh.jobs.resume(job).pause is None
    assert [change.operation for change in sh.jobs.changes(job)][-1] == "create"
    assert sh.jobs.delete(job) is None
    with pytest.raises(NotFound):
        sh.jobs.get(job)


def test_a_job_can_be_created_and_replaced_by_its_name(api: Api):
    sh, _ = connected(api)

    made = sh.jobs.upsert("nightly", http.post(URL), cron("30 2 * * *"), tags=["a"])
    again = sh.jobs.upsert("nightly", http.post(URL), cron("30 2 * * *"), tags=["a"])
    changed = sh.jobs.upsert("nightly", http.post(URL), cron("30 3 * * *"), if_match=again)

    assert (made.id, made.revision, made.schedules[0].id) == (again.id, again.revision, again.schedules[0].id)
    assert (changed.id, changed.revision, changed.tags) == (made.id, 2, ())
    assert changed.schedules[0].cron == "30 3 * * *"


def test_the_reason_of_a_change_is_an_argument(api: Api):
    sh, _ = connected(api)

    job = sh.jobs.create("nightly", http.post(URL), reason="asked for by finance")
    sh.jobs.pause(job, reason="the target is moved")
    sh.jobs.resume_matching(name="nightly", expected_count=1, reason="it has moved")
    api.stage.run(60)  # a request with a key becomes an operation
    with pytest.raises(InvalidArgument, match="reason must be printable ASCII"):
        sh.jobs.deactivate(job, reason="f\u00fcr immer")

    reasons = [change.reason for change in sh.jobs.changes(job)]
    assert reasons == ["it has moved", "the target is moved", "asked for by finance"]


def test_an_answer_can_be_sent_back(api: Api):
    sh, _ = connected(api)
    job = sh.jobs.create("nightly", http.post(URL), every("PT5M"))

    same = sh.jobs.put(job, name=job.name, action=job.action, schedules=job.schedules)

    assert same.revision == job.revision


def test_runs_of_all_pages_are_listed_with_their_attempts(api: Api):
    sh, gateway = connected(api)
    job = sh.jobs.create("beat", http.post(URL), every("PT10S"))
    api.stage.run(125)

    runs = list(sh.runs.list(job_id=job, page_size=5))

    assert len(runs) == 12
    assert {run.state for run in runs} == {"SUCCESS"}
    assert [run.planned_at for run in runs] == sorted((run.planned_at for run in runs), reverse=True)
    assert sum(path == "GET /v1/runs" for path in gateway.sent) >= 3
    assert sh.runs.get(runs[0]).attempts[0].http_status == 200
    assert len(list(sh.runs.list(job_id=job, max_items=7, page_size=3))) == 7


def test_a_lost_answer_creates_nothing_twice(api: Api):
    sh, gateway = connected(api)
    gateway.lost = 2

    job = sh.jobs.create(None, http.post(URL))
    gateway.lost = 1
    started = sh.jobs.run(job)

    assert [each.id for each in sh.jobs.list()] == [job.id]
    api.stage.run(5)
    assert [run.id for run in sh.runs.list(job_id=job)] == [started.run_id]


def test_a_key_that_was_used_for_another_request_is_refused(api: Api):
    sh, _ = connected(api)
    sh.jobs.create("one", http.post(URL), idempotency_key="mine")

    with pytest.raises(KeyReused):
        sh.jobs.create("two", http.post(URL), idempotency_key="mine")


def test_refusals_raise_their_own_classes_and_say_what_is_wrong(api: Api):
    sh, _ = connected(api)
    sh.jobs.create("taken", http.post(URL))

    with pytest.raises(NameTaken) as taken:
        sh.jobs.create("taken", http.post(URL))
    with pytest.raises(InvalidField) as wrong:
        sh.jobs.create("bad", http.post("ftp://x"), cron("61 * * * *"))

    assert (taken.value.root_code, wrong.value.root_code) == (3, 300)
    assert {each.field for each in wrong.value.errors} == {"action.url", "schedules[0].cron"}
    assert wrong.value.request_id in str(wrong.value)
    with pytest.raises(ScopeMissing) as forbidden:
        sh.tenants.create(tenant="mine")
    assert forbidden.value.root_code == 1000
    stranger, _ = connected(api)
    stranger._caller._access = type(sh._caller._access)("https://sweephand.example", "who", "x" * 32)
    with pytest.raises(Unauthenticated):
        stranger.jobs.get("j")


def test_deleting_many_jobs_is_an_operation_that_can_be_awaited(api: Api):
    sh, _ = connected(api)
    for _ in range(101):
        sh.jobs.create(None, http.post(URL), tags=["old"])

    count = sh.jobs.delete_matching(tag="old", dry_run=True).count
    with pytest.raises(CountMismatch):
        sh.jobs.delete_matching(tag="old", expected_count=count - 1)
    told: list[int] = []
    done = sh.operations.wait(
        sh.jobs.delete_matching(tag="old", expected_count=count), lambda now: told.append(now.progress.done)
    )

    assert count == 101
    assert done.state == "DONE"
    assert told[-1] == 101
    assert sh.jobs.list().first() is None


def test_failed_runs_can_be_run_again_and_awaited(api: Api):
    sh, _ = connected(api)
    api.stage.endpoint.script = [WRONG]
    job = sh.jobs.create("broken", http.post(URL))
    sh.jobs.run(job)
    api.stage.run(30)
    group = sh.errors.list(job_id=job).first()
    assert group is not None

    done = sh.operations.wait(sh.errors.redrive(group=group.id, rate_per_minute=60))

    assert done.progress.done == 1
    api.stage.run(60)
    assert {run.state for run in sh.runs.list(job_id=job, kind="manual")} >= {"SUCCESS"}


def test_the_client_covers_the_other_resources(api: Api):
    sh, _ = connected(api)

    sh.collections.create(name="billing")
    sh.calendars.create(name="holidays", dates=["2027-12-25"])
    sh.flow_keys.create(name="crm", parallelism=2)
    job = sh.jobs.create("in", http.post(URL), collection="billing", policies={"flowKey": "crm"})
    schedule = sh.schedules.create(job, cron="0 9 * * *", timezone="Europe/Berlin", calendars=[{"name": "holidays"}])

    assert sh.schedules.explain(job, schedule, at="2027-12-25T08:00:00Z").occurs is False
    assert sh.schedules.preview(cron="0 9 * * *", limit=2).items[1].planned_at.hour == 9
    assert [each.name for each in sh.calendars.list()] == ["holidays"]
    assert sh.flow_keys.get("crm").parallelism == 2
    assert sh.collections.disable("billing").state == "DISABLED"
    issued = sh.credentials.create(name="ci", scopes=["jobs:read"])
    assert len(issued.secret) > 20
    assert sh.credentials.delete(issued) is None
    assert sh.service.health().status == "ok"


def test_a_provider_acts_for_a_tenant(api: Api):
    provider, _ = connected(api, "provider", tenant="acme")
    mine, _ = connected(api)

    job = provider.jobs.create("theirs", http.post(URL))

    assert mine.jobs.get(job).name == "theirs"
    assert provider.tenants.get("acme").tenant == "acme"


def test_the_asyncio_client_covers_the_whole_service(api: Api):
    async def main():
        async with connected_async(api) as sh:
            job = await sh.jobs.create("beat", http.post(URL), every("PT10S"))
            api.stage.run(65)
            return [run.state async for run in sh.runs.list(job_id=job, page_size=2)]

    assert asyncio.run(main()) == ["SUCCESS"] * 6


def test_a_refused_plan_comes_with_the_current_plan(api):
    sh, _ = connected(api)
    jobs = [{"key": f"k-{n}", "action": {"type": "event"}} for n in range(12)]
    token = sh.job_sets.put("app", jobs=jobs, plan=True).token
    sh.job_sets.put("app", jobs=jobs[:11])

    with pytest.raises(PlanStale) as stale:
        sh.job_sets.put("app", jobs=jobs, token=token)
    made = sh.job_sets.put("app", jobs=jobs, token=stale.value.plan.token)
    with pytest.raises(TooManyDeletes) as many:
        sh.job_sets.put("app", jobs=jobs[:1])
    with pytest.raises(TooManyDeletes) as called:
        sh.call("PUT", "/v1/job-sets/app", body={"jobs": jobs[:1]})

    assert [each.key for each in stale.value.plan.created] == ["k-11"]
    assert [each.key for each in made.created] == ["k-11"]
    assert len(many.value.plan.deleted) == 11
    assert called.value.plan == many.value.plan
    assert called.value.problem["plan"] == many.value.plan.to_json()


def test_an_answer_can_be_passed_in_place_of_an_id(api):
    sh, _ = connected(api)
    job = sh.jobs.create("nightly", http.post("https://example.org/run"), every("PT5M"))
    begun = sh.jobs.run(job)
    api.stage.run(400)

    run = sh.runs.get(begun)
    schedule = sh.schedules.list(run).first()

    assert run.id == begun.run_id
    assert sh.jobs.get(run) == sh.jobs.get(schedule) == sh.jobs.get(job)
    assert sh.schedules.get(job, schedule) == schedule
    assert {each.job_id for each in sh.runs.list(job_id=run)} == {job.id}


def test_an_answer_without_an_id_is_refused_in_one_sentence(api):
    sh, gateway = connected(api)
    made = sh.job_sets.put("app", jobs=[{"key": "a", "action": {"type": "event"}}], plan=True)
    sent = len(gateway.sent)

    for nothing in (made, made.created[0], None, 7):
        with pytest.raises(InvalidArgument, match="id or name must be a string that is not empty, or an answer with"):
            sh.jobs.get(nothing)
    with pytest.raises(InvalidArgument, match="if_match must have a revision"):
        sh.jobs.delete("j", if_match=made)

    assert len(gateway.sent) == sent
