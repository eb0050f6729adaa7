"""The main module of the emulator's process: MiniStack, with a journal of its tables and frequent saves of the rest.

MiniStack saves on SIGTERM only, keeps every log line and metric forever, checks only once a second whether a delayed
message is due (AWS delivers it within about 0.1 s), and parses a query's condition again for every row of the partition
(`shortcuts`). All of this is changed through its private names, which is why its version is pinned.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sweephand.base.sources import Clock, SystemClock
from sweephand.local.aws import shortcuts
from sweephand.local.aws.journal import MARK, Journal, Sends

SAVE_EVERY_S = 5.0
# Saving competes with the emulator for the interpreter, so it takes at most a tenth of the time.
REST_PER_SAVING = 9.0
SAVE_ATTEMPTS = 5
TABLES = "dynamodb"
KEPT_STREAMS = 100  # one stream per invocation
KEPT_POINTS = 2_000
POLL_EVERY_S = 0.2

Snapshots = Mapping[str, Callable[[], dict[str, Any] | None]]


def save(snapshots: Snapshots, write: Callable[[str, dict[str, Any]], None]) -> list[str]:
    """Writes each service's state. Returns the services that changed during every attempt to copy them."""
    missed = []
    for service, snapshot in snapshots.items():
        for _ in range(SAVE_ATTEMPTS):
            try:
                state = snapshot()
            except RuntimeError:  # a dictionary changed while it was copied
                continue
            if state is not None:
                write(service, state)
            break
        else:
            missed.append(service)
    return missed


def trim_logs(groups: Any) -> None:
    """Forgets all but the latest streams of each log group. groups: MiniStack's store, streams in order of creation."""
    for _, group in list(groups.all_items()):
        streams = group["streams"]
        for name in list(streams)[:-KEPT_STREAMS]:
            streams.pop(name, None)


def trim_metrics(metrics: Any) -> None:
    """Forgets all but the latest points of each metric, in place."""
    for _, points in list(metrics.all_items()):
        del points[:-KEPT_POINTS]


class Saving:
    """The saving of the emulator's state: tables by their journal, all other services every few seconds."""

    def __init__(self, services: Callable[[], Snapshots], write: Callable[[str, dict[str, Any]], None]) -> None:
        """Creates a Saving. services: the copy functions of the loaded services. write: saves one copy to its file."""
        self._services = services
        self._write = write
        self._guard = threading.Lock()

    def all_but_tables(self) -> list[str]:
        """Saves all services except tables. Returns those that changed during every attempt to copy them."""
        with self._guard:
            return save({name: copy for name, copy in self._services().items() if name != TABLES}, self._write)

    def everything(self) -> list[str]:
        """Saves everything, tables last, after the services that refer to them. Only for the thread of requests."""
        missed = self.all_but_tables()
        tables = self._services().get(TABLES)
        with self._guard:
            return missed if tables is None else missed + save({TABLES: tables}, self._write)

    def at_the_end(self, original: Callable[[Snapshots], None]) -> Callable[[Snapshots], None]:
        """Wraps the emulator's own save at exit in the lock, because two saves would write the same draft file."""

        def alone(snapshots: Snapshots) -> None:
            with self._guard:
                original(snapshots)

        return alone


def _autosave(clock: Clock, saving: Saving, save_tables: Callable[[], None]) -> None:
    pause = SAVE_EVERY_S
    while True:
        clock.sleep(pause)
        began = clock.monotonic()
        _trim()
        missed = saving.all_but_tables()
        if missed:
            sys.stderr.write(f"autosave: no quiet moment for {', '.join(missed)}\n")
        pause = max(SAVE_EVERY_S, REST_PER_SAVING * (clock.monotonic() - began))
        save_tables()


def _trim() -> None:
    logs = sys.modules.get("ministack.services.cloudwatch_logs")
    if logs is not None:
        trim_logs(logs._log_groups)  # noqa: SLF001
    metrics = sys.modules.get("ministack.services.cloudwatch")
    if metrics is not None:
        trim_metrics(metrics._metrics)  # noqa: SLF001


def _also_on(config: Any) -> None:
    """Lets the server listen at a second address too. config: hypercorn's class of that name."""
    address = f"{os.environ['SWEEPHAND_EMULATOR_ALSO_ON']}:{os.environ['SWEEPHAND_EMULATOR_PORT']}"
    create_sockets = config.create_sockets

    def create_more_sockets(self: Any) -> Any:
        usual = self.bind
        self.bind = [*usual, address]
        try:
            return create_sockets(self)
        finally:
            self.bind = usual  # MiniStack drops a second address that fails, and starts without it

    config.create_sockets = create_more_sockets


def _hold_queues(functions: Any) -> None:
    """Prevents the event sources from polling while the file exists that the launcher creates at each start."""
    hold = Path(os.environ["SWEEPHAND_HOLD"])
    poll = functions._poll_sqs  # noqa: SLF001
    functions._poll_sqs = lambda: not hold.exists() and poll()  # noqa: SLF001


def _poll_often(clock: Clock, functions: Any) -> None:
    """Wakes the poller of the event sources, which otherwise sleeps for a second if nothing new is sent."""
    while True:
        clock.sleep(POLL_EVERY_S)
        functions._esm_wake.set()  # noqa: SLF001


def _journal(tables: Any, queues: Any, state: str, saving: Saving) -> Journal:
    """Puts journals between the emulator and its tables and queues. tables, queues: MiniStack's modules."""
    from ministack.core.responses import get_account_id, get_region, request_scope  # noqa: PLC0415

    folder = Path(state)
    journal = Journal(folder / "journal", tables, request_scope, lambda: (get_account_id(), get_region()))
    Sends(folder / "sends", queues, request_scope, lambda: (get_account_id(), get_region())).install()
    journal.install(saving.everything, lambda mark: _starts_with(folder / f"{TABLES}.json", f'"{MARK}": {mark},'))
    return journal


def _starts_with(file: Path, text: str) -> bool:
    """Returns True if the start of a file contains the string. MiniStack does not report failed writes."""
    with file.open("rb") as opened:
        return text.encode() in opened.read(200)


def _stop_with_owner() -> None:
    """Waits until the owner's end of the pipe closes, for whatever reason, and then stops in order."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    from ministack import app  # noqa: PLC0415
    from ministack.core import persistence  # noqa: PLC0415
    from ministack.services import dynamodb, lambda_svc, sqs  # noqa: PLC0415

    saving = Saving(app._build_persistence_save_dict, persistence.save_state)  # noqa: SLF001 - there is no public name
    app.save_all = saving.at_the_end(app.save_all)
    app._resolve_port = lambda: os.environ["SWEEPHAND_EMULATOR_PORT"]  # noqa: SLF001
    journal = _journal(dynamodb, sqs, persistence.STATE_DIR, saving)
    threading.Thread(
        target=_autosave, args=(SystemClock(), saving, journal.save_if_due), name="autosave", daemon=True
    ).start()
    if "SWEEPHAND_EMULATOR_ALSO_ON" in os.environ:
        from hypercorn.config import Config  # noqa: PLC0415

        _also_on(Config)
    _hold_queues(lambda_svc)
    shortcuts.take(dynamodb)
    threading.Thread(target=_poll_often, args=(SystemClock(), lambda_svc), name="poll", daemon=True).start()
    threading.Thread(target=_stop_with_owner, name="owner", daemon=True).start()
    sys.argv[1:] = []  # MiniStack reads options of its own
    app.main()
