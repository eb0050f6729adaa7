"""Collections in native JSON, both ways; and what their defaults add to a new job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sweephand.domain.collection import LONGEST_CALLBACK_S, Collection, Events, Quota, Retention
from sweephand.domain.instants import text_ms
from sweephand.domain.members import fields
from sweephand.domain.runs import retry
from sweephand.errors import InvalidRequest, Mistakes
from sweephand.facades.native import shapes
from sweephand.facades.native.members import policies
from sweephand.lazy import lazy
from sweephand.schedules.zones.localtime import zone
from sweephand.security.guard import GuardSettings

with lazy():
    from sweephand.actions.azure import redirects
    from sweephand.schedules.zones import zone_names

MOST_JOBS = 1_000_000
MOST_RUNS = 2**31 - 1
LONGEST_INTERVAL_S = 548 * 86_400
LEAST_RUN_DAYS = 15
MOST_DAYS = 3_650
READ_ONLY = (
    "facade",
    "attributes",
    "state",
    "revision",
    "jobCount",
    "createdAt",
    "createdBy",
    "modifiedAt",
    "modifiedBy",
)
SETTINGS = ("quota", "retention", "events", "defaults", "callbackTimeoutSeconds", "redirects", "flowKey")


def read(body: object, tenant: str, guard: GuardSettings, before: Collection | None = None) -> Collection:
    """POST (name in the body); with `before`, PUT, and PATCH after its merge.

    Members that only answers have are let through unread in a change, so that what was read can be sent back.
    """
    wrong = Mistakes()
    given = fields.members(body, "", ("name", *SETTINGS, *(READ_ONLY if before else ())), wrong)
    name = wrong.of(shapes.plain_name, given, before.name if before else None)
    found: dict[str, Any] = {
        "quota": wrong.of(_quota, given.get("quota", {})),
        "retention": wrong.of(_retention, given.get("retention", {})),
        "events": wrong.of(fields.one_of, given.get("events", Events.FAILURES), "events", tuple(Events)),
        "defaults": wrong.of(_defaults, given.get("defaults", {})),
        "callback_timeout_s": wrong.of(_callback_timeout, given),
        "redirects": wrong.of(_redirects, given.get("redirects", {}), guard),
        "flow_key": wrong.of(fields.text, given["flowKey"], "flowKey", 1, 128) if "flowKey" in given else None,
    }
    wrong.check()
    return replace(before or Collection(tenant, name), **{**found, "events": Events(found["events"])})


def _quota(value: object) -> Quota:
    wrong = Mistakes()
    given = fields.members(value, "quota", ("maxJobs", "maxRunsPerJob", "minIntervalSeconds"), wrong)

    def limit(name: str, most: int) -> int | None:
        return wrong.of(fields.whole, given[name], f"quota.{name}", 1, most) if name in given else None

    quota = Quota(
        max_jobs=limit("maxJobs", MOST_JOBS),
        max_runs_per_job=limit("maxRunsPerJob", MOST_RUNS),
        min_interval_s=limit("minIntervalSeconds", LONGEST_INTERVAL_S),
    )
    wrong.check()
    return quota


def _retention(value: object) -> Retention:
    wrong = Mistakes()
    given = fields.members(value, "retention", ("runDays", "endedJobDays"), wrong)
    usual = Retention()
    kept = Retention(
        wrong.of(fields.whole, given.get("runDays", usual.run_days), "retention.runDays", LEAST_RUN_DAYS, MOST_DAYS),
        wrong.of(fields.whole, given.get("endedJobDays", usual.ended_job_days), "retention.endedJobDays", 0, MOST_DAYS),
    )
    wrong.check()
    return kept


def _defaults(value: object) -> dict[str, Any]:
    wrong = Mistakes()
    given = fields.members(value, "defaults", ("timezone", "retry", "policies"), wrong)
    checked: dict[str, Any] = {}
    if "timezone" in given:
        checked["timezone"] = wrong.of(_zone, given["timezone"])
    if "retry" in given:
        checked["retry"] = wrong.of(_retry, given["retry"])
    chosen = wrong.of(policies.read, given.get("policies", {}), "defaults.policies")
    wrong.check()
    return {**checked, "policies": chosen} if chosen else checked


def _retry(value: object) -> dict[str, Any]:
    return retry.to_json(retry.parse(value, "defaults.retry"))


def _callback_timeout(given: Mapping[str, Any]) -> int | None:
    name = "callbackTimeoutSeconds"
    return fields.whole(given[name], name, 1, LONGEST_CALLBACK_S) if name in given else None


def _redirects(value: object, guard: GuardSettings) -> Mapping[str, Mapping[str, str]]:
    if value == {}:
        return {}
    return redirects.parse(value, "redirects", guard)


def _zone(value: object) -> str:
    name = fields.text(value, "defaults.timezone", 1, 100)
    try:
        zone(name)
    except KeyError:
        meant = zone_names.suggestion(name)
        expected = f'expected an IANA zone such as "Europe/Berlin", not {fields.shown(name)}'
        raise InvalidRequest("defaults.timezone", f"{expected}; {meant}" if meant else expected) from None
    return name


def body(collection: Collection) -> dict[str, Any]:
    assert collection.created_at is not None
    assert collection.modified_at is not None
    return {
        "name": collection.name,
        "facade": collection.facade,
        "attributes": dict(collection.attributes),
        "state": collection.state.value,
        "quota": {
            "maxJobs": collection.quota.max_jobs,
            "maxRunsPerJob": collection.quota.max_runs_per_job,
            "minIntervalSeconds": collection.quota.min_interval_s,
        },
        "retention": {
            "runDays": collection.retention.run_days,
            "endedJobDays": collection.retention.ended_job_days,
        },
        "events": collection.events.value,
        "defaults": {**dict.fromkeys(("timezone", "retry")), "policies": {}, **collection.defaults},
        "callbackTimeoutSeconds": collection.callback_timeout_s,
        "redirects": {place: dict(redirect) for place, redirect in collection.redirects.items()},
        "flowKey": collection.flow_key,
        "jobCount": collection.job_count,
        "revision": collection.revision,
        "createdAt": text_ms(collection.created_at),
        "createdBy": collection.created_by,
        "modifiedAt": text_ms(collection.modified_at),
        "modifiedBy": collection.modified_by,
    }


def editable(collection: Collection) -> dict[str, Any]:
    """What a merge patch is merged into."""
    return {name: value for name, value in body(collection).items() if name in {"name", *SETTINGS}}


def with_defaults(job: Any, defaults: Mapping[str, Any]) -> Any:
    """The body of a new job with what the collection says where the caller says nothing.

    What cannot be read is left as it is: whoever checks the body refuses it under the caller's own field.
    """
    if not isinstance(job, Mapping) or not defaults:
        return job
    filled = dict(job)
    if "policies" in defaults:
        filled["policies"] = _under(job.get("policies"), defaults["policies"])
    if "retry" in defaults:
        filled["action"] = _under(job.get("action"), {"retry": defaults["retry"]})
    schedules = job.get("schedules")
    if isinstance(schedules, Sequence) and not isinstance(schedules, str):
        filled["schedules"] = [schedule_with_defaults(each, defaults) for each in schedules]
    return filled


def schedule_with_defaults(schedule: Any, defaults: Mapping[str, Any]) -> Any:
    """The body of a new schedule, likewise."""
    return _under(schedule, {"timezone": defaults["timezone"]}) if "timezone" in defaults else schedule


def _under(given: Any, usual: Mapping[str, Any]) -> Any:
    """`usual`, overridden by the members that are given; null is absent."""
    if given is None:
        return dict(usual)
    if not isinstance(given, Mapping):
        return given
    return {**given, **{name: value for name, value in usual.items() if given.get(name) is None}}
