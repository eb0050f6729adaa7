"""Short cuts through MiniStack's DynamoDB: the same answers, without a look at the request for each row."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ministack.services import dynamodb

from sweephand.local.aws import shortcuts
from sweephand.server.store.dynamo.table import Item, RunItem
from sweephand.server.store.jobs.directory import DirectoryItem

NAMES = {"#0": "pk", "#1": "sk", "#2": "n", "#3": "state"}
TEXTS = st.sampled_from(["", "a", "b", "ba", "\u00e9", "\U0001f600", "\uffff"])
NUMBERS = st.sampled_from(["0", "-1", "10", "9", "1.5", "1E+2", "100", "0100", "\u0661"])
VALUES = st.one_of(TEXTS.map(lambda text: {"S": text}), NUMBERS.map(lambda number: {"N": number}))
ROWS = st.dictionaries(st.sampled_from(list(NAMES.values())), VALUES | st.just({"BOOL": True}), max_size=4)
CONDITIONS = [
    "#0 = :0",
    *(f"(#0 = :0 AND #1 {operator} :1)" for operator in ("=", "<", "<=", ">", ">=")),
    "(#0 = :0 AND #2 <= :1)",
    "(#0 = :0 AND #1 BETWEEN :1 AND :2)",
    "(#0 = :0 AND #2 BETWEEN :1 AND :2)",
    "(#0 = :0 AND begins_with (#1, :1))",
    "#0 = :0 AND #1 = :1",
    "(#0 = :0 AND #1 = :missing)",
    "(#missing = :0)",
    "(#0 = :0",
    "",
]
PROJECTIONS = ["#0", "#0, #1", "#3, #1, #2", "#0,#3", "#0, #0", "#0, #missing", "pk, #1", "#3.#1", "#0,", ""]


@pytest.fixture(scope="module")
def mended():
    """The module's functions by their names, as the emulator's process has them."""
    names = ("_tokenize", "_condition_syntax_error", "_evaluate_condition", "_project_item", "_item_size_bytes")
    service = SimpleNamespace(**{name: getattr(dynamodb, name) for name in names})
    shortcuts.take(service)
    return service


def outcome(act, *arguments):
    try:
        return act(*arguments)
    except ValueError as wrong:
        return repr(wrong)


@settings(max_examples=300)
@given(st.sampled_from(CONDITIONS), st.lists(ROWS, min_size=2, max_size=4), st.tuples(VALUES, VALUES, VALUES))
def test_a_key_condition_selects_the_same_rows(mended, condition, rows, given_values):
    values = {f":{n}": value for n, value in enumerate(given_values)}
    ways = dynamodb._evaluate_condition, mended._evaluate_condition

    own, short = (
        [outcome(way, condition, row, values, NAMES, "KeyConditionExpression") for row in rows] for way in ways
    )

    assert [bool(each) if not isinstance(each, str) else each for each in short] == own


@settings(max_examples=100)
@given(st.sampled_from(PROJECTIONS), st.lists(ROWS, min_size=2, max_size=4))
def test_a_projection_keeps_the_same_members(mended, projection, rows):
    ways = dynamodb._project_item, mended._project_item

    own, short = ([outcome(way, row, projection, NAMES) for row in rows] for way in ways)

    assert short == own


@settings(max_examples=300)
@given(ROWS | st.dictionaries(TEXTS, st.integers(0).map(lambda number: {"N": str(number)}), max_size=4))
def test_a_row_has_the_same_size(mended, row):
    assert mended._item_size_bytes(row) == dynamodb._item_size_bytes(row)


def test_the_next_request_does_not_get_the_previous_answer(mended):
    row = {"pk": {"S": "a"}, "sk": {"S": "b"}}

    def holds(text):
        return mended._evaluate_condition("#0 = :0", row, {":0": {"S": text}}, NAMES, "KeyConditionExpression")

    assert [holds(text) for text in ("a", "b", "a")] == [True, False, True]
    assert mended._project_item(row, "#0", {"#0": "pk"}) == {"pk": {"S": "a"}}
    assert mended._project_item(row, "#0", {"#0": "sk"}) == {"sk": {"S": "b"}}


def test_other_conditions_are_left_to_the_emulator(mended):
    row = {"pk": {"S": "a"}}

    assert mended._evaluate_condition("attribute_exists(pk)", row, {}, {}) is True
    for slot in ("ConditionExpression", "FilterExpression"):
        with pytest.raises(ValueError, match="Invalid"):
            mended._evaluate_condition("(#0 = :0", row, {":0": {"S": "a"}}, NAMES, slot)


@pytest.mark.parametrize(
    "condition",
    [
        Item.pk == "a",
        (Item.pk == "a") & (Item.sk >= "b"),
        (Item.pk == "a") & RunItem.sk.between("a", "b"),
    ],
)
def test_every_request_of_the_service_takes_a_shortcut(condition):
    names, values = {}, {}
    text = condition.serialize(names, values)

    test = shortcuts.key_test(text, values, {placeholder: name for name, placeholder in names.items()})

    assert test is not None
    assert test({"pk": {"S": "a"}, "sk": {"S": "b"}})
    assert not test({"pk": {"S": "a"}, "sk": {"S": ""}}) or text == "#0 = :0"
    assert shortcuts.whole_attributes("#0, #1", {"#0": DirectoryItem.entry.attr_name, "#1": "sk"})


def test_the_unpatched_emulator_reads_a_condition_once_for_every_row(monkeypatch):
    """Once it does not, the short cuts have no use any more."""
    rows = {f"{n:03}": {"pk": {"S": "a"}, "sk": {"S": f"{n:03}"}} for n in range(50)}
    attributes = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")]
    table = {"pk_name": "pk", "sk_name": "sk", "AttributeDefinitions": attributes, "items": {"a": rows}}
    read, own_way = [], dynamodb._tokenize
    monkeypatch.setattr(dynamodb, "_tables", {"t": table})
    monkeypatch.setattr(dynamodb, "_tokenize", lambda text: read.append(text) or own_way(text))
    query = {
        "TableName": "t",
        "KeyConditionExpression": "#0 = :0",
        "ExpressionAttributeNames": {"#0": "pk"},
        "ExpressionAttributeValues": {":0": {"S": "a"}},
    }

    status, _, body = dynamodb._query(query)

    assert (status, json.loads(body)["Count"]) == (200, 50)
    assert len(read) > 50
