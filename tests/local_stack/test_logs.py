"""`make logs`: the lines that the functions of the real template write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sweephand.local import logs
from sweephand.local.failures import LocalFailure
from tests.local_stack.waiting import CLOCK, until

if TYPE_CHECKING:
    from tests.local_stack.conftest import LocalStack

pytestmark = pytest.mark.emulator


def shown(stack: LocalStack, function: str | None) -> list[str]:
    lines: list[str] = []
    logs.show(stack.file, CLOCK, lines.append, function=function, minutes=60, follow=False)
    return lines


def test_each_line_names_its_function_whichever_log_group_the_template_gives_it(stack: LocalStack) -> None:
    stack.client().get("/v1/jobs").raise_for_status()

    of_the_api = until(lambda: shown(stack, "api"), bool)
    of_all = shown(stack, None)

    assert {line.split()[1] for line in of_the_api} == {"api"}
    assert {"api", "sweeper", "auditor"} <= {line.split()[1] for line in of_all if line[:2].isdigit()}


def test_an_unknown_function_is_refused(stack: LocalStack) -> None:
    with pytest.raises(LocalFailure, match="no function nobody; there are api"):
        shown(stack, "nobody")
