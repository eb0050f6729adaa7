"""Lists the jobs of a tenant or, for callers of provider level, of all tenants, one after the other.

Pages are found by the directory's lean rows and the counts of its blocks; the jobs of a page are read by their keys.
The table is not scanned. A filter or an order reads the lean rows of all jobs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from sweephand.base.errors import InvalidRequest
from sweephand.base.members.fields import shown
from sweephand.domain.job import Job
from sweephand.domain.schedule import Schedule
from sweephand.formats.sap import bodies
from sweephand.formats.sap.fields import ENDPOINT, FACADE, TASK
from sweephand.server.facades.sap.context import Context
from sweephand.server.facades.sap.pages import Page
from sweephand.server.security.caller import PROVIDER
from sweephand.server.store.views import jobs as views
from sweephand.server.store.views import tenants

OWN = views.Filters(facade=FACADE)
MOST_TENANTS = 10_000


class Listed(NamedTuple):
    """A lean row and its tenant."""

    tenant: str
    entry: views.Entry


PROPERTIES: dict[str, Callable[[Listed], str]] = {
    "name": lambda each: each.entry.name,
    "subDomain": lambda each: each.tenant,
    "tenantId": lambda each: each.tenant,
}
LONGEST_FILTER = 1_000
_CONDITION = re.compile(
    r"\s*(?:contains\(\s*(?P<part>[A-Za-z]+)\s*,\s*'(?P<text>(?:[^']|'')*+)'\s*\)"
    r"|(?P<whole>[A-Za-z]+)\s+eq\s+'(?P<value>(?:[^']|'')*+)')\s*",
    re.ASCII,
)
_JOINT = re.compile(r"(and|or)(?=\s)", re.ASCII)
BY_INTEGER = frozenset({"_id", "jobId"})
ORDERS: dict[str, Callable[[Listed], Any]] = {
    "createdAt": lambda each: each.entry.job_id,  # ids of jobs increase with time
    "name": lambda each: each.entry.name,
    "active": lambda each: each.entry.active,
}


def listed(ctx: Context, page: Page) -> tuple[int, list[dict[str, Any]]]:
    """Returns how many jobs there are, and those of the page."""
    kind = ctx.option("jobType")
    if kind not in {None, ENDPOINT, TASK}:
        raise InvalidRequest(None, "Invalid jobType")
    wanted = ctx.option("filter")
    hold = _filter(wanted) if wanted is not None else None
    by, last_first = _order(ctx)
    whose = tenants_of(ctx, narrowed=hold is None)
    if kind == TASK:
        return 0, []  # tasks exist only as jobs of the native API
    if hold is None and by is None and not last_first:
        total, rows = _by_creation(ctx, whose, page)
    else:
        every = [each for each in all_of(ctx, whose) if hold is None or hold(each)]
        if by is not None or last_first:
            every.sort(key=ORDERS.get(by or "") or _integers(ctx, every), reverse=last_first)
        total, rows = len(every), every[page.offset : page.end(len(every))]
    whole = {job.id: bodies.listed_body(job, schedules, job.tenant) for job, schedules in read(ctx, rows)}
    return total, [whole[each.entry.job_id] for each in rows if each.entry.job_id in whole]


def _order(ctx: Context) -> tuple[str | None, bool]:
    """Returns the member to sort by (None if none is asked for), and whether the order is descending."""
    by, way = ctx.option("sort_by"), (ctx.option("sort_order") or "ASC").upper()
    if by is not None and by not in BY_INTEGER | ORDERS.keys():
        raise InvalidRequest(None, f"sort_by may be {', '.join([*sorted(BY_INTEGER), *ORDERS])}, not {shown(by)}")
    if way not in {"ASC", "DESC"}:
        raise InvalidRequest(None, "sort_order may be ASC or DESC")
    return by, way == "DESC"


def _integers(ctx: Context, every: list[Listed]) -> Callable[[Listed], Any]:
    """Returns the sort key of integer ids: first the ordinal of the tenant, then the number of the job."""
    ordinals = {tenant: ctx.ordinals.give(tenant) for tenant in {each.tenant for each in every}}
    return lambda each: (ordinals[each.tenant], each.entry.number)


def tenants_of(ctx: Context, *, narrowed: bool = True) -> list[str]:
    """Returns the tenants whose jobs the caller sees: at provider level all, its own first.

    narrowed: True to return only the tenant that the request names, if any.
    """
    named = ctx.named_tenant()
    if not ctx.caller.provider:
        return [ctx.own]
    if named is not None and narrowed:
        return [named]
    known = islice(tenants.tenants(ctx.world.table, None, views.CHUNK), MOST_TENANTS)
    return [PROVIDER, *(tenant.name for tenant in known)]


def _by_creation(ctx: Context, whose: list[str], page: Page) -> tuple[int, list[Listed]]:
    table = ctx.world.table
    total, page_rows = 0, []
    for tenant in whose:
        here = views.count(table, tenant, OWN)
        skip, wanted = max(0, page.offset - total), page.end(total + here) - max(page.offset, total)
        if skip < here and wanted > 0:
            rows = views.listed(table, tenant, OWN, None, wanted, skip)
            page_rows += [Listed(tenant, row.entry) for row in islice(rows, wanted) if row.entry]
        total += here
    return total, page_rows


def all_of(ctx: Context, whose: list[str], *, search: bool = False) -> Iterator[Listed]:
    """Yields the lean rows of all jobs. search: True to add the members for a search.

    Raises InvalidRequest if there are too many jobs.
    """
    for tenant in whose:
        try:
            yield from (Listed(tenant, entry) for entry in views.whole(ctx.world.table, tenant, FACADE, search=search))
        except views.TooMany as many:
            raise InvalidRequest(None, f"a filter can search at most {views.FILTERED_MOST:,} jobs") from many


def read(ctx: Context, rows: list[Listed]) -> Iterator[tuple[Job, list[Schedule]]]:
    """Yields the jobs themselves with their schedules, grouped by tenant."""
    by_tenant: dict[str, list[str]] = {}
    for each in rows:
        by_tenant.setdefault(each.tenant, []).append(each.entry.job_id)
    for tenant, ids in by_tenant.items():
        yield from views.jobs_with_schedules(ctx.world.table, tenant, ids)


def counted(ctx: Context) -> tuple[int, int]:
    """Returns how many jobs are active, and how many there are."""
    named = tenants_of(ctx)
    own = [block for tenant in named for block in views.blocks(ctx.world.table, tenant) if block.facade == FACADE]
    return sum(block.active for block in own), sum(block.live for block in own)


# Filters: `contains(name, 'x') and tenantId eq 'y'`. `and` binds tighter than `or`.


def _filter(text: str) -> Callable[[Listed], bool]:
    """Parses a filter. Raises InvalidRequest for anything else."""
    if len(text) > LONGEST_FILTER:
        raise InvalidRequest(None, f"the filter is longer than {LONGEST_FILTER} characters")
    choices: list[list[Callable[[Listed], bool]]] = [[]]
    position = 0
    while match := _CONDITION.match(text, position):
        choices[-1].append(_condition(match))
        position = match.end()
        if position == len(text):
            return lambda each: any(all(holds(each) for holds in choice) for choice in choices)
        joint = _JOINT.match(text, position)
        if joint is None:
            break
        if joint[1] == "or":
            choices.append([])
        position = joint.end()
    raise InvalidRequest(None, f"the filter cannot be read at character {position}", position=position)


def _condition(match: re.Match[str]) -> Callable[[Listed], bool]:
    exact = match["whole"] is not None
    name, value = (match["whole"], match["value"]) if exact else (match["part"], match["text"])
    if name not in PROPERTIES:
        raise InvalidRequest(None, f"Field not recognized: {name[:40]}", position=match.start())
    wanted, of = value.replace("''", "'"), PROPERTIES[name]
    return lambda each: wanted == of(each) if exact else wanted in of(each)
