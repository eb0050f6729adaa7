"""The message that the row of a clean-up gives to the runs that the delete ends."""

from __future__ import annotations

import json

from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.dynamo.table import CleanUpItem


def message(item: CleanUpItem) -> str | None:
    """Returns the message of runs that the delete ends; None if the caller gave no reason."""
    return None if item.why is None else f"the {'job' if item.whole else 'schedule'} was deleted by {item.why}"


def message_of(table: Table, tenant: str, job_id: str, owner: str) -> str | None:
    """Returns the message of a run of a deleted job or schedule. owner: of the run's partition in the ledger."""
    sort = CleanUpItem.sk.startswith(keys.clean_up(""))
    rows = table.query_all(keys.job(tenant, job_id), sort, consistent=True)
    items = [item for row in rows if owner in json.loads((item := CleanUpItem.from_raw_data(row)).owners)]
    return next(filter(None, map(message, items)), None)
