"""The schemas of the actions beside HTTP, each in three forms: as it is given, as it is shown, as lists show it."""

from __future__ import annotations

from collections.abc import Mapping

from sweephand.actions import azure_service_bus, ecs, events, headers, payloads, redirects, rules, sns
from sweephand.actions.lambda_ import INVOCATIONS
from sweephand.facades.native.json_schema import Members, Schema, answer, one_of, or_null, ref, request, text, whole

ANYTHING: Schema = {"description": "Any JSON, up to 64 KB."}
TEXT_BODY = text(longest=payloads.MAX_PAYLOAD, description="Instead of `payload`: sent as it is.")
NO_TEXT: Schema = {"type": "null", "description": "This target takes JSON only."}
_OUTCOME: Members = {
    "answerTimeoutSeconds": whole(*rules.ANSWER_TIMEOUT_S),
    "onAccepted": one_of(rules.ON_ACCEPTED, description="Whether the run is over once the target has it, or waits."),
    "callbackTimeoutSeconds": whole(*rules.CALLBACK_TIMEOUT_S),
}
SHOWN_WAIT: Members = {
    "callbackTimeoutSeconds": or_null(
        whole(
            *rules.CALLBACK_TIMEOUT_S,
            description="Where the action does not say, as its collection or the stack has it now; null in changes.",
        )
    )
}
_GROUP = text(1, 128, pattern="^[!-~]+$", description="Of a FIFO target; without one, the job's id.")
_DETAIL_TYPE = text(1, events.MAX_DETAIL_TYPE)
_AWS: Members = {
    "targetArn": text(1, 2_048, description="The region is the ARN's."),
    "roleArn": text(
        1, 2_048, description="One of the parameter TargetRoleArns; assumed with the tenant as its ExternalId."
    ),
}
_HOST_PART = text(1, 63, pattern="^[A-Za-z0-9-]+$")
_ENTITY = text(1, 260, pattern="^[A-Za-z0-9._/-]+$")
_ENVIRONMENT: Schema = {
    "type": "object",
    "additionalProperties": text(longest=ecs.LONGEST_VALUE),
    "maxProperties": ecs.MOST_VARIABLES,
    "description": "Values are encrypted; `***` in a change: the stored one.",
}
_SECRET = text(longest=headers.MAX_SECRET, description="Encrypted; absent or `***` in a change: the stored one.")
_PROPERTIES: Members = {
    **{name: text(1, longest) for name, longest in azure_service_bus.TEXTS.items()},
    "forcePersistence": {"type": "boolean"},
    "scheduledEnqueueTimeUtc": text(),
    "timeToLiveSeconds": whole(1, azure_service_bus.LONGEST_LIFE_S),
}
_OF_THE_BUS: Members = {
    "authentication": ref("SharedAccessKey"),
    "transportType": one_of(azure_service_bus.TRANSPORTS, description="Kept; all messages go by HTTP."),
    "brokeredMessageProperties": ref("BrokeredMessageProperties"),
    "customMessageProperties": {"type": "object", "additionalProperties": text(), "maxProperties": headers.MAX_HEADERS},
}
_KEY: Members = {"type": {"const": "sharedAccessKey"}, "sasKeyName": text(1, 256), "sasKey": _SECRET}
_MASKED: Members = {
    "sasToken": {"const": headers.MASK},
    "environment": {"type": "object", "additionalProperties": {"const": headers.MASK}},
    "authentication": ref("ShownSharedAccessKey"),
    "brokeredMessageProperties": ref("ShownBrokeredMessageProperties"),
}
"""Where what is shown differs from what is given."""
_REDIRECT: Members = {**_AWS, "format": one_of(redirects.FORMATS, description="Of storage queues; else always raw.")}
REDIRECTS: Schema = {
    "type": "object",
    "additionalProperties": request(_REDIRECT, _AWS),
    "maxProperties": redirects.MOST,
    "description": "From an Azure queue or topic (`account/queue`, `namespace/entity`) to one of SQS or SNS.",
}
SHOWN_REDIRECTS: Schema = {**REDIRECTS, "additionalProperties": answer(_REDIRECT)}
_OWN: Mapping[str, Members] = {
    "sqs": {**_AWS, "messageGroupId": _GROUP},
    "sns": {**_AWS, "subject": text(1, sns.MAX_SUBJECT, pattern="^[ -~]*$"), "messageGroupId": _GROUP},
    "events": {**_AWS, "source": text(1, events.MAX_SOURCE, pattern="^[!-~]+$"), "detailType": _DETAIL_TYPE},
    "lambda": {
        **_AWS,
        "invocation": one_of(INVOCATIONS),
        "envelope": {"type": "boolean", "description": "The function gets the run, with the payload as a member."},
    },
    "states": _AWS,
    "ecs": {
        "taskDefinition": text(1, 265, description="One of the parameter TaskDefinitionArns: `family`, or `family:7`."),
        "container": text(1, 255, pattern="^[A-Za-z0-9_-]+$", description="Its exit code decides; it gets the rest."),
        "command": {"type": "array", "items": text(longest=ecs.LONGEST_VALUE), "maxItems": ecs.MOST_ARGUMENTS},
        "environment": _ENVIRONMENT,
        "roleArn": text(1, 2_048, description="One of the parameter TaskRoleArns; else the definition's own."),
        "cpuUnits": whole(*ecs.CPU_UNITS),
        "memoryMiB": whole(*ecs.MEMORY_MIB),
        "diskGiB": whole(*ecs.DISK_GIB),
    },
    "event": {"detailType": _DETAIL_TYPE},
    "azure_storage_queue": {
        "storageAccount": text(3, 24, pattern="^[A-Za-z0-9]+$"),
        "queueName": text(3, 63, pattern="^[a-z0-9]+(-[a-z0-9]+)*$"),
        "sasToken": _SECRET,
        "region": text(1, 64, description="What Azure Scheduler's envelope says of it."),
    },
    "azure_service_bus_queue": {"namespace": _HOST_PART, "queueName": _ENTITY, **_OF_THE_BUS},
    "azure_service_bus_topic": {"namespace": _HOST_PART, "topicPath": _ENTITY, **_OF_THE_BUS},
    "job": {"jobId": text(1, 64, description="Of the same tenant.")},
}
"""The members that only this kind has."""
_REQUIRED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("sqs", "sns", "lambda", "states"), ("targetArn", "roleArn")),
    "events": ("targetArn", "roleArn", "source", "detailType"),
    "ecs": ("taskDefinition", "container"),
    "event": (),
    "job": ("jobId",),
    "azure_storage_queue": ("storageAccount", "queueName"),
    "azure_service_bus_queue": ("namespace", "queueName", "authentication"),
    "azure_service_bus_topic": ("namespace", "topicPath", "authentication"),
}
_OF_AWS = {"messageGroupId", "subject"}
_MAY_BE_NULL: Mapping[str, set[str]] = {
    **dict.fromkeys(("sqs", "sns"), _OF_AWS),
    "ecs": {"roleArn", *ecs.SIZES},
    "azure_storage_queue": {"region"},
}
_TASK_OUTCOME: Members = {name: _OUTCOME[name] for name in ecs.OUTCOME}
_OUTCOME_OF = {"ecs": "TaskOutcome"}
"""Where it is not that of what only takes what it is sent."""
_JSON_ONLY = {"events", "lambda", "states"}
_NO_PAYLOAD = {"job"}
_DESCRIBED = {
    "ecs": "Who makes or changes such an action, or takes it from a job that stays, needs the scope `tasks:write` too."
}


