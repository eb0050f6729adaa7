"""A record behaves like a frozen dataclass of the standard library: each test asks both."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pytest

from sweephand.base import records

KINDS = {"ours": records.dataclass, "library": dataclasses.dataclass}


def _made(dataclass: Any) -> tuple[Any, Any]:
    @dataclass(frozen=True)
    class Base:
        """A base with a keyword-only field."""

        shared: ClassVar[int] = 7
        note: str = field(default="", kw_only=True)

    @dataclass(frozen=True)
    class Record(Base):
        """A record of each kind of field."""

        number: int
        name: str = "none"
        tags: dict[str, int] = field(default_factory=dict)
        secret: str = field(default="", repr=False)
        cached: int = field(default=0, compare=False)
        doubled: int = field(init=False, repr=False)
        sign: str = field(default="+", init=False)

        def __post_init__(self) -> None:
            if self.number < 0:
                raise ValueError("below 0")
            object.__setattr__(self, "doubled", 2 * self.number)

        @cached_property
        def text(self) -> str:
            return f"{self.name}{self.number}"

    return Base, Record


@pytest.fixture(params=[*KINDS, "ours, often made"])
def record(request: pytest.FixtureRequest) -> Any:
    """Returns a class. One that was often made has another __init__."""
    name = request.param.partition(",")[0]
    made = _made(KINDS[name])[1]
    for _ in range(records.OFTEN * (name != request.param)):
        made(1)
    return made


def test_fields_are_given_by_place_or_by_name_and_have_defaults(record: Any) -> None:
    made = record(1, "a", {"x": 1}, note="n")

    assert (made.number, made.name, made.tags, made.note, made.doubled, made.sign) == (1, "a", {"x": 1}, "n", 2, "+")
    assert (record(number=2).name, record(2).tags, record(2).shared, record(3).text) == ("none", {}, 7, "none3")
    assert record(1).tags is not record(1).tags


@pytest.mark.parametrize("name", ["own", "values", "named", "calls", "finish", "missing", "cls", "fields", "_values"])
def test_any_name_of_a_field_keeps_its_value_however_often_it_is_made(name: str) -> None:
    kind = dataclasses.make_dataclass("Kind", [(name, bool), ("last", str, "")], namespace={"__module__": __name__})
    made = records._frozen(dataclasses.dataclass(init=False, repr=False, eq=False)(kind))

    assert {getattr(made(False), name) for _ in range(2 * records.OFTEN)} == {False}


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((), {}),
        ((), {"name": "a"}),
        ((1,), {"number": 2}),
        ((1,), {"other": 2}),
        ((), {"other": 2}),
        ((1,), {"doubled": 2}),
        ((1,), {"sign": "-"}),
        ((1, "a", {}, "", 0, "too many"), {}),
        ((1, "a", {}, "", 0), {"note": "", "other": 1}),
    ],
)
def test_values_that_do_not_fit_the_fields_are_refused(
    record: Any, given: tuple[Any, ...], named: dict[str, Any]
) -> None:
    with pytest.raises(TypeError):
        record(*given, **named)


def test_a_record_refused_by_post_init_is_not_made(record: Any) -> None:
    with pytest.raises(ValueError, match="below 0"):
        record(-1)


def test_it_cannot_be_changed(record: Any) -> None:
    made = record(1)

    for change in (lambda: setattr(made, "number", 2), lambda: delattr(made, "number"), lambda: setattr(made, "x", 2)):
        with pytest.raises(FrozenInstanceError):
            change()
    assert made == record(1)


def test_it_is_equal_by_content_and_class(record: Any) -> None:
    class Other(record):  # type: ignore[misc]
        pass

    assert record(1, "a") == record(1, "a") != record(1, "b")
    assert record(1, cached=1) == record(1, cached=2)
    assert record(1, secret="a") != record(1, secret="b")
    assert record(1) != Other(1)
    assert record(1) != (1, "none")
    assert hash(record(1, tags=())) == hash(record(1, tags=()))


def test_it_shows_its_fields_and_no_secret() -> None:
    ours, library = (repr(_made(KINDS[kind])[1](1, secret="hidden")) for kind in KINDS)

    assert ours == library
    assert "hidden" not in ours
    assert "number=1" in ours


def test_replace_and_fields_are_the_librarys(record: Any) -> None:
    made = replace(record(1, "a"), number=5)

    assert (made.number, made.name, made.doubled) == (5, "a", 10)
    assert [each.name for each in fields(record)][:3] == ["note", "number", "name"]
    with pytest.raises((TypeError, ValueError)):
        replace(made, doubled=3)


def test_methods_of_the_class_stay() -> None:
    for dataclass in KINDS.values():

        @dataclass(frozen=True)  # type: ignore[operator]
        class Own:
            """A record with methods of its own."""

            number: int

            def __eq__(self, other: object) -> bool:
                return True

            def __hash__(self) -> int:
                return 7

            def __repr__(self) -> str:
                return "own"

        assert (Own(1) == 3, hash(Own(1)), repr(Own(1))) == (True, 7, "own")


def test_a_class_that_is_not_frozen_or_has_slots_is_the_librarys() -> None:
    @records.dataclass
    class Changing:
        number: int = 1

    @records.dataclass(frozen=True, slots=True)
    class Small:
        number: int = 1

    changing = Changing()
    changing.number = 2
    assert changing == Changing(2)
    assert Small.__slots__ == ("number",)


@records.dataclass(frozen=True)
class Kept:
    """A record that can be pickled: it has a name in a module."""

    number: int


def test_it_can_be_copied_and_pickled_and_matched() -> None:
    kept = Kept(1)

    assert copy.copy(kept) == copy.deepcopy(kept) == pickle.loads(pickle.dumps(kept)) == kept
    match kept:
        case Kept(number):
            assert number == 1


PACKAGE = str(Path(__file__).parents[3] / "layers" / "sweephand" / "python")
COMPILED = """
import sys
from {module} import dataclass
compiled = []
sys.addaudithook(lambda event, about: compiled.append(about) if event == "compile" and about[1] == "<string>" else None)
@dataclass(frozen=True)
class Record:
    "A record."
    number: int
Record(1), repr(Record(1)), Record(1) == Record(2)
print(len(compiled))
"""


@pytest.mark.parametrize(("module", "compiled"), [("sweephand.base.records", False), ("dataclasses", True)])
def test_no_source_is_compiled_for_it(module: str, compiled: bool) -> None:
    """It is what makes a cold start short; a time would differ from machine to machine."""
    script = COMPILED.format(module=module)
    shown = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": PACKAGE}, check=True, capture_output=True, text=True
    )

    assert (int(shown.stdout) > 0) is compiled
