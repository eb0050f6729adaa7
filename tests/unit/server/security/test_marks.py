from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.message import decode, encode
from sweephand.domain.run import Kind
from sweephand.server.security import marks
from tests.unit.domain.nouns import NOW, SECOND, pointer

KEY = bytes(range(32))
SENT = marks.marked(pointer(NOW), KEY, NOW)


def test_a_mark_survives_the_queue():
    received = decode(encode(SENT))

    assert marks.is_ours(received, KEY, NOW)
    assert not marks.is_ours(received, bytes(32), NOW)


@pytest.mark.parametrize(
    "change",
    [
        {"tenant": "globex"},
        {"job": "another"},
        {"schedule": None},
        {"run": "another"},
        {"instant": NOW + SECOND},
        {"kind": Kind.MANUAL},
        {"attempt": 2},
        {"generation": 7},
        {"decided": True},
    ],
    ids=str,
)
def test_a_mark_holds_for_all_that_the_pointer_says(change):
    assert not marks.is_ours(replace(SENT, **change), KEY, NOW)


def test_a_mark_holds_as_long_as_a_queue_keeps_the_message():
    assert marks.is_ours(SENT, KEY, NOW + timedelta(days=14))
    assert not marks.is_ours(SENT, KEY, NOW + timedelta(days=14, hours=2))


@given(st.none() | st.text() | st.from_regex(r"[0-9]{1,20}\.[0-9a-f]{32}", fullmatch=True))
def test_any_forged_mark_is_refused(text):
    assert not marks.is_ours(replace(SENT, mark=text), KEY, NOW)
