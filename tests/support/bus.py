"""The event bus, as strict as EventBridge, and stricter: each event must fit its own schema in events/schemas."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from botocore.exceptions import ClientError
from jsonschema import Draft202012Validator

from sweephand.domain.event import SOURCE, EventType
from sweephand.domain.instants import text
from sweephand.flow.runs.replay import DROPPED_TYPE
from tests.support.aws import ROOT
from tests.support.taps import Passing, Taps

SCHEMAS = ROOT / "events" / "schemas"
MOST_ENTRIES = 10
MOST_BYTES = 10_000
"""EventBridge takes 256 KB; ours have nothing in them that grows beyond this."""


@cache
def validator(kind: str) -> Draft202012Validator:
    schema = json.loads((SCHEMAS / f"{kind}.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


@dataclass(frozen=True)
class Told:
    """An event as it reached the bus."""

    kind: EventType
    detail: Mapping[str, Any]

    @property
    def id(self) -> str:
        own: str = self.detail["id"]
        return own


@dataclass
class VirtualBus:
    """The methods of botocore's EventBridge client that the service uses. told: all that was taken, repeats too.

    of_jobs: the entries that jobs put there themselves, with a source of their tenant's.
    """

    taps: Taps
    name: str
    told: list[Told] = field(default_factory=list)
    of_jobs: list[Mapping[str, Any]] = field(default_factory=list)

    def put_events(self, **request: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.taps(Passing("events", "PutEvents", request), lambda: self._take(request))
        return answer

    def _take(self, request: dict[str, Any]) -> dict[str, Any]:
        entries = request["Entries"]
        if not 0 < len(entries) <= MOST_ENTRIES:
            raise ClientError({"Error": {"Code": "ValidationException", "Message": "entries"}}, "PutEvents")
        self.of_jobs += [_of_job(entry) for entry in entries if entry["Source"] != SOURCE]
        self.told += [self._read(entry) for entry in entries if entry["Source"] == SOURCE]
        return {"FailedEntryCount": 0, "Entries": [{"EventId": str(n)} for n, _ in enumerate(entries)]}

    def _read(self, entry: dict[str, Any]) -> Told:
        assert entry["EventBusName"] == self.name
        assert len(entry["Detail"].encode()) <= MOST_BYTES
        detail = json.loads(entry["Detail"])
        event = {"source": entry["Source"], "detail-type": entry["DetailType"], "detail": detail}
        problems = [error.message for error in validator(entry["DetailType"]).iter_errors(event)]
        assert not problems, f"{entry['DetailType']}: {problems}"
        assert detail.keys() == validator(entry["DetailType"]).schema["properties"]["detail"]["properties"].keys()
        assert detail["occurredAt"].startswith(text(entry["Time"])[:-1])
        return Told(EventType(entry["DetailType"]), detail)

    # For tests

    def kinds(self) -> list[str]:
        return [told.kind.value for told in self.told]

    def of(self, kind: EventType) -> list[Mapping[str, Any]]:
        return [told.detail for told in self.told if told.kind is kind]

    def only(self, kind: EventType) -> Mapping[str, Any]:
        (detail,) = self.of(kind)
        return detail


def _of_job(entry: dict[str, Any]) -> Mapping[str, Any]:
    detail = json.loads(entry["Detail"])
    event = {"source": entry["Source"], "detail-type": entry["DetailType"], "detail": detail}
    schema = DROPPED_TYPE if entry["DetailType"] == DROPPED_TYPE else "job.missed" if "missed" in detail else "job"
    problems = [error.message for error in validator(schema).iter_errors(event)]
    assert not problems, f"{entry['DetailType']}: {problems}"
    assert detail.keys() == validator(schema).schema["properties"]["detail"]["properties"].keys()
    return entry


def refused_by_bus(passing: Passing, _act: Callable[[], Any]) -> Any:
    """Makes the bus answer and take none of the entries."""
    entries = [{"ErrorCode": "ThrottlingException", "ErrorMessage": "slow down"} for _ in passing.request["Entries"]]
    return {"FailedEntryCount": len(entries), "Entries": entries}


def malformed(passing: Passing, _act: Callable[[], Any]) -> Any:
    """Makes the bus answer and refuse the entries for good."""
    entries = [{"ErrorCode": "MalformedDetail", "ErrorMessage": "no"} for _ in passing.request["Entries"]]
    return {"FailedEntryCount": len(entries), "Entries": entries}


def first_entry_fails(passing: Passing, act: Callable[[], Any]) -> Any:
    """Makes the bus take all entries but the first."""
    first, *others = passing.request["Entries"]
    failed = {"ErrorCode": "InternalFailure", "ErrorMessage": ""}
    if not others:
        return {"FailedEntryCount": 1, "Entries": [failed]}
    passing.request["Entries"] = others
    answer = act()
    passing.request["Entries"] = [first, *others]
    return {"FailedEntryCount": 1, "Entries": [failed, *answer["Entries"]]}
