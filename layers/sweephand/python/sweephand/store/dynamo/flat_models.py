"""PynamoDB's models and attributes, for items that hold no maps and whose attributes have one name each.

What PynamoDB does for maps, discriminators and other names in the table takes two thirds of the CPU of making,
reading and writing an item.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pynamodb import attributes
from pynamodb.constants import NUMBER
from pynamodb.exceptions import AttributeDeserializationError, AttributeNullError
from pynamodb.models import Model

M = TypeVar("M", bound="FlatModel")

if TYPE_CHECKING:

    class _Flat:
        """Types are those of PynamoDB's attributes."""

else:

    class _Flat:
        """Reads and sets the value by the attribute's one name."""

        def __get__(self, item: Any, _owner: Any) -> Any:
            return self if item is None else item.attribute_values.get(self.attr_path[0])

        def __set__(self, item: Any, value: Any) -> None:
            item.attribute_values[self.attr_path[0]] = value


class UnicodeAttribute(_Flat, attributes.UnicodeAttribute):
    """A text."""


class UnicodeSetAttribute(_Flat, attributes.UnicodeSetAttribute):
    """Texts without order."""


class BooleanAttribute(_Flat, attributes.BooleanAttribute):
    """Yes or no."""


class Integer(_Flat, attributes.Attribute[int]):
    """A whole number."""

    attr_type = NUMBER

    def serialize(self, value: int) -> str:
        return str(value)

    def deserialize(self, value: str) -> int:
        return int(value)


class FlatModel(Model):
    """A model of which all attributes are those of this module."""

    def __init__(self, **values: Any) -> None:
        """Raises ValueError for what is no attribute."""
        unknown = values.keys() - self.get_attributes().keys()
        if unknown:
            raise ValueError(f"no attribute of {type(self).__name__}: {', '.join(sorted(unknown))}")
        self.attribute_values = {**_defaults(type(self)), **values}

    @classmethod
    def from_raw_data(cls, data: Mapping[str, Any]) -> Self:
        """data: in DynamoDB's JSON. Raises AttributeDeserializationError for a value of another type."""
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
        """In DynamoDB's JSON. Raises AttributeNullError where one is missing that must be there."""
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
