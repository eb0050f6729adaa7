from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.ids import uuid7
from sweephand.domain.instants import from_s
from sweephand.domain.occurrences.index_row import SweepText, UnknownKind, WaitingRun, Waits
from sweephand.domain.run import Kind
from sweephand.domain.schedule import Lane
from tests.unit.domain.nouns import NOW, run

PACKED = st.text()
"""Packed timings are JSON with any text of a caller within: separators among them."""


@given(
    st.sampled_from(Waits),
    st.sampled_from(Lane),
    st.sampled_from(["", "sap", "latest"]),
    PACKED,
    st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.none() | st.integers(0, 7_258_118_399),
)
def test_members_packed_for_the_sweeper_come_back(
    waits: Waits, lane: Lane, misfire: str, packed: str, collection: str | None, since: int | None
) -> None:
    text = SweepText(waits, lane, misfire, packed, collection, None if since is None else from_s(since))

    assert SweepText.read(str(text)) == text


def test_the_packed_texts_of_running_installations_stay_readable() -> None:
    assert SweepText.read('S;fast;sap;{"every":[1,2]}') == SweepText(
        Waits.OCCURRENCE, Lane.FAST, "sap", '{"every":[1,2]}'
    )
    assert SweepText.read("S@a%40b%3Bc;slow;sap;{}").collection == "a@b;c"
    assert SweepText.read("H@reports@1803902400;fast;sap;{}") == SweepText(
        Waits.HELD, Lane.FAST, "sap", "{}", "reports", NOW
    )
    assert SweepText.read("H@@1803902400;fast;sap;{}").collection is None
    assert SweepText.read("R;slow;;j,manual,2,1803902400").packed == str(WaitingRun("j", Kind.MANUAL, 2, NOW))


def test_a_row_of_a_later_version_is_recognized() -> None:
    with pytest.raises(UnknownKind):
        SweepText.read("Q;fast;;whatever")
    with pytest.raises(UnknownKind):
        SweepText.read("S@c@1@more;fast;;whatever")


@pytest.mark.parametrize("text", ["", "S", "S;fast", "S;fast;sap", "S;warp;sap;{}", "H@c@noon;fast;sap;{}"])
def test_an_invalid_text_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        SweepText.read(text)


@given(st.sampled_from(Kind), st.integers(1, 50), st.integers(0, 10**10))
def test_the_members_that_a_run_pointer_needs_come_back(kind: Kind, attempt: int, moment: int) -> None:
    waiting = WaitingRun.of(run(job_id=uuid7(moment, bytes(10)), kind=kind, attempt=attempt))

    assert WaitingRun.read(str(waiting)) == waiting


@pytest.mark.parametrize(
    "text", ["", "j,scheduled,1", "j,scheduled,one,2", "j,unheard,1,2", "j,scheduled,1,soon", "a,b,c,d,e"]
)
def test_an_invalid_text_of_a_run_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        WaitingRun.read(text)
