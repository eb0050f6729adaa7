"""Journals of the emulator's tables and queues: whatever was acknowledged survives any end of the process.

MiniStack keeps tables in memory and saves them completely, which takes seconds for large ones. The journal appends each
request that writes items to a file before its answer is sent, and repeats it at the next start, on top of the last
whole copy. Queues are saved every few seconds; each message sent since then is in a journal too. The files reach the
operating system, not the disk: they survive `kill -9`, but not a loss of power.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

MARK = "sweephand_journal"
"""The member of a copy of the tables with the number of the first file whose requests it does not contain."""
WRITES = frozenset(
    {
        "PutItem",
        "UpdateItem",
        "DeleteItem",
        "BatchWriteItem",
        "TransactWriteItems",
        "ExecuteStatement",
        "BatchExecuteStatement",
        "ExecuteTransaction",
    }
)
READING = ("Get", "BatchGet", "Query", "Scan", "Describe", "List")
MOST_BYTES = 16_000_000
"""A longer journal is replaced with a copy of the tables. A start repeats about 2,000 requests a second."""

Scope = Callable[[str, str], AbstractContextManager[None]]


class Log:
    """Numbered files of lines. Any thread may append."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self.number = max(self._numbers(), default=0) + 1
        self._file: int | None = None
        self.bytes = 0

    def append(self, line: str) -> None:
        with self._lock:
            if self._file is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._file = os.open(self._path(self.number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.write(self._file, f"{line}\n".encode())
            self.bytes += len(line) + 1

    def next_file(self) -> int:
        """Begins another file. Returns its number."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None
            self.number, self.bytes = self.number + 1, 0
            return self.number

    def lines(self, first: int) -> Iterator[str]:
        """Yields the lines of all files from `first` on. An incomplete last line was not acknowledged."""
        for number in sorted(self._numbers()):
            if number >= first:
                for line in self._path(number).read_bytes().split(b"\n")[:-1]:
                    yield line.decode()

    def forget(self, mark: int) -> None:
        """Removes the files before this number."""
        for number in self._numbers():
            if number < mark:
                self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.jsonl"

    def _numbers(self) -> list[int]:
        return [int(path.stem) for path in self._folder.glob("*.jsonl")]


class Journal:
    """The journal of one table service. Only the thread of requests calls its methods, except for `save_if_due`."""

    def __init__(self, folder: Path, tables: Any, scope: Scope, where: Callable[[], tuple[str, str]]) -> None:
        """Creates a journal. folder: of the files. tables: MiniStack's DynamoDB module.

        scope: sets account and region of a request. where: returns those of the current request.
        """
        self._log = Log(folder)
        self._tables = tables
        self._scope = scope
        self._where = where
        self._carry_out = tables.handle_request
        self._stale = True
        self._saved_names: frozenset[Any] = frozenset()
        self._loop: asyncio.AbstractEventLoop | None = None

    def install(self, save_all: Callable[[], object], is_written: Callable[[int], bool]) -> None:
        """Installs the journal between the emulator and its tables.

        save_all: saves all services, including tables. is_written: returns True if the file holds the copy of a mark.
        """
        self._save_all, self._is_written = save_all, is_written
        copy, load = self._tables.get_state, self._tables.load_persisted_state

        async def handle_request(method: str, path: str, headers: Mapping[str, str], body: bytes, query: Any) -> Any:
            self._loop = asyncio.get_running_loop()
            action = headers.get("x-amz-target", "").rpartition(".")[2]
            status = 500  # a failed request may have written
            try:
                answer = await self._carry_out(method, path, headers, body, query)
                status = answer[0]
            finally:
                if action in WRITES and (status < 400 or status >= 500):
                    if self._names() != self._saved_names:
                        self._save()  # no copy has that table, so its requests could not be repeated
                    else:
                        self._append(headers["x-amz-target"], body)
                elif not action.startswith(READING) and action not in WRITES:
                    self._stale = True
            return answer

        def get_state() -> dict[str, Any]:
            mark = self._log.next_file()
            names = self._names()
            state = {MARK: mark, **copy()}
            self._stale, self._saved_names = False, names
            return state

        def load_persisted_state(data: dict[str, Any]) -> None:
            load(data)
            self._saved_names = self._names()
            self._replay(int(data.get(MARK, 0)))

        self._tables.handle_request = handle_request
        self._tables.get_state = get_state
        self._tables.load_persisted_state = load_persisted_state

    def save_if_due(self) -> None:
        """Replaces a long journal with a copy of the tables. Any thread may call it; the thread of requests copies."""
        if self._loop is not None and (self._stale or self._log.bytes > MOST_BYTES):
            asyncio.run_coroutine_threadsafe(self._saved(), self._loop).result()

    async def _saved(self) -> None:
        self._save()

    def _save(self) -> None:
        self._save_all()
        if self._is_written(self._log.number):
            self._log.forget(self._log.number)
        else:
            self._stale = True

    def _append(self, target: str, body: bytes) -> None:
        account, region = self._where()
        self._log.append(json.dumps({"target": target, "account": account, "region": region, "body": body.decode()}))

    def _replay(self, first: int) -> None:
        """Repeats the requests of all files from `first` on, in order."""
        for line in self._log.lines(first):
            request = json.loads(line)
            with self._scope(request["account"], request["region"]):
                headers = {"x-amz-target": request["target"]}
                _at_once(self._carry_out("POST", "/", headers, request["body"].encode(), {}))
        self._log.forget(first)

    def _names(self) -> frozenset[Any]:
        return frozenset(key for key, _ in self._tables._tables.all_items())  # noqa: SLF001 - there is no public name


class Sends:
    """The journal of one queue service: the messages that were sent after its last copy.

    They are added to the copy at the next start, even those that were received and deleted since: a message may come
    twice, but none is lost.
    """

    def __init__(self, folder: Path, queues: Any, scope: Scope, where: Callable[[], tuple[str, str]]) -> None:
        """Creates a journal. queues: MiniStack's SQS module. The others: see Journal."""
        self._log, self._queues, self._scope, self._where = Log(folder), queues, scope, where

    def install(self) -> None:
        """Installs the journal between the emulator and its queues."""
        send, copy, load = self._queues._act_send_message, self._queues.get_state, self._queues.load_persisted_state  # noqa: SLF001

        def send_message(data: dict[str, Any], url: str) -> Any:
            answer = send(data, url)
            named = data.get("QueueUrl", url)
            for message in self._queues._get_q(named)["messages"][-1:]:  # noqa: SLF001
                self._append(named, message)
            return answer

        def get_state() -> dict[str, Any]:
            mark = self._log.next_file()
            self._log.forget(mark - 1)  # the copy before this one is surely written
            return {MARK: mark, **copy()}

        def load_persisted_state(data: dict[str, Any]) -> None:
            load(data)
            self._replay(int(data.get(MARK, 0)))

        self._queues._act_send_message = self._queues._HANDLERS["SendMessage"] = send_message  # noqa: SLF001
        self._queues.get_state = get_state
        self._queues.load_persisted_state = load_persisted_state

    def _append(self, url: str, message: dict[str, Any]) -> None:
        account, region = self._where()
        self._log.append(json.dumps({"url": url, "account": account, "region": region, "message": message}))

    def _replay(self, first: int) -> None:
        for line in self._log.lines(first):
            sent = json.loads(line)
            with self._scope(sent["account"], sent["region"]), suppress(self._queues._Err):  # noqa: SLF001 - no queue
                messages = self._queues._get_q(sent["url"])["messages"]  # noqa: SLF001
                if all(message["id"] != sent["message"]["id"] for message in messages):
                    messages.append(sent["message"])
        self._log.forget(first)


def _at_once(request: Coroutine[Any, Any, Any]) -> None:
    """Repeats a request, which never waits. A request that fails also failed the first time."""
    try:
        request.send(None)
    except StopIteration:
        return
    except Exception:  # noqa: BLE001 - the emulator also raised it the first time
        return
    raise RuntimeError("MiniStack's tables wait during a request: the journal cannot repeat it")
