"""The worker through the whole service. Names of checks: contract of NServiceBus's scheduler, N01 to N50."""

from __future__ import annotations

import json
import re
import runpy
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sweephand.domain.event import EventType
from sweephand.domain.message import Subject
from sweephand.sdk import ApiError, ConfigError, TransportError
from sweephand.sdk.worker import BadPayload, Dedupe, Delay, Discard, MemoryMarks, MoveTo, Retry, Worker, attempts
from sweephand.testing.service import URLS
from tests.contract.native.api import Api
from tests.contract.sdk.hands import Hands, started
from tests.support.limits import as_dynamodb
from tests.support.taps import Crash

ROOT = Path(__file__).resolve().parents[3]
ERRORS = "https://queue/fast"


def runs(api: Api, task: str = "report") -> list[dict[str, object]]:
    [job] = [job for job in api.get("/v1/jobs").json["items"] if job["key"] == task]
    found, cursor = [], {}
    while cursor is not None:
        page = api.get("/v1/runs", query={"jobId": job["id"], "limit": 200, **cursor}).json
        found += page["items"]
        cursor = {"cursor": page["nextCursor"]} if page.get("nextCursor") else None
    return sorted(found, key=lambda run: run["plannedAt"])


def jobs(api: Api) -> dict[str, dict[str, object]]:
    return {job["key"]: job for job in api.get("/v1/jobs").json["items"]}


def test_one_line_makes_a_function_run_every_five_minutes(api):  # N01
    seen = []

    def declare(worker: Worker) -> None:
        @worker.every("5m", name="report")
        def report() -> None:
            seen.append(api.stage.clock.now())

    hands = started(api, declare)
    hands.live(1_000)

    assert [int((after - before).total_seconds()) for before, after in pairwise(seen)] == [300] * 2
    assert [run["state"] for run in runs(api)] == ["SUCCESS"] * 3


@pytest.mark.parametrize("interval", ["5m", "5 minutes", "PT5M", 300, timedelta(minutes=5)])
def test_an_interval_may_be_written_in_any_form(api, interval):
    started(api, lambda worker: worker.every(interval, name="report")(lambda: None))

    [schedule] = api.get(f"/v1/jobs/{jobs(api)['report']['id']}/schedules").json["items"]
    assert schedule["every"] in {"PT300S", "PT5M", "5m", "5 minutes"}


def declared() -> None: ...


def test_the_name_is_the_durable_key_and_defaults_to_the_functions_name(api):  # N02
    def declare(worker: Worker) -> None:
        worker.every("1h")(declare)

    started(api, declare)

    assert list(jobs(api)) == [
        f"{__name__}.test_the_name_is_the_durable_key_and_defaults_to_the_functions_name.<locals>.declare"
    ]


def test_a_duplicate_name_is_refused_at_once_and_both_places_are_named():
    worker = Worker("billing")
    worker.every("1h", name="report")(lambda: None)

    with pytest.raises(ConfigError, match=r"two tasks have the name \"report\": .*test_worker\.py:\d+.* and .*:\d+"):
        worker.every("1h", name="report")(lambda: None)


def test_a_restart_keeps_the_ids_and_the_next_runs(api):  # N03
    def declare(worker: Worker) -> None:
        worker.every("1h", name="report")(lambda: None)

    started(api, declare)
    before = jobs(api)
    api.stage.run(1_234)
    with api.unchanged():
        started(api, declare)

    assert {name: (job["id"], job["nextRunAt"]) for name, job in jobs(api).items()} == {
        name: (job["id"], job["nextRunAt"]) for name, job in before.items()
    }


def test_a_job_is_found_by_its_task_name_and_applications_share_none(api):  # N02
    for name in ("billing", "mail"):
        started(api, lambda worker: worker.every("1h", name="report")(lambda: None), name)

    assert sorted(job["name"] for job in api.get("/v1/jobs").json["items"]) == ["billing/report", "mail/report"]
    [found] = api.get("/v1/jobs", query={"name": "mail/report"}).json["items"]
    assert found["jobSet"] == "worker.mail"


def test_a_job_is_named_after_the_task_alone_if_the_name_would_be_too_long(api):
    started(api, lambda worker: worker.every("1h", name="x" * 128)(lambda: None))

    [job] = api.get("/v1/jobs").json["items"]
    assert (job["key"], job["name"]) == ("x" * 128, "x" * 128)


