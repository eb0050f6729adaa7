"""Carries out one mutant in a process of its own: the changed module or template is put in place before any test is
read, then the tests that must notice are run until one fails.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.util
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.mutants import changes, conditions, guards, orderings

SURVIVED, KILLED, UNFIT = 0, 1, 2
NONE = "none: the code as it is"
"""Not a mutant: what fails without one notices nothing."""
LOADED = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""Hypothesis is loaded before the fork, so that its plugin cannot be rewritten."""


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module of the service another source."""

    def __init__(self, module: str, path: Path, tree: ast.Module) -> None:
        self._module, self._path, self._tree = module, path, tree

    def find_spec(self, name: str, _path: object, _target: object = None) -> ModuleSpec | None:
        if name != self._module:
            return None
        return importlib.util.spec_from_file_location(name, self._path, loader=self)

    def create_module(self, _spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._tree, str(self._path), "exec"), module.__dict__)


def put_in_place(name: str) -> None:
    """Puts the mutant in place. name: as tests.mutants.names gives it. Before anything of the service is imported."""
    kind, _, rest = name.partition(": ")
    match kind:
        case "condition":
            path = conditions.PACKAGE / f"{rest.split('.', maxsplit=1)[0]}.py"
            _change(conditions.module_of(rest), path, conditions.without(rest, path.read_text()))
        case "ordering":
            path = orderings.path_of(rest)
            _change(_module_at(path), path, orderings.broken(rest, path.read_text()))
        case "change" if changes.CHANGES[rest].path == changes.TEMPLATE_FILE:
            _read_template(lambda text: changes.changed(rest, text), lambda template: template)
        case "change":
            path = changes.path_of(rest)
            _change(_module_at(path), path, ast.parse(changes.changed(rest, path.read_text())))
        case "guard":
            assert rest in guards.places()
            _read_template(lambda text: text, lambda template: guards.without(rest, template))


def _change(module: str, path: Path, tree: ast.Module) -> None:
    assert not any(known.startswith("sweephand.") for known in sys.modules), "too late"
    sys.meta_path.insert(0, Changed(module, path, tree))


def _module_at(path: Path) -> str:
    return "sweephand." + ".".join(path.relative_to(conditions.PACKAGE).with_suffix("").parts)


def _read_template(as_text: Callable[[str], str], parsed: Callable[[Any], Any]) -> None:
    """Makes every reader of the template read it changed from now on."""
    from samtranslator import yaml_helper  # noqa: PLC0415 - beside its only use

    real = yaml_helper.yaml_parse

    def read(text: str) -> Any:
        return parsed(real(as_text(text))) if "\nResources:" in text else real(text)

    yaml_helper.yaml_parse = read


def judged(name: str, tests: Sequence[str]) -> tuple[int, str]:
    """Returns SURVIVED, KILLED or UNFIT, and what the tests said: up to the first that fails, or without a mutant
    all.
    """
    written = io.StringIO()
    with redirect_stdout(written), redirect_stderr(written):
        put_in_place(name)
        import pytest  # noqa: PLC0415 - loaded before the fork

        class Names:
            """Failures are told by name alone."""

            failed: list[str] = []  # noqa: RUF012 - of this run

            def pytest_runtest_logreport(self, report: Any) -> None:
                if report.failed:
                    self.failed.append(report.nodeid)

        options = ["--tb=line", "-p", "no:xdist", *LOADED, *(["-x"] if name != NONE else [])]
        status = pytest.main([*options, *tests], plugins=[Names()])
    if status == pytest.ExitCode.TESTS_FAILED:
        return KILLED, "\n".join(Names.failed)
    return (SURVIVED if status == pytest.ExitCode.OK else UNFIT), written.getvalue()


@dataclass(frozen=True)
class Child:
    """A mutant at work: its process, and where it says what it saw."""

    name: str
    pid: int
    says: int


MOST_SAID = 4_000
"""Less than a pipe holds, so that no child waits for its reader."""


def begin(name: str, tests: Sequence[str]) -> Child:
    """Starts a child of this process, which has the heavy modules loaded already."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write_end)
        return Child(name, pid, read_end)
    status, said = UNFIT, ""
    try:
        status, said = judged(name, tests)
    except BaseException as broken:  # noqa: BLE001 - the parent is to hear of anything
        said = f"{type(broken).__name__}: {broken}"
    finally:
        os.write(write_end, said[-MOST_SAID:].encode())
        os._exit(status)


def ended(child: Child, status: int) -> tuple[int, str]:
    """Returns SURVIVED, KILLED or UNFIT, and what it said. status: as os.wait gives it."""
    with os.fdopen(child.says, errors="replace") as said:
        return os.waitstatus_to_exitcode(status), said.read()


def all_of(work: Iterable[tuple[str, Sequence[str]]], at_once: int) -> Iterator[tuple[str, int, str]]:
    """Runs each mutant with its tests, some at a time: name, status and what it said, as they end."""
    running: dict[int, Child] = {}
    for name, tests in work:
        if len(running) == at_once:
            yield _next(running)
        child = begin(name, tests)
        running[child.pid] = child
    while running:
        yield _next(running)


def _next(running: dict[int, Child]) -> tuple[str, int, str]:
    pid, status = os.wait()
    child = running.pop(pid)
    return child.name, *ended(child, status)
