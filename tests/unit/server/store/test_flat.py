"""Items without maps: what PynamoDB's own models would make of the same values."""

from __future__ import annotations

from typing import Any

import pytest
from pynamodb import attributes
from pynamodb.exceptions import AttributeDeserializationError, AttributeNullError
from pynamodb.models import Model

from sweephand.base.records import dataclass
from sweephand.server.store.dynamo.flat_models import (
    BooleanAttribute,
    Codec,
    FlatModel,
    Integer,
    UnicodeAttribute,
    UnicodeSetAttribute,
)


class Ours(FlatModel):
    class Meta:
        table_name = "x"

    pk = UnicodeAttribute(hash_key=True)
    text = UnicodeAttribute(null=True)
    few = UnicodeSetAttribute(null=True)
    flag = BooleanAttribute(null=True)
    count = Integer(default=0)


class Theirs(Model):
    class Meta:
        table_name = "x"

    pk = attributes.UnicodeAttribute(hash_key=True)
    text = attributes.UnicodeAttribute(null=True)
    few = attributes.UnicodeSetAttribute(null=True)
    flag = attributes.BooleanAttribute(null=True)
    count = attributes.NumberAttribute(default=0)


NAMES = ("pk", "text", "few", "flag", "count")
VALUES: list[dict[str, Any]] = [
    {"pk": "a"},
    {"pk": "a", "text": "", "few": {"x", "y"}, "flag": False, "count": 0},
    {"pk": "ü", "text": None, "few": {"x"}, "flag": True, "count": -(10**20)},
]


@pytest.mark.parametrize("values", VALUES)
def test_an_item_is_written_and_read_as_by_pynamodb(values: dict[str, Any]) -> None:
    ours, theirs = Ours(**values), Theirs(**values)

    raw = theirs.serialize()
    assert ours.serialize() == raw
    for there, here in ((theirs, ours), (Theirs.from_raw_data(raw), Ours.from_raw_data(raw))):
        assert [getattr(here, name) for name in NAMES] == [getattr(there, name) for name in NAMES]


@dataclass(frozen=True)
class Wider:
    text: str | None = None
    priority: int = 0


def test_a_record_with_a_field_that_its_row_lacks_is_refused_with_what_to_do() -> None:
    with pytest.raises(TypeError, match="Ours lacks `priority`, which Wider has: declare it there"):
        Codec(Wider, Ours, {})


def test_unknown_attributes_and_nulls_are_ignored() -> None:
    raw = {"pk": {"S": "a"}, "later": {"S": "x"}, "text": {"NULL": True}}

    assert Ours.from_raw_data(raw).serialize() == {"pk": {"S": "a"}, "count": {"N": "0"}}


def test_a_value_that_is_set_later_is_written() -> None:
    item, other = Ours(pk="a"), Ours(pk="b")

    item.count, item.text = 3, "x"

    assert item.serialize() == {"pk": {"S": "a"}, "count": {"N": "3"}, "text": {"S": "x"}}
    assert other.count == 0


def test_values_of_a_wrong_type_are_refused() -> None:
    with pytest.raises(AttributeDeserializationError):
        Ours.from_raw_data({"pk": {"S": "a"}, "count": {"S": "1"}})
    with pytest.raises(AttributeNullError):
        Ours(text="x").serialize()
    with pytest.raises(ValueError, match="other"):
        Ours(pk="a", other=1)
