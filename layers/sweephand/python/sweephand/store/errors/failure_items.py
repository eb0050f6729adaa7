"""The models of failures, and of where failed runs are run again. As table.py, of which they are a part."""

from __future__ import annotations

from sweephand.store.dynamo.flat_models import BooleanAttribute, Integer, UnicodeAttribute
from sweephand.store.dynamo.table import Item


class ErrorGroupItem(Item):
    """Failures that are the same. action, error_state, reason, http_status, text: what makes them so. notes: JSON.
    error_action: in rows older than `action`.

    closed_through: what failed up to then is archived. It always waits: to tell of runs that expire.
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
    """A failed run in its group. at: absent where it was run again before it was noted. closed_at: archived alone.

    rerun_at: when it was run again (epoch ms).
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
    """Failed runs of one job are run again as runs of another."""

    to = UnicodeAttribute()
    actor = UnicodeAttribute(null=True)
    at = Integer()
