"""Frozen values are what frozen dataclasses with slots are."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from sweephand.values import value


class Base:
    __slots__ = ()

    def doubled(self) -> int:
        return 2 * self.number  # type: ignore[attr-defined, no-any-return]


@value
class Pair(Base):
    """Two."""

    number: int
    name: str = "none"
    _hidden: int = 0

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError("below 0")

    @property
    def both(self) -> str:
        return f"{self.number}{self.name}"


@value
class Other(Base):
    number: int
    name: str = "none"
    _hidden: int = 0


@value
class Nothing(Base):
    pass


@dataclass(frozen=True, slots=True)
class Model(Base):
    number: int
    name: str = "none"


def test_fields_are_given_by_place_or_by_name_and_have_defaults() -> None:
    assert (Pair(1).number, Pair(1).name, Pair(1, "a").both, Pair(name="b", number=2).both) == (1, "none", "1a", "2b")
    assert Pair(4).doubled() == 8
    with pytest.raises(TypeError):
        Pair()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Pair(1, "a", 0, 1)  # type: ignore[call-arg]


def test_a_record_refused_by_post_init_is_not_made() -> None:
    with pytest.raises(ValueError, match="below 0"):
        Pair(-1)


def test_they_are_equal_by_content_and_kind() -> None:
    assert Pair(1) == Pair(1, "none") != Pair(2)
    assert Pair(1) != Other(1)
    assert Pair(1) != (1, "none")
    assert hash(Pair(1)) == hash(Pair(1))
    assert len({Pair(1), Pair(1), Other(1), Nothing(), Nothing()}) == 3
    assert Nothing() == Nothing()
    assert Pair(1, "a", 1) == Pair(1, "a", 2)


def test_they_are_never_changed() -> None:
    pair = Pair(1)

    with pytest.raises(AttributeError, match=r"Pair\.number cannot be changed"):
        pair.number = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del pair.number
    with pytest.raises(AttributeError):
        pair.new = 1  # type: ignore[attr-defined]
    assert not hasattr(pair, "__dict__")


def test_they_are_shown_as_they_are_written() -> None:
    assert repr(Pair(1, "a", 7)) == "Pair(number=1, name='a')"
    assert repr(Pair(1)) == repr(Model(1)).replace("Model", "Pair")
    assert repr(Nothing()) == "Nothing()"
    assert (Pair.__doc__, Pair.__module__, Pair.__match_args__[:2]) == ("Two.", __name__, ("number", "name"))  # type: ignore[attr-defined]


def test_they_can_be_copied_and_sent() -> None:
    pair = Pair(1, "a", 7)

    for other in (copy.copy(pair), copy.deepcopy(pair), pickle.loads(pickle.dumps(pair))):
        assert other == pair
        assert other._hidden == 7


PACKAGE = str(Path(__file__).parents[2] / "layers" / "sweephand" / "python")
COMPILED = """
import collections, datetime, json, typing, zoneinfo, sys
compiled = []
sys.addaudithook(lambda event, about: compiled.append(about) if event == "compile" and about[1] == "<string>" else None)
import sweephand.schedules.timing
print(len(compiled))
sweephand.schedules.timing.parse({"cron": "0 9 * * *"}, now=datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC))
print(len(compiled))
"""


def test_loading_schedules_compiles_nothing_until_the_first_is_made() -> None:
    """A NamedTuple compiles each of its annotations, a dataclass its methods: a third of what the import takes."""
    shown = subprocess.run(
        [sys.executable, "-c", COMPILED], env={"PYTHONPATH": PACKAGE}, check=True, capture_output=True, text=True
    )

    loaded, asked = map(int, shown.stdout.split())
    assert loaded == 0
    assert asked > 0
