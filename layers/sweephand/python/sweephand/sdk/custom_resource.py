"""A job set as a custom resource of CloudFormation: jobs are declared in the template of the program they belong to.

`handler` is the handler of a Lambda function in the user's stack; docs/guide/job-sets.md has the template. Properties:
`Set`, its name; `Jobs`, the list as a JSON string; `AllowDeletes` and `OnDrift`, as in the API. Attributes:
`Created`, `Updated`, `Deleted`, `Unchanged`. A set belongs to the resource of the stack that created it, or that first
applied it as a whole: no other one changes or deletes it. A set that existed before is adopted: its owner says so, and
a deletion of the resource releases the set instead of deleting it. Source: custom resources in the AWS CloudFormation
User Guide.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sweephand.base.errors import SweephandError
from sweephand.base.lazy import lazy
from sweephand.sdk.api_errors import NotFound
from sweephand.sdk.each_once import Twice, each_once
from sweephand.sdk.errors import InvalidArgument, TransportError

if TYPE_CHECKING:
    from sweephand.sdk.models import JobSetPlan
    from sweephand.sdk.sync.http import Transport
    from sweephand.sdk.sync.resources.job_sets import JobSets

with lazy():
    from sweephand.sdk.sync import client, http

NO_SET = "none"
"""The physical id after the failed creation of a resource that names no set."""
PREFIX = "job-set/"
ADOPTED = " (adopted)"
"""The end of the owner of a set that existed before its resource. It is in the set, because an answer may be lost."""
PROPERTIES = {"ServiceToken", "ServiceTimeout", "Set", "Jobs", "AllowDeletes", "OnDrift"}
MOST_REASON = 1_000
RESERVE_S = 20.0
"""No request begins with less time left than this: it may take 14 s, and CloudFormation must be answered after it."""
UPLOAD_TRIES, UPLOAD_S = 3, 3.0
_LOG = logging.getLogger(__name__)


def handler(event: Mapping[str, Any], context: Any) -> None:
    """Applies or deletes the set that a request from CloudFormation names, and answers the request.

    The address and the credential come from SWEEPHAND_URL, SWEEPHAND_CLIENT_ID and SWEEPHAND_SECRET. Raises
    TransportError if the answer cannot be sent; Lambda then calls the function again.
    """
    answer = answered(event, lambda: context.get_remaining_time_in_millis() / 1_000)
    transport = http.HttpTransport()
    try:
        send(transport, event["ResponseURL"], answer)
    finally:
        transport.close()


def answered(event: Mapping[str, Any], remaining_s: Callable[[], float]) -> dict[str, Any]:
    """Carries out a request from CloudFormation and returns the answer.

    remaining_s: returns how long the function may still run. Never raises, because CloudFormation waits for an hour if
    it gets no answer.
    """
    change = _Change(event, remaining_s)
    try:
        with client.Sweephand() as service:
            data = change.delete(service.job_sets) if event["RequestType"] == "Delete" else change.put(service.job_sets)
        outcome: dict[str, Any] = {"Status": "SUCCESS", "Data": data}
    except SweephandError as error:
        outcome = {"Status": "FAILED", "Reason": _in_properties(str(error))[:MOST_REASON]}
    except Exception as error:  # noqa: BLE001 - it is logged and reported like any other failure
        _LOG.exception("a request from CloudFormation failed")
        outcome = {"Status": "FAILED", "Reason": f"{type(error).__name__}: see the function's log"}
    about = {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}
    return {**about, "PhysicalResourceId": change.physical_id, **outcome}


def _in_properties(text: str) -> str:
    """Returns the text of an error with the name that a template has for a parameter."""
    return text.replace("allow_deletes=", "AllowDeletes=")


def send(transport: Transport, url: str, answer: Mapping[str, Any]) -> None:
    """Uploads an answer to the address that CloudFormation gave. Raises TransportError after the last try."""
    body = json.dumps(answer).encode()
    for left in reversed(range(UPLOAD_TRIES)):
        try:
            status = transport.send("PUT", url, {"content-type": ""}, body, UPLOAD_S).status
        except TransportError:
            if not left:
                raise
        else:
            if status < 300:
                return
            if not left:
                raise TransportError(f"CloudFormation's address answered {status}")


class _Change:
    """A request from CloudFormation.

    physical_id: the id of the resource, which the answer returns. CloudFormation replaces the resource if it differs.
    """

    def __init__(self, event: Mapping[str, Any], remaining_s: Callable[[], float]) -> None:
        self._given: Mapping[str, Any] = event.get("ResourceProperties", {})
        self._former = str(event.get("OldResourceProperties", {}).get("Set", ""))
        self._creator = f"{event['StackId']} {event['LogicalResourceId']}"
        self._adopter = self._creator + ADOPTED
        self._mine = {self._creator, self._adopter}
        self._remaining_s = remaining_s
        self.physical_id: str = event.get("PhysicalResourceId", NO_SET)

    def put(self, job_sets: JobSets) -> dict[str, int]:
        """Applies the list of jobs to the set. Returns the number of changes of each kind.

        From the first request that may create the set, the answer has its name: if it fails, CloudFormation deletes it.
        """
        name, jobs = self._name(), self._jobs()
        allowed, at_drift, owner = self._allowed(), self._given.get("OnDrift"), self._future_owner(job_sets, name)
        unknown = self._former if PREFIX + self._former != self.physical_id else name
        self.physical_id = PREFIX + name
        done = self._whole(
            lambda token: job_sets.put(
                name, jobs=jobs, token=token, allow_deletes=allowed, on_drift=at_drift, owner=owner
            )
        )
        if unknown != name:
            # This rolls back an update that never answered: CloudFormation does not know the set that it began.
            self._drop(job_sets, unknown)
        return done

    def _future_owner(self, job_sets: JobSets, name: str) -> str:
        """Returns the owner of the set once it is applied: whether this resource creates or adopts it.

        Raises InvalidArgument for a set of another owner, and for a new name in place of an adopted set: CloudFormation
        would then delete that set, which releases it, and each of its jobs would exist twice.
        """
        set_exists, owner = _owner(job_sets, name)
        if owner is not None and owner not in self._mine:
            raise InvalidArgument("Set", f"{name!r} belongs to {owner}: choose another name, or delete it there first")
        former = self._set_of_id()
        if owner is None and former not in {"", name} and _owner(job_sets, former)[1] == self._adopter:
            reason = f"{former!r} existed before this stack, which never deletes it: keep the name, or delete that set"
            raise InvalidArgument("Set", f"{reason} first")
        return owner or (self._adopter if set_exists else self._creator)

    def delete(self, job_sets: JobSets) -> dict[str, int]:
        """Deletes the set with all its jobs, because the resource was removed from the template on purpose.

        A set that belongs to something else stays, and so does an adopted one. CloudFormation makes up a physical id if
        it has got no answer.
        """
        return self._drop(job_sets, self._set_of_id() or str(self._given.get("Set", "")))

    def _set_of_id(self) -> str:
        """Returns the name of the set in the physical id; empty for an id that CloudFormation made up."""
        kind, _, name = self.physical_id.rpartition("/")
        return name if f"{kind}/" == PREFIX else ""

    def _drop(self, job_sets: JobSets, name: str) -> dict[str, int]:
        """Deletes the set with its jobs if this resource created it, and releases it if this resource adopted it."""
        owner = _owner(job_sets, name)[1] if name else None
        try:
            if owner == self._adopter:
                job_sets.release(name, owner=owner)
            if owner != self._creator:
                return {}
            deleted = len(job_sets.delete(name, plan=True).deleted)
            return self._whole(lambda token: job_sets.delete(name, token=token, allow_deletes=deleted, owner=owner))
        except NotFound:
            return {}

    def _whole(self, ask: Callable[[str | None], JobSetPlan]) -> dict[str, int]:
        """Repeats the request until nothing remains; each one makes as many changes as it has time for."""
        counts, token, same = Counter[str](), None, None
        while True:
            done = ask(token)
            counts["Created"] += len(done.created)
            counts["Updated"] += len(done.updated) + len(done.repaired)
            counts["Deleted"] += len(done.deleted)
            same = done.unchanged if same is None else same
            if done.failed:
                raise SweephandError("; ".join(f"{each.key}: {each.reason}" for each in done.failed))
            if not done.remaining:
                return {"Created": 0, "Updated": 0, "Deleted": 0, **counts, "Unchanged": same}
            if self._remaining_s() < RESERVE_S:
                raise SweephandError(f"{done.remaining} changes remain: give the function a longer Timeout")
            token = done.token

    # The properties

    def _name(self) -> str:
        unknown = sorted(self._given.keys() - PROPERTIES)
        if unknown:
            raise InvalidArgument(unknown[0], "is not a property of a job set")
        name = self._given.get("Set")
        if not isinstance(name, str) or not name:
            raise InvalidArgument("Set", "must name the job set")
        return name

    def _jobs(self) -> list[Any]:
        text = self._given.get("Jobs")
        if not isinstance(text, str):
            reason = (
                "must be a JSON string, because CloudFormation turns numbers and true into strings: use ToJsonString"
            )
            raise InvalidArgument("Jobs", reason)
        try:
            jobs = json.loads(text, object_pairs_hook=each_once)
        except Twice as error:
            raise InvalidArgument("Jobs", f"cannot be used: {error}") from error
        except ValueError as error:
            raise InvalidArgument("Jobs", f"is not valid JSON: {error}") from error
        if not isinstance(jobs, list):
            raise InvalidArgument("Jobs", "must be a JSON list; an empty list, [], deletes all jobs of the set")
        return jobs

    def _allowed(self) -> int | None:
        value = self._given.get("AllowDeletes")
        if value is None:
            return None
        if not str(value).isdecimal():
            raise InvalidArgument("AllowDeletes", f"must be a whole number, not {value!r}")
        return int(value)


def _owner(job_sets: JobSets, name: str) -> tuple[bool, str | None]:
    """Returns whether the set exists, and what it belongs to; None if it belongs to nothing."""
    try:
        return True, job_sets.get(name).owner
    except (NotFound, InvalidArgument):
        return False, None