def test_a_job_with_another_name_gets_its_own_and_keeps_its_next_run(api):
    hands = started(api, lambda worker: worker.every("1h", name="report")(lambda: None))
    [task] = hands.worker._tasks.all()
    nameless = {name: member for name, member in task.body.items() if name != "name"}
    hands.worker.client.job_sets.put("worker.billing", jobs=[nameless])
    before = jobs(api)["report"]
    api.stage.run(1_234)

    hands.worker.apply()

    after = jobs(api)["report"]
    assert (before["name"], after["name"]) == ("worker.billing/report", "billing/report")
    assert (after["id"], after["nextRunAt"]) == (before["id"], before["nextRunAt"])


def test_runs_due_while_no_worker_is_up_are_not_lost(api):  # N03, N09
    seen = []

    def declare(worker: Worker) -> None:
        worker.every("1h", name="report")(lambda run: seen.append(run.planned_at))

    started(api, declare)
    api.stage.run(3_700)
    hands = started(api, declare)
    hands.work()

    assert len(seen) == 1


def test_a_task_can_be_cancelled_changed_and_removed(api):  # N04, N05
    seen = []
    hands = started(api, lambda worker: worker.every("1h", name="report")(lambda: seen.append(1)))

    hands.worker.cancel("report")
    hands.live(4_000, 60)
    assert seen == []
    hands.worker.resume("report")
    hands.live(3_700, 60)
    assert seen == [1]
    started(api, lambda worker: worker.every("10m", name="report")(lambda: seen.append(2)))
    assert list(jobs(api)) == ["report"]
    started(api, lambda worker: worker.every("10m", name="other")(lambda: None))
    assert list(jobs(api)) == ["other"]
    with pytest.raises(KeyError, match="no job for the task"):
        hands.worker.cancel("report")


def test_many_tasks_at_once_are_removed_only_if_their_number_is_given(api):
    many = [f"t{n}" for n in range(30)]
    started(api, _with(*many))

    with pytest.raises(ApiError, match="allow_deletes=25"):
        started(api, _with(*many[:5]))
    assert len(jobs(api)) == 30
    started(api, _with(*many[:5]), allow_deletes=25)

    assert sorted(jobs(api)) == sorted(many[:5])


def test_a_task_may_run_at_a_time_by_cron_or_by_a_rule(api):  # N06
    def declare(worker: Worker) -> None:
        worker.at("2027-03-01T18:00:00", name="at", zone="Europe/Berlin")(lambda: None)
        worker.cron("0 9 * * 1-5", name="cron", zone="America/New_York", count=3)(lambda: None)
        worker.rrule("FREQ=WEEKLY;BYDAY=MO", name="rrule", tags=["weekly"])(lambda: None)
        worker.task(name="by hand")(lambda: None)

    started(api, declare)

    assert sorted(jobs(api)) == ["at", "by hand", "cron", "rrule"]
    assert jobs(api)["rrule"]["tags"] == ["weekly"]


def test_a_task_whose_time_has_passed_is_logged_and_stops_no_other_task(api, caplog):
    seen = []

    def declare(worker: Worker) -> None:
        worker.at("2020-01-01T00:00:00Z", name="passed")(lambda: seen.append("passed"))
        worker.every("1h", name="ended", end_time="2020-01-01T00:00:00Z")(lambda: seen.append("ended"))
        worker.at("2020-01-01T00:00:00", name="late", zone="Europe/Berlin", policies={"onPastStart": "run_now"})(
            lambda: seen.append("late")
        )
        worker.every("1h", name="report")(lambda: seen.append("report"))

    hands = started(api, declare)
    with api.unchanged():
        started(api, declare)
    hands.live(3_700, 10)

    assert sorted(seen) == ["late", "report"]
    said = [one.getMessage() for one in caplog.records if "no occurrence in the future" in one.getMessage()]
    assert [re.findall('"(.*)"', text) for text in said] == [["passed"], ["ended"]]


def test_a_task_that_could_never_run_is_refused(api):
    with pytest.raises(ApiError, match="NEVER_FIRES"):
        started(api, lambda worker: worker.cron("0 0 30 2 *", name="report")(lambda: None))


