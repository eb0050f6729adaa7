from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import Unavailable
from sweephand.domain.message import decode
from sweephand.domain.schedule import Lane
from sweephand.server.messaging.run_queue import Delivery, RunQueue, delay_s
from sweephand.testing.queues import VirtualSqs
from sweephand.testing.service import ARCHIVE, DEAD, URLS
from sweephand.testing.service import queues as of_template
from sweephand.testing.sources import VirtualClock
from sweephand.testing.taps import Act, Passing, Taps
from tests.support.taps import refused, some_failed
from tests.unit.domain.nouns import NOW, SECOND, pointer

FAST, SLOW = URLS[Lane.FAST], URLS[Lane.SLOW]


class Queues:
    """A run queue on SQS by the virtual clock."""

    def __init__(self) -> None:
        self.clock, self.taps = VirtualClock(NOW), Taps()
        self.sqs = VirtualSqs(self.clock, self.taps, of_template())
        self.queue = RunQueue(
            self.sqs, URLS, self.clock, key=lambda: bytes(32), dead_letter_url=DEAD, archive_url=ARCHIVE
        )

    def instants(self, url: str = FAST) -> list[datetime]:
        return [decode(body).instant for body in self.sqs.bodies(url)]


@pytest.fixture
def queues() -> Queues:
    return Queues()


def deliveries(count: int, lane: Lane = Lane.FAST) -> list[Delivery]:
    return [Delivery(pointer(NOW + n * SECOND), NOW + n * SECOND, lane) for n in range(count)]


@given(st.integers(-2_000_000, 2_000_000))
def test_a_delay_is_never_early_and_less_than_a_second_late(milliseconds: int) -> None:
    at = NOW + timedelta(milliseconds=milliseconds)

    delay = delay_s(at, NOW)

    assert 0 <= delay <= 900
    arrives = NOW + timedelta(seconds=delay)
    if NOW < at <= NOW + timedelta(seconds=900):
        assert at <= arrives < at + SECOND
    if at <= NOW:
        assert delay == 0


def test_all_entries_are_sent_ten_per_call(queues: Queues) -> None:
    assert queues.queue.send(deliveries(25)) == []

    assert queues.instants() == [NOW + n * SECOND for n in range(25)]
    assert queues.taps.names() == ["sqs.SendMessageBatch"] * 3


def test_no_messages_make_no_call(queues: Queues) -> None:
    assert queues.queue.send([]) == []
    queues.queue.postpone(Lane.FAST, {})

    assert queues.taps.names() == []


def test_each_lane_has_its_queue(queues: Queues) -> None:
    queues.queue.send([*deliveries(2), *deliveries(3, Lane.SLOW)])

    assert (len(queues.instants(FAST)), len(queues.instants(SLOW))) == (2, 3)


@pytest.mark.parametrize("lane", Lane)
def test_each_message_is_in_its_tenants_group_even_when_delayed_or_sent_again(queues: Queues, lane: Lane) -> None:
    tenants = ["acme", "globex", "acme", "t" * 64]
    at = NOW + 40 * SECOND
    wanted = [Delivery(replace(pointer(at), tenant=tenant), at, lane) for tenant in tenants]

    with queues.taps.once("sqs.SendMessageBatch", some_failed):
        assert queues.queue.send(wanted) == []
    queues.queue.send_one(wanted[1])

    assert sorted(filter(None, queues.sqs.groups(URLS[lane]))) == sorted([*tenants, "globex"])
    assert queues.sqs.receive(URLS[lane]) == [], "a group does not take a message's delay away"
    queues.clock.advance(40)
    assert len(queues.sqs.receive(URLS[lane])) == 5, "and holds none of its messages back"


def test_a_message_becomes_visible_at_its_instant(queues: Queues) -> None:
    queues.queue.send([Delivery(pointer(), NOW + 40 * SECOND, Lane.FAST)])

    queues.clock.advance(39)
    assert queues.sqs.receive(FAST) == []
    queues.clock.advance(1)
    assert len(queues.sqs.receive(FAST)) == 1


def test_an_instant_beyond_15_minutes_is_sent_with_the_longest_delay(queues: Queues) -> None:
    queues.queue.send([Delivery(pointer(), NOW + 3_600 * SECOND, Lane.FAST)])

    assert queues.sqs.next_visible_at([FAST]) == NOW + 900 * SECOND


def test_only_failed_entries_are_sent_once_more(queues: Queues) -> None:
    with queues.taps.once("sqs.SendMessageBatch", some_failed):
        assert queues.queue.send(deliveries(5)) == []

    assert sorted(queues.instants()) == [NOW + n * SECOND for n in range(5)]


def test_messages_that_fail_twice_are_returned(queues: Queues) -> None:
    wanted = deliveries(5)

    def always(passing: Passing, act: Act) -> Any:
        return some_failed(passing, act)

    with queues.taps.faulty(always):
        assert queues.queue.send(wanted) == [wanted[0]]
    assert len(queues.instants()) == 4


def test_the_messages_of_a_call_that_fails_twice_are_returned(queues: Queues) -> None:
    wanted = deliveries(3)

    with queues.taps.faulty(refused):
        assert queues.queue.send(wanted) == wanted
    with queues.taps.faulty(refused), pytest.raises(Unavailable):
        queues.queue.send_one(wanted[0])

    assert queues.instants() == []


def test_a_message_is_postponed_within_the_limits_of_sqs(queues: Queues) -> None:
    queues.queue.send(deliveries(1))
    (message,) = queues.sqs.receive(FAST)

    for seconds, expected in ((30.4, 30), (0.2, 0), (-5, 0), (10**9, 43_200)):
        queues.queue.postpone(Lane.FAST, {message.receipt: seconds})
        assert message.visible_at == NOW + timedelta(seconds=expected)


def test_postponing_is_best_effort(queues: Queues) -> None:
    with queues.taps.faulty(refused):
        queues.queue.postpone(Lane.FAST, {f"r{n}": 30.0 for n in range(12)})

    assert queues.taps.count("sqs.ChangeMessageVisibilityBatch") == 2


def test_a_dead_letter_is_archived_or_the_caller_gets_an_error(queues: Queues) -> None:
    queues.queue.archive("letter")
    assert queues.sqs.bodies(ARCHIVE) == ["letter"]

    with queues.taps.faulty(refused), pytest.raises(Unavailable):
        queues.queue.archive("letter")
