from __future__ import annotations

import re
import uuid

from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.ids import instant_ms_of, is_uuid, run_uuid, shard_of, uuid7

INSTANTS = st.integers(0, 2**43)  # to the year 2248
TEXTS = st.text(max_size=20)


@given(INSTANTS, st.binary(min_size=10, max_size=10))
def test_a_new_id_is_a_uuid_of_version_7_that_carries_its_instant(at: int, chance: bytes) -> None:
    made = uuid.UUID(uuid7(at, chance))

    assert made.version == 7
    assert made.variant == uuid.RFC_4122
    assert made.int >> 80 == at
    assert str(made) == uuid7(at, chance)


def test_all_74_bits_of_chance_reach_the_id() -> None:
    quiet = uuid.UUID(uuid7(0, bytes(10))).int

    flipped = [uuid.UUID(uuid7(0, (1 << bit).to_bytes(10, "big"))).int ^ quiet for bit in range(74)]

    assert all(change.bit_count() == 1 for change in flipped)
    assert len(set(flipped)) == 74


@given(INSTANTS, INSTANTS, st.binary(min_size=10, max_size=10), st.binary(min_size=10, max_size=10))
def test_ids_sort_by_the_instant_of_creation(one: int, other: int, chance: bytes, other_chance: bytes) -> None:
    if one < other:
        assert uuid7(one, chance) < uuid7(other, other_chance)


@given(TEXTS, TEXTS, INSTANTS, TEXTS, TEXTS)
def test_a_run_id_is_a_uuid_of_version_8_that_carries_its_planned_instant(
    tenant: str, owner: str, at: int, kind: str, key: str
) -> None:
    made = run_uuid(tenant, owner, at, kind, key)

    assert uuid.UUID(made).version == 8
    assert uuid.UUID(made).variant == uuid.RFC_4122
    assert instant_ms_of(made) == at
    assert is_uuid(made)
    assert run_uuid(tenant, owner, at, kind, key) == made


def test_run_ids_are_facts_that_no_release_may_change() -> None:
    """Every message, row and repair of a running installation meets at these ids."""
    assert run_uuid("acme", "s-1", 1_800_000_000_000, "scheduled") == "01a3185c-5000-855a-813e-bb679fc6d167"


@given(st.tuples(TEXTS, TEXTS, TEXTS, TEXTS), st.tuples(TEXTS, TEXTS, TEXTS, TEXTS))
def test_runs_of_other_tenants_schedules_kinds_or_keys_never_share_an_id(
    one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    def made(facts: tuple[str, ...]) -> str:
        tenant, owner, kind, key = (text.replace("\x00", "") for text in facts)
        return run_uuid(tenant, owner, 0, kind, key)

    same = tuple(text.replace("\x00", "") for text in one) == tuple(text.replace("\x00", "") for text in other)
    assert (made(one) == made(other)) is same


@given(INSTANTS, INSTANTS)
def test_runs_sort_by_their_planned_instant(one: int, other: int) -> None:
    if one < other:
        assert run_uuid("t", "a", one, "scheduled") < run_uuid("t", "b", other, "manual")


@given(TEXTS, st.integers(1, 256))
def test_a_shard_lies_within_its_bounds_and_stays(text: str, shards: int) -> None:
    assert 0 <= shard_of(text, shards) < shards
    assert shard_of(text, shards) == shard_of(text, shards)


def test_shards_are_the_same_in_every_process_and_evenly_filled() -> None:
    filled = [0] * 16
    for n in range(16_000):
        filled[shard_of(f"schedule-{n}", 16)] += 1

    assert shard_of("schedule-1", 16) == 5
    assert all(850 < count < 1_150 for count in filled)


@given(st.text())
def test_only_a_uuid_in_lower_case_is_one(text: str) -> None:
    known = re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", text, re.ASCII)
    assert is_uuid(text) is (known is not None)


def test_text_that_differs_from_a_uuid_by_one_character_is_none() -> None:
    real = uuid7(0, bytes(10))

    assert is_uuid(real)
    for wrong in (real.upper().replace("0", "A"), real + "\n", real[:-1], f" {real}", real.replace("-", ""), ""):
        assert not is_uuid(wrong)
