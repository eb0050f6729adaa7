"""The policies of jobs and schedules: one line for each, with its schema, its default and its reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweephand.base.errors import Mistakes
from sweephand.base.json_schema import Members, Schema, items, one_of, or_null, ref, text, whole
from sweephand.base.members import fields
from sweephand.base.members.fields import Read, below, by_schema
from sweephand.base.records import dataclass
from sweephand.domain.job import HOOK_KINDS
from sweephand.domain.occurrences import lateness
from sweephand.domain.occurrences.lateness import Misfire

LEAST_LATENESS_S, MOST_LATENESS_S = 10, 345_600
"""A lower limit would expire runs in normal operation. A message that is more than 4 days late never runs."""
MISFIRE: Members = {
    "type": one_of(Misfire),
    "ratePerMinute": whole(1, 6_000, description="How many missed occurrences run per minute."),
    "maxLatenessSeconds": whole(
        LEAST_LATENESS_S,
        MOST_LATENESS_S,
        description="How late an occurrence may run, in seconds; null means no limit.",
    ),
}
SHOWN_MISFIRE: Members = {
    "type": MISFIRE["type"],
    **{name: or_null(MISFIRE[name]) for name in ("ratePerMinute", "maxLatenessSeconds")},
}


@dataclass(frozen=True)
class Policy:
    """A policy. of_job: why a schedule cannot have it; empty if it can."""

    schema: Schema
    default: Any
    read: Read | None = None
    of_job: str = ""


def _misfire(value: object, field: str, _: Any) -> dict[str, Any]:
    wrong = Mistakes()
    policy = {"type": Misfire.SAP.value, **fields.members(value, field, tuple(MISFIRE), wrong)}
    checked = {
        name: wrong.of(by_schema(MISFIRE[name]), policy[name], below(field, name), None)
        for name in MISFIRE
        if name in policy
    }
    for name, why in lateness.inactive(policy).items():
        wrong.add(fields.inactive(field, name, why))
    wrong.check()
    return checked


def _hooks(value: object, field: str, _: Any) -> list[str]:
    """Reads hooks into a fixed order. The caller's order has no meaning."""
    wrong, listed = Mistakes(), fields.listed(value, field, wanted=f"a list of {', '.join(HOOK_KINDS)}")
    for n, each in enumerate(listed):
        wrong.of(fields.one_of, each, f"{field}[{n}]", tuple(HOOK_KINDS))
    wrong.check()
    return [name for name in HOOK_KINDS if name in listed]


POLICIES: Mapping[str, Policy] = {
    "misfire": Policy(ref("Misfire"), {"type": "sap", "ratePerMinute": 60, "maxLatenessSeconds": None}, _misfire),
    "overlap": Policy(one_of(("allow", "skip", "queue_one", "replace")), "allow"),
    "onPastStart": Policy(one_of(("refuse", "run_now")), "refuse"),
    "onEnable": Policy(one_of(("skip", "run_now")), "skip"),
    "onCreate": Policy(one_of(("schedule", "run_now")), "schedule"),
    "onNothingLeft": Policy(
        one_of(
            ("refuse", "complete"),
            description="The rule for a schedule without an instant left: it is rejected, or completed without a run.",
        ),
        "refuse",
    ),
    "onUnreachable": Policy(
        one_of(
            ("deactivate", "continue"),
            description="The rule for a schedule whose target got no connection for 10 days without interruption.",
        ),
        "deactivate",
    ),
    "onNoResult": Policy(
        one_of(
            ("end", "retry"),
            description="The rule for a run whose target took the work and reported no result in time: it ends as"
            " UNKNOWN, or the next attempt of its retry policy is made.",
        ),
        "end",
    ),
    "afterEnd": Policy(
        one_of(
            ("open", "final"),
            description="Only for a job: whether it can still be changed and run once it is COMPLETED or FAULTED."
            " It can always be read and deleted.",
        ),
        "open",
        of_job="it belongs to a job as a whole",
    ),
    "delivery": Policy(one_of(("at_least_once", "at_most_once")), "at_least_once"),
    "keepAnswer": Policy(one_of(("failures", "all", "beginning", "none")), "failures"),
    "totals": Policy(
        one_of(
            ("planned", "all"),
            description="Which runs the totals of a schedule count: planned occurrences only, or manual runs as well.",
        ),
        "planned",
    ),
    "callbackToken": Policy(
        {"type": "boolean", "description": "The target is sent a token with which it reports the result."}, False
    ),
    "hooks": Policy(
        items(
            one_of(HOOK_KINDS),
            uniqueItems=True,
            description="Which hooks of the job run; for a schedule, its own choice.",
        ),
        list(HOOK_KINDS),
        _hooks,
    ),
    "flowKey": Policy(
        text(1, 128, description="Only for a job: the flow key that its calls pass."),
        None,
        lambda value, field, _: fields.text(value, field, 1, 128),
        of_job="it belongs to a job as a whole, or to its collection",
    ),
}
DEFAULTS: Mapping[str, Any] = {name: policy.default for name, policy in POLICIES.items()}
SCHEMA: Members = {name: policy.schema for name, policy in POLICIES.items()}
SCHEDULE_SCHEMA: Members = {name: policy.schema for name, policy in POLICIES.items() if not policy.of_job}
_READERS = {name: policy.read or by_schema(policy.schema) for name, policy in POLICIES.items()}


def read(value: object, field: str, *, of_job: bool = False) -> dict[str, Any]:
    """Checks policies and returns them as the caller wrote them.

    of_job: whether they belong to a job, not to a schedule or to the defaults of new jobs.
    """
    wrong = Mistakes()
    policies = fields.members(value, field, tuple(POLICIES), wrong)
    checked: dict[str, Any] = {}
    for name, policy in POLICIES.items():
        if name in policies:
            checked[name] = wrong.of(_READERS[name], policies[name], below(field, name), None)
            if policy.of_job and not of_job:
                wrong.add(fields.inactive(field, name, policy.of_job))
    wrong.check()
    return checked
