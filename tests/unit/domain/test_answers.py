"""Tables of the members of answers: a line names only what differs from the default."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

import pytest

from sweephand.base.json_schema import NULL, items, one_of, or_null, ref, text, whole
from sweephand.domain.answers import Table, answered
from sweephand.domain.schema_words import INSTANT, INSTANT_MS

AT = datetime(2027, 3, 1, 12, 0, 5, 250_000, tzinfo=UTC)


class Colour(StrEnum):
    RED = "red"


class Source(NamedTuple):
    some_value: Any


class Outer(NamedTuple):
    inner: Source


@pytest.mark.parametrize(
    ("schema", "value", "shown"),
    [
        (INSTANT, AT, "2027-03-01T12:00:05Z"),
        (INSTANT_MS, AT, "2027-03-01T12:00:05.250Z"),
        (or_null(INSTANT_MS), AT, "2027-03-01T12:00:05.250Z"),
        (or_null(INSTANT), None, None),
        (one_of(Colour), Colour.RED, "red"),
        (or_null(one_of(Colour)), None, None),
        (one_of(("red",)), "red", "red"),
        (items(text()), ("a", "b"), ["a", "b"]),
        (whole(), 0, 0),
        (text(), "", ""),
    ],
)
def test_a_value_is_shown_as_its_schema_says(schema: dict[str, Any], value: object, shown: object) -> None:
    answer = Table({"someValue": answered(schema)}).show(Source(value))

    assert answer == {"someValue": shown}
    assert type(answer["someValue"]) is type(shown)


def test_a_value_comes_from_a_path_below_the_record_or_from_a_function_of_the_source() -> None:
    table = Table({"other": answered(whole(), "some_value"), "twice": answered(whole(), lambda s: 2)}, "inner")

    assert table.show(Outer(Source(1))) == {"other": 1, "twice": 2}


@pytest.mark.parametrize(
    ("schema", "described"),
    [
        (or_null(text()), {"type": ["string", "null"], "description": "A word."}),
        (ref("Run"), {"$ref": "#/components/schemas/Run", "description": "A word."}),
        (or_null(ref("Run")), {"anyOf": [ref("Run"), NULL], "description": "A word."}),
    ],
)
def test_the_schema_of_a_member_has_the_description_of_its_line(schema: object, described: object) -> None:
    table = Table({"word": answered(schema, says="A word."), "plain": answered(schema)})

    assert table.answer() == {"word": described, "plain": schema}
