"""The defaults of members. Answers show them, and a request that repeats them does not store them.

A body that was read can therefore be sent back unchanged, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from sweephand.base import json_text
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.job import ActionSpec, Job, Payload
from sweephand.domain.jobs.policies import DEFAULTS as POLICIES
from sweephand.domain.occurrences import lateness
from sweephand.schedules.notations import NOTATIONS, defaults_of, zone_named
from sweephand.server.facades.native.context import Context
from sweephand.server.store.views import tenants

with lazy():
    from sweephand.server import actions

FOLLOWING = ("on202", "onAccepted")
"""Members of an action's outcome that say whether a run ends when the target accepts it."""
_ALWAYS: Mapping[str, Any] = {
    "timezone": "UTC",
    "startTime": None,
    "endTime": None,
    "count": None,
    "jitterSeconds": 0,
    "calendars": [],
}


def timing_defaults(timing: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the defaults of a schedule's timing, by its notation."""
    notation = next((name for name in NOTATIONS if timing.get(name) is not None), None)
    if notation is None:
        return dict(_ALWAYS)
    value = timing[notation]
    zone = zone_named(notation, value)
    return {**_ALWAYS, **defaults_of(notation, value), **({} if zone is None else {"timezone": zone})}


def without_defaults(members: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the members that differ from their defaults. Types matter: 0 is not false."""
    return {
        name: value
        for name, value in members.items()
        if not (name in defaults and type(defaults[name]) is type(value) and defaults[name] == value)
    }


def without_default_policies(members: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a job's policies without defaults. A schedule keeps its own, because they override its job's."""
    kept = without_defaults(members, POLICIES)
    misfire = without_defaults(kept.get("misfire", {}), POLICIES["misfire"])
    return {name: value for name, value in {**kept, "misfire": misfire}.items() if value != {}}


def shown_timing(timing: Mapping[str, Any]) -> dict[str, Any]:
    return {**timing_defaults(timing), **timing}


def shown_policies(policies: Mapping[str, Any]) -> dict[str, Any]:
    misfire = {**POLICIES["misfire"], **policies.get("misfire", {})}
    return {**POLICIES, **policies, "misfire": {**misfire, **dict.fromkeys(lateness.inactive(misfire))}}


def payload_value(payload: Payload) -> Any:
    """Returns the value as it was sent, with the same digits in numbers."""
    return json_text.loads(payload.text) if payload.is_json else payload.text


@dataclass(frozen=True)
class Filling:
    """The values that answers show for members that an action's outcome leaves out.

    policies: of its job or schedule. waits_s: of its collection or the stack; None shows null.
    """

    policies: Mapping[str, Any] = field(default_factory=dict)
    waits_s: int | None = None

    def of(self, action: ActionSpec) -> dict[str, Any]:
        """Returns the values by member. Some follow the policy callbackToken if the target can learn of its run."""
        outcome = action.params.get("outcome", {})
        usual = "wait" if self.policies.get("callbackToken") and _sends_callback(action) else "success"
        shown = {**dict.fromkeys(FOLLOWING, usual), "callbackTimeoutSeconds": self.waits_s}
        return {name: value for name, value in shown.items() if name in outcome and outcome[name] is None}


def _sends_callback(action: ActionSpec) -> bool:
    inline = action.inline is not None and action.inline.payload is not None
    with_payload = inline or action.payload_version is not None
    return actions.load(action.kind, action.params).sends_callback(with_payload=with_payload)


def shown_action(action: ActionSpec, filling: Filling) -> dict[str, Any]:
    params = {name: value for name, value in action.params.items() if name != "dialect"}
    if "outcome" in params:
        params["outcome"] = {**params["outcome"], **filling.of(action)}
    return {"type": action.kind, **params, "retry": dict(action.retry)}


def without_shown(params: Mapping[str, Any], stored: ActionSpec, filling: Filling) -> Mapping[str, Any]:
    """Returns the params of a change without defaults that were only shown in an answer and sent back unchanged."""
    outcome = params.get("outcome", {})
    shown = filling.of(stored)
    silent = [name for name, value in shown.items() if outcome.get(name) == value]
    return {**params, "outcome": {**outcome, **dict.fromkeys(silent)}} if silent else params


def waits_of(ctx: Context, job: Job) -> int:
    """Returns how long a run of this job waits for its result by default. Costs one read."""
    return (
        tenants.callback_timeout(ctx.world.table, ctx.tenant, job.collection) or ctx.world.settings.callback_timeout_s
    )
