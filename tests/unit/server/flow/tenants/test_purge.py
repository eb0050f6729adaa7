"""The end of a tenant: with its last subscription all that it has goes, whatever happens meanwhile."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from sweephand.base.errors import Conflict, NotFound, QuotaExceeded, SweephandError
from sweephand.domain.calendar import Calendar
from sweephand.domain.collection import Collection, TenantState, Usage
from sweephand.domain.flow_keys.flow_keys import CircuitRule, FlowKey
from sweephand.domain.instants import EPOCH
from sweephand.domain.operation import Operation, OperationState
from sweephand.domain.run import Reason, State
from sweephand.schedules.calendars import calendar_content
from sweephand.server.flow.bulk import purge_tenant
from sweephand.server.flow.calendars import calendars
from sweephand.server.flow.flow_keys import flow_key_changes
from sweephand.server.flow.manual import manual
from sweephand.server.flow.operations import verbs
from sweephand.server.flow.tenants import access, subscriptions, tenancy
from sweephand.server.store.dynamo import keys
from sweephand.server.store.operations import operations
from sweephand.server.store.tenants import tenants
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import ACCEPTED, BUSY
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, crash_after, crash_before
from tests.unit.server.flow.common import fixed, once

EACH_MINUTE = {"cron": "* * * * *"}
NUMBERS = {keys.ORDINAL, keys.LAST_NUMBER}


def end(stage: Stage) -> Operation:
    """Ends the tenant's last subscription."""
    begun = subscriptions.unsubscribe(stage.world, TENANT, "app", "provider.admin")
    assert begun is not None
    return begun


def subscribed(stage: Stage, *applications: str) -> None:
    for application in applications or ("app",):
        subscriptions.subscribe(stage.world, TENANT, application)


def operation(stage: Stage, begun: Operation) -> Operation:
    there = operations.read(stage.world.table, None, begun.id)
    assert there is not None
    return there


def left(stage: Stage) -> list[tuple[str, str]]:
    """Returns everything that still names the tenant, except what expires soon, and its numbers."""
    found = []
    for item in stage.items():
        pk, sk = item["pk"]["S"], item["sk"]["S"]
        own = pk == keys.tenant(TENANT) or pk.startswith(f"{keys.tenant(TENANT)}#")
        listed = pk.startswith("STACK#") and sk.split("#")[0] == TENANT
        if (own or listed) and sk not in NUMBERS and "expires_at" not in item:
            found.append((pk, sk))
    return found


def furnish(stage: Stage) -> None:
    """Makes something of every kind that a tenant can have."""
    world = stage.world
    subscribed(stage)
    tenancy.change_tenant(world, TENANT, "here", Usage(most_schedules=500))
    access.create_credential(world, TENANT, None, ["jobs:read"])
    tenancy.create_collection(world, Collection(TENANT, "side"))
    tenancy.change_collection(world, TENANT, "side", lambda there: tenancy.enabled(there, on=False), None)
    content = {"dates": ["12-25"]}
    calendar = Calendar(TENANT, "holidays", EPOCH, EPOCH, content=content, facts=calendar_content.read(content))
    calendars.create(world, calendar, None)
    action = stage.action(payload={"n": 1}, authentication={"type": "bearer", "token": "t"}, retry=fixed(3_600))
    flow_key_changes.create(world, FlowKey(TENANT, "k", EPOCH, EPOCH, parallelism=2, circuit=CircuitRule(1, 3_600)))
    keyed = {"policies": {"flowKey": "k"}}
    stage.create({**EACH_MINUTE, "calendars": [{"name": "holidays"}]}, name="a", tags=("t",), action=action, **keyed)
    hooks = {"onFailure": stage.action(url="https://example.org/own")}
    waits = stage.action(url="https://example.org/b", outcome={"on202": "wait"})
    stage.create(once(), name="b", resource_id="r", action=waits, own_hooks=hooks, **keyed)
    stage.create(*[{"every": "PT1H"}] * 3, name="c", collection="side")


