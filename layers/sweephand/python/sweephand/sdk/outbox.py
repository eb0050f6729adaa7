"""An outbox in DynamoDB: the caller's rows and the job that belongs to them are written in one transaction."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

from sweephand.base.lazy import lazy
from sweephand.sdk import aws
from sweephand.sdk.api_errors import NameTaken
from sweephand.sdk.errors import ApiError, InvalidArgument
from sweephand.sdk.transport.request import header, to_json

with lazy():
    from sweephand.sdk.sync.resources import jobs

if TYPE_CHECKING:
    from sweephand.sdk.sync.client import Sweephand

log = logging.getLogger("sweephand.outbox")
LONGEST_KEY = 128


class DynamoOutbox:
    """Jobs that wait to be created, in a DynamoDB table of your own.

    table: its partition key is the string `id`. client: a botocore client; by default one with the credentials of this
    machine. To write it needs `dynamodb:PutItem`; to relay, `dynamodb:Scan` and `dynamodb:DeleteItem`.
    """

    def __init__(self, table: str, *, region: str | None = None, client: Any = None) -> None:
        self._table = table
        self._client = client or aws.client_of("dynamodb", region)

    def write(self, key: str, writes: Sequence[Mapping[str, Any]], **job: Any) -> None:
        """Carries out the caller's writes and stores the job, in one transaction.

        key: identifies the job, such as `order-4711/reminder`, and is its name. Use the same key if you repeat the
        call. writes: up to 99, in the form of TransactWriteItems. job: the other arguments of `jobs.create`. Raises
        InvalidArgument, TypeError for an argument that `jobs.create` does not have, and the errors of botocore.
        """
        if not isinstance(key, str) or not 0 < len(header("key", key)) <= LONGEST_KEY:
            raise InvalidArgument("key", f"must be a string of 1 to {LONGEST_KEY} characters, not {key!r}")
        signature(jobs.Jobs.create).bind(None, key, **job)
        try:
            kept = json.dumps(to_json(job), allow_nan=False)
        except (TypeError, ValueError) as wrong:
            raise InvalidArgument("job", f"cannot be sent as JSON: {wrong}") from wrong
        item = {"id": {"S": key}, "job": {"S": kept}}
        own = {"Put": {"TableName": self._table, "Item": item}}
        self._client.transact_write_items(TransactItems=[*writes, own])

    def relay(self, client: Sweephand) -> int:
        """Creates the waiting jobs and removes them from the outbox. Returns how many it removed.

        A job that was created before is not created again: its Idempotency-Key prevents that for a day, and its name
        afterwards. A job that the service refuses stays in the outbox, and the log says why. Raises TransportError.
        """
        return sum(self._sent(client, item["id"]["S"], json.loads(item["job"]["S"])) for item in self._waiting())

    def _waiting(self) -> Iterator[dict[str, Any]]:
        begin: dict[str, Any] = {}
        while True:
            page = self._asked("scan", ConsistentRead=True, **begin)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            begin = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _sent(self, client: Sweephand, key: str, job: dict[str, Any]) -> bool:
        try:
            client.jobs.create(key, **job, idempotency_key=key)
        except NameTaken:
            log.info("the job %s was created before", key)
        except (ApiError, InvalidArgument) as refused:
            log.warning("the job %s stays in the outbox %s: %s", key, self._table, refused)
            return False
        self._asked("delete_item", Key={"id": {"S": key}})
        return True

    def _asked(self, operation: str, **arguments: Any) -> dict[str, Any]:
        return aws.asked(self._client, operation, f"the table {self._table}", TableName=self._table, **arguments)
