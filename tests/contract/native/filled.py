"""Bodies with every member set to something other than its default, drawn from the schemas of requests.

A new member joins by its schema alone. A string whose form the schema cannot say has its value in `VALUES`; members
that exclude each other stand in `APART`, and take turns.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

from sweephand.domain.job import MASK
from sweephand.schedules.notations import NOTATIONS as MODULES
from tests.support import ecs
from tests.support.acting import ROLE, arn
from tests.support.azure import KEYS, STORAGE_TOKEN
from tests.unit.endpoints import Authority
from tools.openapi.schemas import SCHEMAS

KINDS = [form["$ref"].rpartition("/")[2] for form in SCHEMAS["Action"]["oneOf"]]
PROOFS = [form["properties"]["type"]["const"] for form in SCHEMAS["Authentication"]["oneOf"]]
CERTIFICATE = f"Authentication[{PROOFS.index('clientCertificate')}]"
TURNS = 2 * len(KINDS)
NOTATIONS = [form["required"][0] for form in SCHEMAS["ScheduleDraft"]["oneOf"]]
ONCE = {"at", "time"}
FREE = "something-else"
TARGETS = {
    "SqsAction": arn("sqs", "orders.fifo"),
    "SnsAction": arn("sns", "news.fifo"),
    "EventsAction": arn("events", "event-bus/other"),
    "LambdaAction": arn("lambda", "function:f"),
    "StatesAction": arn("states", "stateMachine:m"),
}
VALUES: Mapping[str, Any] = {
    **{f"{kind}.targetArn": target for kind, target in TARGETS.items()},
    "roleArn": ROLE,
    "EcsAction.roleArn": ecs.ROLE,
    "EcsAction.cpuUnits": 512,
    "EcsAction.memoryMiB": 2_048,
    "EcsAction.diskGiB": 30,
    "EcsAction.container": "main",
    "taskDefinition": "report",
    "SharedAccessKey.sasKeyName": "QPolicy",
    "SharedAccessKey.sasKey": KEYS["QPolicy"],
    "sasToken": STORAGE_TOKEN,
    "storageAccount": "acme",
    "namespace": "acmebus",
    "queueName": "orders",
    "topicPath": "news",
    "source": "acme.orders",
    "messageGroupId": "group",
    "scheduledEnqueueTimeUtc": "2027-05-01T00:00:00Z",
    "environment": {"COLOUR": "red"},
    "customMessageProperties": {"X-Custom": "custom"},
    "headers": {"X-Unusual": "unusual"},
    "url": "https://example.org/unusual",
    "tokenUrl": "https://example.org/token",
    "ApiKey.header": "X-Key",
    "header": "X-Key",
    "service": "execute-api",
    "region": "eu-west-1",
    "successStatuses": ["200-204"],
    "neverOn": ["DNS", "404"],
    "startTime": "2027-03-05T00:00:00Z",
    "endTime": "2029-03-05T00:00:00Z",
    "at": "2027-04-01T09:00:00Z",
    "every": "P1M",
    "align": "clock",
    "cron": "30 2 1 * *",
    "eventBridge": "cron(30 2 1 * ? *)",
    "sapCron": "* * 1 * 2 30 0",
    "time": {"date": "2027-04-01 09:00", "format": "YYYY-MM-DD HH:mm"},
    "rrule": "FREQ=MONTHLY;BYMONTHDAY=1;BYHOUR=2;BYMINUTE=30;BYSECOND=0",
    "repeatAt": "4.40pm",
    "recurrence": {"frequency": "month", "interval": 7, "schedule": {"monthDays": [1], "hours": [2], "minutes": [30]}},
    "timezone": "Europe/Berlin",
    "calendars": [{"name": "spare", "mode": "include", "roll": "next"}],
    "collection": "spare",
    "flowKey": "spare",
    "tags": ["unusual"],
    "quota.runsPerMinute": 300,
    "dates": ["12-25"],
    "ranges": [{"from": "2027-07-01", "to": "2027-07-14"}],
    "weekly": [{"days": ["SAT"], "from": "09:00", "to": "17:00"}],
    "redirects": {"acme/orders": {"targetArn": arn("sqs", "orders"), "roleArn": ROLE, "format": "raw"}},
    "withheldScopes": ["tasks:write"],
    "hooks[]": ["onFailure"],
}
"""Values by name, or by the schema and the name: what its schema cannot say, or what must be there."""
RECURRING_ONLY = {"count", "align", "dstGap", "dstOverlap", "monthOverflow", "onCreate", "ratePerMinute"}
CLOCK_RULES = {"dstGap", "dstOverlap"}
"""Rules that act only where the notation has a default for them."""
OF_JOB_ONLY = {"flowKey", "afterEnd"}
"""Policies that a collection gives nobody by default."""
NEVER = {"iCalendar"}
"""Read into other members and not kept: nothing of it can be read back."""


@dataclass
class Filling:
    """turn: which of the members that exclude each other are set. known: values of this test's own, by name.

    usual: the value that a member has by default, by its path. used: the places that were filled, by schema.
    """

    turn: int
    known: Mapping[str, Any] = field(default_factory=dict)
    usual: Mapping[str, Any] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def of(self, schema_name: str, path: str = "", leave_out: Collection[str] = ()) -> Any:
        return self._object(SCHEMAS[schema_name], schema_name, path, leave_out)

    def _object(self, schema: Mapping[str, Any], name: str, path: str, leave_out: Collection[str] = ()) -> Any:
        out = {*leave_out, *self._apart(name, schema), *NEVER}
        if path == "defaults.policies":
            out |= OF_JOB_ONLY
        made = {}
        for member, given in schema["properties"].items():
            each = _plain(given)
            if member in out or each.get("readOnly") or each.get("type") == "null":
                continue
            self.used.add(f"{name}.{member}")
            made[member] = self._value(each, name, member, f"{path}.{member}".lstrip("."))
        return self._sense(name, made)

    def _value(self, schema: Mapping[str, Any], owner: str, member: str, path: str) -> Any:
        proof = "clientCertificate." if owner == CERTIFICATE else ""
        for key in (
            f"{owner}.{member}",
            f"{proof}{member}",
            f"{member}[]" if schema.get("type") == "array" else "",
            member,
        ):
            if key in self.known:
                return self.known[key]
            if key in VALUES:
                return VALUES[key]
        if "$ref" in schema:
            return self._named(schema["$ref"].rpartition("/")[2], path)
        if "const" in schema:
            return schema["const"]
        if "oneOf" in schema:
            form = schema["oneOf"][self.turn % len(schema["oneOf"])]
            return self._object(form, f"{owner}.{member}", path)
        if "properties" in schema:
            return self._object(schema, f"{owner}.{member}", path)
        return self._plain(schema, owner, member, path)

    def _named(self, name: str, path: str) -> Any:
        schema = SCHEMAS[name]
        if name == "Action":
            # A job's own action takes each kind in turn. The runs that follow from it call HTTP, with each proof in
            # turn.
            return self._named(KINDS[self.turn % len(KINDS)] if path == "action" else "HttpAction", path)
        if "oneOf" in schema and "properties" not in schema:
            n = self.turn % len(schema["oneOf"])
            return self._object(schema["oneOf"][n], f"{name}[{n}]", path)
        return self._object(schema, name, path)

    def _plain(self, schema: Mapping[str, Any], owner: str, member: str, path: str) -> Any:
        usual = self.usual.get(path)
        if "enum" in schema:
            return next(each for each in reversed(schema["enum"]) if each not in (usual, None))
        match schema.get("type"):
            case "boolean":
                return usual is not True
            case "integer":
                low, high = schema["minimum"], schema.get("maximum", 2**31)
                return next(each for each in (min(low + 2, high), low) if each != usual)
            case "array":
                return [self._value(_plain(schema["items"]), owner, f"{member}[]", f"{path}[]")]
            case "string":
                return _string(schema, f"{owner}.{member}")
            case None:  # any JSON
                return {"unusual": [1, None, self.turn]}
        raise AssertionError(f"{owner}.{member}: say in VALUES what it may be")

    def _apart(self, name: str, schema: Mapping[str, Any]) -> set[str]:
        """Lists the members that are left out in this turn."""
        members = schema["properties"].keys()
        if {"payload", "body"} <= members:
            json_only = schema["properties"]["body"].get("type") == "null"
            return {"body"} if json_only or self.turn // len(KINDS) % 2 else {"payload"}
        if {"pfx", "pem"} <= members:
            return {"pem"} if self.turn // len(PROOFS) % 2 else {"pfx", "password"}
        return {"name"} if name == "TenantDraft" else set()

    def _sense(self, name: str, made: dict[str, Any]) -> Any:
        """Chooses members that act in each other's company."""
        if name == "Retry":
            made["type"] = ("exponential", "two_level", "fixed")[self.turn % 3]
            away = {
                "exponential": {"immediate", "delayed", "increaseSeconds"},
                "two_level": {"maxRetries", "delaySeconds", "maxDelaySeconds"},
                "fixed": {"maxDelaySeconds", "immediate", "delayed", "increaseSeconds"},
            }
            return self._without(name, made, away[made["type"]])
        if name == "Misfire":
            made["type"] = "all"
        return made

    def _without(self, name: str, made: dict[str, Any], away: Collection[str]) -> dict[str, Any]:
        self.used -= {f"{name}.{member}" for member in away}
        return {member: value for member, value in made.items() if member not in away}

    # Whole bodies

    def job(self) -> dict[str, Any]:
        job = self.of("JobDraft", leave_out={"schedules"})
        self.used.add("JobDraft.schedules")
        if KINDS[self.turn % len(KINDS)] == "EcsAction":
            del job["policies"]["onNoResult"]  # a task is stopped at its deadline
        return {**job, "schedules": [self.schedule(notation) for notation in NOTATIONS]}

    def schedule(self, notation: str) -> dict[str, Any]:
        """Makes one schedule of the job, with members that act in this notation; one in each turn brings hooks."""
        away = {*NOTATIONS} - {notation}
        if notation != NOTATIONS[self.turn % len(NOTATIONS)]:
            away |= {"hooks"}
        if notation in ONCE:
            away |= RECURRING_ONLY | ({"startTime"} if notation == "time" else set())
        elif notation != "every":
            away |= {"align"} | ({"monthOverflow"} if notation not in {"cron", "recurrence"} else set())
        if notation not in ONCE:
            away |= CLOCK_RULES - MODULES[notation].DEFAULTS.keys()
        made = self.of("ScheduleDraft", f"schedules[{notation}]", leave_out=away)
        policies = made["policies"]
        if notation in ONCE:
            policies.pop("onCreate")
            policies["misfire"].pop("ratePerMinute")
        else:
            del policies["onPastStart"], policies["onEnable"]
        if KINDS[self.turn % len(KINDS)] == "EcsAction":
            policies.pop("onNoResult")
        if KINDS[self.turn % len(KINDS)] == "JobAction":
            made.pop("payload")  # a run of another job takes none
        return {**made, "name": notation}


