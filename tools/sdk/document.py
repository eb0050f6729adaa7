"""Reads from the description of the API what the SDK needs: the names and types of members."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sdk_methods import ONE_OR_MORE

from sweephand.sdk.model import snake

MADE = "Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."
PATTERN_OF_INSTANTS = "^[0-9]{4}-[0-9]{2}-[0-9]{2}"


@dataclass
class Document:
    """The description of the API. content: of openapi.json. models: the schemas of the answers' classes, by name."""

    content: Mapping[str, Any]
    models: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def schema(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the schema that a reference points to; any other schema as it is."""
        found: Mapping[str, Any] = given
        while "$ref" in found:
            found = self.content["components"]["schemas"][found["$ref"].rpartition("/")[2]]
        return found

    def plain(self, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], str | None, bool]:
        """Returns a schema without null and references, its name if it has one, and whether null is allowed."""
        name = given["$ref"].rpartition("/")[2] if "$ref" in given else None
        found, nullable = self.schema(given), False
        kinds = found.get("type")
        if isinstance(kinds, list):
            nullable = "null" in kinds
            kinds = [kind for kind in kinds if kind != "null"]
            return {**found, "type": kinds[0] if len(kinds) == 1 else kinds}, name, nullable
        if kinds == "null":
            return {}, None, True
        choices = found.get("anyOf", [])
        if {"type": "null"} in choices and len(choices) == 2:
            (other,) = (each for each in choices if each != {"type": "null"})
            inner, name, _ = self.plain(other)
            return inner, name, True
        return found, name, nullable

    def operations(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        for path, methods in self.content["paths"].items():
            for method, operation in methods.items():
                yield method.upper(), path, operation

    # Answers

    def reading(self, given: Mapping[str, Any], parent: str, member: str) -> tuple[str, str | None]:
        """Returns the type of a member of an answer, and the function that reads it from JSON."""
        schema, name, nullable = self.plain(given)
        also = " | None" if nullable else ""
        kind = schema.get("type")
        if kind == "string":
            instant = schema.get("format") == "date-time"
            return (f"datetime{also}", "instant") if instant else (f"str{also}", None)
        if kind in {"integer", "number", "boolean"}:
            return {"integer": "int", "number": "float", "boolean": "bool"}[kind] + also, None
        if kind == "array":
            inner, reading = self.reading(schema.get("items", {}), parent, member.removesuffix("s"))
            if reading is not None and reading.endswith(".of"):
                return f"tuple[{inner.removesuffix(' | None')}, ...]{also}", f"{reading.removesuffix('.of')}.all_of"
            return f"tuple[{inner}, ...]{also}", "instants" if reading == "instant" else "tuple"
        if (merged := self._members(schema)) is not None:
            chosen = (name or f"{parent}{member[0].upper()}{member[1:]}").removeprefix("Shown")
            self.model(chosen, merged)
            return f"{chosen}{also}", f"{chosen}.of"
        return ("Any", None) if kind != "object" else (f"Mapping[str, Any]{also}", None)

    def model(self, name: str, schema: Mapping[str, Any]) -> None:
        """Adds the class of an answer and the classes it needs to `models`."""
        if name in self.models:
            return
        self.models[name] = schema
        for member, facts in schema["properties"].items():
            self.reading(facts, name, member)

    def _members(self, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Returns an object's schema. For alternatives, returns the members of all, none of them required."""
        if "properties" in schema:
            return schema
        kinds = [self.plain(each)[0] for each in schema.get("oneOf", ())]
        if not kinds or not all("properties" in kind for kind in kinds):
            return None
        return {"properties": {name: facts for kind in reversed(kinds) for name, facts in kind["properties"].items()}}

    # Requests

    def taking(self, given: Mapping[str, Any], member: str) -> str:
        """Returns the type of a member of a body."""
        schema, _, nullable = self.plain(given)
        also = " | None" if nullable else ""
        kind = schema.get("type")
        if kind == "string":
            instant = schema.get("pattern", "").startswith(PATTERN_OF_INSTANTS) or schema.get("format") == "date-time"
            return ("datetime | str" if instant else "str") + also
        if kind in {"integer", "number", "boolean"}:
            return {"integer": "int", "number": "float", "boolean": "bool"}[kind] + also
        if kind == "array":
            inner = self.taking(schema.get("items", {}), member)
            return (f"{inner} | Sequence[{inner}]" if member in ONE_OR_MORE else f"Sequence[{inner}]") + also
        if kind == "object" or self._members(schema) is not None:
            return f"Json{also}"
        return "Any"

    def asking(self, given: Mapping[str, Any], name: str) -> str:
        """Returns the type of a query parameter."""
        schema = self.schema(given)
        if set(schema.get("enum", ())) == {"true", "false"}:
            return "bool"
        if name.endswith("Id") and name != "resourceId":
            return "Named"
        if name == "include":
            return "str | Sequence[str]"
        return self.taking(schema, name)


def name_of(member: str) -> str:
    name = snake(member)
    return f"{name}_" if name in {"from", "in", "is", "not", "global"} else name


def class_of(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
