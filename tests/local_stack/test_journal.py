"""The journals of the emulator's tables and queues, with services of a few lines in MiniStack's place."""

from __future__ import annotations

import asyncio
import contextlib
import json
from types import SimpleNamespace

import pytest

from sweephand.local.aws import journal as journals
from sweephand.local.aws.journal import MARK, Journal, Sends


class Tables:
    """Rows by name. Tables that are lost with the process: another one begins with nothing."""

    def __init__(self):
        self.rows = {}
        self._tables = SimpleNamespace(all_items=lambda: [("table", None)])

    async def handle_request(self, _method, _path, headers, body, _query):
        action, row = headers["x-amz-target"].rpartition(".")[2], json.loads(body)
        if row.get("fails"):
            raise RuntimeError("after the row was written" if row["fails"] == "late" else "before")
        if action == "PutItem" and row.get("absent") and row["name"] in self.rows:
            return 400, {}, b"{}"
        if action == "PutItem":
            self.rows[row["name"]] = row["value"]
        if action == "DeleteItem":
            self.rows.pop(row["name"], None)
        return 200, {}, b"{}"

    def get_state(self):
        return {"rows": dict(self.rows)}

    def load_persisted_state(self, data):
        self.rows.update(data["rows"])


class Process:
    """One life of the emulator. files: what survives it."""

    def __init__(self, folder, *, writes=True):
        self.tables = Tables()
        self.saved = folder / "dynamodb.json"
        self.writes = writes
        self.copies = 0
        scope = lambda _account, _region: contextlib.nullcontext()  # noqa: E731
        self.journal = Journal(folder / "journal", self.tables, scope, lambda: ("1", "us-east-1"))
        self.journal.install(self.save, lambda mark: json.loads(self.saved.read_text())[MARK] == mark)
        if self.saved.exists():
            self.tables.load_persisted_state(json.loads(self.saved.read_text()))

    def save(self):
        state = self.tables.get_state()
        self.copies += 1
        if self.writes or not self.saved.exists():
            self.saved.write_text(json.dumps(state))

    def ask(self, action, **row):
        headers = {"x-amz-target": f"DynamoDB_20120810.{action}"}
        with contextlib.suppress(RuntimeError):
            return asyncio.run(self.tables.handle_request("POST", "/", headers, json.dumps(row).encode(), {}))[0]

    def put(self, name, value, **more):
        return self.ask("PutItem", name=name, value=value, **more)


def files(folder):
    return sorted(path.name for path in (folder / "journal").glob("*"))


def test_acknowledged_writes_survive_a_restart(tmp_path):
    first = Process(tmp_path)
    first.put("a", 1)
    first.put("b", 1)
    first.put("a", 2)
    first.ask("DeleteItem", name="b")

    second = Process(tmp_path)

    assert second.tables.rows == first.tables.rows == {"a": 2}
    second.put("c", 3)
    assert Process(tmp_path).tables.rows == {"a": 2, "c": 3}


def test_a_refused_request_is_refused_again_and_not_recorded(tmp_path):
    first = Process(tmp_path)
    first.put("a", 1)
    first.put("b", 1)

    assert first.put("a", 2, absent=True) == 400
    assert Process(tmp_path).tables.rows == {"a": 1, "b": 1}


def test_a_broken_off_request_does_not_block_the_next_start(tmp_path):
    first = Process(tmp_path)
    first.put("a", 1)
    first.put("b", 1, fails="late")
    first.put("c", 1)

    assert Process(tmp_path).tables.rows == {"a": 1, "c": 1}


def test_an_incomplete_line_was_not_acknowledged(tmp_path):
    first = Process(tmp_path)
    for name in "abc":
        first.put(name, 1)
    (file,) = (tmp_path / "journal").glob("*")
    file.write_bytes(file.read_bytes()[:-9])

    assert Process(tmp_path).tables.rows == {"a": 1, "b": 1}


def test_reading_writes_nothing(tmp_path):
    first = Process(tmp_path)
    first.put("a", 1)
    before = files(tmp_path)

    for action in ("GetItem", "BatchGetItem", "Query", "DescribeTable", "ListTables"):
        first.ask(action, name="a")

    assert (files(tmp_path), first.copies) == (before, 1)


