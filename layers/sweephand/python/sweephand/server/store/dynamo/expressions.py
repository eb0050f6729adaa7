"""Conditions and actions of writes in PynamoDB's terms, and the members of a request that express them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pynamodb.attributes import Attribute
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action, AddAction, DeleteAction, RemoveAction, SetAction, Update
from pynamodb.expressions.util import get_value_placeholder
from pynamodb.models import Model

__all__ = ["Action", "Condition", "add", "assign", "changes", "every", "in_request", "names_of", "removal"]


def every(*clauses: Condition) -> Condition:
    """Requires all clauses."""
    whole = clauses[0]
    for clause in clauses[1:]:
        whole = whole & clause
    return whole


def assign(attribute: Attribute[Any], value: Any) -> Action:
    """Sets the attribute, or removes it if the value is None."""
    return _Remove(attribute) if value is None else _Set(attribute, value)


def changes(item: Model, names: str) -> list[Action]:
    """Sets these attributes to the item's values; removes those that the item lacks. names: separated by spaces."""
    return [assign(getattr(type(item), name), getattr(item, name)) for name in names.split()]


def removal(model: type[Model], names: str) -> list[Action]:
    """Removes these attributes. names: separated by spaces."""
    return [assign(getattr(model, name), None) for name in names.split()]


class _Set(SetAction):
    """A faster SetAction, without PynamoDB's operands for paths and sums: a write sets a dozen attributes."""

    def __init__(self, attribute: Attribute[Any], value: Any) -> None:
        self._name = attribute.attr_name
        self._value = {attribute.attr_type: attribute.serialize(value)}

    def serialize(self, placeholder_names: dict[str, str], expression_attribute_values: dict[str, Any]) -> str:
        value = get_value_placeholder(self._value, expression_attribute_values)
        return f"{_placeholder(self._name, placeholder_names)} = {value}"


class _Remove(RemoveAction):
    """A faster RemoveAction, like _Set."""

    def __init__(self, attribute: Attribute[Any]) -> None:
        self._name = attribute.attr_name

    def serialize(self, placeholder_names: dict[str, str], _expression_attribute_values: dict[str, Any]) -> str:
        return _placeholder(self._name, placeholder_names)


def _placeholder(name: str, placeholders: dict[str, str]) -> str:
    return placeholders.setdefault(name, f"#{len(placeholders)}")


def add(attribute: Attribute[Any], amount: int) -> AddAction:
    """Adds to a number, from 0 if absent. Use it only in a transaction whose condition makes it happen once."""
    return attribute.add(amount)


def withdraw(attribute: Attribute[Any], values: set[str]) -> DeleteAction:
    """Removes values from a set of strings, as far as it has them."""
    return attribute.delete(values)


def in_request(condition: Condition | None, actions: Sequence[Action]) -> dict[str, Any]:
    """Returns the members of a write's request."""
    names: dict[str, str] = {}
    values: dict[str, Any] = {}
    kwargs: dict[str, Any] = {}
    if condition is not None:
        kwargs["ConditionExpression"] = condition.serialize(names, values)
    if actions:
        kwargs["UpdateExpression"] = Update(*actions).serialize(names, values)
    if names:
        kwargs["ExpressionAttributeNames"] = names_of(names)
    if values:
        kwargs["ExpressionAttributeValues"] = values
    return kwargs


def names_of(placeholders: Mapping[str, str]) -> dict[str, str]:
    """Returns ExpressionAttributeNames from the names that serialised conditions and actions have recorded."""
    return {placeholder: name for name, placeholder in placeholders.items()}
