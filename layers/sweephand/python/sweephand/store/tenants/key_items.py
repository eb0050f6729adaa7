"""The model of the stack's callback key, which few functions load."""

from __future__ import annotations

from sweephand.store.dynamo.flat_models import Integer, UnicodeAttribute
from sweephand.store.dynamo.table import Item


class CallbackKeyItem(Item):
    """The key of callback tokens. sealed: Base64 of 32 bytes, encrypted as a secret of the stack's own."""

    sealed = UnicodeAttribute()
    created_at = Integer()
