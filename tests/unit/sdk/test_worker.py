"""The threads of a worker: how many messages they take, and how they end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from datetime import timedelta
from functools import partial

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from sweephand.base.sources import SystemClock
from sweephand.sdk import ConfigError, Sweephand, TransportError
from sweephand.sdk.errors import NoAccess
from sweephand.sdk.receiving.queues import SqsQueue
from sweephand.sdk.worker import Delay, Discard, MoveTo, Worker
from sweephand.sdk.worker import worker as threads
from sweephand.sdk.worker.threads import Signals, Slots
from tests.unit.sdk.scripted import client, reply

REGISTERED = {"name": "billing", "version": None, "queueUrl": "https://queue/a", "region": "eu-central-1"}
DUE = {"id": "01", "name": "billing/report", "nextRunAt": "2027-03-01T12:05:00Z"}
APPLIED = {"set": "worker.billing", "created": [], "updated": [], "failed": [], "remaining": 0}


class Queue:
    """A queue without messages; receive: what each receive does."""

    def __init__(self, receive) -> None:
        self._receive = receive

    def receive(self, url, most, *, hidden_s, wait_s):
        return self._receive(most)


class Watch(SystemClock):
    """A clock that stands still. at: seconds."""

    at = 0.0

    def monotonic(self) -> float:
        return self.at


def made_of(receive, **more) -> Worker:
    connected, _ = client(reply(REGISTERED), reply(APPLIED), reply({"items": [DUE], "nextCursor": None}))
    return Worker("billing", client=connected, queue=Queue(receive), **more)


def test_a_worker_takes_no_more_than_its_free_threads():
    slots = Slots(12)

    assert [slots.take(1), slots.take(1), slots.take(1)] == [10, 2, 0]
    slots.give_back(3)
    assert slots.take(1) == 3
    assert Slots(12).take(2) == 6


def test_a_stop_ends_a_worker_gracefully():
    made: list[Worker] = []

    def receive(_most):
        made[0].stop()
        return []

    made.append(made_of(receive))
    made[0].run()


def test_a_worker_says_at_its_start_what_it_serves_and_when_it_is_due(capsys, monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    made: list[Worker] = []
    made.append(made_of(lambda _: made[0].stop() or []))
    made[0].every("5m")(lambda: None)
    made[0].run()
    monkeypatch.undo()
    time.tzset()

    said = capsys.readouterr().err
    assert said.startswith("billing: 1 task, worker ")
    assert said.endswith(", next 2027-03-01 13:05:00+0100 (billing/report)\n")


def test_a_worker_of_a_local_stack_needs_no_aws_credentials(tmp_path, monkeypatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "stack.json"
    tenant = {"tenant": "acme", "clientId": "acme.x", "secret": "s"}
    stack = {"baseUrl": "http://127.0.0.1:4571", "awsEndpointUrl": "http://127.0.0.1:4570", "tenants": [tenant]}
    path.write_text(json.dumps(stack))
    made = Sweephand.local(path)
    made._caller._transport = client(reply(REGISTERED), reply(APPLIED))[0]._caller._transport
    worker = Worker("billing", client=made)

    worker.start()

    assert worker.queue._client.meta.endpoint_url == "http://127.0.0.1:4570"
    assert worker.queue._client._request_signer._credentials.access_key == "local"


def test_a_queue_that_does_not_answer_is_polled_again(monkeypatch):
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


def test_a_worker_without_permission_for_its_queue_ends_with_one_sentence(capsys):
    def receive(_most):
        raise NoAccess("there are no AWS credentials")

    with pytest.raises(SystemExit) as ended:
        made_of(receive).run()

    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.endswith("\nthe worker cannot start: there are no AWS credentials\n")


@pytest.mark.parametrize(
    ("fault", "raised", "says"),
    [
        (NoCredentialsError(), NoAccess, "set AWS_PROFILE"),
        (ClientError({"Error": {"Code": "AccessDenied", "Message": "not you"}}, "ReceiveMessage"), NoAccess, "not you"),
        (ClientError({"Error": {"Code": "QueueDoesNotExist"}}, "ReceiveMessage"), NoAccess, "https://queue/a"),
        (
            ClientError({"Error": {"Code": "SignatureDoesNotMatch"}}, "ReceiveMessage"),
            NoAccess,
            "the clock of this mach",
        ),
        (ClientError({"Error": {"Code": "InvalidSignatureException"}}, "ReceiveMessage"), NoAccess, "sweephand doctor"),
        (ClientError({"Error": {"Code": "ServiceUnavailable"}}, "ReceiveMessage"), TransportError, "https://queue/a"),
        (EndpointConnectionError(endpoint_url="https://queue"), TransportError, "https://queue"),
    ],
)
def test_refusals_that_a_repeated_call_cannot_change_are_distinguished(fault, raised, says):
    class Sqs:
        def receive_message(self, **_: object) -> None:
            raise fault

    with pytest.raises(TransportError, match=says) as told:
        SqsQueue(client=Sqs()).receive("https://queue/a", 1, hidden_s=60, wait_s=0)

    assert type(told.value) is raised


def test_a_running_worker_survives_expired_credentials(monkeypatch):
    monkeypatch.setattr(threads, "PAUSE_S", 0)
    made: list[Worker] = []
    asked = []

    def receive(most):
        asked.append(most)
        if len(asked) == 2:
            raise NoAccess("ExpiredToken")
        if len(asked) == 3:
            made[0].stop()
        return []

    made.append(made_of(receive))
    made[0].run()

    assert len(asked) == 3


@pytest.mark.parametrize(
    ("date", "says"),
    [
        (
            "Mon, 01 Mar 2027 11:57:00 GMT",
            "the clock of this machine is 180 s ahead of the service: set it, such as by NTP",
        ),
        (
            "Mon, 01 Mar 2027 12:10:00 GMT",
            "the clock of this machine is 600 s behind the service: set it, such as by NTP",
        ),
        ("Mon, 01 Mar 2027 11:59:57 GMT", None),
        ("yesterday", None),
    ],
)
def test_a_worker_whose_clock_is_off_says_so_at_its_start(caplog, date, says):
    connected, _ = client(reply(REGISTERED), reply(APPLIED, date=date))
    assert connected.clock_ahead_s is None

    Worker("billing", client=connected, queue=Queue(lambda _: [])).start()

    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert warnings == ([] if says is None else [says])


def test_a_refused_credential_gives_one_sentence_and_status_2(capsys):
    refusal = {"code": "UNAUTHENTICATED", "detail": "the credential is wrong", "status": 401}
    connected, _ = client(reply(refusal, status=401))

    with pytest.raises(SystemExit) as ended:
        Worker("billing", client=connected, queue=Queue(lambda _: [])).run()

    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith("the worker cannot start: ")
    assert (said.count("\n"), "the credential is wrong" in said) == (1, True)


def test_a_wrong_address_gives_one_sentence_and_status_2(capsys):
    connected, _ = client(reply({"message": "Not Found"}, 404))

    with pytest.raises(SystemExit) as ended:
        Worker("billing", client=connected, queue=Queue(lambda _: [])).run()

    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith("the worker cannot start: https://sweephand.example does not answer as a stack does (")
    assert said.count("\n") == 1


def test_a_second_signal_ends_the_process_unless_it_comes_with_the_first():
    told, ended, clock = [], [], Watch()
    signals = Signals(lambda: told.append("stop"), clock, ended.append)

    signals._hear(15, None)
    clock.at += 0.2
    signals._hear(15, None)
    assert (told, ended) == (["stop"], [])
    clock.at += 1.0
    signals._hear(2, None)

    assert (told, ended) == (["stop"], [130])


def test_a_worker_can_run_outside_the_main_thread():
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
def test_the_number_of_threads_is_limited(threads):
    with pytest.raises(ConfigError, match=r"threads must be within 1\.\.100"):
        Worker("billing", threads=threads)


def _yields():
    yield 1


async def _yields_late():
    yield 1


def _by_place(month, /): ...


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda _: Worker(""), "application must be a name"),
        (lambda _: Worker(None), "not None"),
        (lambda _: Worker("billing", version=""), "version must be a name"),
        (lambda _: Worker("billing", lease_s=0), r"lease_s must be within 10\.\.3600 seconds, not 0"),
        (lambda _: Worker("billing", lease_s=3_601), "not 3601"),
        (lambda worker: worker.every(print), r'write `@worker\.every\("5m"\)`'),
        (lambda worker: worker.cron(print), r"`@worker\.cron` needs parentheses"),
        (lambda worker: worker.at(print), r"`@worker\.at` needs parentheses"),
        (lambda worker: worker.rrule(print), r"`@worker\.rrule` needs parentheses"),
        (lambda worker: worker.task(print), r"write `@worker\.task\(\)`"),
        (lambda worker: worker.every(None), "an interval must be such as .* not None"),
        (lambda worker: worker.task(name="")(print), "must be a string of 1 to 128 characters, not ''"),
        (lambda worker: worker.task(name=7)(print), "not 7"),
        (lambda worker: worker.task(never_on="ValueError"), "never_on needs classes of exceptions.* not 'ValueError'"),
        (lambda worker: worker.task(never_on=["ValueError"]), "not 'ValueError'"),
        (lambda worker: worker.task(never_on=(ValueError(),)), r"not ValueError\(\)"),
        (lambda worker: worker.task(never_on=None), "not None"),
        (lambda worker: worker.task()(_yields), r"test_worker\.py:\d+\) is a generator"),
        (lambda worker: worker.task()(_yields_late), "is a generator"),
        (lambda worker: worker.task()(_by_place), 'the parameter "month" of the task .* remove the slash'),
        (lambda _: Delay("soon"), "Delay: an interval must be such as .* not 'soon'"),
        (lambda _: Delay(None), "not None"),
        (lambda _: Delay(float("nan")), "NaN"),
        (lambda _: Delay(10**9), r"Delay takes at most an hour \(3600 seconds\), not 1000000000; .*run\.reschedule"),
        (lambda _: Delay("2h"), "not '2h'"),
        (lambda _: Delay(3_600.5), "not 3600.5"),
        (lambda _: Discard(None), "Discard needs a reason.* not None"),
        (lambda _: Discard(""), "not ''"),
        (lambda _: MoveTo(7), "MoveTo needs the address of a queue.* not 7"),
    ],
)
def test_an_invalid_value_is_refused_where_it_is_written(made, says):
    with pytest.raises(ConfigError, match=says):
        made(Worker("billing"))


def test_a_delay_is_written_as_an_interval():
    assert Delay("5m") == Delay(300) == Delay(timedelta(minutes=5))
    assert [Delay(given).delay_s for given in (299.5, -5, 3_600, "1h")] == [300, 0, 3_600, 3_600]


def test_a_partial_and_a_callable_object_are_tasks_with_their_own_names():
    def report(kind: str) -> str:
        return kind

    class Totals:
        def __call__(self) -> str:
            return "totals"

    worker = Worker("billing")
    worker.task()(partial(report, kind="daily"))
    worker.task()(Totals())

    module = __name__
    test = "test_a_partial_and_a_callable_object_are_tasks_with_their_own_names.<locals>"
    assert worker.call(f"{module}.{test}.report") == "daily"
    assert worker.call(f"{module}.{test}.Totals") == "totals"


PROGRAM = """
import multiprocessing
from sweephand.sdk.worker import Worker
worker = Worker("billing")
@worker.every("5m")
def report(): ...
def names():
    print(*(each.name for each in worker._tasks.all()), flush=True)
if __name__ == "__main__":
    names()
    spawned = multiprocessing.get_context("spawn").Process(target=names)
    spawned.start()
    spawned.join()
"""


@pytest.mark.parametrize(
    "arguments", [["tasks.py"], ["-m", "tasks"], ["./tasks.py"], ["-c", "import tasks; tasks.names()"]]
)
def test_a_task_has_the_same_name_however_its_program_is_started(tmp_path, arguments):
    """Seen failing: `python tasks.py` gave `__main__.report`, whose job another way to start would delete."""
    (tmp_path / "tasks.py").write_text(PROGRAM)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))}

    done = subprocess.run(
        [sys.executable, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )

    assert set(done.stdout.split()) == {"tasks.report"}
