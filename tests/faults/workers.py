"""A worker of the SDK within a play: its requests and the calls of its queue are numbered like the service's own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit

from sweephand.base.errors import SweephandError
from sweephand.domain.run import Verdict
from sweephand.sdk import Sweephand
from sweephand.sdk.receiving.queues import SqsQueue
from sweephand.sdk.transport.request import Answer
from sweephand.sdk.worker import TaskRun, Worker
from sweephand.sdk.worker.attempts import Attempts
from sweephand.server.actions.call import Call
from sweephand.server.facades.native.api import NativeApi
from sweephand.server.security.caller import Door
from sweephand.server.security.tokens import derive_keys
from sweephand.testing.sources import SeededChance
from sweephand.testing.taps import Passing
from tests.contract.calls import event
from tests.contract.native.api import GUARD, STACK_SECRET
from tests.faults.kinds import API
from tests.faults.play import TENANT, Play
from tests.support.taps import Crash

T = TypeVar("T")
logging.getLogger("sweephand.worker").addHandler(logging.NullHandler())  # tasks are meant to fail here

NO_ANSWER = Answer(502, {}, b"")
"""The gateway's own answer if a function dies."""


class Failed(Exception):
    """Raised by a task whose target does not succeed."""


@dataclass
class Gateway:
    """Carries the worker's requests to the native API, whose function may die under them. dead: the worker is."""

    at: Play
    dead: bool = False

    def send(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, timeout_s: float
    ) -> Answer:
        if self.dead:
            raise Crash
        path = urlsplit(url).path
        request = event(method, path, "", {name.lower(): text for name, text in headers.items()}, content)
        passing = Passing(API, f"{method} {path.rpartition('/')[2]}", {"event": request})
        answer: Answer = self.at.scene.taps(passing, lambda: self._answer(request))
        return answer

    def _answer(self, request: Mapping[str, object]) -> Answer:
        door = Door(derive_keys("test", STACK_SECRET, None), STACK_SECRET, lambda _tenant, _name: None)
        try:
            answer = NativeApi(self.at.scene.world, GUARD, lambda: door).handle(request, "request")
        except Crash:
            return NO_ANSWER
        return Answer(answer["statusCode"], answer["headers"], answer["body"].encode())

    def close(self) -> None: ...


@dataclass(frozen=True)
class Clock:
    """The play's clock for the SDK, whose waits take time in which nothing else happens."""

    at: Play

    def now(self) -> datetime:
        return self.at.scene.clock.now()

    def monotonic(self) -> float:
        return self.at.scene.clock.monotonic()

    def sleep(self, seconds: float) -> None:
        self.at.scene.clock.advance(seconds)


@dataclass
class Hand:
    """A process of an application, which starts again after its death. It takes one message after the other.

    declare: its tasks, on `worker`. The function of a task is `task`. applies: whether it applies its job set.
    """

    at: Play
    declare: Callable[[Hand, Worker], object]
    members: Mapping[str, object]
    applies: bool = True
    worker: Worker | None = None
    attempts: Attempts | None = None
    gateway: Gateway | None = None
    url: str = ""

    def start(self) -> None:
        """Starts the process, as `Worker.run` does."""
        self.gateway = Gateway(self.at)
        client = Sweephand(
            "https://sweephand.example",
            client_id="provider.admin",
            secret=STACK_SECRET,
            tenant=TENANT,
            transport=self.gateway,
            clock=Clock(self.at),
            chance=SeededChance(9),
        )
        queue = SqsQueue(client=self.at.scene.sqs)
        worker = Worker("billing", client=client, queue=queue, **self.members)  # type: ignore[arg-type]
        self.declare(self, worker)
        if self.applies:
            [(self.url, _)] = worker.start()
        else:
            self.url = worker._registered(None).queue_url
        self.worker, self.attempts = worker, worker.attempts(queue)

    def twin(self) -> Hand:
        """Returns another process, which has started."""
        twin = Hand(self.at, self.declare, self.members, applies=False)
        twin.start()
        return twin

    def work(self) -> bool:
        """Takes a message. Returns whether there was one. Survives the worker's death, as its supervisor does."""
        now, upcoming = self.at.scene.clock.now(), self.at.scene.sqs.next_visible_at([self.url])
        if upcoming is None or upcoming > now:
            return False
        try:
            if self.attempts is None:
                self.start()
            assert self.attempts is not None
            for message in self.attempts.receive(self.url, 1, wait_s=0):
                self.attempts.take(message, None)
        except Crash:
            self.attempts = None
        except SweephandError:
            return True
        return True

    def alive(self, step: Callable[[], T]) -> T:
        """Carries out a step of a task. A process that dies in it does not report that its task has failed."""
        try:
            return step()
        except Crash:
            assert self.gateway is not None
            self.gateway.dead = True
            raise

    def beat(self) -> None:
        """Sends a heartbeat some time later, as the thread of the process does."""
        assert self.attempts is not None
        self.at.scene.clock.advance(20)
        self.alive(self.attempts.beat)

    def task(self, run: TaskRun) -> None:
        """Calls the play's target, so that it answers for a task too. Dies with it."""
        call = Call(
            run.id, run.job_id or "", None, TENANT, run.planned_at, run.attempt, 60, self.at.scene.clock, run.payload
        )
        outcome = self.alive(partial(self.at.scene.endpoint.perform, "queue", {}, call, None))
        if outcome.verdict is not Verdict.SUCCEEDED:
            raise Failed(outcome.message)
