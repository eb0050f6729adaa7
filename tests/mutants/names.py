"""The names of all mutants, made from the code, the table of orderings and the template; and who notices each."""

from __future__ import annotations

from pathlib import Path

from tests.mutants import changes, conditions, guards, orderings, promises

KILLERS = Path(__file__).with_name("killers.txt")
"""`name` and, on the next line, the test that notices."""
ORDER = "tests/faults/test_orderings.py::test_writes_come_in_the_required_order"
TEMPLATE = "tests/template"


def every() -> list[str]:
    return [
        *(f"condition: {name}" for name in conditions.names()),
        *(f"ordering: {name}" for name in orderings.BROKEN),
        *(f"guard: {name}" for name in guards.places()),
        *(f"change: {name}" for name in changes.CHANGES),
    ]


def sample() -> list[str]:
    """Chooses a sample; of guards with many places, the first."""
    seen: set[str] = set()
    chosen = []
    for name in every():
        guard = name.rpartition(".")[2] if name.startswith("guard: ") else name
        if guard not in seen:
            seen.add(guard)
            chosen.append(name)
    return chosen


def killers() -> dict[str, list[str]]:
    """Returns name -> the tests that must fail: of conditions written down, of the others by their own name."""
    lines = KILLERS.read_text().splitlines() if KILLERS.exists() else []
    found = {name: [test.strip()] for name, test in zip(lines[::2], lines[1::2], strict=True)}
    for name in every():
        kind, _, rest = name.partition(": ")
        if kind == "ordering":
            found[name] = [f"{ORDER}[{rest}]"]
        elif kind == "guard":
            found[name] = [f"{TEMPLATE}/{guards.GUARDS[rest.rpartition('.')[2]]}"]
    return found


def work(chosen: list[str]) -> list[tuple[str, list[str]]]:
    """Yields each mutant with the tests that must notice it; once more with each further test that a promise names for
    it.
    """
    known = killers()
    found = [(name, known.get(name, [])) for name in chosen if not name.startswith("change: ")]
    for shown in promises.all_shown():
        noticed = any(test == shown.test or test.startswith(f"{shown.test}[") for test in known.get(shown.mutant, []))
        if shown.mutant in chosen and not noticed:
            found.append((shown.mutant, [shown.test]))
    return found


def write(known: dict[str, list[str]]) -> None:
    written = [f"{name}\n    {known[name][0]}" for name in every() if name.startswith("condition: ") and name in known]
    KILLERS.write_text("\n".join(written) + "\n")


NEAR = {
    "server/store/tenants/counts": (
        "server/flow/jobs/test_many_creates.py",
        "server/flow/tenants/test_quotas.py",
        "server/store/test_clauses.py",
    ),
    "server/store/jobs/directory": (
        "server/store/test_directory.py",
        "server/flow/jobs/test_directory.py",
        "server/flow/jobs/test_create.py",
        "server/flow/deletes/test_deletes.py",
    ),
    "server/store/jobs/jobs": (
        "server/store/test_jobs.py",
        "server/flow/jobs/test_create.py",
        "server/flow/jobs/test_changes.py",
    ),
    "server/store/runs/ledger": (
        "server/store/test_ledger.py",
        "server/flow/runs/test_execute.py",
        "server/flow/runs/test_results.py",
        "server/flow/runs/test_retries.py",
    ),
    "server/store/runs/overlap_slots": ("server/flow/runs/test_overlap.py",),
    "server/store/index/suspended": ("server/flow/sweep/test_suspended.py",),
    "server/store/tenants/tenants": ("server/flow/jobs/test_create.py", "server/flow/sweep/test_suspended.py"),
    "server/store/index/next_run_index": ("server/store/test_waiting.py", "server/flow/sweep/test_sweep.py"),
    "server/flow/sweep/broken_rows": ("server/flow/sweep/test_sweep.py",),
    "server/flow/series/catch_up": ("server/flow/series/test_misfire.py",),
    "server/flow/jobs/change": ("server/flow/jobs/test_changes.py",),
    "server/flow/deletes/clean_up": ("server/flow/deletes/test_deletes.py",),
    "server/flow/jobs/completion": ("server/flow/flow_keys/test_line.py", "server/flow/lifecycle/test_endings.py"),
    "server/flow/series/holding": ("server/flow/sweep/test_suspended.py",),
    "server/flow/idempotency": ("server/flow/jobs/test_create.py", "server/flow/manual/test_manual.py"),
    "server/flow/audit/reconcile": ("server/flow/audit/test_audit.py",),
    "server/flow/jobs/steps": ("server/flow/jobs/test_changes.py", "server/flow/deletes/test_deletes.py"),
}
"""Tests by module of a condition: the files of tests/unit that may notice, the nearest first."""
CLAUSES = ["tests/unit/server/store/test_clauses.py", "tests/faults/test_meanwhile.py"]
"""Made for them."""
FARTHER = [
    "tests/unit/server/store",
    "tests/unit/server/flow",
    "tests/faults/test_plans.py",
    "tests/faults/test_held_model.py",
]


def candidates(name: str) -> list[list[str]]:
    """Lists the tests that may notice it, the nearest first."""
    own = killers()
    if name in own and not name.startswith("condition: "):
        return [own[name]]
    if name.startswith("change: "):
        return [[shown.test for shown in promises.all_shown() if shown.mutant == name]]
    module = name.removeprefix("condition: ").split(".")[0]
    return [CLAUSES, *([f"tests/unit/{file}"] for file in NEAR.get(module, ())), FARTHER]
