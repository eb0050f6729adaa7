"""Output: tables cut to the width of a terminal, tabs and whole values in a pipe, or JSON."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import Any, TextIO

from sweephand.base.ids import UUID_TEXT
from sweephand.sdk.model import Model

SHOWN_FIRST = 200
"""How many rows are read before the first is written. They determine the widths of a table's columns."""
GAP = "  "
INDENT = "    "
NARROWEST = 8
EMPTY: tuple[Any, ...] = (None, [], {})
WHOLE = frozenset({"payload", "body"})
"""Members with a caller's own JSON, which is always shown as JSON."""
COLUMNS: Mapping[str, Sequence[str]] = {
    "ListedJob": ("id", "name", "state", "nextRunAt", "collection", "tags"),
    "Schedule": ("id", "name", "active", "type", "nextRunAt", "summary"),
    "Run": ("id", "jobName", "state", "reason", "plannedAt", "attempt", "httpStatus", "message"),
    "Occurrence": ("plannedAt", "state", "reason", "scheduleId", "runId"),
    "Change": ("revision", "at", "actor", "operation", "changes"),
    "ErrorGroup": ("id", "jobName", "state", "reason", "count", "lastSeenAt", "message"),
    "ErrorRun": ("runId", "open", "seenAt", "rerunBy", "actor"),
    "ErrorSum": ("value", "jobName", "count", "jobs", "groups", "lastSeenAt"),
    "PreviewItem": ("plannedAt", "localTime", "movedBy"),
    "AttentionItem": ("kind", "id", "name", "count", "since", "sentence"),
    "Operation": ("id", "kind", "state", "progress", "startedAt", "cause"),
    "Collection": ("name", "state", "jobCount", "modifiedAt"),
    "Credential": ("clientId", "name", "scopes", "createdAt"),
    "Tenant": ("tenant", "state", "description", "createdAt"),
    "ListedCalendar": ("name", "version", "createdAt", "description"),
    "ListedFlowKey": ("name", "state", "parallelism", "rate", "description"),
}
"""The columns of a list, by the class of its items. Other classes show each member that is not an object or array."""
FOR_PEOPLE: Mapping[str, Sequence[str]] = {
    "ListedJob": ("name", "state", "nextRunAt", "collection", "tags", "id"),
    "Schedule": ("name", "active", "nextRunAt", "summary", "id"),
    "Run": ("plannedAt", "jobName", "state", "reason", "message", "id"),
    "ErrorGroup": ("lastSeenAt", "jobName", "state", "reason", "count", "message", "id"),
    "ErrorRun": ("seenAt", "open", "rerunBy", "actor", "runId"),
    "Change": ("at", "actor", "operation", "revision", "changes"),
    "Operation": ("startedAt", "kind", "state", "progress", "cause", "id"),
}
"""The columns on a terminal, where they differ: what a person looks for first, and ids last."""
KEPT = frozenset(
    {"id", "runId", "plannedAt", "nextRunAt", "lastSeenAt", "seenAt", "at", "startedAt", "state", "reason"}
)
"""Columns that a terminal does not cut while another one can be."""
_RUN_ID = re.compile(rf"{UUID_TEXT.pattern}_({UUID_TEXT.pattern})", re.ASCII)
SHORT = 8
"""The characters of a short run id: the last ones, which commands accept in its place."""


class Output:
    """The output of a command. A terminal gets aligned tables; anything else gets values separated by tabs."""

    def __init__(self, stream: TextIO | None = None, width: int | None = None) -> None:
        self._stream = stream or sys.stdout
        if width is None and self._stream.isatty():
            width = shutil.get_terminal_size().columns
        self._width = width

    def line(self, text: str) -> None:
        """Writes a line immediately."""
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def lines(self, texts: Iterable[str]) -> None:
        """Writes lines."""
        for each in texts:
            self.line(each)

    def json(self, value: Any) -> None:
        """Writes a value as JSON in one line."""
        self.line(json.dumps(_plain(value), ensure_ascii=False))

    def one(self, item: Model, without: str | None = None) -> None:
        """Writes each member of an answer on a line of its own. Empty members and `without` are left out.

        On a terminal, the members of objects are indented below them; otherwise objects are JSON.
        """
        members = {name: value for name, value in item.to_json().items() if name != without}
        if self._width is None:
            self.lines(f"{name}\t{cell(value)}" for name, value in members.items() if value not in EMPTY)
        else:
            self.lines(_members(members))

    def below(self, rows: Sequence[Sequence[str]]) -> None:
        """Writes rows below the line they belong to: in columns or, without a terminal, separated by tabs and uncut."""
        if self._width is None or not rows:
            for each in rows:
                self.line("\t".join(["", *each]))
            return
        widths = _widths(rows, self._width - len(INDENT))
        for each in rows:
            self.line(f"{INDENT}{_cut(each, widths)}")

    def table(self, items: Iterable[Model]) -> None:
        """Writes a line for each item as it arrives. Without a terminal: separated by tabs, uncut, without a header."""
        left = iter(items)
        first = list(islice(left, SHOWN_FIRST))
        if not first:
            return
        if self._width is None:
            columns = columns_of(first)
            for item in chain(first, left):
                self.line("\t".join(row(item, columns)))
            return
        columns = FOR_PEOPLE.get(type(first[0]).__name__) or columns_of(first)
        begun = [_for_people(each, columns) for each in first]
        head = tuple(map(_head, columns))
        widths = _widths([head, *begun], self._width, {n for n, name in enumerate(columns) if name in KEPT})
        for each in chain([head], begun, (_for_people(item, columns) for item in left)):
            self.line(_cut(each, widths))

    def follow(self, item: Model) -> None:
        """Writes a run as a line of a table without an end, whose columns have fixed widths."""
        if self._width is None:
            self.line("\t".join(row(item, columns_of([item]))))
            return
        at, job, state, reason, message, name = _for_people(item, FOR_PEOPLE["Run"])
        widths = [19, SHORT, max(NARROWEST, min(24, self._width - 64)), 11, 18]
        fixed = _cut([at, name, job, state, reason], widths)
        self.line(f"{fixed.ljust(sum(widths) + 8)}{GAP}{message}"[: self._width].rstrip())

    def changed(self, job: Model) -> None:
        """Writes a job that was changed: one line on a terminal, elsewhere all members."""
        if self._width is None:
            self.one(job)
            return
        facts = job.to_json()
        ahead = facts.get("nextRunAt")
        following = "no next run" if ahead is None else f"next run {_local(ahead)}"
        self.line(f"{cell(facts['name'])}  {facts['state']}  {following}  {facts['id']}")


