"""The global parameters of the instance. The only one is how long an asynchronous run may take."""

from __future__ import annotations

import re
from dataclasses import replace

from sweephand.base.errors import InvalidRequest, NotFound
from sweephand.domain.collection import LONGEST_CALLBACK_S, Collection
from sweephand.formats.sap.fields import COLLECTION
from sweephand.server.facades.http import Answer
from sweephand.server.facades.sap.context import Context
from sweephand.server.facades.sap.jobs import OK, make_collection
from sweephand.server.flow.tenants import tenancy

NAME = "ASYNC_EXEC_TIMEOUT"
_NUMBER = re.compile(r"-?[0-9]{1,400}", re.ASCII)


def read(ctx: Context) -> Answer:
    tenant = ctx.existing_tenant(stays=False)
    try:
        collection = tenancy.find_collection(ctx.world, tenant, COLLECTION)
    except NotFound:
        collection = Collection(tenant, COLLECTION)
    seconds = collection.callback_timeout_s or ctx.world.settings.callback_timeout_s
    return Answer(200, {"config": [{"CONFIG_NAME": NAME, "CONFIG_VALUE": str(seconds)}]})


def put(ctx: Context) -> Answer:
    """Sets the limit for all jobs of the caller or of the named tenant, from the next run that waits on."""
    body = ctx.body()
    if not isinstance(body, dict) or set(body) != {NAME}:
        raise InvalidRequest(None, "Unallowed Configuration")
    seconds = _seconds(body[NAME])
    tenant = ctx.existing_tenant()
    make_collection(ctx, tenant)
    tenancy.change_collection(
        ctx.world,
        tenant,
        COLLECTION,
        lambda collection: replace(collection, callback_timeout_s=seconds),
        None,
    )
    return Answer(200, OK)


def _seconds(value: object) -> int:
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not _NUMBER.fullmatch(text):
        raise _incorrect("ASYNC_EXEC_TIMEOUT must be a number")
    seconds = int(text)
    if seconds < 1:
        raise _incorrect(f"value for ASYNC_EXEC_TIMEOUT must be positive (provided {seconds})")
    if seconds > LONGEST_CALLBACK_S:
        raise _incorrect(f"maximum value for ASYNC_EXEC_TIMEOUT is {LONGEST_CALLBACK_S}")
    return seconds


def _incorrect(why: str) -> InvalidRequest:
    return InvalidRequest(None, f"Incorrect ASYNC_EXEC_TIMEOUT value - {why}")