def test_only_the_ledger_and_the_numbers_of_a_tenant_remain(stage: Stage) -> None:
    stage.endpoint.answer = lambda call: ACCEPTED if call.payload is None else BUSY
    furnish(stage)
    stage.run(150)
    kinds = {item["sk"]["S"].split("#")[0] for item in stage.items() if "#KEY#" in item["pk"]["S"]}
    assert kinds == {"TURN", "LINE", "CIRCUIT"}, "a run waits under the flow key, and a target has failed"

    begun = end(stage)
    stage.run(900)

    assert left(stage) == []
    assert stage.waiting() == {}
    assert not [item for item in stage.items() if item["sk"]["S"].startswith("RUN#")]
    done = operation(stage, begun)
    assert (done.state, done.done, done.total, done.failed) == (OperationState.DONE, 3, 3, 0)
    assert done.result == {"tenant": TENANT, "jobs": 3}
    with pytest.raises(NotFound):
        tenancy.find_tenant(stage.world, TENANT)


def test_every_resource_of_the_tenant_is_deleted_with_its_rows(stage: Stage) -> None:
    """Also one that this test has never heard of: its row names their partition."""
    subscribed(stage)
    for pk, sk in ((keys.tenant(TENANT), "NOUN#a%23b"), (f"{keys.tenant(TENANT)}#NOUN#a%23b", "ROW#1")):
        stage.edit_item(pk, sk, text={"S": "something"})

    end(stage)
    stage.run(60)

    assert left(stage) == []


def test_nothing_of_the_tenant_runs_once_its_end_has_begun(stage: Stage) -> None:
    """Not what was sent ahead, no retry, no manual run, even if the deleting itself does not get on."""
    stage.endpoint.answer = BUSY
    subscribed(stage)
    stage.create(EACH_MINUTE, action=stage.action(retry=fixed(45)))
    planned = stage.create(name="by hand")
    stage.run(70)
    manual.run_now(stage.world, TENANT, planned.job.id, None, None)

    verbs.pause(stage.world, end(stage))
    stage.clock.advance(3)
    called = len(stage.endpoint.received)
    stage.run(900)

    assert called == 1
    assert len(stage.endpoint.received) == called
    ended = {(run.state, run.reason) for run in stage.runs(planned.job.id)}
    assert ended == {(State.CANCELLED, Reason.OWNER_GONE)}, "its row goes with its job, which waits"


def test_everything_stays_while_an_application_is_subscribed(stage: Stage) -> None:
    subscribed(stage, "one", "two")
    stage.create(EACH_MINUTE)
    before = len(stage.items())

    assert subscriptions.unsubscribe(stage.world, TENANT, "one", None) is None
    stage.run(70)

    assert len(stage.endpoint.received) == 1
    assert len(stage.items()) >= before
    assert list(tenancy.find_tenant(stage.world, TENANT).applications) == ["two"]
    assert subscriptions.unsubscribe(stage.world, TENANT, "two", None) is not None


def test_exactly_one_of_two_concurrent_unsubscriptions_is_the_last(stage: Stage) -> None:
    subscribed(stage, "one", "two")

    def other_leaves(_passing: Passing, act: Act) -> Any:
        stage.taps.fault = None
        assert subscriptions.unsubscribe(stage.world, TENANT, "two", None) is None
        return act()

    with stage.taps.once("dynamodb.TransactWriteItems", other_leaves):
        begun = subscriptions.unsubscribe(stage.world, TENANT, "one", None)

    assert begun is not None


def test_an_application_subscribed_as_the_last_one_leaves_keeps_everything(stage: Stage) -> None:
    subscribed(stage)

    def other_comes(_passing: Passing, act: Act) -> Any:
        stage.taps.fault = None
        subscribed(stage, "late")
        return act()

    with stage.taps.once("dynamodb.TransactWriteItems", other_comes):
        assert subscriptions.unsubscribe(stage.world, TENANT, "app", None) is None

    assert tenancy.find_tenant(stage.world, TENANT).state is TenantState.ACTIVE


