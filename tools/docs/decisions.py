"""The contents of docs/decisions.md: the pages of each folder under the name of its chapter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "decisions"
CHAPTERS = {
    "schedules": "Schedules and calendars",
    "planning": "Planning: sweeps, pauses, lateness and the audit",
    "runs": "Runs, retries, errors and the ledger",
    "jobs": "Jobs, job sets and changes of many",
    "targets": "Targets and their silence",
    "programs": "SDK, command line, workers and consumers",
    "api": "Requests and answers",
    "facades": "The facades for SAP's and Azure's clients",
    "security": "Callers, secrets and tenants",
    "console": "The console",
    "cost": "Cold starts and the work of one run",
    "stack": "Template, alarms and releases",
    "project": "Code, tests and documentation",
}
"""The folders of docs/decisions in the order of the contents, with their titles."""


def contents() -> str:
    """Returns a list of links for each chapter."""
    return "\n".join(f"## {title}\n\n{''.join(_lines(folder))}" for folder, title in CHAPTERS.items())


def _lines(folder: str) -> Iterator[str]:
    for page in sorted((FOLDER / folder).glob("*.md")):
        number, _, title = page.read_text().partition("\n")[0].removeprefix("# ").partition(": ")
        yield f"- [{number}](decisions/{folder}/{page.name}): {title}\n"
