"""All runs begin as one function makes them, so that what all runs have of their job is forgotten nowhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from sweephand.domain.job import Job
from sweephand.domain.run import FROM_ITS_JOB, Kind, Run, State
from sweephand.domain.runs.run_action import new_run
from tests.unit.domain.nouns import NOW, job

PACKAGE = Path(__file__).resolve().parents[2] / "layers/sweephand/python/sweephand"
BUILDERS = {
    "new_run": "every run that carries something out",
    "end_unacted": "an occurrence that ends without a start: nothing of its job is carried out",
    "line": "a row that stands for many occurrences without a run",
    "take_out": "an occurrence of a schedule that cannot be read, by the sweeper, which reads no jobs",
}
"""For each name: what the functions build that call `Run` itself."""


def _builders(tree: ast.AST) -> Iterator[str]:
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Run":
                yield function.name


def test_only_one_function_builds_a_run():
    texts = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    found = {name for text in texts if "Run(" in text for name in _builders(ast.parse(text))}

    assert found == BUILDERS.keys(), "begin with run_action.new_run, and replace what is different"


def test_a_run_and_its_job_use_one_name_for_one_thing():
    both = {each.name for each in fields(Job)} & {each.name for each in fields(Run)}

    assert both == {"tenant", *FROM_ITS_JOB}, "declare it in Run by from_its_job(default), or give one another name"


def test_a_new_run_has_every_member_that_comes_from_its_job():
    names = ("tenant", *FROM_ITS_JOB)

    run = new_run(job(), Kind.MANUAL, None, "uuid", State.QUEUED, NOW)

    assert {name: getattr(run, name) for name in names} == {name: getattr(job(), name) for name in names}