@pytest.mark.parametrize("fault", [answer_lost, crash_before, crash_after], ids=lambda fault: fault.__name__)
def test_repeated_unsubscriptions_continue_as_one_operation(stage: Stage, fault: Any) -> None:
    furnish(stage)
    with stage.taps.once("dynamodb.TransactWriteItems", fault), suppress(Crash, SweephandError):
        end(stage)

    first, second = end(stage), end(stage)
    assert first.id == second.id
    stage.run(600)

    assert left(stage) == []
    assert operation(stage, first).state is OperationState.DONE
    listed = [item for item in stage.items() if item["pk"]["S"] == keys.operations(None)]
    assert len(listed) == 1


def test_nothing_is_created_in_a_tenant_while_it_is_purged_and_it_can_return_afterwards(stage: Stage) -> None:
    furnish(stage)
    world, begun = stage.world, end(stage)
    verbs.pause(world, begun)
    calendar = Calendar(TENANT, "new", EPOCH, EPOCH)
    refused = {
        "subscribe": lambda: subscribed(stage, "other"),
        "enable": lambda: tenancy.switch_tenant(world, TENANT, on=True),
        "change": lambda: tenancy.change_tenant(world, TENANT, None, Usage()),
        "collection": lambda: tenancy.create_collection(world, Collection(TENANT, "new")),
        "credential": lambda: access.create_credential(world, TENANT, None, ["jobs:read"]),
        "calendar": lambda: calendars.create(world, calendar, None),
    }
    before = left(stage)
    for what, request in refused.items():
        with pytest.raises(Conflict):
            request()
        assert left(stage) == before, what

    verbs.resume(world, operation(stage, begun))
    stage.run(600)
    subscribed(stage)
    planned = stage.create(EACH_MINUTE)
    called = len(stage.endpoint.received)
    stage.run(70)

    assert len(stage.endpoint.received) == called + 1
    assert planned.job.number == 4, "no number is given out again"


def test_a_job_being_created_when_the_end_begins_is_deleted_too(stage: Stage) -> None:
    """It was let in before, and is written when the first of the others has gone."""
    subscribed(stage)
    stage.create(EACH_MINUTE)
    begun: list[Operation] = []

    def end_comes_first(_passing: Passing, write: Act) -> Any:
        written: list[Any] = []

        def job_comes(passing: Passing, act: Act) -> Any:
            done = act()
            if passing.name == "dynamodb.TransactWriteItems" and "JOB" in str(passing.request):
                stage.taps.fault = None
                written.append(write())
            return done

        begun.append(end(stage))
        stage.taps.fault = job_comes
        stage.run(600)
        return written[0]

    with stage.taps.once("dynamodb.TransactWriteItems", end_comes_first), suppress(NotFound):
        stage.create(EACH_MINUTE)

    assert left(stage) == []
    assert operation(stage, begun[0]).done == 1


def test_no_job_is_created_once_the_end_has_begun(stage: Stage) -> None:
    subscribed(stage)
    stage.create(EACH_MINUTE)
    end(stage)
    before = stage.items()

    with pytest.raises(Conflict, match="is being deleted"):
        stage.create(EACH_MINUTE)

    assert stage.items() == before


def test_an_interrupted_or_repeated_page_counts_each_job_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge_tenant, "JOBS", 2)
    subscribed(stage)
    for _ in range(5):
        stage.create(EACH_MINUTE)
    begun = end(stage)
    for _ in range(3):
        with stage.taps.once("dynamodb.TransactWriteItems", crash_after), suppress(Crash):
            purge_tenant.page(stage.world, operation(stage, begun))
        purge_tenant.page(stage.world, operation(stage, begun))

    stage.run(600)

    done = operation(stage, begun)
    assert (done.state, done.done, done.total) == (OperationState.DONE, 5, 5)
    assert left(stage) == []


