"""A consumer of events that is there at times only: it takes its lease, catches up, keeps the lease, and goes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.contract.calls import Reply
from tests.year.courses import Span
from tests.year.tenant import CONSUMER, Tenant

PATH = f"/v1/consumers/{CONSUMER}"
LEASE_S, BEAT = 900, timedelta(seconds=600)
VISITS = 8


@dataclass
class Program:
    """The process that is the consumer. until: when it goes; it then gives its lease back, or dies with it."""

    tenant: Tenant
    holder: str = ""
    until: datetime | None = None

    def visit(self) -> None:
        """Comes several times in a life, for a while."""
        for _ in range(VISITS):
            begin = self.tenant.now + self.tenant.chance.uniform(0, 0.9) * self.tenant.length
            self.tenant.at(begin, self._come)

    def stay(self) -> None:
        """Comes once more and stays, so that nothing is left held."""
        self.until = datetime.max.replace(tzinfo=self.tenant.now.tzinfo)
        self.holder = self.holder or "program"
        self._beat(starts=True)

    def _come(self) -> None:
        if self.tenant.gone or self.until is not None:
            return
        self.holder = f"program-{self.tenant.chance.randrange(3)}"
        stays = self.tenant.chance.random() * min(timedelta(hours=12), self.tenant.length / 6)
        self.until = self.tenant.now + stays
        self._beat(starts=True)

    def _beat(self, *, starts: bool = False) -> None:
        """Takes or extends the lease, until it is time to go. Another process may still have it."""
        if self.until is None:
            return
        if self.tenant.now >= self.until:
            self._go()
            return

        def then(reply: Reply, _span: Span) -> None:
            if reply.status < 400 and (starts or reply.json["state"] == "AWAY"):
                self.tenant.ask("POST", f"{PATH}/start", {"holder": self.holder}, expects=(404, 409))

        body = {"holder": self.holder, "seconds": LEASE_S}
        self.tenant.ask("PUT", f"{PATH}/lease", body, then=then, expects=(409,))
        self.tenant.at(self.tenant.now + BEAT, self._beat)

    def _go(self) -> None:
        self.until = None
        if self.tenant.chance.random() < 0.5:
            self.tenant.ask("DELETE", f"{PATH}/lease", query={"holder": self.holder}, expects=(404, 409))
