"""The recipes are run as they stand: each page's blocks in a shell, which start the programs that the page shows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from sweephand.local.settings import CHECKOUT
from tests.local_stack.pages import FIRST, bash, blocks_of, free_port, moved, script_of
from tests.local_stack.waiting import WITHIN_S

if TYPE_CHECKING:
    from pathlib import Path

    from tests.local_stack.conftest import LocalStack

pytestmark = pytest.mark.emulator

RECIPES = CHECKOUT / "docs" / "recipes"
BEGUN = "(?:ON_TIME|LATE)"
"""A busy machine may begin a run more than five seconds late."""
SAYS = {
    "customer-reports": (
        "At 09:00 from Monday to Friday, America/New_York. Next: 20",
        "PAUSED\n",
        rf"SUCCESS, {BEGUN}\n",
        "not signed\n",
    ),
    "webhooks": (r"\n(\S+_\S+)\n\1\n", r"signed\n", rf"SUCCESS {BEGUN}, attempts: [2-9]", "again: ", r" signed\n"),
    "long-work": ("ACK_RECVD\n", "COMPLETED\n", "SUCCESS\n3120 rows\n", "ValueError: rows cannot be negative\n"),
    "nightly-chain": (
        r"(first: \S+)\n",
        rf"extract manual SUCCESS {BEGUN}\n",
        rf"extract on_success SUCCESS {BEGUN}\n",
        rf"transform manual SUCCESS {BEGUN}\n",
        rf"transform on_success SUCCESS {BEGUN}\n",
        rf"publish manual SUCCESS {BEGUN}\n",
    ),
    "from-eventbridge": (
        r"from-eventbridge: 2 create",
        r"default/heartbeat.*billing/month-end|billing/month-end.*default/heartbeat",
        r"2027-01-29.*2027-02-26",
        r'"deleted"',
    ),
    "from-cron": (
        r"30 2 \* \* 1-5  Europe/Berlin  echo backup of",
        r"# next block\n.*SUCCESS\n",
        r'"key":"cat"',
    ),
    "from-celery": (r"\n[1-9]\d*\n", "often", '"key":"remind-each-workday"'),
    "alerts": (
        r"failed three times'}",
        r"\n3\n",
        r"recipe-in-a-row failed 3 times in a row, last with CONNECT\n",
    ),
    "jobs-as-code": (
        r"recipe-billing: 2 create, 0 same\n.*\nstatus 3\n",
        r"recipe-billing: no change, 2 same\n",
        r"1 changed by others",
        r"only for today",
        r'"deleted"',
    ),
    "moved-clock": ("4 passed",),
}
"""The patterns that each recipe's output has, in this order."""


def test_every_recipe_is_tested():
    assert {page.stem for page in RECIPES.glob("*.md")} == set(SAYS)


@pytest.mark.parametrize("name", sorted(SAYS))
def test_a_recipe_does_what_its_page_says(name: str, folder: Path, stack: LocalStack):
    blocks = [blocks_of(FIRST)[0], *blocks_of(RECIPES / f"{name}.md")]
    script = moved(script_of(blocks), stack, free_port(), free_port())

    with bash(script, folder) as shell:
        said, _ = shell.communicate(timeout=WITHIN_S)

    assert shell.returncode == 0, said[-3_000:]
    assert re.search(".*?".join(f"(?:{each})" for each in SAYS[name]), said, re.DOTALL), said[-3_000:]
