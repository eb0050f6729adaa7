"""Lean versions of PynamoDB's models and attributes, and the conversions between a record and its row.

Items have no maps, and each attribute has one name. PynamoDB's support for maps, discriminators and renamed attributes
takes two thirds of the CPU of creating, reading and writing an item.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar

from pynamodb import attributes
from pynamodb.constants import NUMBER
from pynamodb.exceptions import AttributeDeserializationError, AttributeNullError
from pynamodb.models import Model

from sweephand.domain.instants import epoch_ms, epoch_s, from_ms, from_s

M = TypeVar("M", bound="FlatModel")
R = TypeVar("R")

if TYPE_CHECKING:

    class _Flat:
        """A mixin that leaves types to PynamoDB's attributes."""

else:

    class _Flat:
        """A mixin that reads and sets the value by the attribute's one name."""

        def __get__(self, item: Any, _owner: Any) -> Any:
            return self if item is None else item.attribute_values.get(self.attr_path[0])

        def __set__(self, item: Any, value: Any) -> None:
            item.attribute_values[self.attr_path[0]] = value


class UnicodeAttribute(_Flat, attributes.UnicodeAttribute):
    """A string."""


class UnicodeSetAttribute(_Flat, attributes.UnicodeSetAttribute):
    """A set of strings."""


class BooleanAttribute(_Flat, attributes.BooleanAttribute):
    """A boolean."""


class Integer(_Flat, attributes.Attribute[int]):
    """A whole number."""

    attr_type = NUMBER

    def serialize(self, value: int) -> str:
        return str(value)

    def deserialize(self, value: str) -> int:
        return int(value)


class FlatModel(Model):
    """A model that has only attributes of this module."""

    def __init__(self, **values: Any) -> None:
        """Sets the attributes. Raises ValueError for an unknown one."""
        unknown = values.keys() - self.get_attributes().keys()
        if unknown:
            raise ValueError(f"no attribute of {type(self).__name__}: {', '.join(sorted(unknown))}")
        self.attribute_values = {**_defaults(type(self)), **values}

    @classmethod
    def from_raw_data(cls, data: Mapping[str, Any]) -> Self:
        """Reads an item from DynamoDB's JSON. Raises AttributeDeserializationError for a value of another type."""
        item = cls.__new__(cls)
        item.attribute_values = values = {**_defaults(cls)}
        known = cls.get_attributes()
        for name, typed in data.items():
            attribute = known.get(name)
            if attribute is None or "NULL" in typed:
                continue
            if attribute.attr_type not in typed:
                raise AttributeDeserializationError(name, attribute.attr_type)
            values[name] = attribute.deserialize(typed[attribute.attr_type])
        return item

    def serialize(self, null_check: bool = True) -> dict[str, dict[str, Any]]:
        """Returns the item in DynamoDB's JSON. Raises AttributeNullError for a missing required attribute."""
        values = self.attribute_values
        found = {}
        for name, attribute in self.get_attributes().items():
            value = values.get(name)
            if value is not None:
                found[name] = {attribute.attr_type: attribute.serialize(value)}
            elif null_check and not attribute.null:
                raise AttributeNullError(name)
        return found


@cache
def _defaults(model: type[FlatModel]) -> Mapping[str, Any]:
    return {
        name: attribute.default for name, attribute in model.get_attributes().items() if attribute.default is not None
    }


# Conversions between a record and its row


class Column(NamedTuple):
    """An attribute whose type or name differs from its field's. name: if it is not the field's."""

    read: Callable[[Any], Any] | None
    write: Callable[[Any], Any] | None
    name: str = ""


def to_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


MILLISECONDS = Column(from_ms, epoch_ms)
SECONDS = Column(from_s, epoch_s)
JSON = Column(json.loads, to_json)
TEXTS = Column(lambda text: tuple(json.loads(text)), to_json)


def named(name: str) -> Column:
    """Returns the column of a field whose attribute has another name and the same value."""
    return Column(None, None, name)


def one_of(kind: type[Enum]) -> Column:
    return Column(kind, lambda member: member.value)


class _Field(NamedTuple):
    name: str
    attribute: str
    read: Callable[[Any], Any] | None
    write: Callable[[Any], Any] | None
    default: Any
    """MISSING if the row always has the attribute."""


class Codec(Generic[R]):
    """The conversion of one record, derived from its fields: an attribute has the name of its field.

    A field with its default value is left out of the row if the attribute is optional, and is read as its default.

    special: columns by field. Instants are milliseconds unless it says otherwise. but: names of fields that come from
    several attributes, or from the key; the caller passes them to `read`.
    """

    def __init__(self, record: type[R], item: type[FlatModel], special: Mapping[str, Column], but: str) -> None:
        self._record, self._item = record, item
        attributes = item.get_attributes()
        self._fields: list[_Field] = []
        self._absent: dict[str, Any] = {}
        dataclass: Any = record
        for each in fields(dataclass):
            if each.name in but.split():
                continue
            instant = str(each.type).startswith("datetime")
            column = special.get(each.name) or (MILLISECONDS if instant else None)
            name = column.name if column is not None and column.name else each.name
            default = each.default if each.default_factory is MISSING else each.default_factory()
            if default is MISSING and attributes[name].null:
                default = self._absent[each.name] = None
            self._fields.append(
                _Field(
                    each.name,
                    name,
                    column.read if column is not None else None,
                    column.write if column is not None else None,
                    default if attributes[name].null else MISSING,
                )
            )

    def read(self, item: FlatModel, **others: Any) -> R:
        values, others = item.attribute_values, {**self._absent, **others}
        for name, attribute, read, _, _ in self._fields:
            value = values.get(attribute)
            if value is not None:
                others[name] = value if read is None else read(value)
        return self._record(**others)

    def write(self, record: R) -> dict[str, Any]:
        """Returns the attributes by name."""
        written = {}
        for name, attribute, _, write, default in self._fields:
            value = getattr(record, name)
            if default is MISSING or value != default:
                written[attribute] = value if write is None else write(value)
        return written
