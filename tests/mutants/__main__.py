"""`make test-mutants`: takes each named condition, ordering and template guard away and expects a failing test.

python -m tests.mutants              a sample: all conditions and orderings, of each guard one place
python -m tests.mutants all          every place of every guard too
python -m tests.mutants NAME...      these; a part of a name will do
python -m tests.mutants find [NAME]  searches for tests that notice these, or all that have none, and writes them down
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from time import monotonic  # noqa: TID251 - how long it takes is no decision of the service

from tests.mutants import names
from tests.mutants.run import KILLED, NONE, SURVIVED, all_of

AT_ONCE = int(os.environ.get("MUTANTS_AT_ONCE", "2"))
HEAVY = (
    "pytest",
    "hypothesis",
    "jsonschema",
    "moto",
    "moto.dynamodb",
    "pynamodb.models",
    "botocore.session",
    "samtranslator.translator.translator",
)


def main(arguments: list[str]) -> int:
    for module in HEAVY:
        __import__(module)
    match arguments:
        case ["find"]:
            known = names.killers()
            return _find([name for name in names.every() if name not in known])
        case ["find", *wanted]:
            return _find(_chosen(wanted))
        case []:
            return _judge(names.sample())
        case ["all"]:
            return _judge(names.every())
    return _judge(_chosen(arguments))


def _chosen(wanted: list[str]) -> list[str]:
    found = [name for name in names.every() if not wanted or any(part in name for part in wanted)]
    if not found:
        sys.exit(f"no mutant is called {' or '.join(wanted)}")
    return found


def _judge(chosen: list[str]) -> int:
    began = monotonic()
    work = [(name, tests or _all_candidates(name)) for name, tests in names.work(chosen)]
    broken = _broken({test for _, tests in work for test in tests})
    alive = [f"{test}, which fails without a mutant too" for test in broken]
    noticed = 0
    for name, status, said in all_of(work, AT_ONCE):
        if status == KILLED:
            noticed += 1
        else:
            alive.append(f"{name}\n{said[-1_500:]}")
    for name in alive:
        _say(f"not noticed: {name}")
    _say(f"mutants: {noticed} of {len(work)} noticed, {monotonic() - began:.0f} s")
    return 1 if alive or not work else 0


def _broken(tests: Iterable[str]) -> list[str]:
    """Returns the tests that fail on unchanged code."""
    ((_, status, said),) = all_of([(NONE, sorted(tests))], 1)
    if status not in {SURVIVED, KILLED}:
        sys.exit(f"the tests do not run:\n{said}")
    return said.splitlines() if status == KILLED else []


def _all_candidates(name: str) -> list[str]:
    return [test for tests in names.candidates(name) for test in tests]


def _find(chosen: list[str]) -> int:
    """Runs each stage of candidates for the mutants that the ones before did not notice."""
    known = names.killers()
    useless = [f"--deselect={test}" for test in _broken({test for name in chosen for test in _all_candidates(name)})]
    _say(f"left out, because they fail as it is: {useless}")
    for stage in range(max(len(names.candidates(name)) for name in chosen)):
        staged = [(name, names.candidates(name)) for name in chosen]
        work = [(name, [*useless, *stages[stage]]) for name, stages in staged if len(stages) > stage]
        for name, status, said in all_of(work, AT_ONCE):
            _say(f"{name}\n    {said.splitlines()[0] if status == KILLED else ('survived', '', said)[status]}")
            if status == KILLED:
                known[name] = [said.splitlines()[0]]
                names.write(known)
                chosen = [other for other in chosen if other != name]
        if not chosen:
            return 0
    _say(f"not noticed: {', '.join(chosen)}")
    return 1


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