def columns_of(items: Sequence[Model]) -> Sequence[str]:
    """Returns the columns for a list."""
    known = COLUMNS.get(type(items[0]).__name__)
    if known is not None:
        return known
    plain = (name for each in items for name, value in each.to_json().items() if not isinstance(value, dict | list))
    return tuple(dict.fromkeys(plain))


def row(item: Model, columns: Sequence[str]) -> tuple[str, ...]:
    """Returns the cells of an item."""
    facts = item.to_json()
    return tuple(cell(facts.get(name)) for name in columns)


def cell(value: Any) -> str:
    """Returns a value as one printable line. Characters that do not print are escaped as in JSON."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping) and {"done", "total"} <= value.keys():
        return f"{value['done']}" if value["total"] is None else f"{value['done']} of {value['total']}"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = ", ".join(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def _for_people(item: Model, columns: Sequence[str]) -> tuple[str, ...]:
    """Returns the cells of an item for a terminal: times in its zone to the second, run ids short."""
    facts = item.to_json()
    return tuple(_short(facts.get(name)) if name in KEPT else cell(facts.get(name)) for name in columns)


def _short(value: Any) -> str:
    run = _RUN_ID.fullmatch(value) if isinstance(value, str) else None
    return run[1][-SHORT:] if run else _local(value)


def _local(value: Any) -> str:
    """Returns an instant as the terminal's zone shows it; anything else as it is."""
    try:
        return f"{datetime.fromisoformat(value).astimezone():%Y-%m-%d %H:%M:%S}"
    except (TypeError, ValueError):
        return cell(value)


def _members(members: Mapping[str, Any]) -> Iterator[str]:
    """Yields the lines of an object, with the lines of the objects and lists in it indented."""
    present = {name: value for name, value in members.items() if value not in EMPTY}
    simple = [name for name, value in present.items() if name in WHOLE or not _nests(value)]
    longest = max(map(len, simple), default=0)
    for name, value in present.items():
        if name in simple:
            yield f"{name:{longest}}{GAP}{json.dumps(value, ensure_ascii=False) if name in WHOLE else cell(value)}"
            continue
        yield name
        for each in value if isinstance(value, list) else [value]:
            bullet = "- " if isinstance(value, list) else GAP
            for n, line in enumerate(_members(each)):
                yield f"{INDENT if n else f'  {bullet}'}{line}"


def _nests(value: Any) -> bool:
    """Returns whether a value is an object, or a list of objects only."""
    if isinstance(value, list):
        return all(isinstance(each, Mapping) for each in value)
    return isinstance(value, Mapping) and not {"done", "total"} <= value.keys()


def _plain(value: Any) -> Any:
    if isinstance(value, Model):
        return value.to_json()
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _head(name: str) -> str:
    return "".join(f" {each}" if each.isupper() else each for each in name).upper()


def _widths(rows: Sequence[Sequence[str]], width: int, kept: Collection[int] = ()) -> list[int]:
    """Returns the widths of the columns. The widest ones shrink until a row fits; those of `kept` after the others."""
    widths = [max(len(each[n]) for each in rows) for n in range(len(rows[0]))]
    first = [n for n in range(len(widths)) if n not in kept]
    for columns in (first, range(len(widths))):
        while sum(widths) + len(GAP) * (len(widths) - 1) > width:
            widest = max(columns, key=lambda n: widths[n], default=None)
            if widest is None or widths[widest] <= NARROWEST:
                break
            widths[widest] -= 1
    return widths


def _cut(cells: Sequence[str], widths: Sequence[int]) -> str:
    return GAP.join(_fitted(cells, widths)).rstrip()


def _fitted(cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    for text, width in zip(cells, widths, strict=True):
        yield text.ljust(width) if len(text) <= width else f"{text[: width - 1]}…"
