"""Every row of the ledger at each of its writes, so that rows which have expired are still judged in the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sweephand.domain.instants import epoch_s
from sweephand.domain.run import TERMINAL, Run
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.table import RunItem
from sweephand.store.runs import run_rows
from tests.faults.memory import Dynamo, Item, Key

FINAL = frozenset(state.value for state in TERMINAL)
ACTIVE = frozenset({"TRIGGERED", "RETRY_WAIT", "ACK_RECVD", "ACK_NOT_RECVD"})


@dataclass
class Watch:
    """Stands between the service and the table's writes.

    exclusive: schedules of which only one run may be active. rows: the last state of each row. wrong: what was seen.
    """

    dynamo: Dynamo
    rows: dict[Key, Item] = field(default_factory=dict)
    exclusive: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    expired: int = 0
    _of_schedule: dict[str, set[Key]] = field(default_factory=lambda: defaultdict(set))
    _active: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        self._real = self.dynamo._write
        self.dynamo._write = self._write  # type: ignore[method-assign]

    def runs(self) -> list[Run]:
        return [run_rows.run_of(RunItem.from_raw_data(dict(row))) for row in self.rows.values()]

    def runs_of(self, schedule: str) -> list[Run]:
        rows = [self.rows[key] for key in self._of_schedule[schedule]]
        return [run_rows.run_of(RunItem.from_raw_data(dict(row))) for row in rows]

    def expire(self, now: datetime) -> None:
        """Removes the items whose time has passed, as DynamoDB does within two days."""
        until = epoch_s(now)
        gone = [key for key, item in self.dynamo.items.items() if int(item.get("expires_at", FAR)["N"]) < until]
        self.expired += len(gone)
        self._real(dict.fromkeys(gone))

    def _write(self, written: Mapping[Key, Item | None]) -> None:
        for key, item in written.items():
            self._judge(key, self.dynamo.items.get(key), item)
        self._real(written)
        for key, item in written.items():
            if _is_run(key, item):
                assert item is not None
                self.rows[key] = item
                self._of_schedule[item.get("schedule", NOBODY)["S"]].add(key)
                self._follow(key, item)
        for schedule, runs in self._active.items():
            if len(runs) > 1:
                self.wrong.append(f"{len(runs)} active runs of {schedule}: {sorted(runs)}")

    def _judge(self, key: Key, old: Item | None, new: Item | None) -> None:
        if old is None or not _is_run(key, old) or old["state"]["S"] not in FINAL:
            return
        if new is None:
            self.wrong.append(f"a final row was deleted: {key}")
            return
        for name in ("state", "reason", "planned_at"):
            if old.get(name) != new.get(name):
                self.wrong.append(f"{name} of a final row changed: {key}, {old.get(name)} to {new.get(name)}")

    def _follow(self, key: Key, item: Item) -> None:
        schedule = item.get("schedule", {}).get("S")
        if schedule not in self.exclusive or item["kind"]["S"] not in {"scheduled", "manual"}:
            return
        runs = self._active[schedule]
        if item["state"]["S"] in ACTIVE:
            runs.add(keys.parts(key[1])[1])
        else:
            runs.discard(keys.parts(key[1])[1])


def _is_run(key: Key, item: Item | None) -> bool:
    return item is not None and key[1].startswith("RUN#") and "state" in item and "kind" in item


NOBODY: Any = {"S": ""}
FAR: Any = {"N": "99999999999"}