def test_a_task_does_not_overlap_itself_by_default(api):  # N08
    def declare(worker: Worker) -> None:
        @worker.every("1m", name="report")
        def report() -> None:
            if not busy:
                busy.append(1)
                for _ in range(7):
                    api.stage.run(20)
                    hands.attempts.beat()
                other.work()

    busy: list[int] = []
    other = started(api, declare)
    hands = started(api, declare)
    while not busy:
        api.stage.run(10)
        hands.work()
    api.stage.run(10)

    states = [(run["state"], run["reason"]) for run in runs(api)]
    assert states[0][0] == "SUCCESS"
    assert ("SKIPPED", "OVERLAP") in states


def test_an_instance_that_does_not_know_a_task_returns_it(api):  # N10
    seen = []
    new = started(api, lambda worker: worker.every("1h", name="report")(lambda: seen.append(1)))
    old = Hands(
        api, Worker("billing"), Worker("billing", client=new.worker.client).attempts(new.queue), new.queue, new.queues
    )
    api.stage.run(3_601)

    assert old.work() == 1
    api.stage.run(6)
    new.work()

    assert seen == [1]
    assert [run["state"] for run in runs(api)] == ["SUCCESS"]


def test_each_failed_attempt_publishes_an_event_but_an_unknown_task_does_not(api):  # N46
    api("PATCH", "/v1/collections/default", {"events": "all"})

    def declare(worker: Worker) -> None:
        @worker.every("1h", name="report", retry={"type": "fixed", "maxRetries": 2, "delaySeconds": 10})
        def report(run) -> None:
            if run.attempt < 3:
                raise LookupError("x")

    new = started(api, declare)
    old = Worker("billing", client=new.worker.client).attempts(new.queue)
    api.stage.run(3_601)
    Hands(api, Worker("billing"), old, new.queue, new.queues).work()
    new.live(60, 2)

    told = api.stage.bus.of(EventType.RUN_RETRYING)
    assert [(each["attempt"], each["reason"]) for each in told] == [(1, "TARGET_ERROR"), (2, "TARGET_ERROR")]
    assert [run["state"] for run in runs(api)] == ["SUCCESS"]


def test_two_versions_share_an_application_and_each_gets_the_runs_pinned_to_it(api):  # N11
    seen = []

    def declare(worker: Worker) -> None:
        worker.every("1h", name=f"of {worker.version}", pinned=True)(lambda: seen.append(worker.version))
        worker.every("1h", name="of all")(lambda: seen.append("all"))

    started(api, declare, version="1")
    second = started(api, declare, version="2")
    second.live(3_700, 10)

    assert sorted(seen) == ["2", "all"]
    with pytest.raises(ConfigError, match="needs Worker"):
        Worker("billing").task(name="x", pinned=True)


def test_a_run_goes_to_the_version_that_knows_its_task(api):
    seen = []

    def declare(worker: Worker) -> None:
        worker.every("1m", name="new")(lambda: seen.append(worker.version))

    second = started(api, declare, version="2")
    first = started(api, _with("old"), version="1")
    for _ in range(60):  # the former version takes all that both may take
        first.live(6)
        second.live(1)

    new = [run for run in runs(api, "new") if run["state"] == "SUCCESS"]
    assert len(new) >= 5
    assert seen == ["2"] * len(new)
    assert max(run["latenessMs"] for run in new) < 8_000


def _with(*names: str):
    def declare(worker: Worker) -> None:
        for name in names:
            worker.every("1h", name=name)(lambda: None)

    return declare


@pytest.mark.parametrize("order", ["1212", "1122", "2112", "2121"])
def test_a_version_never_deletes_the_tasks_of_another(api, order):  # N11
    tasks = {"1": _with("a", "b"), "2": _with("a", "c")}

    for version in order:
        started(api, tasks[version], version=version)

    assert sorted(jobs(api)) == ["a", "b", "c"]


def test_a_remaining_version_removes_tasks_when_it_is_told_to(api):
    started(api, _with("a", "b"), version="1")
    second = started(api, _with("a", "c"), version="2")

    second.worker.apply(prune=True)

    assert sorted(jobs(api)) == ["a", "c"]


