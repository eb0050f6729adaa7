"""Every row of the ledger at each of its writes, so that rows which have expired are still judged in the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sweephand.domain.instants import epoch_s, from_ms
from sweephand.domain.run import TERMINAL, Run
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.table import RunItem
from sweephand.server.store.runs import run_rows
from sweephand.testing.memory import Dynamo, Item, Key
from sweephand.testing.sources import VirtualClock

FINAL = frozenset(state.value for state in TERMINAL)
APART = timedelta(seconds=4)
"""The most by which the clocks of two machines differ."""
ALWAYS = datetime.max.replace(tzinfo=UTC)
ACTIVE = frozenset({"TRIGGERED", "RETRY_WAIT", "ACK_RECVD", "ACK_NOT_RECVD"})


@dataclass
class Watch:
    """Stands between the service and the table's writes.

    exclusive: schedules of which only one run may be active. rows: the last state of each row. wrong: what was seen.
    """

    dynamo: Dynamo
    clock: VirtualClock
    rows: dict[Key, Item] = field(default_factory=dict)
    exclusive: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    expired: int = 0
    _of_schedule: dict[str, set[Key]] = field(default_factory=lambda: defaultdict(set))
    _active: dict[str, dict[str, datetime]] = field(default_factory=lambda: defaultdict(dict))

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
        now = self.clock.now()
        for schedule, runs in self._active.items():
            alive = sorted(run for run, until in runs.items() if now < until) if len(runs) > 1 else ()
            if len(alive) > 1:
                self.wrong.append(f"{len(alive)} active runs of {schedule}: {alive}")

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
        """Notes until when a run is active: with a lease, until its end, after which another run may take its place."""
        schedule = item.get("schedule", {}).get("S")
        if schedule not in self.exclusive or item["kind"]["S"] not in {"scheduled", "manual"}:
            return
        runs = self._active[schedule]
        run = keys.parts(key[1])[1]
        if item["state"]["S"] in ACTIVE:
            lease_ms = int(item["lease_until"]["N"]) if "lease_until" in item else None
            runs[run] = ALWAYS if lease_ms is None else from_ms(lease_ms) - APART
        else:
            runs.pop(run, None)


def _is_run(key: Key, item: Item | None) -> bool:
    return item is not None and key[1].startswith("RUN#") and "state" in item and "kind" in item


NOBODY: Any = {"S": ""}
FAR: Any = {"N": "99999999999"}
