from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.json_text import differences, loads

values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=8,
)
bodies = st.dictionaries(st.sampled_from(["one", "two", "payload"]), values)


def found(old: Any, new: Any) -> list[tuple[str, Any, Any]]:
    return [tuple(each) for each in differences(old, new, {"payload"})]


def test_members_are_compared_within_objects_and_lists_as_one_value() -> None:
    old = {"name": "a", "action": {"url": "u", "headers": {"A": "1", "B": "2"}}, "tags": ["x"], "same": 1}
    new = {"name": "b", "action": {"url": "v", "headers": {"A": "1"}}, "tags": ["x", "y"], "same": 1, "more": 0}

    assert found(old, new) == [
        ("name", "a", "b"),
        ("action.url", "u", "v"),
        ("action.headers.B", "2", None),
        ("tags", ["x"], ["x", "y"]),
        ("more", None, 0),
    ]


def test_a_payload_is_one_value() -> None:
    assert found({"payload": {"n": 1}}, {"payload": {"n": 2}}) == [("payload", {"n": 1}, {"n": 2})]


def test_digits_count_and_false_is_not_zero() -> None:
    assert [each.path for each in differences(loads('{"a":1.0,"b":0}'), loads('{"a":1.00,"b":false}'), ())] == [
        "a",
        "b",
    ]


@given(bodies)
def test_a_body_does_not_differ_from_itself(body: dict[str, Any]) -> None:
    assert found(body, body) == []


@given(bodies, bodies)
def test_there_and_back_are_the_same_differences_the_other_way(one: dict[str, Any], other: dict[str, Any]) -> None:
    back = {(path, new, old) for path, old, new in _hashable(found(other, one))}
    assert set(_hashable(found(one, other))) == back


def _hashable(lines: list[tuple[str, Any, Any]]) -> list[tuple[str, str, str]]:
    return [(path, repr(old), repr(new)) for path, old, new in lines]