@pytest.mark.parametrize("order", ["12", "21", "121", "212"])
def test_versions_that_pin_the_same_task_each_get_their_own_runs(api, order):  # N11
    seen = []

    def declare(worker: Worker) -> None:
        worker.every("1h", name="report", pinned=True)(lambda: seen.append(worker.version))

    hands = {version: started(api, declare, version=version) for version in order}
    for _ in range(370):
        api.stage.run(10)
        for each in hands.values():
            each.work()
    hands["1"].worker.cancel("report")

    assert sorted(seen) == ["1", "2"]
    assert {key: job["state"] for key, job in jobs(api).items()} == {"report@1": "PAUSED", "report@2": "ACTIVE"}


def test_the_ledger_shows_planned_enqueued_and_started_times(api):  # N12
    hands = started(api, lambda worker: worker.every("1h", name="report")(lambda: None))
    hands.live(3_700, 10)

    [run] = runs(api)
    assert run["enqueuedAt"] < run["plannedAt"] <= run["startedAt"] <= run["finishedAt"]


def test_an_error_is_recorded_with_type_message_and_stack_and_the_worker_survives(api):  # N15, N16, N30
    tries = []

    def declare(worker: Worker) -> None:
        @worker.every("1h", name="report")
        def report(run) -> None:
            tries.append(run.attempt)
            if len(tries) < 3:
                raise LookupError("no month")

    hands = started(api, declare)
    hands.live(3_700, 10)

    [run] = runs(api)
    assert tries == [1, 2, 3]
    assert (run["state"], run["maxAttempts"]) == ("SUCCESS", 24)
    first = api.get(f"/v1/runs/{run['id']}").json["attempts"][0]
    assert first["message"] == "LookupError: no month"
    assert "in report" in first["answer"]
    assert "raise LookupError" in first["answer"]


def test_an_errors_text_is_sent_even_if_json_cannot_hold_it():
    assert attempts._cut("half \ud800", 100) == "half ?"
    assert attempts._cut("x" * 9, 5) == "xx..."


