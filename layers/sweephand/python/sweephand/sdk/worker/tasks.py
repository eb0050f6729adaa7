"""The tasks of a worker: functions with a durable name, whose arguments come from the payload of a run."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from datetime import datetime, timedelta
from functools import partial
from math import ceil
from pathlib import Path
from threading import Event
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.sdk.bodies import Body
from sweephand.sdk.errors import ConfigError
from sweephand.sdk.transport.request import ABSENT, duration_text, instant_text, to_json
from sweephand.sdk.worker.loop import Loop

with lazy():
    from sweephand.schedules.text import duration, instants

Function = Callable[..., Any]
LONGEST_NAME = 128
STARTED = frozenset({"__main__", "__mp_main__"})
"""The names of the module that Python was started with, and of its copy in a spawned process."""
RUN = "run"
"""The name of the parameter that receives the run itself."""


class BadReschedule(ValueError):
    """An invalid time or payload in `run.reschedule`. No attempt follows, because it would repeat the mistake."""


class BadPayload(Exception):
    """A payload that does not fit its task. Tasks may raise it, too. No attempt follows."""


@dataclass(frozen=True)
class TaskRun:
    """A run of a task, for its function.

    id: the same in every attempt, and therefore a key for effects that must happen once. planned_at: when the run was
    due. payload: the JSON of the job, or the object that the task's schema makes from it. traceparent: the parent of
    the attempt's spans, as in W3C Trace Context.
    """

    id: str
    task: str
    planned_at: datetime
    attempt: int
    max_attempts: int
    payload: Any = None
    job_id: str | None = None
    resource_id: str | None = None
    tags: tuple[str, ...] = ()
    traceparent: str | None = None
    stopping: Event = field(default_factory=Event, repr=False, compare=False)
    again: Body = field(default_factory=dict, repr=False, compare=False)

    @property
    def should_stop(self) -> bool:
        """Returns True once the worker is stopping, or has lost the run to another one."""
        return self.stopping.is_set()

    def reschedule(
        self,
        *,
        after: str | float | timedelta | None = None,
        at: datetime | str | None = None,
        payload: Any = ABSENT,
    ) -> None:
        """Requests another run of the job. It is planned together with the success of this run, or not at all.

        after: counted from the success: `5m`, seconds or a timedelta. payload: of the new run, instead of the job's. A
        later call replaces an earlier one; a failed attempt plans nothing. Raises BadReschedule for arguments that the
        service would refuse in the report of this run.
        """
        if (after is None) is (at is None):
            raise BadReschedule("reschedule needs either after or at")
        wanted: Body = {"afterSeconds": _ahead(after)} if after is not None else {"at": self._later(at)}
        wanted |= {} if payload is ABSENT else {"payload": _sendable(payload)}
        self.again.clear()
        self.again.update(wanted)

    def _later(self, at: datetime | str | None) -> str:
        """Returns an instant as it is sent. Raises BadReschedule for one that is not later than this run."""
        text = instant_text(at) if isinstance(at, datetime) else at
        try:
            instant = instants.parse_instant(text, "at")
        except InvalidRequest as wrong:
            raise BadReschedule(f"reschedule cannot read the instant {at!r}: {wrong}") from wrong
        if instant <= self.planned_at:
            raise BadReschedule(f"reschedule needs an instant after this run, due at {self.planned_at}, not {text}")
        return str(text)


@dataclass(frozen=True)
class Task:
    """A function with its durable name and its job.

    body: of the job in the API. never_on: types of exceptions after which no attempt follows. schema: takes the payload
    and returns the object for the function, or raises ValueError or TypeError. pinned: True if only workers of the same
    version carry the task out.
    """

    name: str
    function: Function
    body: Body
    never_on: tuple[type[BaseException], ...] = ()
    schema: Function | None = None
    pinned: bool = False

    @property
    def place(self) -> str:
        """The function's name and its place in the source, for messages."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        where = f"{code.co_filename}:{code.co_firstlineno}" if code else repr(self.function)
        return f"{name_of(self.function)} ({where})"

    def carry_out(self, run: TaskRun, loop: Loop) -> Any:
        """Calls the function, an async one on the loop. Raises BadPayload, and everything that the function raises."""
        arguments = self._arguments(run)
        done = self.function(**arguments)
        if inspect.isgenerator(done) or inspect.isasyncgen(done):
            raise TypeError(f"the task {self.place} returned a generator, whose body nobody runs: return its result")
        return loop.run(done) if inspect.iscoroutine(done) else done

    def _arguments(self, run: TaskRun) -> dict[str, Any]:
        """Returns the arguments: the run for the parameter `run`, and the payload's members for all others."""
        wanted = inspect.signature(self.function).parameters
        payload = {} if run.payload is None else run.payload
        arguments: dict[str, Any] = {}
        if any(name != RUN for name in wanted):
            if not isinstance(payload, Mapping):
                raise BadPayload(f"the payload must be an object, not {type(payload).__name__}")
            arguments = {str(name): value for name, value in payload.items()}
        arguments |= {RUN: run} if RUN in wanted else {}
        try:
            inspect.signature(self.function).bind(**arguments)
        except TypeError as wrong:
            raise BadPayload(f"the payload does not fit: {wrong}") from wrong
        return arguments

    def read(self, payload: Any) -> Any:
        """Returns the payload, converted by the schema if there is one. Raises BadPayload."""
        if self.schema is None:
            return payload
        try:
            return self.schema(payload)
        except (TypeError, ValueError) as wrong:  # pydantic's ValidationError is a ValueError
            raise BadPayload(f"the payload does not fit: {wrong}") from wrong


