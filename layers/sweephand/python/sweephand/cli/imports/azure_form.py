"""Jobs and collections in a form for comparing them, as the Azure facade shows them, and their secrets. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from sweephand.base.errors import InvalidRequest
from sweephand.cli.imports.azure_file import Place
from sweephand.cli.imports.service import LENIENT
from sweephand.domain.collection import Collection, CollectionState
from sweephand.formats.azure import collection_fields, job_fields
from sweephand.formats.azure.members import FACADE, JOB, JOB_BODY, TARGETS, VERSIONS
from sweephand.schedules import timing

VERSION = VERSIONS[0]
FINAL = frozenset({"completed", "faulted"})
COLLECTION_MEMBERS = ("location", "tags", "properties")
STAND_IN = "secret"


class Need(NamedTuple):
    """A secret, which no export contains. slot: its action. name: by which the user gives it."""

    slot: str
    name: str
    path: tuple[str, ...]


@dataclass(frozen=True)
class Form:
    """A job. properties: as they are sent. shown: as the facade shows them, with defaults and without states.

    brings_secrets: whether the properties contain secrets. remarks: for the owner of a new job.
    """

    properties: Mapping[str, Any]
    shown: Mapping[str, Any]
    brings_secrets: bool
    remarks: tuple[str, ...] = ()


def collection_of(body: Mapping[str, Any], place: Place) -> Collection:
    """Returns a collection as the facade reads it. Raises InvalidRequest."""
    names = {"subscription": place.subscription, "group": place.group, "name": place.collection}
    blank = Collection("", FACADE, facade=FACADE, attributes=names)
    return collection_fields.read({name: body.get(name) for name in COLLECTION_MEMBERS}, blank)


def disabled(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the body of a collection in the state Disabled, in which jobs do not run."""
    properties = {} if body.get("properties") is None else body["properties"]
    if not isinstance(properties, Mapping):
        return body
    rest = {name: each for name, each in properties.items() if name.lower() != "state"}
    return {**body, "properties": {**rest, "state": "Disabled"}}


def shown_collection(collection: Collection) -> Mapping[str, Any]:
    """Returns a collection in the form for comparing it."""
    shown = collection_fields.body(collection, VERSION)
    place = shown["location"].lower().replace(" ", "")
    return {"location": place, "tags": shown.get("tags", {}), "properties": shown["properties"]}


def state_of(body: Mapping[str, Any]) -> str:
    """Returns the state of a resource in lower case; an empty string without one."""
    properties = body.get("properties")
    members = properties.items() if isinstance(properties, Mapping) else ()
    return next((str(each).lower() for name, each in members if name.lower() == "state"), "")


# Jobs


