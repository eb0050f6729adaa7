"""The methods of JobScheduler that return a Result, and the functions that it accepts."""

from __future__ import annotations

import inspect

import pytest

from sweephand.sdk import AsyncJobScheduler, JobScheduler
from sweephand.sdk.errors import InvalidArgument
from tests.unit.sdk.scripted import async_client, client

TRIED = sorted(name for name in vars(JobScheduler) if name.startswith("try_"))


@pytest.mark.parametrize("scheduler", [JobScheduler, AsyncJobScheduler])
@pytest.mark.parametrize("name", TRIED)
def test_a_method_that_returns_a_result_takes_the_arguments_of_the_one_that_raises(scheduler, name):
    tried = inspect.signature(getattr(scheduler, name))
    raising = inspect.signature(getattr(scheduler, name.removeprefix("try_")))

    assert tried.parameters == raising.parameters


@pytest.mark.parametrize("event", ["on_job", "on_missed", "on_dropped"])
@pytest.mark.parametrize("scheduler", [JobScheduler(client()[0]), AsyncJobScheduler(async_client()[0])])
def test_a_function_that_cannot_receive_an_event_is_refused_when_it_is_set(scheduler, event):
    """Seen failing: each event failed 20 times instead, and went to the dead letters."""
    register = getattr(scheduler, event)

    for wrong in (lambda: None, lambda data, more: None):
        with pytest.raises(InvalidArgument, match="handler must take one argument, the event: "):
            register(wrong)
    with pytest.raises(InvalidArgument, match="handler must be a function, not 'print'"):
        register("print")
    for right in (print, lambda data: None, lambda *all_of_it: None, lambda data, more=1: None, [].append):
        assert register(right) is right