class _Unreadable(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


def test_an_unreadable_error_text_ends_the_attempt_and_not_the_worker(api):
    def declare(worker: Worker) -> None:
        @worker.every("1h", name="report", retry={"type": "none"})
        def report() -> None:
            raise _Unreadable

    started(api, declare).live(3_610, 10)

    assert [(run["state"], run["attempt"]) for run in runs(api)] == [("ERROR", 1)]
    assert runs(api)[0]["message"].endswith("its text cannot be read: ZeroDivisionError")


def test_24_attempts_are_made_whatever_the_number_of_workers(api):  # N30, N31
    tries = []

    def declare(worker: Worker) -> None:
        @worker.task(name="report")
        def report(run) -> None:
            tries.append(run.attempt)
            raise LookupError("always")

    many = [started(api, declare) for _ in range(8)]
    api("POST", f"/v1/jobs/{jobs(api)['report']['id']}/run")
    for _ in range(100):
        for each in many:
            each.work(1)
        api.stage.run(1)

    assert tries == list(range(1, 25))
    assert [run["state"] for run in runs(api)] == ["ERROR"]


def test_each_attempt_that_kills_its_worker_is_made_twice_and_the_last_one_eight_times(api):
    """Decision 0060 holds for workers too; docs/guide/worker-deployments.md says so."""
    begun = []

    def declare(worker: Worker) -> None:
        @worker.task(name="report", retry={"type": "fixed", "maxRetries": 1, "delaySeconds": 0})
        def report(run: Any) -> None:
            begun.append(run.attempt)
            hands.attempts._settle = dies

    def dies(*_: object) -> None:
        raise Crash

    hands = started(api, declare)
    api("POST", f"/v1/jobs/{jobs(api)['report']['id']}/run")
    for _ in range(40):
        api.stage.run(40)
        with suppress(Crash):
            hands.work(1)

    [run] = runs(api)
    assert begun == [1, 1] + [2] * 8
    assert (run["state"], run["reason"]) == ("UNKNOWN", "EXECUTOR_LOST")


@pytest.mark.parametrize("never_on", [(LookupError,), [LookupError], LookupError])
def test_exception_types_can_be_excluded_from_retries(api, never_on):  # N33
    def declare(worker: Worker) -> None:
        @worker.every("1h", name="report", never_on=never_on)
        def report() -> None:
            raise KeyError("a subclass of it")

    started(api, declare).live(3_700, 10)

    assert [(run["state"], run["attempt"]) for run in runs(api)] == [("ERROR", 1)]


def _broken(_error, _run):
    raise RuntimeError("the hook itself")


class _Spoilt(Discard):
    """A verdict whose members cannot be read."""

    @property
    def reason(self) -> str:
        raise ZeroDivisionError

    def __init__(self, _reason: str) -> None: ...


@pytest.mark.parametrize(
    ("hook", "ends"),
    [
        (lambda *_: Retry(), [("ERROR", 2)]),
        (lambda *_: None, [("ERROR", 2)]),
        (lambda *_: Delay(90), [("RETRY_WAIT", 2)]),
        (lambda *_: Discard("not needed"), [("CANCELLED", 1)]),
        (lambda *_: MoveTo(ERRORS), [("ERROR", 1)]),
        (lambda *_: MoveTo("https://queue/nowhere"), [("ERROR", 1)]),
        (lambda *_: "retry", [("ERROR", 1)]),
        (_broken, [("ERROR", 1)]),
        (lambda *_: sys.exit(3), [("ERROR", 1)]),
        (lambda *_: Delay("soon"), [("ERROR", 1)]),
        (lambda *_: Delay(3_601), [("ERROR", 1)]),
        (lambda *_: Delay("90s"), [("RETRY_WAIT", 2)]),
        (lambda *_: Discard(None), [("ERROR", 1)]),
        (lambda *_: _Spoilt("x"), [("ERROR", 1)]),
    ],
)
def test_a_hook_decides_and_an_invalid_decision_becomes_an_error(api, hook, ends):  # N34
    def declare(worker: Worker) -> None:
        @worker.every("1h", name="report", retry={"type": "fixed", "maxRetries": 1, "delaySeconds": 0})
        def report() -> None:
            raise LookupError("x")

    before = len(api.stage.sqs.bodies(ERRORS))
    hands = started(api, declare, hook=hook)
    hands.live(3_610, 10)

    assert [(run["state"], run["attempt"]) for run in runs(api)] == ends
    if "moved" in str(runs(api)[0]["message"]):
        sent = json.loads(api.stage.sqs.bodies(ERRORS)[-1]) if len(api.stage.sqs.bodies(ERRORS)) > before else {}
        assert sent == {} or sent["exception"] == "LookupError"


def test_a_payload_becomes_arguments_and_an_invalid_one_is_not_retried(api):  # N50
    seen = []

    def declare(worker: Worker) -> None:
        @worker.every("1h", name="report", payload={"month": 7})
        def report(run, month: int, year: int = 2027) -> None:
            seen.append((run.payload, month, year))

        @worker.every("1h", name="misfit", payload={"monht": 7})
        def misfit(month: int) -> None:
            seen.append(month)

        @worker.every("1h", name="schema", payload={"n": "x"}, schema=lambda payload: int(payload["n"]))
        def schema(run) -> None:
            seen.append(run.payload)

    started(api, declare).live(3_700, 10)

    assert seen == [({"month": 7}, 7, 2027)]
    assert [
        (run["state"], run["reason"], run["attempt"]) for name in ("misfit", "schema") for run in runs(api, name)
    ] == [("REQUEST_ERROR", "BAD_PAYLOAD", 1)] * 2


def test_a_task_needs_a_payload_only_for_arguments_without_defaults(api):
    seen = []

    def declare(worker: Worker) -> None:
        @worker.every("1h", name="default")
        def default(month: int = 7) -> None:
            seen.append(month)

        @worker.every("1h", name="any")
        def anything(run, **members: object) -> None:
            seen.append(members)

        @worker.every("1h", name="named", payload={"run": 1, "month": 8})
        def named(run, month: int, year: int = 2027) -> None:
            seen.append((run.task, month, year))

        @worker.every("1h", name="needs")
        def needs(month: int) -> None:
            seen.append(month)

    started(api, declare).live(3_700, 10)

    assert sorted(map(str, seen)) == ["('named', 8, 2027)", "7", "{}"]
    [run] = runs(api, "needs")
    assert (run["reason"], run["message"]) == (
        "BAD_PAYLOAD",
        "the payload does not fit: missing a required argument: 'month'",
    )


def test_a_task_that_returns_a_generator_fails(api):
    def declare(worker: Worker) -> None:
        worker.every("1h", name="report", retry={"type": "none"})(lambda: (n for n in range(3)))

    started(api, declare).live(3_700, 10)

    [run] = runs(api)
    assert run["state"] == "ERROR"
    assert "returned a generator" in run["message"]


def test_an_async_function_can_be_a_task(api):
    seen = []

    def declare(worker: Worker) -> None:
        @worker.every("1h", name="report")
        async def report() -> None:
            seen.append(1)

    started(api, declare).live(3_700, 10)

    assert seen == [1]


def test_a_heartbeat_keeps_a_long_task_and_a_lost_lease_tells_it_to_stop(api):  # N17
    seen = []

    def declare(worker: Worker) -> None:
        @worker.every("1h", name="report", overlap="allow")
        def report(run) -> None:
            if seen:
                return
            for _ in range(10):
                api.stage.run(20)
                hands.attempts.beat()
                assert other.work() == 0
            seen.append(run.should_stop)
            api("POST", f"/v1/runs/{run.id}/cancel")
            hands.attempts.beat()
            seen.append(run.should_stop)

    other = started(api, declare)
    hands = started(api, declare)
    hands.live(3_700, 10)

    assert seen[:2] == [False, True]


def test_a_stopping_worker_returns_runs_that_have_not_begun(api):
    seen = []
    hands = started(api, lambda worker: worker.every("1h", name="report")(lambda: seen.append(1)))
    other = started(api, lambda worker: worker.every("1h", name="report")(lambda: seen.append(2)))
    api.stage.run(3_601)

    hands.attempts.stop()
    hands.work(1)
    other.work()

    assert seen == [2]


def test_the_answer_to_a_claim_or_a_report_may_be_lost(api):
    seen = []
    hands = started(api, lambda worker: worker.every("1h", name="report")(lambda: seen.append(1)))
    gateway = hands.worker.client._caller._transport
    api.stage.run(3_601)

    gateway.lost = 1
    hands.work()

    assert seen == [1]
    assert [run["state"] for run in runs(api)] == ["SUCCESS"]


def test_a_service_that_does_not_answer_returns_the_message_to_the_queue(api, monkeypatch):
    seen = []
    hands = started(api, lambda worker: worker.every("1h", name="report")(lambda: seen.append(1)))
    api.stage.run(3_601)

    def refused(*_args, **_more):
        raise TransportError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(hands.worker.client.runs, "settle", refused)
        hands.work()
    api.stage.run(100)
    hands.work()

    assert seen == [1, 1]
    assert [run["state"] for run in runs(api)] == ["SUCCESS"]


def test_a_message_from_another_sender_is_left_alone(api):
    hands = started(api, lambda worker: worker.task(name="report")(lambda: None))
    url = hands.queues[0][0]
    api.stage.sqs.send_message(QueueUrl=url, MessageBody="hello")

    hands.work()

    assert api.stage.sqs.bodies(url) == ["hello"]


def test_a_test_can_call_a_task_without_the_service():
    worker = Worker("billing")
    worker.every("1h", name="report")(lambda run, month: (run.task, month))

    assert worker.call("report", {"month": 7}) == ("report", 7)
    with pytest.raises(BadPayload, match="missing a required argument: 'month'"):
        worker.call("report", {})
    with pytest.raises(KeyError, match="no task has the name"):
        worker.call("nothing")


OFTEN = 8
"""A death at every call of this number, or a later one, leaves the workers time to finish their runs.

The first claim after a minute makes two calls more, and a run that none takes within 20 minutes ends by its policy.
"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("every", "hours"), [(5, 3), (7, 3), (11, 3), (13, 24)])
def test_eight_workers_lose_nothing_in_a_day_of_crashes(api, every, hours):
    """Each n-th call of worker, API, table or queue on the way of a run is where its worker dies."""
    _day_of_deaths(api, every, hours=hours)


@pytest.mark.long
@pytest.mark.parametrize("every", range(3, 40))
def test_eight_workers_lose_nothing_in_a_full_day_of_crashes(api, every):
    _day_of_deaths(api, every, hours=24)


def _day_of_deaths(api: Api, every: int, *, hours: int) -> None:  # noqa: C901 - one history
    done: dict[str, list[str]] = {"steady": [], "shaky": [], "alone": []}

    def declare(worker: Worker) -> None:
        worker.every("10m", name="steady", overlap="allow")(lambda run: done["steady"].append(run.id))
        worker.every("15m", name="alone")(lambda run: done["alone"].append(run.id))

        @worker.every("30m", name="shaky", overlap="allow")
        def shaky(run) -> None:
            if run.attempt < 3:
                raise LookupError("not yet")
            done["shaky"].append(run.id)

    many = [started(api, declare) for _ in range(8)]
    calls = deaths = 0
    died: list[int] = []

    def dies(passing, act):
        nonlocal calls, deaths
        calls += 1
        if calls % every:
            return as_dynamodb(passing, act)
        deaths += 1
        if deaths % 2:
            raise Crash  # before the call
        act()
        raise Crash  # after it, before its answer

    def shift(n: int) -> None:
        api.stage.taps.fault = dies
        try:
            many[n].work(1)
        except Crash:
            died.append(n)
        finally:
            api.stage.taps.fault = as_dynamodb
        while died:
            many[died.pop()] = started(api, declare)

    for minute in range(hours * 60):
        api.stage.run(60)
        for turn in range(4):
            shift((minute + turn) % 8)
    for _ in range(60):  # the workers settle what is left, and nobody dies
        api.stage.run(10)
        for each in many[:2]:
            each.work()

    assert deaths > hours * 5
    left = [body for url in URLS.values() for body in api.stage.sqs.bodies(url)]
    assert all(f'"{Subject.UNCLAIMED}"' in body for body in left), "only checks of the runs of the last minute"
    cut_off = {("MISSED", "CONSUMER_AWAY"), ("UNKNOWN", "EXECUTOR_LOST")} if every < OFTEN else set()
    for name, minutes in (("steady", 10), ("alone", 15), ("shaky", 30)):
        found = runs(api, name)
        due = [run for run in found if run["plannedAt"] < str(_text(api, -700))]
        ends = {(run["state"], run["reason"]) for run in due}
        assert len(found) >= hours * 60 // minutes, name
        assert all(run["attempt"] <= 24 for run in found), name
        assert ends <= {("SUCCESS", "ON_TIME"), ("SUCCESS", "LATE"), ("SKIPPED", "OVERLAP"), *cut_off}, name
        succeeded = {run["id"] for run in found if run["state"] == "SUCCESS"}
        assert succeeded <= set(done[name]) <= {run["id"] for run in found}, name
        instants = [run["plannedAt"] for run in found]
        assert len(set(instants)) == len(instants)
        assert jobs(api)[name]["nextRunAt"] > str(_text(api, 0))


def _text(api: Api, seconds: float) -> str:
    return (api.stage.clock.now() + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_workers_leave_the_queues_of_the_stack_alone(api):
    hands = started(api, lambda worker: worker.task(name="report")(lambda: None))

    assert not {url for url, _ in hands.queues} & set(URLS.values())


def test_the_first_durable_task_of_the_guide_takes_ten_lines_and_two_commands():
    guide = (ROOT / "docs" / "guide" / "worker.md").read_text()
    commands, *_ = re.findall(r"^```text\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE)

    programs, known = _run_programs("worker.md")

    assert len(commands.splitlines()) == 2
    assert len([line for line in programs[0].splitlines() if line]) <= 10
    assert known["decide"](TimeoutError(), None) == Delay(300)


def test_the_program_that_does_an_effect_once_runs():
    _, known = _run_programs("worker-once.md")
    payments = []
    known |= {"dedupe": Dedupe(MemoryMarks()), "send_payment": lambda: payments.append("sent")}
    run = SimpleNamespace(id="1")

    known["pay"](run)
    known["pay"](run)

    assert payments == ["sent"]


def _run_programs(page: str) -> tuple[list[str], dict[str, Any]]:
    """Runs the programs of a guide one after the other. Returns them with the names that they define."""
    guide = (ROOT / "docs" / "guide" / page).read_text()
    programs = re.findall(r"^```python\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE)
    known: dict[str, Any] = {"__name__": "tasks"}
    for program in programs:
        exec(compile(program, page, "exec"), known)
    return programs, known


def test_the_nservicebus_page_is_a_program_whose_tasks_can_be_called():
    example = runpy.run_path(str(ROOT / "examples" / "nservicebus" / "tasks.py"))

    assert example["worker"].call("Report", {"month": "last"}) == "the report of last month"


@pytest.mark.parametrize("after", ["2m", 120, 119.5, timedelta(minutes=2)])
def test_a_task_can_say_when_its_job_runs_again(api, after):  # N19
    pages = []

    def declare(worker: Worker) -> None:
        @worker.task(name="report", payload={"page": 1})
        def report(run: Any, page: int) -> None:
            pages.append(page)
            if page < 3:
                run.reschedule(after=5)
                run.reschedule(after=after, payload={"page": page + 1})

    hands = started(api, declare)
    api("POST", f"/v1/jobs/{jobs(api)['report']['id']}/run")
    hands.live(100)
    early = list(pages)
    hands.live(400)

    assert (early, pages) == ([1], [1, 2, 3])
    assert [run["state"] for run in runs(api)] == ["SUCCESS"] * 3


def test_a_task_can_state_the_instant_of_the_next_run(api):
    begun = []

    def declare(worker: Worker) -> None:
        @worker.task(name="report")
        def report(run: Any) -> None:
            begun.append(api.stage.clock.now())
            if len(begun) == 1:
                run.reschedule(at=begun[0] + timedelta(seconds=90))

    hands = started(api, declare)
    api("POST", f"/v1/jobs/{jobs(api)['report']['id']}/run")
    hands.live(200)

    late = begun[1] - begun[0] - timedelta(seconds=90)
    assert timedelta(0) <= late < timedelta(seconds=5)


def test_a_failed_attempt_starts_no_next_run(api):
    def declare(worker: Worker) -> None:
        @worker.task(name="report", retry={"type": "none"})
        def report(run: Any) -> None:
            run.reschedule(after=5)
            raise ValueError("no")

    hands = started(api, declare)
    api("POST", f"/v1/jobs/{jobs(api)['report']['id']}/run")
    hands.live(100)

    assert [run["state"] for run in runs(api)] == ["ERROR"]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"after": 5, "at": "2030-01-01T00:00:00Z"},
        {"after": "soon"},
        {"after": 0},
        {"at": "2020-01-01T00:00:00Z"},
        {"at": "tomorrow"},
        {"at": datetime(2020, 1, 1, tzinfo=UTC)},
        {"after": "1d", "payload": {"x": object()}},
        {"after": "1d", "payload": float("nan")},
        {"after": "1d", "payload": "half \ud800"},
    ],
)
def test_an_impossible_next_run_is_one_error_without_a_further_attempt(api, asked):
    begun = []

    def declare(worker: Worker) -> None:
        @worker.task(name="report")
        def report(run: Any) -> None:
            begun.append(run.attempt)
            run.reschedule(**asked)

    hands = started(api, declare)
    api("POST", f"/v1/jobs/{jobs(api)['report']['id']}/run")
    hands.live(60)

    [run] = runs(api)
    assert (run["state"], begun) == ("ERROR", [1])
    assert "BadReschedule: " in run["message"]


@pytest.mark.parametrize("asked", [{"at": "2150-01-01T00:00:00Z"}, {"after": "1d", "payload": "x" * 300_000}])
def test_a_permanently_refused_success_report_is_one_error_with_the_reason(api, asked):
    begun = []

    def declare(worker: Worker) -> None:
        @worker.task(name="report", retry={"type": "fixed", "maxRetries": 3, "delaySeconds": 0})
        def report(run: Any) -> None:
            begun.append(run.attempt)
            run.reschedule(**asked)

    hands = started(api, declare)
    api("POST", f"/v1/jobs/{jobs(api)['report']['id']}/run")
    hands.live(200, 10)

    [run] = runs(api)
    assert (begun, run["state"]) == ([1], "ERROR")
    assert "the report of the outcome success was refused: " in run["message"]
    assert not api.stage.sqs.bodies(hands.queues[0][0])
