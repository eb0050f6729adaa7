"""Lean versions of PynamoDB's models and attributes, and the conversions between a record and its row.

Items have no maps, and each attribute has one name. PynamoDB's support for maps, discriminators and renamed attributes
takes two thirds of the CPU of creating, reading and writing an item.
"""

from __future__ import annotations

import base64
import json
import zlib
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
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.expressions import Action, assign

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
        attributes = {}
        for name, attribute in self.get_attributes().items():
            value = values.get(name)
            if value is not None:
                attributes[name] = {attribute.attr_type: attribute.serialize(value)}
            elif null_check and not attribute.null:
                raise AttributeNullError(name)
        return attributes


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


SAME = Column(None, None)


def named(name: str, column: Column = SAME) -> Column:
    """Returns the column of a field whose attribute has another name."""
    return column._replace(name=name)


def one_of(kind: type[Enum]) -> Column:
    return Column(kind, lambda member: member.value)


def of_key(name: str, place: int, read: Callable[[str], Any] = str) -> Column:
    """Returns the column of a field that is read from a part of the key `name`.

    The caller of `item` passes that key.
    """
    return Column(lambda key: read(keys.parts(key)[place]), None, name)


TENANT = of_key("pk", 1)


class _Field(NamedTuple):
    name: str
    attribute: str
    read: Callable[[Any], Any] | None
    write: Callable[[Any], Any] | None
    default: Any
    """MISSING if the row always has the attribute."""


class Codec(Generic[R, M]):
    """The conversion of one record to its row and back, derived from its fields: an attribute has its field's name.

    If the attribute is optional, a field with its default value is left out of the row, and read as the default.

    special: columns by field. Instants are milliseconds unless their column says otherwise. but: names of fields that
    come from several attributes; the caller passes them to `read`, and their attributes to `item`.
    """

    def __init__(self, record: type[R], model: type[M], special: Mapping[str, Column], but: str = "") -> None:
        self._record, self._model = record, model
        self._absent: dict[str, Any] = {}
        dataclass: Any = record
        self._fields = [
            self._field(each, special.get(each.name)) for each in fields(dataclass) if each.name not in but.split()
        ]
        self._written = {each.attribute: each for each in self._fields if each.attribute not in {"pk", "sk"}}

    def _field(self, field: Any, column: Column | None) -> _Field:
        column = column or (MILLISECONDS if str(field.type).startswith("datetime") else SAME)
        name = column.name or field.name
        attributes = self._model.get_attributes()
        if name not in attributes:
            raise TypeError(
                f"{self._model.__name__} lacks `{name}`, which {self._record.__name__} has: declare it there"
            )
        optional = attributes[name].null
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if default is MISSING and optional:
            default = self._absent[field.name] = None
        return _Field(field.name, name, column.read, column.write, default if optional else MISSING)

    def read(self, item: M, **others: Any) -> R:
        values, others = item.attribute_values, {**self._absent, **others}
        for name, attribute, read, _, _ in self._fields:
            value = values.get(attribute)
            if value is not None:
                others[name] = value if read is None else read(value)
        return self._record(**others)

    def item(self, key: tuple[str, str], record: R, **others: Any) -> M:
        """Returns the record's row. others: attributes that do not come from one field of the record."""
        written = {name: value for name in self._written if (value := self._value(name, record)) is not None}
        return self._model(pk=key[0], sk=key[1], **written, **others)

    def changes(self, record: R, names: str) -> list[Action]:
        """Sets these attributes to the record's values; removes those without a value. names: separated by spaces."""
        return [assign(getattr(self._model, name), self._value(name, record)) for name in names.split()]

    def _value(self, attribute: str, record: R) -> Any:
        """Returns the value of an attribute; None if the row does not need it."""
        name, _, _, write, default = self._written[attribute]
        value = getattr(record, name)
        if value is None or (default is not MISSING and value == default):
            return None
        return value if write is None else write(value)


def pack(value: Any) -> str:
    """Compresses JSON to a string, so that an item stays well below DynamoDB's 400 KB."""
    return base64.b64encode(zlib.compress(to_json(value).encode())).decode()


def unpack(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(text)))
