"""CPU of the executor for each run that succeeds, ten in flight, all on: guard, call, signature, ledger, log line.

The target answers only when all ten are connected (endpoint.py).

Counted is the process time of all threads from the batch's receipt to its answer: decoding, gate, claim, look-up of the
name, signature by the collection's key, request and answer over a socket, terminal write, log. Not counted: waiting;
the target, which is another process; AWS and the sockets to it, which stub.py stands in for. The threads of the batch
stay on one processor, as in the function.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from unittest import mock

from bench import endpoint
from bench.common import MINUTE, Cpu, StillClock, schedule_of, timed
from bench.stub import stubbed
from sweephand.base.sources import SystemChance
from sweephand.domain.instants import epoch_ms
from sweephand.domain.job import ActionSpec, Job
from sweephand.domain.message import encode, occurrence
from sweephand.domain.schedule import Lane
from sweephand.server import actions, one_processor
from sweephand.server.flow import verdict
from sweephand.server.flow.delivery import dispatch
from sweephand.server.flow.world import World
from sweephand.server.security.guard import Outbound
from sweephand.server.settings import from_environment
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.table import CollectionItem, Item, PayloadItem
from sweephand.server.store.jobs import jobs
from sweephand.server.wiring import build, guard_settings
from tests.unit.endpoints import Authority

BATCH = 10
RUNS = 1_000
ALL_ON = "executor, a run that succeeds: guard, call, signature, ledger"
WITH_PAYLOAD, OVER_TLS = "the same with a payload of 1 KB", "the same without payload, TLS handshake included"
ENVIRONMENT = {"ALLOWED_PRIVATE_TARGETS": "127.0.0.0/8", "PLAIN_HTTP_TARGETS": "allow"}
SEALED, SECRET = "c2VhbGVk", b"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


def measure() -> list[Cpu]:
    """Measures in the environment of a function (cold_start.ENVIRONMENT)."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict("os.environ", ENVIRONMENT), _logging() as world:
        authority = Authority(Path(folder))
        authority.server("localhost")
        secured = replace(world, outbound=Outbound(guard_settings(world.settings), authorities=authority.pem))
        with endpoint.answering() as plain:
            found = [
                _execute(world, ALL_ON, f"http://localhost:{plain}/x"),
                _execute(world, WITH_PAYLOAD, f"http://localhost:{plain}/x", payload=True),
            ]
        with endpoint.answering(Path(folder) / "localhost.pem") as encrypted:
            found.append(_execute(secured, OVER_TLS, f"https://localhost:{encrypted}/x"))
    return found


@contextmanager
def _logging() -> Iterator[World]:
    """Makes a world whose log lines are made and written to nowhere, whatever main() has switched off."""
    off = logging.root.manager.disable
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        world = build(from_environment(), clock=StillClock(), chance=SystemChance())
        # Powertools' loggers share their handler, which may be an earlier world's.
        (handler,) = logging.getLogger("service_undefined").handlers
        assert isinstance(handler, logging.StreamHandler)
        # Not setStream(): it would flush what may be closed by now.
        before, handler.stream = handler.stream, nowhere
        logging.disable(logging.NOTSET)
        try:
            yield world
        finally:
            logging.disable(off)
            handler.stream = before


def _execute(world: World, name: str, url: str, *, payload: bool = False) -> Cpu:
    """Batches of ten, each message a run of its own."""
    schedule = schedule_of(0, {"every": "PT1M"})
    asked = {"type": "http", "url": url, "headers": {"X-Team": "bench"}}
    draft = actions.draft(asked, field="action", guard=guard_settings(world.settings))
    action = ActionSpec(draft.kind, draft.params, draft.retry, payload_version=1 if payload else None)
    job = Job(schedule.tenant, schedule.job_id, "default", "bench", action, MINUTE, MINUTE)
    instants = [MINUTE - timedelta(milliseconds=n) for n in range(RUNS)]
    bodies = [encode(occurrence(job.tenant, job.id, schedule.id, at, schedule.generation)) for at in instants]
    messages = [verdict.Delivered(str(n), str(n), body, MINUTE, MINUTE) for n, body in enumerate(bodies)]
    succeeded = 0

    def work() -> int:
        for begin in range(0, RUNS, BATCH):
            assert not dispatch.batch(world, Lane.FAST, "bench", messages[begin : begin + BATCH])
        return RUNS

    def settled(body: bytes) -> str:
        nonlocal succeeded
        succeeded += b'"SUCCESS"' in body
        return "{}"

    rows = _found(jobs.job_item(job), jobs.schedule_item(schedule, world.settings.shards))
    terms = _found(_signed_collection(job.tenant))
    content = PayloadItem(pk="bench", sk="bench", text=json.dumps({"x": "x" * 1_000}), is_json=True)
    answers = {
        "BatchGetItem": lambda body: rows if b"RUN#" in body else terms,
        "Decrypt": lambda _: json.dumps({"Plaintext": base64.b64encode(SECRET).decode()}),
        "GetItem": lambda _: json.dumps({"Item": content.serialize()}),
        "PutItem": lambda _: "{}",
        "UpdateItem": settled,
        "ChangeMessageVisibilityBatch": lambda _: '{"Successful": [], "Failed": []}',
    }
    with stubbed(answers) as stub, _on_one_processor():
        cpu = timed(name, work, stub)
    assert succeeded == stub.calls["PutItem"] == stub.calls["UpdateItem"] >= RUNS
    return cpu


@contextmanager
def _on_one_processor() -> Iterator[None]:
    """Binds the process to one processor, as the function does; afterwards this process is free again, and what it
    starts: targets, an emulator.
    """
    free = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    one_processor.stay()
    try:
        yield
    finally:
        if free is not None:
            os.sched_setaffinity(0, free)


def _found(*items: Item) -> str:
    """Answers like BatchGetItem."""
    return json.dumps({"Responses": {"bench": [item.serialize() for item in items]}, "UnprocessedKeys": {}})


def _signed_collection(tenant: str) -> CollectionItem:
    return CollectionItem(
        pk=keys.tenant(tenant),
        sk=keys.collection("default"),
        name="default",
        signing=json.dumps([["key", epoch_ms(MINUTE), SEALED]]),
        created_at=epoch_ms(MINUTE),
        modified_at=epoch_ms(MINUTE),
    )
