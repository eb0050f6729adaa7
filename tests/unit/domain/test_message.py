from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.message import VERSION, Pointer, Subject, Unreadable, decode, encode
from sweephand.domain.run import Kind
from tests.unit.domain.nouns import NOW, pointer
from tests.unit.json_values import ANY_JSON

KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
INSTANTS = st.integers(0, 7_258_118_399).map(lambda s: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=s))
POINTERS = st.builds(
    Pointer,
    tenant=KEYS,
    job=KEYS,
    schedule=st.none() | KEYS,
    run=KEYS,
    instant=INSTANTS,
    kind=st.sampled_from(Kind),
    attempt=st.integers(1, 50),
    generation=st.integers(0, 10_000),
    decided=st.booleans(),
    subject=st.sampled_from(Subject),
)


@given(POINTERS)
def test_an_encoded_message_decodes_unchanged(sent: Pointer) -> None:
    assert decode(encode(sent)) == sent


def test_a_message_holds_keys_and_numbers_and_nothing_else() -> None:
    members = json.loads(encode(pointer()))

    assert members.keys() == {
        *("v", "kind", "tenant", "job", "schedule", "run", "instant", "attempt", "generation", "decided")
    }
    assert all(isinstance(value, str | int) for value in members.values())


def test_every_later_release_reads_a_message_of_today() -> None:
    """Written out: messages live for 14 days, and a release must read those of the one before."""
    body = (
        '{"v":1,"kind":"scheduled","tenant":"acme","job":"j","schedule":"s","run":"r",'
        '"instant":1803902400,"attempt":2,"generation":3,"decided":true}'
    )

    assert decode(body) == Pointer("acme", "j", "s", "r", NOW, attempt=2, generation=3, decided=True)


def test_a_run_without_a_schedule_belongs_to_its_job() -> None:
    assert pointer(schedule=None).owner == "job-1"
    assert pointer().owner == "schedule-1"


def body(**members: Any) -> str:
    return json.dumps(json.loads(encode(pointer())) | members)


@pytest.mark.parametrize(
    "wrong",
    [
        {"v": VERSION + 1},
        {"v": 0},
        {"v": None},
        {"v": [1]},
        {"v": "1"},
        {"kind": "unheard"},
        {"kind": None},
        {"kind": ["scheduled"]},
        {"tenant": None},
        {"tenant": 7},
        {"job": ["j"]},
        {"schedule": 1},
        {"run": {}},
        {"instant": None},
        {"instant": "soon"},
        {"instant": 1e400},
        {"instant": 10**18},
        {"instant": -(10**18)},
        {"attempt": None},
        {"attempt": "x"},
        {"generation": []},
        {"subject": "payroll"},
        {"subject": None},
    ],
)
def test_a_body_with_a_wrong_member_is_unreadable(wrong: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        decode(body(**wrong))


@pytest.mark.parametrize("missing", sorted(json.loads(encode(pointer())).keys()))
def test_a_body_without_a_member_is_unreadable(missing: str) -> None:
    members = json.loads(encode(pointer()))
    del members[missing]

    with pytest.raises(Unreadable):
        decode(json.dumps(members))


@pytest.mark.parametrize(
    "hostile",
    ["", " ", "null", "[]", '"v"', "7", "{", "NaN", "[" * 100_000, '{"v":' * 100_000, "\x00", "\ud800", "9" * 5_000],
)
def test_an_invalid_body_is_only_unreadable_and_raises_nothing_else(hostile: str) -> None:
    with pytest.raises(Unreadable):
        decode(hostile)


@given(st.dictionaries(st.sampled_from(sorted(json.loads(encode(pointer())))), ANY_JSON))
def test_any_body_is_read_or_unreadable(members: dict[str, Any]) -> None:
    try:
        read = decode(body(**members))
    except Unreadable:
        return
    assert decode(encode(read)) == read


def test_the_reason_of_an_unreadable_body_does_not_quote_it() -> None:
    with pytest.raises(Unreadable) as refusal:
        decode(body(instant="hunter2"))

    assert "hunter2" not in str(refusal.value)
