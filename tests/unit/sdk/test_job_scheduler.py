"""The methods of JobScheduler that return a Result instead of raising."""

from __future__ import annotations

import inspect

import pytest

from sweephand.sdk import AsyncJobScheduler, JobScheduler

TRIED = sorted(name for name in vars(JobScheduler) if name.startswith("try_"))


@pytest.mark.parametrize("scheduler", [JobScheduler, AsyncJobScheduler])
@pytest.mark.parametrize("name", TRIED)
def test_a_method_that_returns_a_result_takes_the_arguments_of_the_one_that_raises(scheduler, name):
    tried = inspect.signature(getattr(scheduler, name))
    raising = inspect.signature(getattr(scheduler, name.removeprefix("try_")))

    assert tried.parameters == raising.parameters
