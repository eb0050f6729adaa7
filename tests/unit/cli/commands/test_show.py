"""Tables, tabs and JSON."""

from __future__ import annotations

import io
import json
import time

import pytest

from sweephand.cli.commands.show import COLUMNS, FOR_PEOPLE, Output, cell
from sweephand.sdk import models
from sweephand.sdk.models import Job, ListedJob, NextRun, Run

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
    assert head.split() == ["NAME", "STATE", "NEXT", "RUN", "AT", "COLLECTION", "TAGS", "ID"]
    assert max(map(len, (head, first, second))) <= 80
    assert "…" in first
    assert second.startswith("short ")
    assert second.endswith(" j2")


RUN = Run(
    {
        "id": "01a400f6-36fa-783f-9489-c5066067d4d7_01a400f6-36fa-8a3f-9489-c506f00dcafe",
        "jobName": "invoices of " + "a" * 60,
        "state": "ERROR",
        "reason": "HTTP_STATUS",
        "plannedAt": "2027-03-01T12:00:00.250Z",
        "message": "the target answered 500: " + "x" * 200,
    }
)


@pytest.fixture
def berlin(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_terminal_shows_of_a_run_its_local_time_state_reason_and_short_id_whole(berlin, width):
    output, stream = written(width)

    output.table([RUN])
    output.follow(RUN)

    _, listed, followed = stream.getvalue().splitlines()
    for line in (listed, followed):
        assert line.startswith("2027-03-01 13:00:00  ")
        assert {"ERROR", "HTTP_STATUS", "f00dcafe"} <= set(line.split())
        assert len(line) <= width


def test_a_terminal_says_in_a_line_what_a_change_made(berlin):
    output, stream = written(80)

    output.changed(Job({"id": "j1", "name": "nightly", "state": "ACTIVE", "nextRunAt": "2027-03-01T12:00:00Z"}))
    output.changed(Job({"id": "j1", "name": "nightly", "state": "PAUSED", "nextRunAt": None}))

    assert stream.getvalue() == (
        "nightly  ACTIVE  next run 2027-03-01 13:00:00  j1\nnightly  PAUSED  no next run  j1\n"
    )


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

    assert stream.getvalue() == "1\t-\nyes\te\n"


def test_every_column_of_a_list_is_a_member_of_its_items():
    """Seen failing for ErrorRun: `errors runs` printed a hyphen in each column."""
    for name, columns in (*COLUMNS.items(), *FOR_PEOPLE.items()):
        there = {member for member, _ in getattr(models, name).members.values()}
        assert set(columns) <= there, name


def test_progress_without_a_known_total_is_a_number():
    """Seen failing: an export said "0 of None"."""
    assert [cell({"done": 0, "total": None}), cell({"done": 1, "total": 2})] == ["0", "1 of 2"]


JOB = {
    "id": "j1",
    "description": None,
    "tags": ["x", "y"],
    "action": {"type": "http", "outcome": {"on202": "success", "successStatuses": ["2xx"]}, "payload": {"n": 1}},
    "pause": {},
    "schedules": [{"name": "often", "every": "5m", "calendars": []}, {"name": "seldom", "body": "a\x1b[2J"}],
    "progress": {"done": 1, "total": 2},
    "changes": [{"old": None}, {"new": [1, "a"]}],
}


def test_a_terminal_gets_the_members_of_objects_indented():
    """Seen failing: an action or a schedule was one long line of JSON."""
    output, stream = written(80)

    output.one(Job(JOB))

    assert stream.getvalue() == (
        "id        j1\n"
        "tags      x, y\n"
        "action\n"
        "    type     http\n"
        "    outcome\n"
        "        on202            success\n"
        "        successStatuses  2xx\n"
        '    payload  {"n": 1}\n'
        "schedules\n"
        "  - name   often\n"
        "    every  5m\n"
        "  - name  seldom\n"
        '    body  "a\\u001b[2J"\n'
        "progress  1 of 2\n"
        "changes\n"
        '  - new  [1, "a"]\n'
    )


def test_a_pipe_gets_objects_as_json():
    output, stream = written(None)

    output.one(Job(JOB))

    lines = dict(line.split("\t") for line in stream.getvalue().splitlines())
    assert json.loads(lines["action"]) == JOB["action"]
    assert set(lines) == {"id", "tags", "action", "schedules", "progress", "changes"}