def _plain(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a schema without its null."""
    forms = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if forms:
        return forms[0]
    kinds = schema.get("type")
    if isinstance(kinds, list):
        (kind,) = (each for each in kinds if each != "null")
        return {**schema, "type": kind}
    return schema


def _string(schema: Mapping[str, Any], where: str) -> str:
    value = FREE[: schema.get("maxLength", 100)]
    for candidate in (value, "else"):
        if re.search(schema.get("pattern", ""), candidate) and len(candidate) >= schema.get("minLength", 0):
            return candidate
    raise AssertionError(f"{where}: say in filled.VALUES what it may be")


@cache
def certificates() -> Mapping[str, str]:
    """Makes one client certificate in both of its forms, with the password of the first."""
    with TemporaryDirectory() as folder:
        key, certificate = Authority(Path(folder)).client("me", days=3_650)
    lock = BestAvailableEncryption(b"of the file")
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return {
        "clientCertificate.password": "of the file",
        "pfx": base64.b64encode(serialize_key_and_certificates(b"x", key, certificate, None, lock)).decode(),
        "pem": (private + certificate.public_bytes(Encoding.PEM)).decode(),
    }


UNREAD = {"pfx": "certificate", "password": "certificate"}
"""Members of a client certificate that are read into another one, which is shown."""


def differences(sent: Any, shown: Any, path: str = "") -> Iterator[str]:
    """Lists the places where an answer does not show what was sent; a secret is shown as `***`."""
    if isinstance(sent, Mapping) and isinstance(shown, Mapping):
        for name, value in sent.items():
            if name in UNREAD and name not in shown and UNREAD[name] in shown:
                continue
            yield from differences(value, shown.get(name, "(absent)"), f"{path}.{name}")
    elif isinstance(sent, list) and isinstance(shown, list) and len(sent) == len(shown):
        for n, (one, other) in enumerate(zip(sent, shown, strict=True)):
            yield from differences(one, other, f"{path}[{n}]")
    elif shown != MASK and sent != shown:
        yield f"{path}: {sent!r} is shown as {shown!r}"


def settable(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the part of a job that a caller may send, with its schedules by name."""

    def of(schema: str, body: Mapping[str, Any]) -> dict[str, Any]:
        members = SCHEMAS[schema]["properties"]
        return {name: value for name, value in body.items() if not members[name].get("readOnly")}

    schedules = {each["name"]: of("ScheduleReplacement", each) for each in shown["schedules"]}
    return {**of("JobReplacement", shown), "schedules": schedules}


def places(name: str) -> set[str]:
    """Lists the members of a request that `Filling` must have set at least once, each by its schema."""
    found: set[str] = set()
    todo = [(name, SCHEMAS[name])]
    while todo:
        owner, schema = todo.pop()
        if "$ref" in schema:
            inner = schema["$ref"].rpartition("/")[2]
            todo += [] if any(place.startswith(f"{inner}.") for place in found) else [(inner, SCHEMAS[inner])]
        elif "properties" in schema:
            for member, given in schema["properties"].items():
                each = _plain(given)
                if not each.get("readOnly") and each.get("type") != "null" and member not in NEVER:
                    found.add(f"{owner}.{member}")
                    if member not in VALUES:
                        todo.append((f"{owner}.{member}", each))
        elif "items" in schema:
            todo.append((owner, schema["items"]))
        elif "oneOf" in schema:
            todo += [(f"{owner}[{n}]" if "$ref" not in form else owner, form) for n, form in enumerate(schema["oneOf"])]
    return found