def _check_function(task: Task) -> None:
    if inspect.isgeneratorfunction(task.function) or inspect.isasyncgenfunction(task.function):
        raise ConfigError(f"the task {task.place} is a generator, whose body no run would carry out: remove its yield")
    for each in inspect.signature(task.function).parameters.values():
        if each.kind is inspect.Parameter.POSITIONAL_ONLY:
            reason = "is filled by its name from the payload: remove the slash after it"
            raise ConfigError(f'the parameter "{each.name}" of the task {task.place} {reason}')


class Tasks:
    """The tasks of a worker by name."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}

    def add(self, task: Task) -> None:
        """Adds a task. Raises ConfigError for a name that is taken, and for a function that a run cannot call."""
        if not (isinstance(task.name, str) and 1 <= len(task.name) <= LONGEST_NAME):
            reason = f"must be a string of 1 to {LONGEST_NAME} characters, not {task.name!r}"
            raise ConfigError(f"the name of the task {task.place} {reason}")
        _check_function(task)
        other = self._tasks.get(task.name)
        if other is not None:
            places = f"{other.place} and {task.place}"
            raise ConfigError(f'two tasks have the name "{task.name}": {places}; give one of them another `name=`')
        self._tasks[task.name] = task

    def get(self, name: str) -> Task | None:
        return self._tasks.get(name)

    def all(self) -> list[Task]:
        return list(self._tasks.values())


def name_of(function: Function) -> str:
    """Returns module and name of a function, of a partial's function, or of a callable object's class."""
    inner = function.func if isinstance(function, partial) else function
    named = inner if hasattr(inner, "__qualname__") else type(inner)
    return f"{_module_of(named)}.{named.__qualname__}"


def _module_of(named: Any) -> str:
    """Returns the module of a function. For the program itself, it is the name under which others import its file."""
    module: str = named.__module__
    if module not in STARTED:
        return module
    started = sys.modules[module]
    spec, path = getattr(started, "__spec__", None), getattr(started, "__file__", None)
    if spec is not None:
        return str(spec.name)
    return module if path is None else Path(path).stem


def _ahead(after: str | float | timedelta) -> int:
    try:
        seconds = seconds_of(after)
    except ValueError as wrong:
        raise BadReschedule(str(wrong)) from wrong
    if seconds < 1:
        raise BadReschedule(f"reschedule needs at least one second, not {after!r}")
    return seconds


def _sendable(payload: Any) -> Any:
    """Returns a payload as JSON, so that the report of the run can be sent. Raises BadReschedule."""
    try:
        held = to_json(payload)
        json.dumps(held, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as wrong:
        raise BadReschedule(f"the payload of the next run cannot be sent as JSON: {wrong}") from wrong
    return held


def exception_types(value: object) -> tuple[type[BaseException], ...]:
    """Returns `never_on` as a tuple: from one class or several. Raises ConfigError for anything else."""
    several = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str | type) else (value,)
    for each in several:
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            raise ConfigError(f"never_on needs classes of exceptions, such as `(ValueError,)`, not {each!r}")
    return several


def seconds_of(interval: str | float | timedelta) -> int:
    """Returns the length of an interval (`5m`, `5 minutes`, a number or a timedelta) in whole seconds, rounded up.

    Raises ValueError.
    """
    if isinstance(interval, timedelta):
        interval = interval.total_seconds()
    if isinstance(interval, int | float):
        return ceil(interval)
    try:
        length = duration.read(interval.strip(), "interval")
    except (AttributeError, InvalidRequest) as wrong:
        raise ValueError(f'an interval must be such as "30s", "5m", "2h" or "1d", not {interval!r}') from wrong
    if length.months:
        raise ValueError(f"an interval of months has no fixed length: {interval!r}")
    return length.seconds


def interval_text(interval: str | float | timedelta) -> str:
    """Returns an interval as the API reads it: from seconds, a timedelta, or a string in the API's form."""
    if isinstance(interval, int | float):
        interval = timedelta(seconds=interval)
    if not isinstance(interval, str | timedelta):
        raise ConfigError(f'an interval must be such as "30s", "5m", "2h" or "1d", not {interval!r}')
    return duration_text(interval) if isinstance(interval, timedelta) else interval.strip()
