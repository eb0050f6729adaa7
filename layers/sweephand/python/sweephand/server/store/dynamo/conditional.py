"""Reads and conditional writes of the table, through PynamoDB's own connection.

PynamoDB's models are the schema; its models and connection lack `ReturnValuesOnConditionCheckFailure`, so writes go to
the connection's client with expressions that PynamoDB serialises. A failed condition is a value (`Refused`, with the
item that was there), never an exception: after a lost answer, the SDK repeats the call and may meet its own success.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

from botocore import __version__ as botocore_version
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from pynamodb.attributes import Attribute
from pynamodb.connection import Connection
from pynamodb.expressions.projection import create_projection_expression

from sweephand import __version__
from sweephand.base.errors import Unavailable
from sweephand.base.records import dataclass
from sweephand.base.sources import Chance, Clock
from sweephand.server.store.dynamo.expressions import Action, Condition, add, in_request, names_of
from sweephand.server.store.dynamo.table import Item

USER_AGENT = f"Sweephand/{__version__} Botocore/{botocore_version}"
CONFLICT_TRIES = 5
TRANSACTION_TRIES = 10
LONGEST_JITTER_S = 0.8
"""Twenty concurrent transactions on one item all succeed, the last within some 2 s (decision 0019)."""
BATCH_GET_MOST = 100
TRANSACTION_MOST = 100
GROWTH, LARGEST_PAGE = 16, 10_000

R = TypeVar("R")
I = TypeVar("I", bound=Item)  # noqa: E741 - an Item of one model


@dataclass(frozen=True)
class Written:
    """A write that succeeded."""


@dataclass(frozen=True)
class Refused:
    """A write whose condition failed. old: the item that was there, in DynamoDB's JSON; None if there was none."""

    old: Mapping[str, Any] | None

    def read(self, model: type[I]) -> I | None:
        return model.from_raw_data(dict(self.old)) if self.old else None


def if_any(read: Callable[[I], R], item: I | None) -> R | None:
    """Returns the record of an item that was found."""
    return None if item is None else read(item)


@dataclass(frozen=True)
class Op:
    """One part of a transaction. name: identifies the part in a refusal."""

    name: str
    request: Mapping[str, Any]


ALONE = {"Put": "put_item", "Update": "update_item", "Delete": "delete_item"}
"""The single call that does the same as a part of a transaction; a check has none."""


class Contended(Unavailable):
    """A write that conflicted with a transaction on the same item."""


@dataclass(frozen=True)
class Cancelled:
    """A cancelled transaction. refused: the name of each part whose condition failed -> the item that was there."""

    refused: Mapping[str, Refused] = field(default_factory=dict)


