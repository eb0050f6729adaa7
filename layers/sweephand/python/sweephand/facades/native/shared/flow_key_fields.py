"""Flow keys in native JSON, both ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sweephand.domain.flow_keys.circuits import Circuit
from sweephand.domain.flow_keys.flow_keys import (
    LONGEST_PERIOD_S,
    MOST_A_SECOND,
    MOST_PARALLEL,
    CircuitRule,
    FlowKey,
    Rate,
    Turnstile,
)
from sweephand.domain.instants import EPOCH, stamp, text_ms
from sweephand.domain.members import fields
from sweephand.domain.members.fields import below
from sweephand.errors import InvalidRequest, Mistakes
from sweephand.facades.native import shapes

MOST_CALLS = 1_000_000
MOST_FAILURES = 1_000
LONGEST_PROBE_S = 3_600
SETTINGS = ("description", "rate", "parallelism", "circuit")
READ_ONLY = ("state", "pause", "usedBy", "revision", "createdAt", "createdBy", "modifiedAt", "modifiedBy", "live")


def read(body: object, tenant: str, before: FlowKey | None = None) -> FlowKey:
    """POST (name in the body); with `before`, PUT, and PATCH after its merge.

    Members that only answers have are let through unread in a change, so that what was read can be sent back.
    """
    wrong = Mistakes()
    given = fields.members(body, "", ("name", *SETTINGS, *(READ_ONLY if before else ())), wrong)
    name = wrong.of(shapes.plain_name, given, before.name if before else None)
    description = wrong.of(fields.free, given.get("description", ""), "description", 0, 1_000)
    rate = wrong.of(_rate, given["rate"]) if "rate" in given else None
    most = wrong.of(fields.whole, given.get("parallelism", 1), "parallelism", 1, MOST_PARALLEL)
    circuit, resting = wrong.of(_circuit, given.get("circuit", {})) or (None, None)
    wrong.check()
    return replace(
        before or FlowKey(tenant, name, EPOCH, EPOCH),
        description=description if "description" in given else None,
        rate=rate,
        parallelism=most if "parallelism" in given else None,
        circuit=circuit,
        resting=resting,
    )


def _rate(value: object) -> Rate:
    wrong = Mistakes()
    given = fields.members(value, "rate", ("limit", "periodSeconds"), wrong)
    found = {
        name: wrong.of(_needed, given, name, most)
        for name, most in (("limit", MOST_CALLS), ("periodSeconds", LONGEST_PERIOD_S))
    }
    wrong.check()
    rate = Rate(found["limit"], found["periodSeconds"])
    if rate.limit > MOST_A_SECOND * rate.period_s:
        raise InvalidRequest("rate.limit", f"must be at most {MOST_A_SECOND:,} a second, not {rate.limit:,}")
    return rate


def _needed(given: Mapping[str, Any], name: str, most: int) -> int:
    return fields.whole(fields.required(given, name, "rate"), below("rate", name), 1, most)


def _circuit(value: object) -> tuple[CircuitRule | None, CircuitRule | None]:
    """Returns the rule of a circuit that is on, and that of one that is off."""
    wrong = Mistakes()
    given = fields.members(value, "circuit", ("enabled", "failures", "probeSeconds"), wrong)
    usual = CircuitRule()
    rule = CircuitRule(
        wrong.of(fields.whole, given.get("failures", usual.failures), "circuit.failures", 1, MOST_FAILURES),
        wrong.of(fields.whole, given.get("probeSeconds", usual.probe_s), "circuit.probeSeconds", 1, LONGEST_PROBE_S),
    )
    enabled = wrong.of(fields.flag, given.get("enabled", True), "circuit.enabled")
    wrong.check()
    return (rule, None) if enabled else (None, rule)


def note(body: object) -> str | None:
    """Of a pause."""
    given = fields.members(body, "", ("note",))
    return fields.free(given["note"], "note", 0, 1_000) if "note" in given else None


def nothing(body: object) -> None:
    """Of a resume."""
    fields.members(body, "", ())


def listed(key: FlowKey) -> dict[str, Any]:
    rule = key.circuit or key.resting or CircuitRule()
    return {
        "name": key.name,
        "description": key.description,
        "rate": None if key.rate is None else {"limit": key.rate.limit, "periodSeconds": key.rate.period_s},
        "parallelism": key.parallelism,
        "circuit": {
            "enabled": key.circuit is not None,
            "failures": rule.failures,
            "probeSeconds": rule.probe_s,
        },
        "state": "ACTIVE" if key.pause is None else "PAUSED",
        "pause": None if key.pause is None else {"since": text_ms(key.pause.since), "note": key.pause.note},
        "usedBy": key.users,
        "revision": key.revision,
        "createdAt": text_ms(key.created_at),
        "createdBy": key.created_by,
        "modifiedAt": text_ms(key.modified_at),
        "modifiedBy": key.modified_by,
    }


def editable(key: FlowKey) -> dict[str, Any]:
    """What a merge patch is merged into."""
    return {name: value for name, value in listed(key).items() if name in {"name", *SETTINGS}}


def live(stile: Turnstile, waiting: int, circuits: Iterable[Circuit], now: datetime) -> Mapping[str, Any]:
    """How things stand under the key at this moment."""
    free_at = max(now, *(at for at in (stile.next_at, stile.called_to) if at is not None), now)
    return {
        "waiting": waiting,
        "running": None if stile.terms.parallelism is None else stile.running(now),
        "nextCallAt": None if stile.terms.rate is None or stile.terms.paused else text_ms(free_at),
        "circuits": [_circuit_body(each) for each in circuits],
    }


def _circuit_body(circuit: Circuit) -> dict[str, Any]:
    return {
        "id": circuit.id,
        "target": circuit.target,
        "state": circuit.state.value,
        "failures": circuit.failures,
        "since": stamp(circuit.opened_at),
        "lastFailureAt": stamp(circuit.failed_at),
        "lastFailure": circuit.reason,
        "nextProbeAt": stamp(circuit.probe_at),
    }
