from __future__ import annotations

import copy
import json
import pickle
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.base.json_text import Number
from sweephand.formats.strict_json import MAX_BYTES, MAX_NUMBER, canonical_text, dumps, loads
from tests.support.examples import examples
from tests.support.work import few_calls

DIGITS = st.text("0123456789", min_size=1, max_size=30)
NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def refusal(body: bytes) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        loads(body)
    return caught.value


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_input_raises_only_invalid_request(body: bytes) -> None:
    try:
        code = "" if dumps(loads(body)).encode() else "nothing written"
    except InvalidRequest as refused:
        code = refused.code
    assert code in {"", "INVALID_JSON"}


@given(st.text('[]{}",:\\u0123456789.eE+-dDaAfF tnul\n', max_size=60))
def test_the_standard_parser_accepts_what_the_strict_one_accepts(text: str) -> None:
    try:
        value = loads(text.encode())
    except InvalidRequest:
        return
    assert json.loads(text) == value


@given(PLAIN)
def test_values_come_back_unchanged(value: object) -> None:
    assert loads(dumps(value).encode()) == value
    assert json.loads(dumps(value)) == value


@given(NUMBERS)
def test_numbers_come_back_digit_for_digit(text: str) -> None:
    body = f'{{"a":[{text},1]}}'

    assert canonical_text(loads(body.encode())) == body


@given(PLAIN)
def test_the_canonical_text_is_its_own_canonical_text(value: object) -> None:
    text = canonical_text(value)

    assert canonical_text(loads(text.encode())) == text


@pytest.mark.parametrize(
    "text", ["1.0", "1.10", "1e2", "1E+2", "-0", "-0.0", "0.1", "1e-400", "9" * 40, "12345678901234567890"]
)
def test_a_number_keeps_its_spelling(text: str) -> None:
    assert canonical_text(loads(text.encode())) == text


def test_a_kept_number_is_still_a_number() -> None:
    value = loads(b"1.50")

    assert value == 1.5
    assert isinstance(value, float)
    assert not isinstance(value, int)


def test_members_keep_their_order_and_characters_stay_themselves() -> None:
    body = '{"z":1,"a":"\u00e4\u20ac\U0001f600","m":{"b":[],"a":{}}}'

    assert canonical_text(loads(body.encode())) == body


def test_escapes_are_read() -> None:
    assert loads(rb'"\ud83d\ude00 \u0000 \\ud800 \n"') == "\U0001f600 \x00 \\ud800 \n"


@pytest.mark.parametrize(
    ("body", "reason", "position"),
    [
        (b"", "Expecting value", 0),
        (b"{", "Expecting property name", 1),
        (b"[1,]", "", None),
        (b"{'a':1}", "Expecting property name", 1),
        (b"[1] [2]", "Extra data", 4),
        (b"\xef\xbb\xbf[]", "byte order mark", 0),
        (b'"\xff"', "UTF-8", 1),
        (b'"\xed\xa0\x80"', "UTF-8", 1),
        (b'"\xc0\x80"', "UTF-8", 1),
        (b'{"a":1,"a":2}', '"a" appears twice', None),
        (b'{"a":1,"\\u0061":2}', '"a" appears twice', None),
        (b'[{"b":{"a":1,"a":1}}]', '"a" appears twice', None),
        (b"NaN", "NaN", None),
        (b"[Infinity]", "Infinity", None),
        (b"-Infinity", "-Infinity", None),
        (b"1e400", "too large", None),
        (b"-1e400", "too large", None),
        (b"9" * (MAX_NUMBER + 1), "more than 100 characters", None),
        (b"0." + b"1" * MAX_NUMBER, "more than 100 characters", None),
        (b"9" * 5_000, "more than 100 characters", None),
        (rb'"a\ud800"', "surrogate", 2),
        (rb'"\udc00\ud800"', "surrogate", 1),
        (rb'{"\ud83d": 1}', "surrogate", 2),
        (rb'"\\\ud83dx"', "surrogate", 3),
        (b'"\x00"', "Invalid control character", 1),
        (b'"\n"', "Invalid control character", 1),
        (b"01", "Extra data", 1),
        (b"\xd9\xa3", "Expecting value", 0),
        ("[" * 33 + "]" * 33, "deeper than 32", 32),
        ("[" * 100_000, "deeper than 32", 32),
        ('{"a":' * 40_000, "deeper than 32", 160),
    ],
)
def test_a_refusal_says_what_and_where(body: bytes | str, reason: str, position: int | None) -> None:
    refused = refusal(body if isinstance(body, bytes) else body.encode())

    assert refused.code == "INVALID_JSON"
    assert reason in refused.reason
    if position is not None:
        assert refused.position == position
    assert len(refused.reason) < 200


def test_brackets_in_strings_do_not_count_as_depth() -> None:
    assert loads(json.dumps("[" * 1_000 + '\\"{').encode()) == "[" * 1_000 + '\\"{'
    assert loads(b"[" * 32 + b"]" * 32)


def test_the_size_is_checked_first() -> None:
    with pytest.raises(InvalidRequest) as caught:
        loads(b"x" * (MAX_BYTES + 1))

    assert caught.value.code == "TOO_LARGE"
    assert loads(b'"' + b"x" * (MAX_BYTES - 2) + b'"')