class Table:
    """The table.

    Timeouts are short (connect 1 s, read 3 s, 3 attempts in all): the worst case stays below API Gateway's 30 s.
    throttled: is called with the number of requests that the table or an index throttled in all their attempts.
    client: stands in for one of botocore; sweephand.testing has one in memory.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        chance: Chance,
        *,
        region: str | None = None,
        throttled: Callable[[int], object] = lambda _: None,
        client: Any = None,
    ) -> None:
        self.name = name
        self._client = client
        self._throttled = throttled
        self._clock = clock
        self._chance = chance
        if client is not None:
            return
        self._connection = Connection(
            region=region,
            connect_timeout_seconds=1,
            read_timeout_seconds=3,
            max_retry_attempts=2,
            max_pool_connections=16,
        )
        # For all clients of the session. Botocore would build its own string of twenty parts, twice per call.
        self.session.set_default_client_config(Config(user_agent=USER_AGENT))

    def open(self) -> None:
        """Creates the client before threads use it; otherwise each of them would create its own."""
        _ = self.client

    @property
    def client(self) -> Any:
        return self._client or self._connection.client

    @property
    def session(self) -> Any:
        """Returns the botocore session, for clients of other services: a second session would load its data again."""
        return self._connection.session

    def call(self, operation: str, **kwargs: Any) -> Any:
        """Calls an operation of DynamoDB.

        Raises Unavailable for throttling, timeouts and faults of DynamoDB; other ClientErrors as they are.
        """
        try:
            return getattr(self.client, operation)(**kwargs)
        except ClientError as refused:
            code = refused.response.get("Error", {}).get("Code")
            if code == "TransactionConflictException":
                raise Contended("another change of the same item is under way") from refused
            self._count_throttled([code])
            if code in PASSING or refused.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500:
                raise Unavailable("the table did not answer in time") from refused
            raise
        except BotoCoreError as silent:
            raise Unavailable("the table did not answer in time") from silent

    # Reading

    def get(self, model: type[I], pk: str, sk: str, *, consistent: bool = True) -> I | None:
        answer = self.call("get_item", TableName=self.name, Key=key(pk, sk), ConsistentRead=consistent)
        return model.from_raw_data(answer["Item"]) if "Item" in answer else None

    def batch_get(
        self, keys: Iterable[tuple[str, str]], *, consistent: bool = True, only: Sequence[Attribute[Any]] = ()
    ) -> dict[tuple[str, str], dict[str, Any]]:
        """Returns the items that exist, by (pk, sk), in DynamoDB's JSON. Repeats unprocessed keys.

        only: the attributes to transfer and parse in addition to the key; the cost in units is still that of whole
        items.
        """
        how: dict[str, Any] = {"ConsistentRead": consistent}
        if only:
            names: dict[str, str] = {}
            how["ProjectionExpression"] = create_projection_expression([Item.pk, Item.sk, *only], names)
            how["ExpressionAttributeNames"] = names_of(names)
        wanted = [key(pk, sk) for pk, sk in dict.fromkeys(keys)]
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        tries = 0
        while wanted:
            page, wanted = wanted[:BATCH_GET_MOST], wanted[BATCH_GET_MOST:]
            answer = self.call("batch_get_item", RequestItems={self.name: {"Keys": page, **how}})
            for item in answer["Responses"].get(self.name, []):
                rows[item["pk"]["S"], item["sk"]["S"]] = item
            left = answer.get("UnprocessedKeys", {}).get(self.name, {}).get("Keys", [])
            if left:
                tries += 1
                if tries > CONFLICT_TRIES:
                    self._throttled(1)
                    raise Unavailable("the table is throttled")
                self._clock.sleep(self._chance.uniform(0.01, 0.05 * 2**tries))
                wanted = left + wanted
        return rows

    def query(
        self,
        pk: str | int,
        sort: Condition | None = None,
        *,
        index: str | None = None,
        partition: Attribute[Any] | None = None,
        forward: bool = True,
        limit: int | None = None,
        start: Mapping[str, Any] | None = None,
        consistent: bool = False,
        only: Sequence[Attribute[Any]] = (),
    ) -> tuple[list[dict[str, Any]], Mapping[str, Any] | None]:
        """Returns a page of items in DynamoDB's JSON and the key to continue after. partition: the index's hash key.

        only: the attributes to transfer and parse; the cost in units is still that of whole items.
        """
        hash_attribute = partition if partition is not None else Item.pk
        condition = (hash_attribute == pk) if sort is None else (hash_attribute == pk) & sort
        names: dict[str, str] = {}
        values: dict[str, Any] = {}
        kwargs: dict[str, Any] = {
            "TableName": self.name,
            "KeyConditionExpression": condition.serialize(names, values),
            "ScanIndexForward": forward,
            "ExpressionAttributeValues": values,
        }
        if index is not None:
            kwargs["IndexName"] = index
        if limit is not None:
            kwargs["Limit"] = limit
        if start is not None:
            kwargs["ExclusiveStartKey"] = start
        if consistent:
            kwargs["ConsistentRead"] = True
        if only:
            kwargs["ProjectionExpression"] = create_projection_expression(list(only), names)
        kwargs["ExpressionAttributeNames"] = names_of(names)
        answer = self.call("query", **kwargs)
        return answer["Items"], answer.get("LastEvaluatedKey")

    def query_all(
        self, pk: str | int, sort: Condition | None = None, *, limit: int | None = None, **kwargs: Any
    ) -> Iterator[dict[str, Any]]:
        """Yields all items, reading pages as they are needed.

        limit: for the first page. Later pages grow, because a caller that needs them probably filters most items out.
        """
        start = None
        while True:
            items, start = self.query(pk, sort, start=start, limit=limit, **kwargs)
            yield from items
            if start is None:
                return
            limit = limit and min(limit * GROWTH, LARGEST_PAGE)

    def listed(
        self, model: type[I], pk: str, key_of: Callable[[str], str], after: str | None, page: int | None
    ) -> Iterator[I]:
        """Yields the items of a partition by name, after the name `after`. key_of: turns a name into its sort key."""
        first = key_of(after or "")
        for row in self.query_all(pk, Item.sk.between(first, key_of("\U0010ffff")), limit=page, consistent=True):
            if row["sk"]["S"] != first:
                yield model.from_raw_data(row)

    # Writing

    def put(self, item: Item, condition: Condition | None = None) -> Written | Refused:
        return self._write(self.put_op("", item, condition))

    def update(
        self, pk: str, sk: str, actions: Sequence[Action], condition: Condition | None = None
    ) -> Written | Refused:
        return self._write(self.update_op("", pk, sk, actions, condition))

    def delete(self, pk: str, sk: str, condition: Condition | None = None) -> Written | Refused:
        return self._write(self.delete_op("", pk, sk, condition))

    def increase(self, pk: str, sk: str, attribute: Attribute[int], by: int = 1, also: Sequence[Action] = ()) -> int:
        """Increases a number and returns it, beginning with 1. No other caller gets it. A lost answer leaves a gap.

        also: further changes of the item.
        """
        kwargs = {"TableName": self.name, "Key": key(pk, sk), "ReturnValues": "UPDATED_NEW"}
        answer = self.call("update_item", **kwargs, **in_request(None, [add(attribute, by), *also]))
        return int(answer["Attributes"][attribute.attr_name]["N"])

    def _write(self, op: Op) -> Written | Refused:
        """Writes a part of a transaction without a transaction."""
        ((verb, request),) = op.request.items()
        try:
            self.call(ALONE[verb], **request)
        except ClientError as refused:
            if refused.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            return Refused(refused.response.get("Item"))
        return Written()

    # Transactions

    def put_op(self, name: str, item: Item, condition: Condition | None = None) -> Op:
        return self._op(name, "Put", {"Item": item.serialize()}, condition)

    def update_op(
        self, name: str, pk: str, sk: str, actions: Sequence[Action], condition: Condition | None = None
    ) -> Op:
        return self._op(name, "Update", {"Key": key(pk, sk)}, condition, actions)

    def delete_op(self, name: str, pk: str, sk: str, condition: Condition | None = None) -> Op:
        return self._op(name, "Delete", {"Key": key(pk, sk)}, condition)

    def check_op(self, name: str, pk: str, sk: str, condition: Condition) -> Op:
        return self._op(name, "ConditionCheck", {"Key": key(pk, sk)}, condition)

    def _op(
        self, name: str, verb: str, request: dict[str, Any], condition: Condition | None, actions: Sequence[Action] = ()
    ) -> Op:
        request |= {"TableName": self.name} | in_request(condition, actions)
        if condition is not None:
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        return Op(name, {verb: request})

    def transact(self, ops: Sequence[Op], most: int = TRANSACTION_TRIES) -> Written | Cancelled:
        """Writes all parts or none. Retries a conflict with another transaction, with jitter (the SDK does not).

        most: how often it is tried. Raises Contended if conflicts or throttling persist.
        """
        for tries in range(most):
            try:
                self.call("transact_write_items", TransactItems=[dict(op.request) for op in ops])
            except ClientError as cancelled:
                if cancelled.response["Error"]["Code"] != "TransactionCanceledException":
                    raise
                reasons = cancelled.response.get("CancellationReasons", [])
                refused = {
                    op.name: Refused(reason.get("Item"))
                    for op, reason in zip(ops, reasons, strict=True)
                    if reason.get("Code") == "ConditionalCheckFailed"
                }
                if refused:
                    return Cancelled(refused)
                if not any(reason.get("Code") in PASSING for reason in reasons):
                    raise
                self._count_throttled([reason.get("Code") for reason in reasons])
                self._wait_for_others(tries)
            else:
                return Written()
        raise Contended("too many concurrent changes of the same items; try again")

    def carry_out(self, op: Op) -> Written | Refused:
        """Writes a transaction of one part as a plain write, which guarantees the same for half the units.

        Retries a conflict with a transaction, as `transact` does. Raises Unavailable if conflicts or throttling
        persist.
        """
        for tries in range(TRANSACTION_TRIES):
            try:
                return self._write(op)
            except Contended:
                self._wait_for_others(tries)
        raise Unavailable("too many concurrent changes of the same item; try again")

    def _wait_for_others(self, tries: int) -> None:
        self._clock.sleep(self._chance.uniform(0.01, min(LONGEST_JITTER_S, 0.05 * 2**tries)))

    def statements(self, statements: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Sends up to 25 PartiQL updates in one call. Returns their answers in order, with `Error` if one failed."""
        answer = self.call("batch_execute_statement", Statements=list(statements))
        self._count_throttled([each.get("Error", {}).get("Code") for each in answer["Responses"]])
        return list(answer["Responses"])

    def _count_throttled(self, codes: Iterable[str | None]) -> None:
        throttled = sum(code in THROTTLED for code in codes)
        if throttled:
            self._throttled(throttled)


THROTTLED = frozenset(
    {
        "ThrottlingException",
        "ThrottlingError",
        "ProvisionedThroughputExceededException",
        "ProvisionedThroughputExceeded",
        "RequestLimitExceeded",
    }
)
"""Error codes of a table or an index that is asked for more than it can do."""
PASSING = THROTTLED | frozenset(
    {
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
        "InternalServerError",
        "ServiceUnavailable",
    }
)
"""Error codes after which the same call may succeed."""


def key(pk: str, sk: str) -> dict[str, dict[str, str]]:
    return {"pk": {"S": pk}, "sk": {"S": sk}}
