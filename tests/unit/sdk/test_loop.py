"""Async tasks share one event loop: clients and locks of theirs work, and no task ends the loop or is held up by it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import httpx2
import pytest

from sweephand.sdk import Sweephand
from sweephand.sdk.receiving.queues import Message
from sweephand.sdk.worker import Worker
from sweephand.sdk.worker.loop import Loop
from sweephand.testing.sources import START
from tests.unit.sdk.scripted import URL, reply
from tests.unit.sdk.test_worker import APPLIED, REGISTERED

WITHIN_S = 30


class Service:
    """A transport that answers a worker's calls. settled: outcomes by run. beaten: set by the first heartbeat."""

    def __init__(self) -> None:
        self.settled: dict[str, Any] = {}
        self.beaten = Event()

    def send(self, method, url, headers, content, timeout_s):
        path = url.removeprefix(URL)
        if path.endswith("/claim"):
            run = path.split("/")[3]
            task = {"runId": run, "jobId": "j", "name": json.loads(json.loads(content)["message"])["task"]}
            more = {"kind": "schedule", "plannedAt": "2027-03-01T12:00:00Z", "attempt": 1, "maxAttempts": 24}
            return reply({"verdict": "run", "task": {**task, **more}})
        if path.endswith("/settle"):
            self.settled[path.split("/")[3]] = json.loads(content)
            return reply({})
        if path.endswith("/heartbeat"):
            self.beaten.set()
            return reply({})
        if path.startswith("/v1/jobs?"):
            return reply({"items": [], "nextCursor": None})
        return reply(REGISTERED if "/applications/" in path else APPLIED)

    def close(self) -> None: ...


class Messages:
    """A queue with one message for each task, which stops the worker once all of them are deleted or given back."""

    def __init__(self, *tasks: str) -> None:
        bodies = [{"job": "j", "schedule": None, "run": f"{n}", "task": task} for n, task in enumerate(tasks)]
        self.left = [Message(json.dumps(body), "r", START, "u") for body in bodies]
        self.deleted: list[Message] = []

    def receive(self, url, most, *, hidden_s, wait_s):
        taken, self.left = self.left[:most], self.left[most:]
        return taken

    def hide(self, message, seconds) -> None: ...

    def delete(self, message) -> None:
        self.deleted.append(message)


def worker_of(*tasks: str, **more: Any) -> tuple[Worker, Service]:
    service = Service()
    client = Sweephand(URL, client_id="me", secret="s", transport=service)
    return Worker("billing", client=client, queue=Messages(*tasks), **more), service


@contextmanager
def running(worker: Worker) -> Iterator[None]:
    """Runs the worker in a thread, stops it, and waits until it has ended."""
    ended: list[BaseException] = []

    def run() -> None:
        try:
            worker.run()
        except BaseException as error:  # noqa: BLE001 - shown by the assertion
            ended.append(error)

    thread = Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join(timeout=WITHIN_S)
    assert (thread.is_alive(), ended) == (False, [])


def test_async_tasks_of_a_worker_wait_for_each_other_on_one_loop():
    worker, service = worker_of("one", "other")
    told = asyncio.Event()
    both = threading.Barrier(3)

    @worker.task(name="one")
    async def one() -> None:
        await asyncio.wait_for(told.wait(), WITHIN_S)
        await asyncio.to_thread(both.wait, WITHIN_S)

    @worker.task(name="other")
    async def other() -> None:
        told.set()
        await asyncio.to_thread(both.wait, WITHIN_S)

    with running(worker):
        both.wait(WITHIN_S)

    assert [each["outcome"] for each in service.settled.values()] == ["success"] * 2


class Hello(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


def test_async_tasks_share_a_client_with_its_kept_connections():
    worker = Worker("billing")
    client = httpx2.AsyncClient()

    @worker.task(name="fetch")
    async def fetch(url: str) -> int:
        return (await client.get(url)).status_code

    @worker.task(name="close")
    async def close() -> None:
        await client.aclose()

    with ThreadingHTTPServer(("127.0.0.1", 0), Hello) as server:
        Thread(target=server.serve_forever).start()
        payload = {"url": f"http://127.0.0.1:{server.server_port}/"}
        assert [worker.call("fetch", payload) for _ in range(3)] == [200] * 3
        worker.call("close")
        server.shutdown()


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), ValueError("no")])
def test_nothing_that_an_async_task_raises_ends_the_loop(raised):
    worker, service = worker_of("raises", "works", threads=1)
    done = Event()

    @worker.task(name="raises")
    async def raises() -> None:
        raise raised

    @worker.task(name="works")
    async def works() -> None:
        done.set()

    with running(worker):
        assert done.wait(WITHIN_S)

    assert [service.settled[f"j_{n}"]["outcome"] for n in range(2)] == ["failure", "success"]
    assert service.settled["j_0"]["exception"].endswith(type(raised).__name__)


def test_a_stop_finishes_an_async_task_and_cancels_its_background_tasks():
    worker, service = worker_of("slow")
    begun, left = Event(), []

    async def stays() -> None:
        try:
            await asyncio.sleep(3_600)
        finally:
            left.append("cancelled")

    @worker.task(name="slow")
    async def slow(run) -> None:
        left.append(asyncio.create_task(stays()))
        begun.set()
        await asyncio.to_thread(run.stopping.wait, WITHIN_S)

    with running(worker):
        assert begun.wait(WITHIN_S)

    assert service.settled["j_0"]["outcome"] == "success"
    assert left[1:] == ["cancelled"]


def test_a_blocked_loop_delays_no_heartbeat():
    worker, service = worker_of("blocks")
    worker._lease_s = 1  # shorter than a stack allows, so that a heartbeat comes soon

    @worker.task(name="blocks")
    async def blocks() -> None:
        assert service.beaten.wait(WITHIN_S)  # blocks the loop

    with running(worker):
        assert service.beaten.wait(WITHIN_S)

    assert service.settled["j_0"]["outcome"] == "success"


def test_a_background_task_that_ends_the_loop_ends_the_process():
    worker, _ = worker_of("leaves")

    async def ends() -> None:
        raise SystemExit(7)

    @worker.task(name="leaves")
    async def leaves() -> None:
        asyncio.create_task(ends())  # noqa: RUF006 - left behind
        await asyncio.sleep(3_600)

    with pytest.raises(SystemExit) as end:
        worker.run()

    assert end.value.code == 7


def test_a_closed_loop_starts_again():
    def thread(work):
        made = Thread(target=work)
        made.start()
        return made

    async def number() -> int:
        return 7

    loop = Loop(thread)
    loop.close()
    assert loop.run(number()) == 7
    loop.close()
    assert loop.run(number()) == 7
    loop.close()


def test_a_loop_that_cannot_start_is_an_error_without_a_wait(monkeypatch):
    def thread(work):
        def dead() -> None:
            with suppress(OSError):
                work()

        made = Thread(target=dead)
        made.start()
        return made

    def full(_coroutine):
        _coroutine.close()
        raise OSError("too many open files")

    monkeypatch.setattr(asyncio, "run", full)
    work = asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="the event loop of async tasks did not start"):
        Loop(thread).run(work)
    work.close()
