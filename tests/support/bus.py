"""The event bus, as strict as EventBridge, and stricter: each event must fit its own schema in events/schemas."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from sweephand.domain.event import SOURCE, EventType
from sweephand.domain.instants import text
from sweephand.server.flow.runs.replay import DROPPED_TYPE
from sweephand.testing.bus import VirtualBus
from sweephand.testing.taps import Passing
from tests.support.aws import ROOT

SCHEMAS = ROOT / "events" / "schemas"
MOST_BYTES = 10_000
"""EventBridge takes 256 KB; ours have nothing in them that grows beyond this."""


@cache
def validator(kind: str) -> Draft202012Validator:
    schema = json.loads((SCHEMAS / f"{kind}.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


class CheckedBus(VirtualBus):
    """The bus of a test, which also says what came to it."""

    def check(self, entry: Mapping[str, Any], detail: Mapping[str, Any]) -> None:
        if entry["Source"] == SOURCE:
            assert entry["EventBusName"] == self.name
            assert len(entry["Detail"].encode()) <= MOST_BYTES
            assert detail["occurredAt"].startswith(text(entry["Time"])[:-1])
            schema = validator(entry["DetailType"])
        elif entry["DetailType"] == DROPPED_TYPE:
            schema = validator(DROPPED_TYPE)
        else:
            schema = validator("job.missed" if "missed" in detail else "job")
        event = {"source": entry["Source"], "detail-type": entry["DetailType"], "detail": detail}
        problems = [error.message for error in schema.iter_errors(event)]
        assert not problems, f"{entry['DetailType']}: {problems}"
        assert detail.keys() == schema.schema["properties"]["detail"]["properties"].keys()

    def kinds(self) -> list[str]:
        return [told.kind.value for told in self.told]

    def of(self, kind: EventType) -> list[Mapping[str, Any]]:
        return [told.detail for told in self.told if told.kind is kind]

    def only(self, kind: EventType) -> Mapping[str, Any]:
        (detail,) = self.of(kind)
        return detail


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
