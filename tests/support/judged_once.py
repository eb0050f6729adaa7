"""JSON Schema for tests that validate thousands of answers which are mostly the same: judges each value once by each
schema.

The verdicts are jsonschema's own. Errors are not described: a value that fails is validated again for its message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators

Schema = Any
_LONGEST = 4_000
"""Longer values rarely come twice."""
_verdicts: dict[tuple[int, str], bool] = {}


def _holds(validator: Any, schema: Schema, instance: Any) -> bool:
    """Returns whether the value is valid. schema: a part of a document that stays in memory."""
    text = repr(instance)
    if len(text) > _LONGEST:
        return bool(validator.evolve(schema=schema).is_valid(instance))
    key = id(schema), text
    if key not in _verdicts:
        _verdicts[key] = validator.evolve(schema=schema).is_valid(instance)
    return _verdicts[key]


def _ref(validator: Any, ref: str, instance: Any, _schema: Schema) -> Iterator[ValidationError]:
    resolved = validator._resolver.lookup(ref)
    if not _holds(validator.evolve(_resolver=resolved.resolver), resolved.contents, instance):
        yield ValidationError(ref)


def _properties(validator: Any, properties: Schema, instance: Any, _schema: Schema) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for name, schema in properties.items():
            if name in instance and not _holds(validator, schema, instance[name]):
                yield ValidationError(name)


def _items(validator: Any, items: Schema, instance: Any, _schema: Schema) -> Iterator[ValidationError]:
    if isinstance(instance, list) and not all(_holds(validator, items, each) for each in instance):
        yield ValidationError("items")


def _one_of(validator: Any, schemas: Schema, instance: Any, _schema: Schema) -> Iterator[ValidationError]:
    if sum(_holds(validator, schema, instance) for schema in schemas) != 1:
        yield ValidationError("oneOf")


def _any_of(validator: Any, schemas: Schema, instance: Any, _schema: Schema) -> Iterator[ValidationError]:
    if not any(_holds(validator, schema, instance) for schema in schemas):
        yield ValidationError("anyOf")


OnceValidator = validators.extend(
    Draft202012Validator,
    {"$ref": _ref, "properties": _properties, "items": _items, "oneOf": _one_of, "anyOf": _any_of},
)
