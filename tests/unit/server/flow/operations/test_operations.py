"""Long work: each way to be cut off, paused, lost or doubled, and what its row says in the end."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sweephand.base.errors import Conflict, NotFound, Unavailable
from sweephand.domain.collection import Events
from sweephand.domain.event import EventType
from sweephand.domain.operation import KEPT, Operation, OperationKind, OperationState, Page
from sweephand.domain.schedule import Lane
from sweephand.server.flow.bulk import carry_on, redrive
from sweephand.server.flow.idempotency import Once
from sweephand.server.flow.operations import verbs
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo import keys
from sweephand.server.store.operations import operations as store
from sweephand.testing.service import ARCHIVE, DEAD, URLS
from sweephand.testing.taps import Act, Passing
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, crash_after, crash_before, refused

QUEUE = URLS[Lane.OPERATIONS]
Work = Callable[[World, Operation], Page]


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Callable[[Work], list[dict[str, Any]]]:
    """pages(work): from now on a redrive does that; the list gets the cursor of each page that began."""

    def install(work: Work) -> list[dict[str, Any]]:
        begun: list[dict[str, Any]] = []

        def page(world: World, operation: Operation) -> Page:
            begun.append(dict(operation.cursor))
            return work(world, operation)

        module = importlib.import_module("sweephand.server.flow.bulk.redrive")
        monkeypatch.setattr(module, "page", page)
        return begun

    return install


def counting(to: int, *, wait_s: float = 0) -> Work:
    """Makes so many pages of two things each, one of which fails; a page every `wait_s`."""

    def page(world: World, operation: Operation) -> Page:
        at = int(operation.cursor.get("at", 0)) + 1
        if at == to:
            return Page(None, 2, 1, result={"pages": at})
        due_at = world.clock.now() + timedelta(seconds=wait_s) if wait_s else None
        return Page({"at": at}, 2, 1, due_at=due_at)

    return page


def begin(stage: Stage, once: Once | None = None) -> Operation:
    params = {"runs": [], "ratePerMinute": 60}
    return verbs.begin(stage.world, TENANT, OperationKind.REDRIVE, params, actor="acme.me", total=8, once=once)


def stored(stage: Stage, operation: Operation) -> Operation:
    with stage.untapped():
        return verbs.find(stage.world, operation.tenant, operation.id)


def work_off(stage: Stage, most: int = 100) -> None:
    for _ in range(most):
        with suppress(Crash):
            if not stage.deliver(Lane.OPERATIONS):
                return


def check_done(stage: Stage, operation: Operation, pages: int = 4) -> None:
    there = stored(stage, operation)
    assert (there.state, there.done, there.failed) == (OperationState.DONE, 2 * pages, pages)
    assert there.result == {"pages": pages}
    assert there.ended_at is not None
    assert there.expires_at is not None
    assert abs(there.expires_at - there.ended_at - KEPT) < timedelta(seconds=1)
    assert not any("OP#" in sk for _, sk in stage.waiting())


def test_an_operation_continues_on_its_own_until_it_is_done(stage: Stage, pages: Any) -> None:
    begun = pages(counting(4, wait_s=30))
    operation = begin(stage)

    stage.run(300)

    check_done(stage, operation)
    assert begun == [{}, {"at": 1}, {"at": 2}, {"at": 3}]


def test_pages_without_a_wait_share_a_message(stage: Stage, pages: Any) -> None:
    pages(counting(4))
    operation = begin(stage)

    assert stage.deliver(Lane.OPERATIONS) == 1

    check_done(stage, operation)
    assert stage.sqs.bodies(QUEUE) == []


def test_one_invocation_stops_in_time_and_another_message_continues(stage: Stage, pages: Any) -> None:
    slow = counting(4)

    def page(world: World, operation: Operation) -> Page:
        stage.clock.advance(carry_on.STRETCH_S / 2 + 1)
        return slow(world, operation)

    begun = pages(page)
    operation = begin(stage)

    stage.deliver(Lane.OPERATIONS)

    assert len(begun) == 2
    assert stored(stage, operation).done == 4
    work_off(stage)
    check_done(stage, operation)


def test_no_page_begins_before_its_time(stage: Stage, pages: Any) -> None:
    begun = pages(counting(2, wait_s=400))
    begin(stage)

    stage.run(390)
    early = len(begun)
    stage.run(20)

    assert (early, len(begun)) == (1, 2)


def test_a_wait_longer_than_the_longest_queue_delay_is_kept(stage: Stage, pages: Any) -> None:
    begun = pages(counting(2, wait_s=3_600))
    operation = begin(stage)

    stage.run(3_590)
    early = len(begun)
    stage.run(1_800)

    assert (early, len(begun)) == (1, 2)
    check_done(stage, operation, 2)


@pytest.mark.repeats
@pytest.mark.parametrize("call", ["sqs.SendMessageBatch", "dynamodb.UpdateItem", "dynamodb.GetItem"])
@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost, refused])
@pytest.mark.parametrize("skip", [0, 1, 2])
def test_an_operation_is_done_and_counted_once_wherever_it_is_interrupted(
    stage: Stage, pages: Any, call: str, fault: Any, skip: int
) -> None:
    pages(counting(4, wait_s=20))
    met = 0

    def nth(passing: Passing, act: Act) -> Any:
        nonlocal met
        if passing.name != call or (
            "queue/operations" not in str(passing.request) and "OPS#" not in str(passing.request)
        ):
            return act()
        met += 1
        return fault(passing, act) if met == skip + 1 else act()

    with stage.taps.faulty(nth):
        with suppress(Crash, Unavailable):
            begin(stage)
        for _ in range(60):
            with suppress(Crash):
                stage.run(30)

    assert met > skip
    (operation,) = (
        stored(stage, Operation(TENANT, keys.parts(item["sk"]["S"])[1], OperationKind.REDRIVE, {}, stage.clock.now()))
        for item in stage.items()
        if item["sk"]["S"].startswith("OP#")
    )
    check_done(stage, operation)


def test_the_row_of_an_operation_sends_lost_messages_again(stage: Stage, pages: Any) -> None:
    pages(counting(4, wait_s=20))
    operation = begin(stage)
    for _ in range(40):
        stage.run(30)
        stage.sqs.purge(QUEUE)

    stage.run(3_600)

    check_done(stage, operation)


def test_a_duplicate_message_repeats_no_page(stage: Stage, pages: Any) -> None:
    begun = pages(counting(4, wait_s=20))
    operation = begin(stage)
    for _ in range(10):
        stage.sqs.duplicate(QUEUE)
        stage.run(10)

    check_done(stage, operation)
    assert begun == [{}, {"at": 1}, {"at": 2}, {"at": 3}]


def test_only_one_of_two_workers_on_a_page_is_counted(stage: Stage, pages: Any) -> None:
    count = counting(3, wait_s=20)
    twin = iter([True])

    def page(world: World, operation: Operation) -> Page:
        if next(twin, False):
            stage.sqs.duplicate(QUEUE)
            for message in stage.sqs._queues[QUEUE].messages:
                message.visible_at = stage.clock.now()
            stage.deliver(Lane.OPERATIONS)
        return count(world, operation)

    pages(page)
    operation = begin(stage)
    stage.deliver(Lane.OPERATIONS)
    assert stored(stage, operation).done == 2
    stage.run(120)

    check_done(stage, operation, 3)


def test_an_operation_that_cannot_continue_fails_with_a_reason_and_can_be_resumed(stage: Stage, pages: Any) -> None:
    hopeless = iter([False, True])
    count = counting(3)

    def page(world: World, operation: Operation) -> Page:
        if next(hopeless, False):
            raise Conflict("the target is gone")
        return count(world, operation)

    pages(page)
    operation = begin(stage)
    stage.run(10)

    there = stored(stage, operation)
    assert (there.state, there.cause, there.done) == (OperationState.FAILED, "the target is gone", 2)
    assert there.ended_at is not None
    assert "an operation failed" in stage.journal.at("error")
    told = stage.bus.only(EventType.OPERATION_FAILED)
    assert (told["tenant"], told["operationId"], told["cause"]) == (TENANT, operation.id, "the target is gone")
    assert (told["done"], told["total"], told["collection"]) == (2, 8, None)

    resumed = verbs.resume(stage.world, there)
    assert (resumed.cause, resumed.ended_at, resumed.expires_at) == (None, None, None)
    stage.run(10)
    check_done(stage, operation, 3)


def test_a_failed_operation_is_published_even_if_the_answer_of_its_write_is_lost(stage: Stage, pages: Any) -> None:
    def page(world: World, operation: Operation) -> Page:
        raise Conflict("the target is gone")

    pages(page)
    operation = begin(stage)

    with stage.taps.once("dynamodb.UpdateItem", answer_lost):
        stage.deliver(Lane.OPERATIONS)

    assert stored(stage, operation).state is OperationState.FAILED
    assert stage.bus.only(EventType.OPERATION_FAILED)["cause"] == "the target is gone"


@pytest.mark.parametrize("fault", [crash_before, crash_after])
def test_a_failed_operation_is_published_whenever_its_function_dies(stage: Stage, pages: Any, fault: Any) -> None:
    def page(world: World, operation: Operation) -> Page:
        raise Conflict("the target is gone")

    pages(page)
    stage.tell(Events.NONE)
    operation = begin(stage)

    with stage.taps.once("events.PutEvents", fault), suppress(Crash):
        stage.deliver(Lane.OPERATIONS)
    stage.run(800)

    assert stored(stage, operation).state is OperationState.FAILED
    told = stage.bus.of(EventType.OPERATION_FAILED)
    assert len({each["id"] for each in told}) == 1
    assert len(told) == (1 if fault is crash_before else 2)


def test_each_failure_of_an_operation_is_published_separately(stage: Stage, pages: Any) -> None:
    def page(world: World, operation: Operation) -> Page:
        raise Conflict("the target is gone")

    pages(page)
    operation = begin(stage)
    stage.run(10)
    verbs.resume(stage.world, stored(stage, operation))
    stage.run(10)

    assert len({each["id"] for each in stage.bus.of(EventType.OPERATION_FAILED)}) == 2


def test_an_operation_fails_after_three_unexpected_errors_and_names_the_error(stage: Stage, pages: Any) -> None:
    def page(world: World, operation: Operation) -> Page:
        raise ZeroDivisionError

    begun = pages(page)
    operation = begin(stage)
    stage.run(600)

    there = stored(stage, operation)
    assert there.state is OperationState.FAILED
    assert str(there.cause).startswith("unexpected: ZeroDivisionError at ")
    assert len(begun) == carry_on.TRIES_UNEXPECTED


def test_a_dead_letter_fails_an_operation_that_kills_its_function(stage: Stage, pages: Any) -> None:
    def page(world: World, operation: Operation) -> Page:
        raise Crash

    pages(page)
    operation = begin(stage)
    for _ in range(32):
        with suppress(Crash):
            stage.deliver(Lane.OPERATIONS)
        stage.clock.advance(721)
    stage.deliver_all()

    there = stored(stage, operation)
    assert there.state is OperationState.FAILED
    assert there.cause == "the function stopped before finishing a page, on every try"
    assert stage.bus.only(EventType.OPERATION_FAILED)["cause"] == there.cause
    assert len(stage.sqs.bodies(ARCHIVE)) == 1


def test_a_dead_letter_of_a_page_done_since_fails_nothing(stage: Stage, pages: Any) -> None:
    pages(counting(4, wait_s=60))
    operation = begin(stage)
    stage.sqs._queues[DEAD].messages += stage.sqs._queues[QUEUE].messages
    stage.deliver(Lane.OPERATIONS)

    stage.deliver_dead()

    assert stored(stage, operation).state is OperationState.RUNNING


def test_an_unavailable_table_fails_no_operation(stage: Stage, pages: Any) -> None:
    def page(world: World, operation: Operation) -> Page:
        if stage.clock.now() < begun_at + timedelta(hours=3):
            raise Unavailable("the table did not answer in time")
        return Page(None)

    pages(page)
    begun_at = stage.clock.now()
    operation = begin(stage)
    stage.run(3 * 3_600)
    assert stored(stage, operation).state is OperationState.RUNNING
    stage.run(3_600)

    assert stored(stage, operation).state is OperationState.DONE
    assert stage.sqs.bodies(ARCHIVE) == []


def test_a_paused_operation_stops_and_continues_there_when_resumed(stage: Stage, pages: Any) -> None:
    begun = pages(counting(4, wait_s=20))
    operation = begin(stage)
    stage.run(25)

    paused = verbs.pause(stage.world, stored(stage, operation))
    stage.run(7_200)
    rested = len(begun)
    verbs.resume(stage.world, paused)
    stage.run(120)

    assert (paused.state, rested) == (OperationState.PAUSED, 2)
    assert begun == [{}, {"at": 1}, {"at": 2}, {"at": 3}]
    check_done(stage, operation)


def test_a_page_in_progress_during_a_pause_is_repeated_and_counted_once(stage: Stage, pages: Any) -> None:
    count = counting(2)
    pause = iter([True])

    def page(world: World, operation: Operation) -> Page:
        if next(pause, False):
            verbs.pause(world, operation)
        return count(world, operation)

    begun = pages(page)
    operation = begin(stage)
    stage.run(60)
    assert (stored(stage, operation).state, stored(stage, operation).done) == (OperationState.PAUSED, 0)
    verbs.resume(stage.world, stored(stage, operation))
    stage.run(60)

    assert begun == [{}, {}, {"at": 1}]
    check_done(stage, operation, 2)


@pytest.mark.parametrize("rest", [None, verbs.pause])
def test_a_cancelled_operation_ends_and_does_no_more(stage: Stage, pages: Any, rest: Any) -> None:
    begun = pages(counting(4, wait_s=20))
    operation = begin(stage)
    stage.run(25)
    if rest is not None:
        rest(stage.world, operation)

    cancelled = verbs.cancel(stage.world, operation)
    stage.run(7_200)

    there = stored(stage, operation)
    assert (cancelled.state, there.state, there.done) == (OperationState.CANCELLED, OperationState.CANCELLED, 4)
    assert there.ended_at is not None
    assert len(begun) == 2
    assert stage.waiting() == {}


@pytest.mark.parametrize("verb", [verbs.pause, verbs.resume, verbs.cancel])
@pytest.mark.parametrize("fault", [answer_lost, crash_after])
def test_pausing_resuming_and_cancelling_can_be_repeated(stage: Stage, pages: Any, verb: Any, fault: Any) -> None:
    pages(counting(4, wait_s=20))
    operation = begin(stage)
    if verb is verbs.resume:
        verbs.pause(stage.world, operation)
    with stage.taps.once("dynamodb.UpdateItem", fault), suppress(Crash):
        verb(stage.world, operation)

    again = verb(stage.world, stored(stage, operation))

    assert again.state is stored(stage, operation).state


def test_an_ended_operation_cannot_be_paused_or_resumed(stage: Stage, pages: Any) -> None:
    pages(counting(1))
    operation = begin(stage)
    stage.run(10)

    for verb in (verbs.pause, verbs.resume, verbs.cancel):
        with pytest.raises(Conflict):
            verb(stage.world, operation)


def test_a_failed_operation_can_be_cancelled_but_not_paused(stage: Stage, pages: Any) -> None:
    pages(counting(4, wait_s=20))
    operation = begin(stage)
    failed = verbs.give_up(stage.world, operation, "by hand")
    assert failed is not None

    with pytest.raises(Conflict):
        verbs.pause(stage.world, failed)
    assert verbs.cancel(stage.world, failed).state is OperationState.CANCELLED


def test_an_ended_operation_is_not_marked_as_failed(stage: Stage, pages: Any) -> None:
    pages(counting(1))
    operation = begin(stage)
    stage.run(10)

    assert verbs.give_up(stage.world, operation, "too late") is None
    check_done(stage, operation, 1)


def test_the_same_key_begins_one_operation(stage: Stage, pages: Any) -> None:
    pages(counting(1))
    once = Once("k", "d")

    first, again = begin(stage, once), begin(stage, once)

    assert again.id == first.id
    assert len(stage.sqs.bodies(QUEUE)) == 1


def test_two_concurrent_requests_with_the_same_key_begin_one_operation(stage: Stage, pages: Any) -> None:
    pages(counting(1))
    once = Once("k", "d")
    other: list[Operation] = []

    def first(passing: Passing, act: Act) -> Any:
        stage.taps.fault = None
        other.append(begin(stage, once))
        return act()

    stage.taps.fault = lambda passing, act: first(passing, act) if passing.operation == "TransactWriteItems" else act()
    mine = begin(stage, once)

    assert mine.id == other[0].id


def test_operations_of_the_provider_are_separate_from_those_of_tenants(stage: Stage, pages: Any) -> None:
    pages(counting(2, wait_s=20))
    own = verbs.begin(stage.world, None, OperationKind.REDRIVE, {}, actor="provider.admin")
    stage.sqs.purge(QUEUE)

    stage.run(1_800)

    check_done(stage, own, 2)
    assert all(item["pk"]["S"] == "STACK#provider#OPS#" for item in stage.items() if "OP#" in item["sk"]["S"])
    with pytest.raises(NotFound):
        verbs.find(stage.world, TENANT, own.id)


def test_an_expired_operation_is_not_found_even_before_its_row_is_deleted(stage: Stage, pages: Any) -> None:
    pages(counting(1))
    operation = begin(stage)
    stage.run(10)
    stage.clock.advance(KEPT.total_seconds() - 60)
    assert stored(stage, operation).state is OperationState.DONE

    stage.clock.advance(120)

    with pytest.raises(NotFound):
        stored(stage, operation)


def test_the_write_of_a_page_is_refused_when_another_worker_is_ahead(stage: Stage, pages: Any) -> None:
    operation = begin(stage)
    further = replace(operation, step=2, done=5, by="another")
    now, shards = stage.clock.now(), stage.world.settings.shards
    store.move_on(stage.world.table, operation, further, now, shards)

    store.move_on(stage.world.table, operation, replace(operation, step=2, done=1, by="me"), now, shards)

    assert stored(stage, operation).done == 5


def test_an_operation_never_overwrites_another(stage: Stage) -> None:
    operation = begin(stage)
    again = store.begin_op(stage.world.table, replace(operation, done=7), stage.world.settings.shards)

    stage.world.table.transact([again])

    assert stored(stage, operation).done == 0


def test_an_unreadable_message_comes_back_until_it_is_a_dead_letter(stage: Stage) -> None:
    stage.sqs._put(QUEUE, {"MessageBody": "nothing"})

    stage.run(3 * 3_600)

    assert stage.sqs.bodies(ARCHIVE) == ["nothing"]


def test_the_pages_of_a_redrive_are_small_enough_to_pause_between_them() -> None:
    assert [redrive.page_size(rate) for rate in (1, 6, 60, 600, 6_000)] == [1, 1, 10, 100, 200]
