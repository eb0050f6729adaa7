"""The members of Azure Scheduler's resources: one table for each object.

Source: the REST reference and the models of Microsoft's clients.
"""

from __future__ import annotations

from typing import Any

from sweephand.formats.azure.shapes import (
    ByType,
    Secret,
    Shape,
    anything,
    choice,
    duration,
    instant,
    string,
    strings,
    whole,
)
from sweephand.formats.azure.shapes import Reader as Reader  # noqa: PLC0414 - of the tables
from sweephand.schedules.notations.recurrence_fields import LONGEST
from sweephand.schedules.text.english import WEEKDAYS

FACADE = "azure"
OF_2014 = "2014-08-01-preview"
VERSIONS = ("2016-03-01", "2016-01-01", OF_2014)

LONGEST_RETRY_S, LEAST_RETRY_S = 548 * 86_400, 15
MOST_RETRIES = 20
LONGEST_SECRET = 4_096
MOST_COUNT = 2**31 - 1
FLAG: Reader = anything
"""The domain refuses values that are neither true nor false."""

RETRY_POLICY = Shape(
    {
        "retryType": choice("None", "Fixed"),
        "retryInterval": duration(LEAST_RETRY_S, LONGEST_RETRY_S),
        "retryCount": whole(0, MOST_RETRIES),
    }
)
_PROOFS = {
    "Basic": ("username", "password"),
    "ClientCertificate": ("pfx", "password"),
    "ActiveDirectoryOAuth": ("tenant", "audience", "clientId", "secret"),
}
HTTP_AUTHENTICATION = ByType(
    {
        "type": choice(*_PROOFS),
        "username": string(256),
        "pfx": Secret(65_536),
        "password": Secret(LONGEST_SECRET, shortest=0),
        "tenant": string(100, 1),
        "audience": string(2_048, 1),
        "clientId": string(1_024, 1),
        "secret": Secret(LONGEST_SECRET),
    },
    ("type",),
    _PROOFS,
)
REQUEST = Shape(
    {
        "authentication": HTTP_AUTHENTICATION,
        "uri": string(2_048, 1),
        "method": string(10, 1),
        "body": string(8_192),
        "headers": strings,
    },
    ("uri", "method"),
)
QUEUE_MESSAGE = Shape(
    {
        "storageAccount": string(63, 1),
        "queueName": string(260, 1),
        "sasToken": Secret(LONGEST_SECRET),
        "message": string(65_536),
    },
    ("storageAccount", "queueName", "message"),
)
SHARED_ACCESS_KEY = Shape(
    {
        "type": choice("SharedAccessKey", NotSpecified="SharedAccessKey"),
        "sasKeyName": string(256, 1),
        "sasKey": Secret(1_024),
    },
    ("sasKeyName",),
)
BROKERED_PROPERTIES = Shape(
    {
        "contentType": string(256),
        "correlationId": string(256),
        "forcePersistence": FLAG,
        "label": string(256),
        "messageId": string(128),
        "partitionKey": string(128),
        "replyTo": string(256),
        "replyToSessionId": string(128),
        "scheduledEnqueueTimeUtc": instant,
        "sessionId": string(128),
        "timeToLive": duration(1, MOST_COUNT),
        "to": string(256),
        "viaPartitionKey": string(128),
    }
)


def _service_bus(entity: str) -> Shape:
    return Shape(
        {
            "authentication": SHARED_ACCESS_KEY,
            "brokeredMessageProperties": BROKERED_PROPERTIES,
            "customMessageProperties": strings,
            "message": string(65_536),
            "namespace": string(63, 1),
            "transportType": choice("NotSpecified", "NetMessaging", "AMQP"),
            entity: string(260, 1),
        },
        ("namespace", entity, "authentication", "message"),
    )


TARGETS = {
    "Http": "request",
    "Https": "request",
    "StorageQueue": "queueMessage",
    "ServiceBusQueue": "serviceBusQueueMessage",
    "ServiceBusTopic": "serviceBusTopicMessage",
}
"""The member that describes an action's target, by the type of the action."""
_OWN = {kind: (member,) for kind, member in TARGETS.items()}
ERROR_ACTION = ByType(
    {
        "type": choice(*TARGETS),
        "request": REQUEST,
        "queueMessage": QUEUE_MESSAGE,
        "serviceBusQueueMessage": _service_bus("queueName"),
        "serviceBusTopicMessage": _service_bus("topicPath"),
        "retryPolicy": RETRY_POLICY,
    },
    ("type",),
    _OWN,
)
ACTION = ByType({**ERROR_ACTION.members, "errorAction": ERROR_ACTION}, ("type",), _OWN)


def _day(value: Any, _: str) -> Any:
    """Reads the name of a day, in upper or lower case. The domain refuses other names."""
    return value.capitalize() if isinstance(value, str) and value.capitalize() in WEEKDAYS else value


def _days(value: Any, path: str) -> Any:
    return [_day(each, path) for each in value] if isinstance(value, list) else value


def _numbers(value: Any, _: str) -> Any:
    """Reads a single number as a list of one, which clients can read. The domain checks the numbers."""
    return [value] if isinstance(value, int) and not isinstance(value, bool) else value


MONTHLY_OCCURRENCE = Shape({"day": _day, "occurrence": anything})


def _occurrences(value: Any, path: str) -> Any:
    """Reads days of a month, whose members clients name in two ways. The domain checks them."""
    if not isinstance(value, list):
        return value
    return [MONTHLY_OCCURRENCE(MONTHLY_OCCURRENCE.named(each, path), path) for each in value]


RECURRENCE = Shape(
    {
        "frequency": choice(*(unit.capitalize() for unit in LONGEST)),
        "interval": anything,
        "count": whole(1, MOST_COUNT),
        "endTime": instant,
        "schedule": Shape(
            {
                "weekDays": _days,
                **dict.fromkeys(("hours", "minutes", "monthDays"), _numbers),
                "monthlyOccurrences": _occurrences,
            }
        ),
    },
    ("frequency",),
)
JOB = Shape(
    {
        "startTime": instant,
        "action": ACTION,
        "recurrence": RECURRENCE,
        "state": choice("Enabled", "Disabled"),
    },
    ("action",),
)
JOB_BODY = Shape({"properties": JOB}, ("properties",))

COLLECTION = Shape(
    {
        "location": string(128, 1),
        "tags": strings,
        "properties": Shape(
            {
                "sku": Shape(
                    {"name": choice("Free", "Standard", "P10Premium", "P20Premium", Premium="P10Premium")}, ("name",)
                ),
                "state": choice("Enabled", "Disabled", "Suspended"),
                "quota": Shape(
                    {
                        "maxJobCount": whole(1, 1_000),
                        "maxJobOccurrence": whole(1, MOST_COUNT),
                        "maxRecurrence": Shape(
                            {
                                "frequency": choice("Minute", "Hour", "Day", "Week", "Month"),
                                "interval": whole(1, 1_000),
                            },
                            ("frequency",),
                        ),
                    }
                ),
            }
        ),
    },
    ("location",),
)
