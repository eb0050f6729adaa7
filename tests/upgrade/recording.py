"""Recordings: all that a version has stored and sent in the middle of a life, as a later version finds it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from samtranslator.yaml_helper import yaml_parse

from sweephand.domain.instants import up_to_second
from sweephand.domain.message import Pointer, Subject, encode, occurrence
from sweephand.domain.run import Kind
from sweephand.testing.queues import Message
from tests.contract.native.api import Api, api
from tests.support.aws import ROOT
from tests.upgrade import life

FOLDER = Path(__file__).parent / "recorded"
SEED_AFTER = 1
"""Ids after the middle differ from those before it."""


def record(commit: str) -> dict[str, Any]:
    """Lives a life until its middle. Returns everything that outlasts a deployment, and what callers hold."""
    with api() as there:
        began = there.stage.clock.now()
        held = life.live(there)
        stage = there.stage
        return {
            "commit": commit,
            "began": began.isoformat(),
            "now": stage.clock.now().isoformat(),
            "held": held,
            "credentials": there.credentials,
            "defaults": defaults(),
            "calls": sorted((name, at.isoformat()) for name, at in life.calls(there)),
            "queues": {url: [_text(asdict(message)) for message in queue.messages] for url, queue in _queues(there)},
            "attributes": stage.sqs.created,
            "messages": {each.subject.value: encode(each) for each in pointers(up_to_second(stage.clock.now()))},
            "events": sorted({(told.kind.value, json.dumps(told.detail, sort_keys=True)) for told in stage.bus.told}),
            "items": sorted(stage.items(), key=lambda item: (item["pk"]["S"], item["sk"]["S"])),
        }


def pointers(instant: datetime) -> list[Pointer]:
    """Returns a message of each subject, with every member."""
    run = occurrence("acme", "job", "schedule", instant, generation=3)
    whole = replace(run, kind=Kind.MANUAL, attempt=2, decided=True, recorded=True, mark="mark", returns=1)
    return [replace(whole, subject=each, not_after=instant, sent_at=instant) for each in Subject]


@contextmanager
def restored(recorded: dict[str, Any]) -> Iterator[Api]:
    """Makes a service of this version, with what the recorded one has left."""
    with api(seed=SEED_AFTER) as there:
        stage, table = there.stage, there.stage.world.table
        with stage.untapped():
            for item in stage.items():
                table.delete(item["pk"]["S"], item["sk"]["S"])
            for item in recorded["items"]:
                table.client.put_item(TableName=table.name, Item=item)
        stage.clock.move_to(datetime.fromisoformat(recorded["now"]))
        for url, attributes in recorded["attributes"].items():
            stage.sqs._create({"QueueName": url.rpartition("/")[2], "Attributes": attributes})
        for url, queue in _queues(there):
            queue.messages[:] = [Message(**_times(message)) for message in recorded["queues"].get(url, [])]
        there.credentials.update(recorded["credentials"])
        stage.taps.passed.clear()
        yield there


def defaults() -> dict[str, str]:
    """Returns the defaults of the template's parameters."""
    template = yaml_parse((ROOT / "template.yaml").read_text())
    return {name: str(each.get("Default")) for name, each in template["Parameters"].items()}


def write(recorded: dict[str, Any], path: Path) -> None:
    """Writes a recording with one line for each item, so that a difference can be read."""
    lines = [f"{json.dumps(name)}: {_lines(value)}" for name, value in recorded.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _lines(value: Any) -> str:
    if not isinstance(value, list):
        return json.dumps(value, sort_keys=True)
    return "[\n" + ",\n".join(json.dumps(each, sort_keys=True) for each in value) + "\n]"


def _queues(there: Api) -> Any:
    return there.stage.sqs._queues.items()


def _text(message: dict[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in message.items()}


def _times(message: dict[str, Any]) -> dict[str, Any]:
    return {name: datetime.fromisoformat(value) if name.endswith("_at") else value for name, value in message.items()}
