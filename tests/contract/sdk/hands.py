"""Workers on the stage: each takes one message after the other, on the moved clock and without threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sweephand.sdk.receiving.queues import SqsQueue
from sweephand.sdk.worker import Worker
from sweephand.sdk.worker.attempts import Attempts
from tests.contract.native.api import Api
from tests.contract.sdk.stack import connected


@dataclass
class Hands:
    """A started worker. queues: their addresses, with the versions that they are for."""

    api: Api
    worker: Worker
    attempts: Attempts
    queue: SqsQueue
    queues: list[tuple[str, str | None]]

    def work(self, most: int = 1_000) -> int:
        """Takes what can be received now. Returns how many messages."""
        taken = 0
        for url, version in self.queues:
            while taken < most:
                messages = self.attempts.receive(url, 1, wait_s=0)
                if not messages:
                    break
                self.attempts.take(messages[0], version)
                taken += 1
        return taken

    def live(self, seconds: float, step_s: float = 1.0) -> None:
        """Lets time go by for service and worker."""
        end = self.api.stage.clock.now().timestamp() + seconds
        while self.api.stage.clock.now().timestamp() < end:
            self.api.stage.run(min(step_s, end - self.api.stage.clock.now().timestamp()))
            self.work()


def started(api: Api, declare: Callable[[Worker], Any], name: str = "billing", **members: Any) -> Hands:
    """Starts a worker with its tasks, as `run` does."""
    client, _ = connected(api)
    queue = SqsQueue(client=api.stage.sqs)
    worker = Worker(name, client=client, queue=queue, **members)
    declare(worker)
    queues = worker.start()
    return Hands(api, worker, worker.attempts(queue), queue, queues)
