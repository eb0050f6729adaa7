"""The bad luck of single calls in a life: faults of each kind, deaths, throttled partitions, an index that lags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random  # noqa: TID251 - a life is played again by its seed
from typing import Any

from sweephand.testing.memory import Dynamo, Items
from sweephand.testing.sources import VirtualClock
from sweephand.testing.taps import Act, Passing
from tests.faults.kinds import KINDS
from tests.faults.play import Met
from tests.support.taps import refused

PLAIN = (
    *("crash-before", "crash-after", "answer-lost", "throttled", "server-fault", "conflict"),
    *("failed-entries", "failed-events", "failed-rows", "keys-left"),
)
DEATHS = ("crash-before", "crash-after")


@dataclass
class Faults:
    """Answers the calls of all functions.

    kinds: what this life has. rate: how many of its calls meet one of them. calm: none from now on. between: what
    others do just before a call. deaths: after how many calls the next functions die. out: service -> until when it
    answers nobody.
    """

    chance: Random
    clock: VirtualClock
    dynamo: Dynamo
    kinds: tuple[str, ...] = ()
    rate: float = 0.0
    calm: bool = False
    between: Callable[[], None] = lambda: None
    deaths: list[int] = field(default_factory=list)
    out: dict[str, datetime] = field(default_factory=dict)
    met: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    _throttled: dict[str, datetime] = field(default_factory=dict)
    _lag: tuple[datetime, Items] | None = None

    def __call__(self, passing: Passing, act: Act) -> Any:
        self.calls += 1
        if self.calm:
            return act()
        self.between()
        if passing.service in self.out and self.clock.now() < self.out[passing.service]:
            return self._meet("server-fault", passing, act)
        if passing.service == "dynamodb" and self._is_throttled(passing):
            return self._meet("throttled", passing, act)
        if self.deaths and passing.service != "kms":
            self.deaths[0] -= 1
            if self.deaths[0] <= 0:
                self.deaths.pop(0)
                return self._meet(self.chance.choice(DEATHS), passing, act)
        if self.kinds and self.chance.random() < self.rate:
            return self._meet(self.chance.choice(self.kinds), passing, act)
        return self._lagging(passing, act)

    def die_twice(self) -> None:
        """Lets a function die at one of its next calls, and another one, or the same again, soon after."""
        self.deaths = [self.chance.randint(1, 40), self.chance.randint(1, 40)]

    def end(self) -> None:
        self.calm, self.dynamo.index = True, None

    def _meet(self, kind: str, passing: Passing, act: Act) -> Any:
        if not KINDS[kind].fits(Met(passing, "", None, in_flight=False, asked=False)):
            return act()
        self.met[kind] += 1
        if passing.service == "dynamodb" and kind == "throttled" and (partition := _partition(passing)):
            seconds = self.chance.choice([0, 1, 5, 30, 90])
            self._throttled.setdefault(partition, self.clock.now() + timedelta(seconds=seconds))
            return refused(passing, act)
        return KINDS[kind].act(None, Met(passing, "", None, in_flight=False, asked=False), act)  # type: ignore[arg-type]

    def _is_throttled(self, passing: Passing) -> bool:
        if not self._throttled:
            return False
        now = self.clock.now()
        self._throttled = {partition: until for partition, until in self._throttled.items() if until > now}
        return _partition(passing) in self._throttled

    def _lagging(self, passing: Passing, act: Act) -> Any:
        """Answers queries of an index for some seconds as it was when the lag began."""
        if "IndexName" not in passing.request:
            return act()
        if self._lag is None and "index-behind" in self.met and self.chance.random() < self.rate:
            self._lag = self.clock.now() + timedelta(seconds=self.chance.choice([1, 3, 20])), dict(self.dynamo.items)
        if self._lag is not None and self._lag[0] <= self.clock.now():
            self._lag = None
        lag = self._lag
        self.dynamo.index = None if lag is None else lambda _request: lag[1]
        try:
            return act()
        finally:
            self.dynamo.index = None


def _partition(passing: Passing) -> str | None:
    """Returns the partition that a call of one item or one query is about."""
    request = passing.request
    key = request.get("Key") or request.get("Item")
    if key is not None:
        return str(key["pk"]["S"])
    return None if "KeyConditionExpression" not in request else str(request.get("ExpressionAttributeValues"))