def names(prefix: str = "") -> list[Schema]:
    return [ref(f"{prefix}{_name(kind)}Action") for kind in _OWN]


def schemas() -> dict[str, Schema]:
    made: dict[str, Schema] = {
        "TakenOutcome": request(_OUTCOME),
        "ShownTakenOutcome": answer({**_OUTCOME, **SHOWN_WAIT}),
    }
    made |= {"TaskOutcome": request(_TASK_OUTCOME), "ShownTaskOutcome": answer({**_TASK_OUTCOME, **SHOWN_WAIT})}
    made["SharedAccessKey"] = request(_KEY, ("type", "sasKeyName"))
    made["ShownSharedAccessKey"] = answer({**_KEY, "sasKey": {"const": headers.MASK}})
    made["BrokeredMessageProperties"] = request(_PROPERTIES)
    made["ShownBrokeredMessageProperties"] = answer(_PROPERTIES, _PROPERTIES)
    for kind, own in _OWN.items():
        made[f"{_name(kind)}Action"] = _given(kind, own)
        made[f"Shown{_name(kind)}Action"] = _shown(kind, own, {"payload": ANYTHING, "body": or_null(TEXT_BODY)})
        made[f"Listed{_name(kind)}Action"] = _shown(kind, own, {})
    return made


def _given(kind: str, own: Members) -> Schema:
    members: Members = {"type": {"const": kind}, **own, "retry": ref("Retry")}
    if kind not in _NO_PAYLOAD:
        body = NO_TEXT if kind in _JSON_ONLY else TEXT_BODY
        members = {**members, "payload": ANYTHING, "body": body, "outcome": ref(_outcome(kind))}
    else:
        nothing: Schema = {"type": "null"}
        members = {**members, "payload": nothing, "body": nothing}
    described = {"description": _DESCRIBED[kind]} if kind in _DESCRIBED else {}
    return request(members, ("type", *_REQUIRED[kind]), **described)


def _shown(kind: str, own: Members, payload: Members) -> Schema:
    own = {**own, **{name: _MASKED[name] for name in own if name in _MASKED}}
    shown = {name: or_null(each) if name in _MAY_BE_NULL.get(kind, ()) else each for name, each in own.items()}
    outcome = {} if kind in _NO_PAYLOAD else {"outcome": ref(f"Shown{_outcome(kind)}")}
    return answer({"type": {"const": kind}, **shown, **outcome, "retry": ref("ShownRetry"), **payload})


def _outcome(kind: str) -> str:
    return _OUTCOME_OF.get(kind, "TakenOutcome")


def _name(kind: str) -> str:
    return "".join(word.capitalize() for word in kind.split("_"))
