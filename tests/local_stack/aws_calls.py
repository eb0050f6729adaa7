"""Which rights the calls of a function need: each AWS call as IAM's action and the template's resource."""

from __future__ import annotations

from contextlib import contextmanager
from unittest import mock

from botocore.client import BaseClient

PARTS_OF_A_TRANSACTION = {
    "Put": "dynamodb:PutItem",
    "Update": "dynamodb:UpdateItem",
    "Delete": "dynamodb:DeleteItem",
    "ConditionCheck": "dynamodb:ConditionCheckItem",
}
STATEMENTS = {
    "UPDATE": "PartiQLUpdate",
    "SELECT": "PartiQLSelect",
    "INSERT": "PartiQLInsert",
    "DELETE": "PartiQLDelete",
}
ON_OBJECTS = {
    "PutObject": ("PutObject",),
    "GetObject": ("GetObject",),
    "DeleteObjects": ("DeleteObject",),
    "CreateMultipartUpload": ("PutObject",),
    "UploadPartCopy": ("PutObject", "GetObject"),
    "CompleteMultipartUpload": ("PutObject",),
    "AbortMultipartUpload": ("AbortMultipartUpload",),
}
ON_ONE = {"kms": "KeyId", "secretsmanager": "SecretId", "ssm": "Name"}
"""Services whose calls name one resource, with the member that does."""
ONE_BY_ONE = {
    "SendMessageBatch": "SendMessage",
    "DeleteMessageBatch": "DeleteMessage",
    "ChangeMessageVisibilityBatch": "ChangeMessageVisibility",
}


def rights(service, operation, request, names):
    """Yields (action, resource) for each right that the call needs. names: the template's resource by physical name."""
    if service == "dynamodb":
        yield from _rights_on_items(operation, request, names)
    elif service == "sqs":
        yield from _rights_on_queues(operation, request, names)
    elif service in ON_ONE:
        yield f"{service}:{operation}", names[request[ON_ONE[service]]]
    elif service == "events":
        yield from ((f"events:{operation}", names[entry["EventBusName"]]) for entry in request["Entries"])
    elif service == "s3" and operation == "ListObjectsV2":
        yield "s3:ListBucket", names[request["Bucket"]]
    elif service == "s3":
        yield from ((f"s3:{action}", f"${{{names[request['Bucket']]}.Arn}}/*") for action in ON_OBJECTS[operation])
    elif service == "sts":
        yield f"sts:{operation}", request["RoleArn"]
    elif service == "ecs":
        yield f"ecs:{operation}", request["taskDefinition" if operation == "RunTask" else "cluster"]
    else:
        yield f"{service}:{operation}", "?"


def _rights_on_queues(operation, request, names):
    name = request["QueueName"] if operation == "CreateQueue" else request["QueueUrl"].rpartition("/")[2]
    yield f"sqs:{ONE_BY_ONE.get(operation, operation)}", names[name]
    if request.get("tags"):
        yield "sqs:TagQueue", names[name]


def _rights_on_items(operation, request, names):
    if operation == "TransactWriteItems":
        for part in request["TransactItems"]:
            ((verb, item),) = part.items()
            yield PARTS_OF_A_TRANSACTION[verb], names[item["TableName"]]
    elif operation == "BatchExecuteStatement":
        for statement in request["Statements"]:
            verb, table, *_ = statement["Statement"].split()
            yield f"dynamodb:{STATEMENTS[verb.upper()]}", names[table.strip('"')]
    elif operation in {"BatchGetItem", "BatchWriteItem"}:
        yield from ((f"dynamodb:{operation}", names[table]) for table in request["RequestItems"])
    elif "IndexName" in request:
        yield f"dynamodb:{operation}", f"${{{names[request['TableName']]}.Arn}}/index/{request['IndexName']}"
    else:
        yield f"dynamodb:{operation}", names[request["TableName"]]


@contextmanager
def recorded(names):
    """Yields a recorder: under `recorder.acting_as("sweeper")`, every call of this process adds to used["sweeper"]."""
    recorder = Recorder(names)
    real = BaseClient._make_api_call

    def call(client, operation, request):
        if not _by_a_role_of_a_job_s(client):
            recorder.saw(client.meta.service_model.service_name, operation, request)
        return real(client, operation, request)

    with mock.patch.object(BaseClient, "_make_api_call", call):
        yield recorder


def _by_a_role_of_a_job_s(client):
    """Tells whether a job's own role acts. Its rights are its owner's affair. Only assumed roles have a token here."""
    return client._request_signer._credentials.token is not None


class Recorder:
    def __init__(self, names):
        self.used = {}
        self._names = names
        self._actor = None

    @contextmanager
    def acting_as(self, actor):
        """Makes one actor act at a time; its threads count as it."""
        self._actor = actor
        try:
            yield
        finally:
            self._actor = None

    def saw(self, service, operation, request):
        if self._actor is not None:
            used = self.used.setdefault(self._actor, {})
            for action, resource in rights(service, operation, request, self._names):
                used.setdefault(resource, set()).add(action)
