"""The members of a collection, and the defaults that they add to a new job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.json_schema import Members, answer, one_of, or_null, ref, request, text, whole
from sweephand.base.lazy import lazy
from sweephand.base.members import fields
from sweephand.base.members.fields import below
from sweephand.domain.answers import Member, answered
from sweephand.domain.collection import LONGEST_CALLBACK_S, Collection, CollectionState, Events, Quota, Retention
from sweephand.domain.jobs import policies
from sweephand.domain.runs import retry
from sweephand.domain.schema_words import FACADE, REVISION, ZONE
from sweephand.schedules.text.instants import read_zone
from sweephand.server.facades.native.members.resource import CHANGED, NAMED, Resource, part
from sweephand.server.security.guard import GuardSettings

with lazy():
    from sweephand.schedules.zones import zone_names
    from sweephand.server.actions.azure import redirects

FLOW_KEY = text(1, 128, description="The flow key for jobs of the collection that name none.")
WAITS = "How long a run waits for its result unless its job says otherwise; null means the default of the stack."
LONGEST_INTERVAL_S = 548 * 86_400
MOST_DAYS = 3_650


def _defaults(value: object, field: str, _: Any) -> dict[str, Any]:
    wrong = Mistakes()
    members = fields.members(value, field, tuple(_DEFAULTS), wrong)
    checked: dict[str, Any] = {}
    if "timezone" in members:
        checked["timezone"] = wrong.of(_zone, members["timezone"], below(field, "timezone"))
    if "retry" in members:
        checked["retry"] = wrong.of(lambda: retry.to_json(retry.parse(members["retry"], below(field, "retry"))))
    chosen = wrong.of(policies.read, members.get("policies", {}), below(field, "policies"))
    wrong.check()
    return {**checked, "policies": chosen} if chosen else checked


def _zone(value: object, field: str) -> str:
    name = fields.text(value, field, 1, 100)
    try:
        return read_zone(name, field).name
    except InvalidRequest as wrong:
        meant = zone_names.suggestion(name)
        raise wrong.changed(reason=f"{wrong.reason}; {meant}" if meant else wrong.reason) from wrong


def _redirects(value: object, field: str, guard: GuardSettings) -> Mapping[str, Mapping[str, str]]:
    return redirects.parse(value, field, guard) if value != {} else {}


_DEFAULTS: Members = {"timezone": ZONE, "retry": ref("Retry"), "policies": ref("Policies")}
QUOTA = Resource(
    Quota,
    {
        "maxJobs": Member(whole(1, 1_000_000), says="How many jobs the collection may contain."),
        "maxRunsPerJob": Member(
            whole(
                1,
                2**31 - 1,
                description="How many occurrences each schedule of a job may have in all. Manual runs do not count.",
            )
        ),
        "minIntervalSeconds": Member(
            whole(1, LONGEST_INTERVAL_S),
            attribute="min_interval_s",
            says="The smallest distance allowed between two occurrences of a schedule, in seconds.",
        ),
    },
)
RETENTION = Resource(
    Retention,
    {
        "runDays": Member(whole(15, MOST_DAYS, description="How many days a run is kept after its end.")),
        "endedJobDays": Member(
            whole(
                0,
                MOST_DAYS,
                description="How many days a job is kept after all its schedules are COMPLETED. 0 keeps it for good.",
            )
        ),
    },
)
COLLECTION = Resource(
    Collection,
    {
        "name": NAMED,
        "facade": answered(FACADE),
        "attributes": answered(
            {
                "type": "object",
                "description": "Members for the API of its facade only, such as the names that it shows.",
            },
            lambda collection: dict(collection.attributes),
        ),
        "state": answered(one_of(CollectionState)),
        "quota": part(QUOTA),
        "retention": part(RETENTION),
        "events": Member(
            one_of(Events, description="Which events go to the event bus."),
            lambda value, field, _: Events(fields.one_of(value, field, tuple(Events))),
        ),
        "defaults": Member(
            request(_DEFAULTS),
            _defaults,
            answer({"timezone": or_null(ZONE), "retry": or_null(ref("ShownRetry")), "policies": ref("OwnPolicies")}),
            lambda collection: {**dict.fromkeys(("timezone", "retry")), "policies": {}, **collection.defaults},
        ),
        "callbackTimeoutSeconds": Member(
            whole(1, LONGEST_CALLBACK_S, description=WAITS),
            attribute="callback_timeout_s",
        ),
        "redirects": Member(
            {"type": "object"},  # the OpenAPI document has its full schema, from the actions
            _redirects,
            show=lambda collection: {place: dict(redirect) for place, redirect in collection.redirects.items()},
        ),
        "flowKey": Member(
            FLOW_KEY,
            lambda value, field, _: fields.text(value, field, 1, 128),
            shown=or_null(FLOW_KEY),
        ),
        "jobCount": answered(whole(), says="How many jobs the collection contains."),
        "revision": answered(REVISION),
        **CHANGED,
    },
)


def read(body: object, tenant: str, guard: GuardSettings, before: Collection | None = None) -> Collection:
    """Reads POST (name in the body) or, with `before`, PUT, and PATCH after its merge."""
    attributes = COLLECTION.named(body, before.name if before else None, guard)
    return replace(before or Collection(tenant, attributes["name"]), **attributes)


def with_defaults(job: Any, defaults: Mapping[str, Any]) -> Any:
    """Returns the body of a new job with the collection's defaults for missing members.

    An invalid member stays, so that the check of the body refuses it under the caller's own field.
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
    """Returns the body of a new schedule with the collection's defaults for missing members."""
    return _under(schedule, {"timezone": defaults["timezone"]}) if "timezone" in defaults else schedule


def _under(members: Any, usual: Mapping[str, Any]) -> Any:
    """Returns `usual`, overridden by the members that are given; null is absent."""
    if members is None:
        return dict(usual)
    if not isinstance(members, Mapping):
        return members
    return {**members, **{name: value for name, value in usual.items() if members.get(name) is None}}
