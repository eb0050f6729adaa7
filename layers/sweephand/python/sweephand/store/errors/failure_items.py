"""The models of failures and redirects; part of table.py, with the same conventions."""

from __future__ import annotations

from sweephand.store.dynamo.flat_models import BooleanAttribute, Integer, UnicodeAttribute
from sweephand.store.dynamo.table import Item


class ErrorGroupItem(Item):
    """A group of failures with the same signature: action, error_state, reason, http_status, text.

    notes: JSON. error_action: in rows older than `action`. closed_through: failures up to then are archived. The row is
    always in the next-run index, to warn of runs that expire.
    """

    job = UnicodeAttribute()
    action = UnicodeAttribute(null=True)
    error_action = BooleanAttribute(null=True)
    error_state = UnicodeAttribute()
    reason = UnicodeAttribute(null=True)
    http_status = Integer(null=True)
    text = UnicodeAttribute()
    job_name = UnicodeAttribute(null=True)
    collection = UnicodeAttribute()
    first_at = Integer()
    last_at = Integer()
    last_run = UnicodeAttribute()
    notes = UnicodeAttribute(null=True)
    closed_through = Integer(null=True)
    closed_by = UnicodeAttribute(null=True)
    closed_reason = UnicodeAttribute(null=True)
    revision = Integer(default=1)
    shard = Integer()
    next_run_at = Integer()
    sweep = UnicodeAttribute()


class ErrorRunItem(Item):
    """A failed run in its group. at: absent if it was run again before it was noted.

    closed_at: when this run alone was archived. rerun_at: when it was run again (epoch ms).
    """

    run_id = UnicodeAttribute()
    at = Integer(null=True)
    rerun_by = UnicodeAttribute(null=True)
    rerun_at = Integer(null=True)
    actor = UnicodeAttribute(null=True)
    operation = UnicodeAttribute(null=True)
    closed_at = Integer(null=True)
    closed_by = UnicodeAttribute(null=True)
    closed_reason = UnicodeAttribute(null=True)


class RedirectItem(Item):
    """A redirect: failed runs of one job are run again as runs of another."""

    to = UnicodeAttribute()
    actor = UnicodeAttribute(null=True)
    at = Integer()
