"""Converts job collections from and to Azure's JSON: plans, quotas, states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sweephand.base import json_text
from sweephand.base.errors import InvalidRequest
from sweephand.base.members import fields
from sweephand.base.records import dataclass
from sweephand.domain.collection import Collection, CollectionState, Quota, Retention
from sweephand.formats.azure.members import COLLECTION

TYPE = "Microsoft.Scheduler/jobCollections"
MOST_TAGS, LONGEST_TAG, LONGEST_TAG_VALUE = 15, 512, 256
RETENTION = Retention(run_days=60, ended_job_days=60)
UNIT_S = {"Minute": 60, "Hour": 3_600, "Day": 86_400, "Week": 604_800, "Month": 28 * 86_400}


@dataclass(frozen=True)
class Plan:
    """The limits of a plan.

    jobs: the most in a collection. frequency, least_s: the shortest interval of a job. collections: the most in a
    subscription.
    """

    jobs: int
    frequency: str
    collections: int

    @property
    def least_s(self) -> int:
        return UNIT_S[self.frequency]


FREE = "Free"
PLANS = {
    FREE: Plan(5, "Hour", 1),
    "Standard": Plan(50, "Minute", 100),
    "P10Premium": Plan(50, "Minute", 10_000),
    "P20Premium": Plan(1_000, "Minute", 10_000),
}


def plan_name(collection: Collection) -> str:
    return str(collection.attributes["properties"].get("sku", {}).get("name", "Standard"))


def read(body: object, before: Collection) -> Collection:
    """Returns the collection of a PUT. before: the stored one, or a new one with its names."""
    return _read(COLLECTION.named(body), before)


def patched(body: object, before: Collection) -> Collection:
    """Returns a collection after a PATCH. Tags are replaced as a whole."""
    patch = COLLECTION.named(body)
    current = {name: before.attributes[name] for name in COLLECTION.members if name in before.attributes}
    current["properties"] = {**current["properties"], "state": _state(before)}
    if "tags" in patch:
        current.pop("tags", None)
    return _read(json_text.merged(current, patch, any_case=True), before)


def _read(named: Mapping[str, Any], before: Collection) -> Collection:
    members = {"properties": {}, **COLLECTION(named, "")}
    _check_tags(members.get("tags", {}))
    properties = members["properties"]
    name = properties.get("sku", {}).get("name", "Standard")
    names = {each: before.attributes[each] for each in ("subscription", "group", "name")}
    return replace(
        before,
        state=CollectionState.ENABLED if properties.get("state", "Enabled") == "Enabled" else CollectionState.DISABLED,
        quota=_quota(properties.get("quota", {}), PLANS[name]),
        attributes=names | members,
    )


def _check_tags(tags: Mapping[str, str]) -> None:
    if len(tags) > MOST_TAGS or any(
        not 1 <= len(name) <= LONGEST_TAG or len(value) > LONGEST_TAG_VALUE for name, value in tags.items()
    ):
        reason = f"must be at most {MOST_TAGS}, with names up to {LONGEST_TAG} and values up to {LONGEST_TAG_VALUE}"
        raise InvalidRequest("tags", f"{reason} characters")


def _quota(members: Mapping[str, Any], plan: Plan) -> Quota:
    most = members.get("maxJobCount", plan.jobs)
    if most > plan.jobs:
        raise fields.must_be("properties.quota.maxJobCount", f"1 to {plan.jobs} in this plan", most)
    recurrence = members.get("maxRecurrence", {"frequency": plan.frequency})
    least_s = UNIT_S[recurrence["frequency"]] * recurrence.get("interval", 1)
    if least_s < plan.least_s:
        reason = f"is faster than the plan allows, which is every {plan.frequency.lower()}"
        raise InvalidRequest("properties.quota.maxRecurrence", reason)
    return Quota(max_jobs=most, max_runs_per_job=members.get("maxJobOccurrence"), min_interval_s=least_s)


def switched(collection: Collection, *, on: bool) -> Collection:
    """Returns the collection, enabled or disabled."""
    properties = {**collection.attributes["properties"], "state": "Enabled" if on else "Disabled"}
    state = CollectionState.ENABLED if on else CollectionState.DISABLED
    return replace(collection, state=state, attributes={**collection.attributes, "properties": properties})


# Showing


def id_of(collection: Collection) -> str:
    names = collection.attributes
    return f"/subscriptions/{names['subscription']}/resourceGroups/{names['group']}/providers/{TYPE}/{names['name']}"


def body(collection: Collection, version: str) -> dict[str, Any]:
    names = collection.attributes
    shown = {"id": id_of(collection), "type": TYPE, "name": names["name"], "location": names["location"]}
    if "tags" in names:
        shown["tags"] = dict(names["tags"])
    return shown | {"properties": _properties(collection, version)}


def _properties(collection: Collection, version: str) -> dict[str, Any]:
    name = plan_name(collection)
    sent, plan = collection.attributes["properties"], PLANS[name]
    old_premium = name == "P10Premium" and version != "2016-03-01"
    usual = {"maxJobCount": plan.jobs, "maxRecurrence": {"frequency": plan.frequency, "interval": 1}}
    quota = dict(sent.get("quota") or usual)
    if "maxRecurrence" in quota:
        quota["maxRecurrence"] = {"interval": 1, **quota["maxRecurrence"]}
    return {"sku": {"name": "Premium" if old_premium else name}, "state": _state(collection), "quota": quota}


def _state(collection: Collection) -> str:
    """Returns the state, which the native API may have changed. A disabled collection may be shown as Suspended."""
    if collection.state is CollectionState.ENABLED:
        return "Enabled"
    sent = collection.attributes["properties"].get("state")
    return "Suspended" if sent == "Suspended" else "Disabled"