def test_a_page_starts_no_job_after_its_time(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge_tenant, "PAGE_S", -1.0)
    subscribed(stage)
    for _ in range(3):
        stage.create(EACH_MINUTE)
    begun = end(stage)

    page = purge_tenant.page(stage.world, operation(stage, begun))

    assert (page.done, page.cursor) == (1, {"round": 0})


def test_a_failed_delete_names_its_cause_and_continues_when_repeated(stage: Stage) -> None:
    subscribed(stage)
    begun = end(stage)
    stage.edit_item(keys.stripe(TENANT, 0), keys.collection("default"), jobs={"N": "1"})

    stage.run(1_200)
    failed = operation(stage, begun)
    assert (failed.state, failed.cause) == (OperationState.FAILED, "the collection default still has jobs")
    stage.edit_item(keys.stripe(TENANT, 0), keys.collection("default"), jobs={"N": "0"})
    assert end(stage).id == begun.id
    stage.run(600)

    assert left(stage) == []
    assert operation(stage, begun).state is OperationState.DONE


def test_a_purge_whose_operation_is_gone_starts_again(stage: Stage) -> None:
    subscribed(stage)
    begun = end(stage)
    stage.world.table.delete(keys.operations(None), keys.operation(begun.id))

    again = end(stage)
    stage.run(600)

    assert again.id != begun.id
    assert left(stage) == []


def test_an_old_page_does_not_affect_a_tenant_that_returned(stage: Stage) -> None:
    subscribed(stage)
    begun = end(stage)
    stage.run(600)
    subscribed(stage)
    stage.create(EACH_MINUTE)
    before = stage.items()

    page = purge_tenant.page(stage.world, operation(stage, begun))

    assert page.cursor is None
    assert stage.items() == before


def test_a_tenant_without_subscriptions_can_be_deleted_by_name(stage: Stage) -> None:
    subscribed(stage)
    with pytest.raises(Conflict, match="app"):
        subscriptions.delete_tenant(stage.world, TENANT, None)
    subscriptions.subscribe(stage.world, "globex", "a")
    tenancy.create_tenant(stage.world, "initech", None)

    begun = subscriptions.delete_tenant(stage.world, "initech", None)
    stage.run(60)

    assert operation(stage, begun).state is OperationState.DONE
    assert tenants.read_tenant(stage.world.table, "initech") is None
    assert tenants.read_tenant(stage.world.table, "globex") is not None


def test_subscribing_creates_the_tenant_and_can_be_repeated(stage: Stage) -> None:
    first = subscriptions.subscribe(stage.world, "initech", "a")
    stage.clock.advance(5)

    assert subscriptions.subscribe(stage.world, "initech", "a") == first
    assert stage.job_counts("initech") == {"default": 0}
    assert tenancy.find_tenant(stage.world, "initech").applications == {"a": first}


@pytest.mark.parametrize("fault", [answer_lost, crash_before, crash_after], ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("name", ["initech", TENANT])
def test_a_subscription_whose_answer_is_lost_exists_once(stage: Stage, name: str, fault: Any) -> None:
    with stage.taps.once("dynamodb.TransactWriteItems", fault), suppress(Crash, SweephandError):
        subscriptions.subscribe(stage.world, name, "a")
    stage.clock.advance(1)

    subscriptions.subscribe(stage.world, name, "a")

    assert list(tenancy.find_tenant(stage.world, name).applications) == ["a"]


def test_the_number_of_subscriptions_of_a_tenant_is_limited(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MOST_APPLICATIONS", 2)
    subscribed(stage, "a", "b")

    with pytest.raises(QuotaExceeded):
        subscribed(stage, "c")
    subscribed(stage, "a")


def test_an_unknown_subscription_cannot_end(stage: Stage) -> None:
    subscribed(stage)

    for name, application in ((TENANT, "other"), ("nobody", "app")):
        with pytest.raises(NotFound):
            subscriptions.unsubscribe(stage.world, name, application, None)
    assert tenancy.find_tenant(stage.world, TENANT).state is TenantState.ACTIVE