def named(body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the properties of a job under their own names. Raises InvalidRequest."""
    properties = JOB_BODY.named({"properties": body.get("properties")})["properties"]
    if not isinstance(properties, dict):
        raise InvalidRequest("properties", "is required, and must be an object")
    return properties


def needs(properties: Mapping[str, Any]) -> list[Need]:
    """Returns the secrets that are missing from a job."""
    action = properties.get("action")
    inner = action.get("errorAction") if isinstance(action, Mapping) else None
    every_need = [*_needs(action, ("action",)), *_needs(inner, ("action", "errorAction"))]
    return [each for each in every_need if _at(properties, each.path) is None]


def _needs(action: Any, path: tuple[str, ...]) -> Iterator[Need]:
    if not isinstance(action, Mapping):
        return
    member = next((each for kind, each in TARGETS.items() if kind.lower() == str(action.get("type")).lower()), "")
    target = action.get(member)
    if not isinstance(target, Mapping):
        return
    slot, proof = ".".join(path), target.get("authentication")
    if member == "queueMessage":
        name = f"{target.get('storageAccount')}/{target.get('queueName')}"
        yield Need(slot, f"sasToken of {name}", (*path, member, "sasToken"))
    elif isinstance(proof, Mapping):
        for secret, whose in _of_proof(proof, target, member):
            yield Need(slot, f"{secret} of {whose}", (*path, member, "authentication", secret))


def _of_proof(proof: Mapping[str, Any], target: Mapping[str, Any], member: str) -> list[tuple[str, str]]:
    """Returns each secret of an authentication, with its owner."""
    if member != "request":
        entity = target.get("queueName") or target.get("topicPath")
        return [("sasKey", f"{proof.get('sasKeyName')} at {target.get('namespace')}/{entity}")]
    uri = urlsplit(str(target.get("uri")))
    site = f"{uri.scheme}://{uri.netloc.rpartition('@')[2]}"
    match str(proof.get("type")).lower():
        case "basic":
            return [("password", f"{proof.get('username')} at {site}")]
        case "clientcertificate":
            return [("pfx", f"the certificate for {site}"), ("password", f"the certificate for {site}")]
        case "activedirectoryoauth":
            return [("secret", f"{proof.get('clientId')} in {proof.get('tenant')}")]
        case _:
            return []


def _at(whole: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        whole = whole.get(name) if isinstance(whole, Mapping) else None
    return whole


def with_secrets(properties: Mapping[str, Any], secrets: Mapping[str, str]) -> dict[str, Any]:
    """Returns the properties with the missing secrets filled in, if they are given. secrets: by name."""
    filled = dict(properties)
    for need in needs(properties):
        if need.name in secrets:
            filled = _put(filled, need.path, secrets[need.name])
    return filled


def _put(whole: Any, path: tuple[str, ...], value: Any) -> Any:
    """Returns a copy with a value at the path. None removes the member."""
    name, *rest = path
    inner = _put(whole[name], tuple(rest), value) if rest else value
    without = {each: old for each, old in whole.items() if each != name}
    return without if inner is None else without | {name: inner}


def form(properties: Mapping[str, Any], body: Mapping[str, Any], collection: Collection, now: datetime) -> Form:
    """Returns the Form of a job. properties: of the body, after `named` and `with_secrets`. Raises InvalidRequest."""
    checked: Mapping[str, Any] = properties
    certificates = []
    for need in needs(properties):
        if need.path[-1] == "pfx":
            certificates.append(need.path[:-1])
        elif need.path[:-1] not in certificates:
            checked = _put(checked, need.path, STAND_IN)
    for path in certificates:
        checked = _put(checked, path, None)
    wanted = job_fields.read(checked, "job", collection, LENIENT, now)
    shown: Mapping[str, Any] = wanted.properties
    for path in certificates:
        shown = _put(shown, path, {"type": "ClientCertificate"})
    (schedule,) = wanted.draft.schedules or ()
    _check_times(schedule.timing, now)
    members = JOB(checked, "properties")
    runs = wanted.draft.active and collection.state is CollectionState.ENABLED
    brings = JOB.public(JOB(properties, "properties")) != JOB(properties, "properties")
    return Form(
        properties,
        job_fields.filled(shown, collection),
        brings,
        tuple(_remarks(members, body, now)) if runs else (),
    )


def _check_times(fields: Mapping[str, Any], now: datetime) -> None:
    try:
        timing.parse(fields, now=now, may_be_over=True)
    except InvalidRequest as refused:
        raise InvalidRequest(f"properties.{refused.field}", refused.reason) from refused


def shown_job(body: Mapping[str, Any], collection: Collection) -> Mapping[str, Any]:
    """Returns a job in the form for comparing it. body: the facade's answer."""
    properties = named(body)
    state = properties.pop("state", None)
    public = JOB.public(JOB(properties, "properties"))
    return job_fields.filled({**public, "state": state}, collection)


def _remarks(members: Mapping[str, Any], body: Mapping[str, Any], now: datetime) -> Iterator[str]:
    """Yields remarks about a new job that its owner may not expect."""
    recurrence, start = members.get("recurrence"), members.get("startTime")
    if start is None or (recurrence is None and datetime.fromisoformat(start) <= now):
        yield "runs immediately"
    executions = _at(body, ("properties", "status", "executionCount"))
    if recurrence is not None and "count" in recurrence and executions:
        yield f"its count of {recurrence['count']} starts over; {executions} runs have already taken place"
