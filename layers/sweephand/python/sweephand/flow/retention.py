"""How long the ledger keeps a run: counted from its end."""

from __future__ import annotations

from datetime import datetime, timedelta

RUN_DAYS = 15


def expiry(finished_at: datetime, days: int = RUN_DAYS) -> datetime:
    return finished_at + timedelta(days=max(days, RUN_DAYS))
