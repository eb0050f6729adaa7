"""What runs inside the emulator's process: MiniStack, with its state saved every few seconds.

By itself MiniStack saves on SIGTERM only, keeps every log line and metric for ever, looks once a second whether a
delayed message is due (AWS hands it over within some 0.1 s), and reads a query's condition anew for every row of the
partition (`shortcuts`). All of this is mended by names of its inside, which is why its version is pinned.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sweephand.local import shortcuts
from sweephand.sources import Clock, SystemClock

SAVE_EVERY_S = 5.0
# Saving a large state competes with the emulator for the interpreter: at most a tenth of the time goes into it.
REST_PER_SAVING = 9.0
SAVE_ATTEMPTS = 5
TABLES = "dynamodb"
READING = ("Get", "BatchGet", "Query", "Scan", "Describe", "List")
# What changes without a request: rows that expire, settings by a deployment.
SAVE_ANYWAY_S = 600.0
KEPT_STREAMS = 100  # one stream an invocation
KEPT_POINTS = 2_000
LOOK_EVERY_S = 0.2

Snapshots = Mapping[str, Callable[[], dict[str, Any] | None]]


def save(snapshots: Snapshots, write: Callable[[str, dict[str, Any]], None]) -> list[str]:
    """Writes each service's state. Returns the services that changed under every attempt to copy them."""
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


class TableChanges:
    """Whether the tables are worth saving: their copy and its text hold up all requests, for seconds where they are
    large, and most requests only read.
    """

    def __init__(self) -> None:
        self._changed = True
        self._saved_at = 0.0

    def watch(self, table_service: Any) -> None:
        """table_service: MiniStack's module of DynamoDB."""
        own_way = table_service.handle_request

        async def carry_out(method: str, path: str, headers: Mapping[str, str], *rest: Any) -> Any:
            try:
                return await own_way(method, path, headers, *rest)
            finally:  # behind the change: a copy that was made before it is not the last one
                if not headers.get("x-amz-target", "").rpartition(".")[2].startswith(READING):
                    self._changed = True

        table_service.handle_request = carry_out

    def due(self, now_s: float) -> bool:
        """Asked before each saving. now_s: monotonic."""
        if not self._changed and now_s - self._saved_at < SAVE_ANYWAY_S:
            return False
        self._changed, self._saved_at = False, now_s
        return True

    def not_saved(self) -> None:
        self._changed = True


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


def _autosave(clock: Clock, guard: threading.Lock, tables: TableChanges) -> None:
    from ministack import app  # noqa: PLC0415 - reads its environment at import
    from ministack.core.persistence import save_state  # noqa: PLC0415

    pause = SAVE_EVERY_S
    while True:
        clock.sleep(pause)
        began = clock.monotonic()
        _trim()
        snapshots = app._build_persistence_save_dict()  # noqa: SLF001 - there is no public name
        if not tables.due(began):
            snapshots.pop(TABLES, None)
        with guard:
            missed = save(snapshots, save_state)
        if TABLES in missed:
            tables.not_saved()
        if missed:
            sys.stderr.write(f"autosave: no quiet moment for {', '.join(missed)}\n")
        pause = max(SAVE_EVERY_S, REST_PER_SAVING * (clock.monotonic() - began))


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
    """Keeps the event sources from polling while the file is there that the launcher makes at each start."""
    hold = Path(os.environ["SWEEPHAND_HOLD"])
    poll = functions._poll_sqs  # noqa: SLF001
    functions._poll_sqs = lambda: not hold.exists() and poll()  # noqa: SLF001


def _look_often(clock: Clock, functions: Any) -> None:
    """Wakes the poller of the event sources, which else sleeps for a second while nothing new is sent."""
    while True:
        clock.sleep(LOOK_EVERY_S)
        functions._esm_wake.set()  # noqa: SLF001


def _stop_with_owner() -> None:
    """Waits for the owner's end of the pipe to close, by whatever death, and then stops as if asked to."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    from ministack import app  # noqa: PLC0415
    from ministack.services import dynamodb, lambda_svc  # noqa: PLC0415

    guard = threading.Lock()
    save_all = app.save_all

    def save_all_alone(snapshots: Snapshots) -> None:
        with guard:  # else the last save and an autosave would write the same draft file
            save_all(snapshots)

    app.save_all = save_all_alone
    app._resolve_port = lambda: os.environ["SWEEPHAND_EMULATOR_PORT"]  # noqa: SLF001
    tables = TableChanges()
    tables.watch(dynamodb)
    threading.Thread(target=_autosave, args=(SystemClock(), guard, tables), name="autosave", daemon=True).start()
    if "SWEEPHAND_EMULATOR_ALSO_ON" in os.environ:
        from hypercorn.config import Config  # noqa: PLC0415

        _also_on(Config)
    _hold_queues(lambda_svc)
    shortcuts.take(dynamodb)
    threading.Thread(target=_look_often, args=(SystemClock(), lambda_svc), name="look", daemon=True).start()
    threading.Thread(target=_stop_with_owner, name="owner", daemon=True).start()
    sys.argv[1:] = []  # MiniStack reads options of its own
    app.main()
