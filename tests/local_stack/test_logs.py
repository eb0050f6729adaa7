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


def functions_of(lines: list[str]) -> set[str]:
    return {line.split()[1] for line in lines if line[:2].isdigit()}


def test_each_line_names_its_function_whichever_log_group_the_template_gives_it(stack: LocalStack) -> None:
    stack.client().get("/v1/jobs").raise_for_status()

    of_the_api = until(lambda: shown(stack, "api"), bool)
    until(lambda: functions_of(shown(stack, None)), lambda names: {"api", "sweeper", "auditor"} <= names)

    assert {line.split()[1] for line in of_the_api} == {"api"}


def test_an_unknown_function_is_refused(stack: LocalStack) -> None:
    with pytest.raises(LocalFailure, match="no function nobody; there are api"):
        shown(stack, "nobody")
