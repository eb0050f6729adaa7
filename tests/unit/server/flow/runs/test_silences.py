"""Targets that do not answer: their calls wait in the slow queue until one of them gets an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain import silence
from sweephand.domain.event import EventType
from sweephand.domain.job import ActionDraft, ActionSpec
from sweephand.domain.message import decode
from sweephand.domain.run import Outcome, Reason, State, Verdict
from sweephand.domain.runs.run_action import targets_of
from sweephand.domain.schedule import Lane
from sweephand.server import actions
from sweephand.server.actions.call import Call
from sweephand.server.actions.kind import members_of
from sweephand.server.flow.jobs import creation
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.runs.conclusion import Answers
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.tenants.silences import SilentCalls
from sweephand.server.store.dynamo import keys
from sweephand.server.store.tenants import tenants, watches
from sweephand.server.store.views import tenants as views
from sweephand.testing.service import URLS
from sweephand.testing.sources import START
from sweephand.testing.taps import Act, Passing
from tests.support.acting import GUARD, ROLE, arn
from tests.support.endpoint import BUSY, OK
from tests.support.stage import TENANT, Stage
from tests.support.taps import refused
from tests.unit.server.flow.common import HOUR, MINUTE, SECOND, exact, fixed, once

HANGS = Outcome(Verdict.FAILED, Reason.NO_ANSWER, message="no answer within 15 s", retryable=True)
REFUSED = Outcome(Verdict.FAILED, Reason.CONNECT, message="connection refused", retryable=True)
MINUTELY = {"every": "PT1M"}


@dataclass
class Hosts:
    """The targets of all jobs. silent: URLs whose calls take 15 s and get no answer. meanwhile: what answers then."""

    stage: Stage
    silent: set[str] = field(default_factory=set)
    outcome: Outcome = HANGS
    takes_s: float = 15.0
    meanwhile: str | None = None
    urls: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stage.endpoint.answer = self._answer

    def _answer(self, call: Call) -> Outcome:
        url = self.urls[call.job_id]
        if not any(url.startswith(each) for each in self.silent):
            return OK
        self.stage.clock.advance(self.takes_s)
        if self.meanwhile is not None:
            targets = targets_of(ActionSpec("http", {"url": self.meanwhile}, {}))
            self.stage.world.memory.of(Answers).note(TENANT, targets, self.stage.clock.now())
        return self.outcome

    def job(
        self, url: str, *timings: dict[str, object], tenant: str = TENANT, policies: Any = None, **action: object
    ) -> Planned:
        said = {"action": self.stage.action(url=url, **action), "policies": policies or {}}
        draft = self.stage.draft(*(timings or (MINUTELY,)), **said)
        planned = creation.create_job(self.stage.world, tenant, draft, None)
        self.urls[planned.job.id] = url
        return planned


@pytest.fixture
def hosts(stage: Stage) -> Hosts:
    return Hosts(stage)


def notes(stage: Stage, tenant: str = TENANT) -> set[str]:
    there = tenants.read_tenant(stage.world.table, tenant)
    assert there is not None
    return {name for name, each in there.silences.items() if each.until > stage.clock.now()}


def in_slow_queue(stage: Stage) -> list[str]:
    return [decode(body).job for body in stage.sqs.bodies(URLS[Lane.SLOW])]


def one_batch(stage: Stage, planned: Planned, lane: Lane = Lane.FAST) -> None:
    """Lets the next occurrence fall due, and one executor of the lane take it."""
    instant = stage.stored(planned).next_run_at
    stage.tick()
    assert instant is not None
    stage.clock.move_to(instant + SECOND)
    assert stage.deliver(lane)


@pytest.mark.parametrize("url", ["https://dead.example/a", "https://dead.example/another?x=1"])
def test_after_a_time_out_other_calls_of_the_host_wait_in_the_slow_queue_with_a_note(
    stage: Stage, hosts: Hosts, url: str
) -> None:
    hosts.silent.add("https://dead.example/")
    first = hosts.job("https://dead.example/a")
    later = hosts.job(url, once(2 * MINUTE))
    living = hosts.job("https://living.example/a", once(2 * MINUTE))
    one_batch(stage, first)
    assert notes(stage) == {"https://dead.example"}

    stage.tick()
    stage.clock.move_to(START + 2 * MINUTE)
    while stage.deliver(Lane.FAST):
        pass

    assert stage.only_run(living).state is State.SUCCESS
    assert later.job.id in in_slow_queue(stage)
    assert stage.runs(later) == []
    stage.deliver(Lane.SLOW)
    run = stage.only_run(later)
    assert (run.state, run.reason) == (State.ERROR, Reason.NO_ANSWER)
    assert run.notes == (silence.note("https://dead.example"),)


def test_the_first_answer_brings_the_calls_of_the_host_back(stage: Stage, hosts: Hosts) -> None:
    hosts.silent.add("https://dead.example/")
    planned = hosts.job("https://dead.example/a")
    stage.run(180)
    assert notes(stage) == {"https://dead.example"}

    hosts.silent.clear()
    stage.run(130)

    assert notes(stage) == set()
    stage.tick()
    stage.clock.move_to(max(stage.clock.now(), stage.stored(planned).next_run_at or stage.clock.now()))
    assert in_slow_queue(stage) == []
    exact_runs = [run.state for run in stage.runs(planned) if run.finished]
    assert State.SUCCESS in exact_runs


def test_only_the_address_is_noted_if_its_host_answers_other_calls(stage: Stage, hosts: Hosts) -> None:
    hosts.silent.add("https://mixed.example/hangs")
    hosts.job("https://mixed.example/hangs")
    works = hosts.job("https://mixed.example/works")
    hosts.meanwhile = "https://mixed.example/works"

    stage.run(250)

    assert {run.state for run in stage.runs(works)} == {State.SUCCESS}
    assert notes(stage) == {"https://mixed.example/hangs"}


def test_a_host_that_answers_most_calls_is_never_noted(stage: Stage, hosts: Hosts) -> None:
    hosts.silent.add("https://busy.example/a")
    hosts.job("https://busy.example/a")
    hosts.meanwhile = "https://busy.example/a"

    stage.run(150)

    assert notes(stage) == set()


def test_a_call_refused_quickly_is_noted_but_keeps_its_queue(stage: Stage, hosts: Hosts) -> None:
    hosts.silent.add("https://dead.example/")
    hosts.outcome, hosts.takes_s = REFUSED, 0.1
    hosts.job("https://dead.example/a")

    stage.run(130)
    there = tenants.read_tenant(stage.world.table, TENANT)

    assert there is not None
    (noted,) = there.silences.values()
    assert (noted.reason, noted.hangs) == ("CONNECT", False)
    stage.tick()
    assert in_slow_queue(stage) == []


def test_an_answer_with_an_error_is_an_answer(stage: Stage, hosts: Hosts) -> None:
    hosts.silent.add("https://dead.example/")
    hosts.outcome = BUSY
    hosts.job("https://dead.example/a")

    stage.run(130)

    assert notes(stage) == set()


def test_the_notes_of_a_tenant_do_not_concern_another(stage: Stage, hosts: Hosts) -> None:
    tenancy.create_tenant(stage.world, "globex", None)
    hosts.silent.add("https://dead.example/")
    hosts.job("https://dead.example/a")
    stage.run(130)

    hosts.job("https://dead.example/a", once(10 * MINUTE), tenant="globex")

    assert notes(stage) == {"https://dead.example"}
    assert notes(stage, "globex") == set()


def test_a_hanging_host_costs_two_writes_in_an_hour(stage: Stage, hosts: Hosts) -> None:
    hosts.silent.add("https://dead.example/")
    hosts.job("https://dead.example/a", retry={"type": "none"})
    writes: list[object] = []

    def count(passing: Passing, act: Act) -> object:
        if passing.operation == "UpdateItem" and "silences" in str(passing.request):
            writes.append(passing)
        return act()

    stage.taps.fault = count
    stage.run(3_600)

    assert 1 <= len(writes) <= 3


def test_retries_of_a_hanging_call_wait_in_the_slow_queue_and_all_totals_are_exact(stage: Stage, hosts: Hosts) -> None:
    hosts.silent.add("https://dead.example/")
    planned = hosts.job("https://dead.example/a", once(), retry=fixed(60, 2))

    stage.run(600)

    run = stage.only_run(planned)
    assert (run.state, run.attempt) == (State.ERROR, 3)
    assert len(stage.endpoint.received) == 3
    exact(stage, planned)


def test_an_executor_of_the_slow_queue_makes_twenty_calls_to_a_silent_target_at_once(
    stage: Stage, hosts: Hosts
) -> None:
    hosts.silent.add("https://dead.example/")
    planned = hosts.job("https://dead.example/a", retry={"type": "none"})
    one_batch(stage, planned)
    stage.world.memory.of(SilentCalls)[TENANT, "https://dead.example"] = silence.AT_ONCE
    stage.run(70)
    assert len(stage.runs(planned)) == 1
    made = len(stage.endpoint.received)

    del stage.world.memory.of(SilentCalls)[TENANT, "https://dead.example"]
    stage.run(120)

    assert len(stage.endpoint.received) > made
    assert not stage.world.memory.of(SilentCalls)
    assert len({run.uuid for run in stage.runs(planned)}) == len(stage.endpoint.received)


def test_a_run_that_waited_too_long_for_a_silent_target_says_so(stage: Stage, hosts: Hosts) -> None:
    hosts.silent.add("https://dead.example/")
    planned = hosts.job("https://dead.example/a", retry={"type": "none"}, policies={"misfire": {"type": "skip"}})
    one_batch(stage, planned)
    stage.world.memory.of(SilentCalls)[TENANT, "https://dead.example"] = silence.AT_ONCE

    stage.run(400)

    missed = [run for run in stage.runs(planned) if run.state is State.MISSED]
    assert missed
    assert {run.reason for run in missed} == {Reason.CIRCUIT_OPEN}
    assert all("https://dead.example did not answer other calls" in (run.message or "") for run in missed)


def test_a_table_that_does_not_answer_the_note_fails_no_run(stage: Stage, hosts: Hosts) -> None:
    hosts.silent.add("https://dead.example/")
    planned = hosts.job("https://dead.example/a", once(), retry={"type": "none"})

    def fault(passing: Passing, act: Act) -> object:
        if "silences" in str(passing.request):
            return refused(passing, act)
        return act()

    stage.taps.fault = fault
    stage.run(120)

    assert stage.only_run(planned).reason is Reason.NO_ANSWER
    stage.taps.fault = None
    assert notes(stage) == set()


def test_a_note_ends_an_hour_after_the_last_failure(stage: Stage, hosts: Hosts) -> None:
    hosts.silent.add("https://dead.example/")
    hosts.job("https://dead.example/a", once(), retry={"type": "none"})
    stage.run(120)
    assert notes(stage) == {"https://dead.example"}

    stage.clock.advance(HOUR.total_seconds())

    assert notes(stage) == set()


def test_a_tenant_has_at_most_thirty_notes_and_the_newest_stay(stage: Stage) -> None:
    now, found = stage.clock.now(), {}
    for number in range(silence.MOST + 5):
        found = dict(silence.noted(found, f"https://{number}", "DNS", now + number * SECOND, hangs=False))

    assert len(found) == silence.MOST
    assert f"https://{silence.MOST + 4}" in found
    assert "https://4" not in found


@pytest.mark.parametrize(("late_s", "wait_s"), [(0, 15), (60, 15), (400, 100), (7_200, 300)])
def test_a_call_is_tried_again_the_later_the_longer_it_has_waited(stage: Stage, late_s: int, wait_s: int) -> None:
    now = stage.clock.now()

    assert silence.next_try(now - timedelta(seconds=late_s), now) == now + timedelta(seconds=wait_s)


# The reports that a target does not answer


def reports(stage: Stage) -> list[tuple[str, bool, str]]:
    """Returns the events of targets: host, whether the whole host is meant, and the reason."""
    found = [*stage.bus.of(EventType.TARGET_AWAY), *stage.bus.of(EventType.TARGET_BACK)]
    return [(event["host"], event["wholeHost"], event["reason"]) for event in found]


def away(stage: Stage) -> list[str]:
    return [each.name for each in views.away(stage.world.table, 10)]


def watched(stage: Stage) -> list[str]:
    return [item["sk"]["S"] for item in stage.items() if item["sk"]["S"].startswith(f"{keys.TARGET}#")]


@pytest.mark.parametrize(("outcome", "takes_s"), [(HANGS, 15.0), (REFUSED, 0.1)], ids=["hangs", "refuses"])
def test_a_host_whose_calls_are_still_retried_is_reported_within_two_minutes_and_again_when_it_answers(
    stage: Stage, hosts: Hosts, outcome: Outcome, takes_s: float
) -> None:
    job = hosts.job("https://dead.example/a/secret", once(MINUTE), retry=fixed(40, 20))
    hosts.silent, hosts.outcome, hosts.takes_s = {"https://dead.example"}, outcome, takes_s

    stage.run((MINUTE + 120 * SECOND).total_seconds())

    assert stage.runs(job)[0].state is State.RETRY_WAIT
    assert reports(stage) == [("https://dead.example", True, outcome.reason)]
    assert away(stage) == ["https://dead.example"]
    assert stage.journal.counts["Away"] >= 1
    assert "secret" not in repr(stage.bus.of(EventType.TARGET_AWAY))

    hosts.silent = set()
    stage.run(60)

    assert reports(stage)[1:] == [("https://dead.example", True, "RECEIVED")]
    assert (away(stage), watched(stage)) == ([], [])


def test_a_host_that_answers_again_at_once_is_not_reported(stage: Stage, hosts: Hosts) -> None:
    hosts.job("https://dead.example/a", once(MINUTE), retry=fixed(5, 20))
    hosts.silent, hosts.outcome, hosts.takes_s = {"https://dead.example"}, REFUSED, 0.1
    stage.run(62)
    assert notes(stage)

    hosts.silent = set()
    stage.run(180)

    assert (reports(stage), away(stage), watched(stage)) == ([], [], [])


def test_a_host_that_nobody_calls_any_more_is_not_away_for_ever(stage: Stage, hosts: Hosts) -> None:
    hosts.job("https://dead.example/a", once(MINUTE))
    hosts.silent = {"https://dead.example"}
    stage.run(200)
    assert away(stage) == ["https://dead.example"]

    stage.pass_time(HOUR.total_seconds())
    stage.run(180)

    assert [reason for *_, reason in reports(stage)] == [Reason.NO_ANSWER, "NOTHING_WAITS"]
    assert (away(stage), watched(stage)) == ([], [])


def test_one_address_is_reported_as_such(stage: Stage, hosts: Hosts) -> None:
    hosts.job("https://half.example/good", {"every": "PT5S"})
    hosts.job("https://half.example/bad", MINUTELY)
    hosts.silent, hosts.meanwhile = {"https://half.example/bad"}, "https://half.example/good"

    stage.run(240)

    assert reports(stage)[:1] == [("https://half.example", False, Reason.NO_ANSWER)]


def test_a_host_that_fails_again_between_two_checks_is_reported_anew(stage: Stage, hosts: Hosts) -> None:
    hosts.job("https://dead.example/a", MINUTELY)
    hosts.silent, hosts.outcome, hosts.takes_s = {"https://dead.example"}, REFUSED, 0.1
    stage.run(200)
    hosts.silent = set()
    stage.run(58)
    hosts.silent = {"https://dead.example"}

    stage.run(240)

    first, second = stage.bus.of(EventType.TARGET_AWAY)
    assert first["id"] != second["id"]
    assert first["since"] < second["since"]


def test_the_watches_of_a_deleted_tenant_go_with_it(stage: Stage, hosts: Hosts) -> None:
    hosts.job("https://dead.example/a", MINUTELY)
    hosts.silent = {"https://dead.example"}
    stage.run(200)
    assert away(stage)

    watches.forget(stage.world.table, TENANT)

    assert away(stage) == []


@pytest.mark.parametrize(
    "other",
    [
        Outcome(Verdict.FAILED, Reason.GUARD, message="a secret cannot be decrypted"),
        Outcome(Verdict.FAILED, Reason.BAD_PAYLOAD, message="it cannot be read"),
        replace(BUSY, apart=True),
    ],
    ids=["guard", "payload", "token"],
)
def test_an_attempt_that_did_not_reach_its_target_changes_no_note(stage: Stage, hosts: Hosts, other: Outcome) -> None:
    hosts.silent.add("https://dead.example/")
    hosts.job("https://dead.example/a", retry={"type": "none"})
    stage.run(120)
    assert notes(stage) == {"https://dead.example"}

    hosts.outcome, hosts.takes_s = other, 0
    stage.run(120)

    assert notes(stage) == {"https://dead.example"}


def test_a_server_of_tokens_that_does_not_answer_is_no_silent_target(stage: Stage, hosts: Hosts) -> None:
    hosts.silent.add("https://works.example/")
    hosts.outcome = replace(HANGS, apart=True)
    hosts.job("https://works.example/a", retry={"type": "none"})

    stage.run(120)

    assert notes(stage) == set()


# Targets that are no hosts

KEY = {"sasKeyName": "send", "sasKey": "k"}
SIGNED = {"roleArn": ROLE, "service": "execute-api", "region": "eu-central-1"}
TOKEN_URL = "https://login.example/oauth/token"
OTHERS = {
    "lambda": ({"targetArn": arn("lambda", "function:f"), "roleArn": ROLE}, arn("lambda", "function:f")),
    "sqs": ({"targetArn": arn("sqs", "orders"), "roleArn": ROLE}, arn("sqs", "orders")),
    "sns": ({"targetArn": arn("sns", "news"), "roleArn": ROLE}, arn("sns", "news")),
    "states": ({"targetArn": arn("states", "stateMachine:m"), "roleArn": ROLE}, arn("states", "stateMachine:m")),
    "events": (
        {"targetArn": arn("events", "event-bus/b"), "roleArn": ROLE, "source": "acme.orders", "detailType": "due"},
        arn("events", "event-bus/b"),
    ),
    "azure_service_bus_queue": (
        {"namespace": "ns", "queueName": "q", "authentication": {**KEY, "type": "sharedAccessKey"}},
        "ns",
    ),
    "azure_storage_queue": ({"storageAccount": "acct", "queueName": "q", "sasToken": "sv=1&sig=abc"}, "acct"),
    "http": (
        {"url": "https://api.example/a", "authentication": {"type": "sigv4", **SIGNED}},
        "https://api.example",
    ),
}


def draft_of(kind: str, fields: Mapping[str, Any]) -> ActionDraft:
    return actions.draft({"type": kind, **fields, "retry": {"type": "none"}}, field="action", guard=GUARD)


def with_token() -> ActionDraft:
    authentication = {"type": "oauth2", "tokenUrl": TOKEN_URL, "clientId": "me", "secret": "s"}
    return draft_of("http", {"url": "https://api.example/a", "authentication": authentication})


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize(("outcome", "takes_s"), [(HANGS, 15.0), (REFUSED, 0.1)], ids=["hangs", "refuses"])
def test_each_kind_of_target_is_noted_shown_and_reported_by_the_name_that_its_user_knows(
    stage: Stage, kind: str, outcome: Outcome, takes_s: float
) -> None:
    fields, name = OTHERS[kind]
    silent = True

    def answer(call: Call) -> Outcome:
        stage.clock.advance(takes_s if silent else 0)
        return outcome if silent else OK

    stage.endpoint.answer = answer
    planned = stage.create(MINUTELY, action=draft_of(kind, fields))
    stage.run(60 + 120)

    assert notes(stage) == {name}
    assert reports(stage) == [(name, True, outcome.reason)]
    assert away(stage) == [name]
    stage.run(70)
    slow = [run for run in stage.runs(planned) if run.notes == (silence.note(name),)]
    assert bool(slow) is (takes_s > 3)

    silent = False
    stage.run(130)
    assert (notes(stage), away(stage)) == (set(), [])
    assert len(stage.bus.of(EventType.TARGET_BACK)) == 1


def test_an_error_of_a_function_is_an_answer(stage: Stage) -> None:
    fails = Outcome(Verdict.FAILED, Reason.TARGET_ERROR, message="ValueError: no", retryable=True)
    outcomes = [HANGS]
    stage.endpoint.answer = lambda _: outcomes[-1]
    stage.create(MINUTELY, action=draft_of("lambda", OTHERS["lambda"][0]))
    stage.run(70)
    assert notes(stage)

    outcomes.append(fails)
    stage.run(60)

    assert notes(stage) == set()


def test_a_hanging_issuer_of_tokens_is_noted_instead_of_the_target_until_it_answers(stage: Stage) -> None:
    """An answer of the target to a token from the cache says nothing about the issuer."""
    silent = replace(HANGS, apart=True, issuer=True)
    outcomes = [silent]

    def answer(_: Call) -> Outcome:
        stage.clock.advance(15 if outcomes[-1] is silent else 0)
        return outcomes[-1]

    stage.endpoint.answer = answer
    authentication = {"type": "oauth2", "tokenUrl": TOKEN_URL, "clientId": "me", "secret": "s"}
    planned = stage.create(
        MINUTELY, action=draft_of("http", {"url": "https://api.example/a", "authentication": authentication})
    )
    stage.run(60 + 120)
    assert notes(stage) == {"https://login.example"}
    assert reports(stage) == [("https://login.example", True, Reason.NO_ANSWER)]

    outcomes.append(OK)
    stage.run(60)
    assert notes(stage) == {"https://login.example"}
    assert stage.runs(planned)[-1].notes == (silence.note("https://login.example"),)

    outcomes.append(replace(OK, issuer=True))
    stage.run(60)
    assert notes(stage) == set()
    stage.run(5)
    assert len(stage.bus.of(EventType.TARGET_BACK)) == 1


def test_an_issuer_that_refuses_has_answered(stage: Stage) -> None:
    outcomes = [replace(HANGS, apart=True, issuer=True)]
    stage.endpoint.answer = lambda _: outcomes[-1]
    stage.create(MINUTELY, action=with_token())
    stage.run(70)
    assert notes(stage) == {"https://login.example"}

    outcomes.append(replace(BUSY, apart=True, issuer=True))
    stage.run(60)

    assert notes(stage) == set()


@pytest.mark.parametrize("kind", sorted(actions.KINDS.keys() - {"event", "job", "queue"}))
def test_each_kind_that_calls_something_outside_the_service_names_it(kind: str) -> None:
    members = members_of(actions.KINDS[kind])
    params = dict.fromkeys((each.name for each in members.values()), "x")

    assert targets_of(ActionSpec(kind, {**params, "authentication": {}}, {}))
