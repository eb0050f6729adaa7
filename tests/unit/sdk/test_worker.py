"""The threads of a worker: how many messages they take, and how they end."""

from __future__ import annotations

import threading

import pytest

from sweephand.sdk import ConfigError, TransportError
from sweephand.sdk.worker import Worker
from sweephand.sdk.worker import worker as threads
from sweephand.sdk.worker.worker import Slots
from tests.unit.sdk.scripted import client, reply

REGISTERED = {"name": "billing", "version": None, "queueUrl": "https://queue/a", "region": "eu-central-1"}
APPLIED = {"set": "worker.billing", "failed": [], "remaining": 0}


class Queue:
    """A queue without messages; receive: what each receive does."""

    def __init__(self, receive) -> None:
        self._receive = receive

    def receive(self, url, most, *, hidden_s, wait_s):
        return self._receive(most)


def made_of(receive, **more) -> Worker:
    connected, _ = client(reply(REGISTERED), reply(APPLIED))
    return Worker("billing", client=connected, queue=Queue(receive), **more)


def test_a_worker_takes_no_more_than_its_free_threads():
    slots = Slots(12)

    assert [slots.take(1), slots.take(1), slots.take(1)] == [10, 2, 0]
    slots.give_back(3)
    assert slots.take(1) == 3
    assert Slots(12).take(2) == 6


def test_a_stop_ends_it_in_peace():
    made: list[Worker] = []

    def receive(_most):
        made[0].stop()
        return []

    made.append(made_of(receive))
    made[0].run()


def test_a_queue_that_does_not_answer_is_asked_again(monkeypatch):
    monkeypatch.setattr(threads, "PAUSE_S", 0)
    made: list[Worker] = []
    asked = []

    def receive(most):
        asked.append(most)
        if len(asked) < 3:
            raise TransportError("no answer")
        made[0].stop()
        return []

    made.append(made_of(receive, threads=4))
    made[0].run()

    assert asked == [4, 4, 4]


def test_a_dead_thread_ends_the_process():
    def receive(_most):
        raise ZeroDivisionError("a defect")

    with pytest.raises(ZeroDivisionError, match="a defect"):
        made_of(receive).run()


def test_it_may_run_outside_of_the_main_thread():
    made: list[Worker] = []

    def receive(_most):
        made[0].stop()
        return []

    made.append(made_of(receive))
    thread = threading.Thread(target=made[0].run)
    thread.start()
    thread.join(timeout=30)

    assert not thread.is_alive()


@pytest.mark.parametrize("threads", [0, 101])
def test_the_number_of_threads_is_bounded(threads):
    with pytest.raises(ConfigError, match=r"threads must be within 1\.\.100"):
        Worker("billing", threads=threads)