@pytest.mark.parametrize(
    "body",
    [
        b'"' + b'\\"' * 130_000,
        b'"' * 262_000,
        b"\\" * 262_000,
        b'["' + b"\\u00" * 60_000,
        b'{"a' * 80_000,
        b"[" * 262_000,
    ],
)
def test_no_text_takes_long(body: bytes) -> None:
    begun = time.process_time()

    refusal(body)

    assert time.process_time() - begun < 0.5


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_json_has_no_infinity(value: object) -> None:
    with pytest.raises(ValueError, match="NaN"):
        dumps(value)


@pytest.mark.parametrize("value", [object(), {1: 2}, {"a": {1, 2}}])
def test_values_unknown_to_json_are_not_written(value: object) -> None:
    with pytest.raises(TypeError, match=r"JSON has no|must be a string"):
        dumps(value)


def test_a_kept_number_survives_a_copy() -> None:
    number = Number("1.10")

    assert dumps(copy.deepcopy({"a": number})) == '{"a":1.10}'
    assert dumps(pickle.loads(pickle.dumps(number))) == "1.10"


# The fast paths, against a plain scan


def plainly(body: bytes, most: int) -> str:
    """Returns "deep" or "fine", by looking at one character after the other."""
    depth = deepest = 0
    inside = escaped = False
    for mark in body.decode():
        if inside:
            escaped, inside = mark == "\\" and not escaped, escaped or mark != '"'
        elif mark == '"':
            inside = True
        elif mark in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif mark in "]}":
            depth -= 1
    return "deep" if deepest > most else "fine"


@examples(300)
@given(st.text(alphabet='[]{}",\\:a', max_size=24), st.integers(1, 4))
def test_the_depth_of_any_text_is_found_as_by_a_plain_scan(text: str, most: int) -> None:
    body = text.encode()

    try:
        loads(body, max_depth=most)
        found = "fine"
    except InvalidRequest as refused:
        found = "deep" if "nested deeper" in refused.reason else "fine"

    assert found == plainly(body, most)


ODD_NUMBERS = st.sampled_from(
    [
        "0",
        "-0",
        "1",
        "-1",
        "10",
        "-0.0",
        "-0e1",
        "1e5",
        "1E+400",
        "1e-400",
        "1.50",
        "9" * 100,
        "9" * 101,
        "-" + "9" * 100,
    ]
)


@examples(200)
@given(
    st.lists(
        ODD_NUMBERS | st.sampled_from(['"-0"', '"1e400"', '"' + "7" * 120 + '"', "[]", "{}"]), min_size=1, max_size=6
    )
)
def test_numbers_keep_their_digits_next_to_any_others(values: list[str]) -> None:
    text = f"[{','.join(values)}]"
    refused = {value for value in values if (len(value) > 100 and value[0] != '"') or value == "1E+400"}

    if refused:
        with pytest.raises(InvalidRequest, match=r"too large|more than 100 characters"):
            loads(text.encode())
    else:
        assert dumps(loads(text.encode())) == text


HALVES = st.sampled_from(["\\ud83d", "\\ude00", "\\n", "\\\\", "\\u0041", "a", "ud83d", "\\uD83D\\uDE00"])


@examples(300)
@given(st.lists(HALVES, max_size=8))
def test_half_a_character_is_found_wherever_it_stands(pieces: list[str]) -> None:
    text = f'"{"".join(pieces)}"'
    whole = json.loads(text)

    if any("\ud800" <= character <= "\udfff" for character in whole):
        with pytest.raises(InvalidRequest, match="lone surrogate"):
            loads(text.encode())
    else:
        assert loads(text.encode()) == whole


LARGE = 4_000_000
HOSTILE = {
    "integers": (b"[" + b"1," * (LARGE // 2) + b"1]", "250,000 values"),
    "lists": (b"[" + b"[]," * (LARGE // 3) + b"[]]", "250,000 values"),
    "objects": (b"[" + b"{}," * (LARGE // 3) + b"{}]", "250,000 values"),
    "strings": (b"[" + b'"",' * (LARGE // 3) + b'""]', "250,000 values"),
    "strings of backslashes": (b"[" + b'"\\\\",' * (LARGE // 5) + b'""]', "250,000 values"),
    "open": (b"[" * LARGE, "250,000 values"),
    "digits": (b"1" * LARGE, "more than 100 characters"),
    "deep at the end": (b"[" + b"[]," * 60_000 + b"[" * 40 + b"]" * 41, "nested deeper"),
}


@pytest.mark.parametrize(("body", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_a_large_hostile_body_is_refused_with_little_work(body: bytes, reason: str) -> None:
    with few_calls(200_000), pytest.raises(InvalidRequest, match=reason):
        loads(body, max_bytes=2 * LARGE)


@pytest.mark.parametrize("string", ["a, b, [c] {d}\\n" * 30_000, '\\",' * 300_000, "\\\\" * 600_000])
def test_commas_and_brackets_in_strings_do_not_count(string: str) -> None:
    with few_calls(1_000):
        value = loads(f'["{string}"]'.encode(), max_bytes=LARGE)

    assert value == [json.loads(f'"{string}"')]
