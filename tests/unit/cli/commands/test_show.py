"""Tables, tabs and JSON."""

from __future__ import annotations

import io

from sweephand.cli.commands.show import Output
from sweephand.sdk.models import ErrorRun, ListedJob, NextRun

JOBS = [
    ListedJob({"id": "j1", "name": "a" * 60, "state": "ACTIVE", "nextRunAt": None, "tags": ["x", "y"]}),
    ListedJob({"id": "j2", "name": "short", "state": "ACTIVE", "nextRunAt": "2027-03-01T12:00:00Z", "tags": []}),
]


def written(width: int | None) -> tuple[Output, io.StringIO]:
    stream = io.StringIO()
    return Output(stream, width), stream


def test_a_terminal_gets_a_header_and_rows_cut_to_its_width():
    output, stream = written(80)

    output.table(iter(JOBS))

    head, first, second = stream.getvalue().splitlines()
    assert head.split() == ["ID", "NAME", "STATE", "NEXT", "RUN", "AT", "COLLECTION", "TAGS"]
    assert max(map(len, (head, first, second))) <= 80
    assert "…" in first
    assert second.startswith("j2  short")


def test_a_pipe_gets_whole_values_separated_by_tabs_without_a_header():
    output, stream = written(None)

    output.table(iter(JOBS))

    assert stream.getvalue() == (
        f"j1\t{'a' * 60}\tACTIVE\t-\t-\tx, y\n" + "j2\tshort\tACTIVE\t2027-03-01T12:00:00Z\t-\t\n"
    )


def test_a_value_cannot_move_the_cursor_or_add_a_column():
    output, stream = written(None)

    output.table([ListedJob({"id": "j", "name": "a\tb\n\x1b[2Jc\u202ed"})])

    assert stream.getvalue().startswith("j\ta\\tb\\n\\u001b[2Jc\\u202ed\t")


def test_an_answer_has_a_line_for_each_present_member():
    for width, text in ((80, "nextRunAt   t\nscheduleId  s\n"), (None, "nextRunAt\tt\nscheduleId\ts\n")):
        output, stream = written(width)
        output.one(NextRun({"nextRunAt": "t", "scheduleId": "s", "more": None}))
        assert stream.getvalue() == text


def test_an_empty_list_is_an_empty_array_or_nothing():
    output, stream = written(80)

    output.table([])
    output.json([])

    assert stream.getvalue() == "[]\n"


def test_a_list_without_its_own_columns_shows_its_simple_members():
    output, stream = written(None)

    output.table([NextRun({"a": 1, "b": {"c": 2}}), NextRun({"a": True, "d": "e"})])
    output.table([ErrorRun({"id": "r"})])

    assert stream.getvalue() == "1\t-\nyes\te\nr\t-\t-\t-\t-\t-\n"
