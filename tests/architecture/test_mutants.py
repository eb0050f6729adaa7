"""Each condition, ordering and guard has its mutant, and each mutant a test that notices it (make test-mutants)."""

from __future__ import annotations

import ast

import pytest

from tests.faults.test_orderings import ORDERINGS
from tests.mutants import changes, conditions, guards, names, orderings, promises


def test_every_clause_of_a_condition_has_a_test_that_notices_its_removal() -> None:
    """A new clause: python -m tests.mutants find NAME writes it down, or says that no test would miss it."""
    written = {name for name in names.killers() if name.startswith("condition: ")}

    assert written == {f"condition: {name}" for name in conditions.names()}


def test_every_condition_of_a_write_is_a_known_clause() -> None:
    """A condition written in another way has no name: tests/mutants/conditions.py must learn to read it."""
    assert conditions.strange() == set()


@pytest.mark.parametrize("name", conditions.names())
def test_a_single_clause_can_be_removed(name: str) -> None:
    path = conditions.PACKAGE / f"{name.split('.', maxsplit=1)[0]}.py"
    before, after = ast.parse(path.read_text()), conditions.without(name, path.read_text())

    changed = [1 for old, new in zip(before.body, after.body, strict=True) if ast.dump(old) != ast.dump(new)]

    assert len(changed) == 1


def test_every_ordering_is_broken_by_a_mutant() -> None:
    assert orderings.BROKEN.keys() == ORDERINGS.keys()


@pytest.mark.parametrize("name", orderings.BROKEN)
def test_every_ordering_can_be_broken_in_the_current_code(name: str) -> None:
    source = orderings.path_of(name).read_text()

    assert ast.dump(orderings.broken(name, source)) != ast.dump(ast.parse(source))


@pytest.mark.parametrize("name", changes.CHANGES)
def test_every_decision_can_be_removed_from_the_current_code(name: str) -> None:
    path = changes.path_of(name)
    text = path.read_text()

    assert changes.changed(name, text) != text
    if path.suffix == ".py":
        ast.parse(changes.changed(name, text))


def test_every_removed_decision_belongs_to_a_promise() -> None:
    """Whose test must notice it: make test-mutants."""
    named = {shown.mutant for shown in promises.all_shown()}

    assert {f"change: {name}" for name in changes.CHANGES} <= named
    assert named <= set(names.every())


@pytest.mark.parametrize("test", sorted({shown.test for shown in promises.all_shown()}))
def test_every_test_of_a_promise_exists(test: str) -> None:
    assert promises.is_there(test)


def test_a_missing_test_is_detected() -> None:
    there = "tests/architecture/test_mutants.py::test_a_missing_test_is_detected"

    assert promises.is_there(there)
    assert not promises.is_there(f"{there}_at_all")
    assert not promises.is_there("tests/architecture/test_nothing.py::test_a_test")


def test_each_mutant_of_a_promise_is_judged_by_its_own_test() -> None:
    judged = {(name, test.partition("[")[0]) for name, tests in names.work(names.every()) for test in tests}

    assert {(shown.mutant, shown.test) for shown in promises.all_shown()} <= judged


def test_every_property_of_the_template_is_a_guard_or_listed_as_none() -> None:
    assert guards.unknown() == set()


def test_every_guard_is_in_the_template_and_its_test_exists() -> None:
    used = {place.rpartition(".")[2] for place in guards.places()}

    assert used == guards.GUARDS.keys()
    for test in guards.GUARDS.values():
        file, _, function = test.partition("::")
        assert f"def {function}(" in (guards.TEMPLATE.parent / "tests/template" / file).read_text()