def test_a_long_journal_is_replaced_by_a_copy(tmp_path, monkeypatch):
    monkeypatch.setattr(journals, "MOST_BYTES", 400)
    first = Process(tmp_path)
    for n in range(20):
        first.put(f"row {n}", n)
    copies = first.copies

    asyncio.run(saved_if_due(first))

    assert first.copies == copies + 1
    assert files(tmp_path) == []
    first.put("after", 1)
    assert Process(tmp_path).tables.rows == first.tables.rows


async def saved_if_due(process):
    process.journal._loop = asyncio.get_running_loop()
    await asyncio.to_thread(process.journal.save_if_due)


def test_a_copy_that_was_not_written_removes_no_journal(tmp_path, monkeypatch):
    monkeypatch.setattr(journals, "MOST_BYTES", 10)
    first = Process(tmp_path)
    first.put("a", 1)
    first.put("b", 2)
    first.writes = False

    asyncio.run(saved_if_due(first))
    first.put("c", 3)

    assert Process(tmp_path).tables.rows == {"a": 1, "b": 2, "c": 3}


def test_a_new_table_is_copied_completely_before_the_first_answer(tmp_path):
    first = Process(tmp_path)
    assert first.copies == 0

    first.put("a", 1)

    assert first.copies == 1
    assert Process(tmp_path).tables.rows == {"a": 1}


@pytest.mark.parametrize("action", ["CreateTable", "UpdateTimeToLive", "DeleteTable"])
def test_a_change_of_the_tables_themselves_triggers_a_copy(tmp_path, action):
    first = Process(tmp_path)
    first.put("a", 1)
    first.ask(action, name="x")
    copies = first.copies

    asyncio.run(saved_if_due(first))
    asyncio.run(saved_if_due(first))

    assert first.copies == copies + 1


class Queues:
    """Queues by URL, with the names that MiniStack's module has."""

    _Err = KeyError

    def __init__(self):
        self._HANDLERS = {}
        self.queues = {"q": {"messages": []}}
        self._get_q = self.queues.__getitem__

    def _act_send_message(self, data, url):
        self._get_q(url)["messages"].append({"id": data["id"]})

    def get_state(self):
        return json.loads(json.dumps({"queues": self.queues}))

    def load_persisted_state(self, data):
        self.queues.update(data["queues"])


def queues_of(folder):
    """Makes another life of the queues, which begins without a copy."""
    queues = Queues()
    scope = lambda _account, _region: contextlib.nullcontext()  # noqa: E731
    Sends(folder / "sends", queues, scope, lambda: ("1", "us-east-1")).install()
    return queues


def sent_ids(queues):
    return [message["id"] for message in queues.queues["q"]["messages"]]


def test_messages_after_the_last_copy_survive_and_come_once(tmp_path):
    first = queues_of(tmp_path)
    first._HANDLERS["SendMessage"]({"id": "before"}, "q")
    copy = first.get_state()
    for name in ("after", "later"):
        first._act_send_message({"id": name}, "q")

    second = queues_of(tmp_path)
    second.load_persisted_state(copy)

    assert sent_ids(second) == ["before", "after", "later"]


def test_a_message_whose_queue_is_in_no_copy_stops_no_start(tmp_path):
    first = queues_of(tmp_path)
    copy = first.get_state()
    first.queues["new"] = {"messages": []}
    first._act_send_message({"id": "lost"}, "new")
    first._act_send_message({"id": "kept"}, "q")

    second = queues_of(tmp_path)
    second.load_persisted_state(copy)

    assert sent_ids(second) == ["kept"]


def test_a_copy_that_was_not_written_loses_no_message(tmp_path):
    first = queues_of(tmp_path)
    written = first.get_state()
    first._act_send_message({"id": "a"}, "q")
    first.get_state()
    first._act_send_message({"id": "b"}, "q")

    second = queues_of(tmp_path)
    second.load_persisted_state(written)

    assert sent_ids(second) == ["a", "b"]
