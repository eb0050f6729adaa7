"""The stores of `dedupe`, in memory and in DynamoDB: a mark under each key."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from math import ceil
from threading import Lock
from typing import Any, Protocol

from sweephand.base.records import dataclass
from sweephand.sdk import aws


@dataclass(frozen=True)
class Mark:
    """A mark under a key. claimed_until: the end of a claim; None once the effect has happened.

    owner: the id of the claim, a new one for each. expires_at: when the mark no longer counts.
    """

    owner: str
    claimed_until: datetime | None
    expires_at: datetime

    def gives_way(self, now: datetime, *, take_over: bool) -> bool:
        """Returns whether a new claim may replace this mark. take_over: True to also replace a claim that has ended."""
        run_out = self.claimed_until is not None and self.claimed_until <= now
        return self.expires_at <= now or (take_over and run_out)


class Marks(Protocol):
    """A store of marks. Its methods raise TransportError if it does not answer, and may be carried out twice."""

    def claim(self, key: str, mark: Mark, *, now: datetime, take_over: bool) -> Mark:
        """Writes the mark unless the present one may not be replaced. Returns the mark that is then in the store."""
        ...

    def confirm(self, key: str, mark: Mark) -> None:
        """Writes the mark, and replaces any other."""
        ...

    def release(self, key: str, mark: Mark) -> None:
        """Deletes the mark if it has the same owner."""
        ...


class MemoryMarks:
    """Marks of this process, for tests."""

    def __init__(self) -> None:
        self._marks: dict[str, Mark] = {}
        self._lock = Lock()

    def claim(self, key: str, mark: Mark, *, now: datetime, take_over: bool) -> Mark:
        with self._lock:
            standing = self._marks.get(key)
            if standing is None or standing.gives_way(now, take_over=take_over):
                self._marks[key] = standing = mark
            return standing

    def confirm(self, key: str, mark: Mark) -> None:
        with self._lock:
            self._marks[key] = mark

    def release(self, key: str, mark: Mark) -> None:
        with self._lock:
            if key in self._marks and self._marks[key].owner == mark.owner:
                del self._marks[key]


class DynamoMarks:
    """Marks in a DynamoDB table of your own.

    table: its partition key is the string `id`; set its TTL to the attribute `expires_at`. client: a botocore client;
    by default one with the credentials of this machine. It needs `dynamodb:PutItem` and `dynamodb:DeleteItem`.
    """

    def __init__(self, table: str, *, region: str | None = None, client: Any = None) -> None:
        self._table = table
        self._client = client or aws.client_of("dynamodb", region)

    def claim(self, key: str, mark: Mark, *, now: datetime, take_over: bool) -> Mark:
        run_out = " OR claimed_until <= :now" if take_over else ""
        try:
            self._asked(
                "put_item",
                Item=_item(key, mark),
                ConditionExpression=f"attribute_not_exists(id) OR expires_at <= :now{run_out}",
                ExpressionAttributeValues={":now": {"N": str(int(now.timestamp()))}},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except aws.ConditionFailed as standing:
            return _mark(standing.item)
        return mark

    def confirm(self, key: str, mark: Mark) -> None:
        self._asked("put_item", Item=_item(key, mark))

    def release(self, key: str, mark: Mark) -> None:
        try:
            self._asked(
                "delete_item",
                Key={"id": {"S": key}},
                ConditionExpression="#owner = :owner",
                ExpressionAttributeNames={"#owner": "owner"},
                ExpressionAttributeValues={":owner": {"S": mark.owner}},
            )
        except aws.ConditionFailed:
            return

    def _asked(self, operation: str, **arguments: Any) -> None:
        aws.asked(self._client, operation, f"the table {self._table}", TableName=self._table, **arguments)


def _item(key: str, mark: Mark) -> dict[str, Any]:
    item = {"id": {"S": key}, "owner": {"S": mark.owner}, "expires_at": _number(mark.expires_at)}
    return item if mark.claimed_until is None else {**item, "claimed_until": _number(mark.claimed_until)}


def _number(instant: datetime) -> dict[str, str]:
    """Returns whole seconds, rounded up, so that no mark ends early."""
    return {"N": str(ceil(instant.timestamp()))}


def _mark(item: dict[str, Any]) -> Mark:
    until = _instant(item["claimed_until"]) if "claimed_until" in item else None
    return Mark(item["owner"]["S"], until, _instant(item["expires_at"]))


def _instant(number: dict[str, str]) -> datetime:
    return datetime.fromtimestamp(int(number["N"]), UTC)


def confirmed(mark: Mark, expires_at: datetime) -> Mark:
    """Returns the mark of an effect that has happened."""
    return replace(mark, claimed_until=None, expires_at=expires_at)
