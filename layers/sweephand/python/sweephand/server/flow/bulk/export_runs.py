"""Writes runs to a file, for lists that are too long to read page by page. (Decision 0044.)

params: the members of the API: `format`, and which runs. cursor: `after`, the last run examined; `pieces`, the name and
size in bytes of each piece written; `read`, whether all is read; `more`, whether the limit left out further runs.

A piece is an object named by the hash of its content, and counts once the row names it. So a page that is repeated or
cut off neither duplicates nor omits a run. The next page continues a piece that is too short to be joined.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sweephand.base.errors import QuotaExceeded
from sweephand.base.records import dataclass
from sweephand.domain.operation import Operation, OperationKind, OperationState, Page
from sweephand.domain.runs import run_file
from sweephand.domain.runs.run_file import MEDIA_TYPES, Format
from sweephand.server.flow.idempotency import Once
from sweephand.server.flow.operations import verbs
from sweephand.server.flow.runs import run_lists
from sweephand.server.flow.runs.run_lists import JobNames, Wanted
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo import keys
from sweephand.server.store.operations import operations as store
from sweephand.server.store.operations.files import LEAST_PIECE
from sweephand.server.store.views import runs as views
from sweephand.server.store.views.runs import RunMark, Span

AT_ONCE = 3
"""Open exports of a tenant, paused ones included."""
MOST_RUNS = 1_000_000
"""Limit of one file: about a gigabyte. The result then says where the next file begins."""
PIECE = 16 * 1_048_576
"""Bytes. A page ends with the run that exceeds this."""
PAGE_S = 10.0
"""A page reads no longer than this, so pieces stay short where few of many runs match."""
ROWS = 1_000
"""Rows that one query reads."""
FILE_KEPT = timedelta(days=7)
"""The same as the bucket's lifecycle rule in the template."""
LINK_S = 900

Piece = tuple[str, int]


@dataclass(frozen=True)
class Link:
    """A link that gives anybody the file until it expires. Each permitted request gets a new one; none is stored."""

    url: str
    expires_at: datetime


def begin(
    world: World, tenant: str, params: Mapping[str, str], after: RunMark | None, *, actor: str, once: Once | None
) -> Operation:
    """Begins the operation. after: the end of the file before this one.

    Raises NotFound, QuotaExceeded; InvalidRequest for members that choose too many jobs or do not act together.
    """
    if (earlier := verbs.begun_before(world, tenant, once)) is not None:
        return earlier
    wanted = _wanted(params)
    run_lists.check_members(wanted)
    run_lists.check(world, tenant, wanted)
    now = world.clock.now()
    cursor: dict[str, Any] = {} if after is None else {"after": list(after)}
    kind, operation_id = OperationKind.EXPORT_RUNS, world.chance.new_id(now)
    operation = Operation(tenant, operation_id, kind, params, now, cursor=cursor, actor=actor)
    while (place := store.place_op(world.table, operation, AT_ONCE)) is not None:
        begun = verbs.begin_with(world, operation, once, [place])
        if begun is not None:
            return begun
    raise QuotaExceeded(f"{AT_ONCE} exports are in progress: wait for one to end, or cancel one")


def page(world: World, operation: Operation) -> Page:
    """Writes the next piece or joins all. Raises Unavailable, or NotFound if the job or an earlier piece is gone."""
    return _joined(world, operation) if operation.cursor.get("read") else _next(world, operation)


def _next(world: World, operation: Operation) -> Page:
    """Reads the next runs and writes them as one piece."""
    pieces, form = _pieces(operation), _format(operation)
    content = bytearray(b"" if pieces else run_file.head(form).encode())
    read = _read(world, operation, form, content)
    if content or not pieces:
        begun = pieces.pop() if pieces and pieces[-1][1] < LEAST_PIECE else None
        before = b"" if begun is None else world.files.get(_key(operation, begun[0]))
        pieces.append(_written(world, operation, form, before + content))
    return Page({"after": read.after, "pieces": pieces, "read": read.over, "more": read.more}, done=read.count)


def _written(world: World, operation: Operation, form: Format, content: bytes) -> Piece:
    name = hashlib.sha256(content).hexdigest()[:32]
    world.files.put(_key(operation, name), content, MEDIA_TYPES[form], _file_name(operation, form))
    return name, len(content)


@dataclass
class _Read:
    """The progress of a page.

    after: the last run examined. over: no further page is needed. more: the limit left out further runs.
    """

    after: list[str] | None
    count: int = 0
    over: bool = False
    more: bool = False


def _read(world: World, operation: Operation, form: Format, content: bytearray) -> _Read:
    """Adds the lines of the next runs to `content`."""
    assert operation.tenant is not None
    wanted, read = _wanted(operation.params), _Read(operation.cursor.get("after"))
    after = None if read.after is None else (read.after[0], read.after[1])
    now, deadline = world.clock.now(), world.clock.monotonic() + PAGE_S
    names = JobNames(world, operation.tenant)
    for run in run_lists.listed(world, operation.tenant, wanted, after, ROWS, operation.started_at):
        if wanted.holds(run, now):
            if operation.done + read.count == MOST_RUNS:
                read.over = read.more = True
                return read
            content += run_file.lines(form, [run], names.of([run])).encode()
            read.count += 1
        read.after = list(views.mark_of(run))
        if len(content) >= PIECE or world.clock.monotonic() > deadline:
            return read
    read.over = True
    return read


def _joined(world: World, operation: Operation) -> Page:
    """Joins the pieces into one file. A single piece already is the file."""
    pieces, form = _pieces(operation), _format(operation)
    name = pieces[0][0]
    if len(pieces) > 1:
        name = "runs"
        sources = [_key(operation, piece) for piece, _ in pieces]
        world.files.join(_key(operation, name), sources, MEDIA_TYPES[form], _file_name(operation, form))
    result = {
        "file": name,
        "bytes": sum(size for _, size in pieces),
        "behind": operation.cursor.get("after") if operation.cursor.get("more") else None,
    }
    return Page(None, total=operation.done, result=result)


def clear(world: World, operation: Operation) -> None:
    """Removes the pieces of a cancelled export. Raises Unavailable."""
    world.files.clear(_key(operation, ""))


def _pieces(operation: Operation) -> list[Piece]:
    return [(name, size) for name, size in operation.cursor.get("pieces", ())]


def _format(operation: Operation) -> Format:
    return Format(operation.params.get("format", Format.CSV))


def _wanted(params: Mapping[str, Any]) -> Wanted:
    """Reads the members that were passed to `begin`; instants are in UTC, to the millisecond."""
    since, until = (params.get(name) for name in ("from", "until"))
    return Wanted(
        job_id=params.get("jobId"),
        schedule_id=params.get("scheduleId"),
        state=params.get("state"),
        kind=params.get("kind"),
        collection=params.get("collection"),
        tag=params.get("tag"),
        resource_id=params.get("resourceId"),
        span=Span(since and datetime.fromisoformat(since), until and datetime.fromisoformat(until)),
    )


def _key(operation: Operation, name: str) -> str:
    assert operation.tenant is not None
    return f"{keys.files(operation.tenant)}{operation.id}/{name}"


def _file_name(operation: Operation, form: Format) -> str:
    return f"runs-{operation.started_at:%Y%m%dT%H%M%SZ}.{form}"


def link(world: World, operation: Operation) -> Link | None:
    """Returns a link to the file; None if there is no file or it has expired."""
    expires_at = file_expires_at(operation)
    now = world.clock.now()
    if expires_at is None or operation.result is None or expires_at <= now:
        return None
    seconds = min(LINK_S, int((expires_at - now).total_seconds()))
    return Link(world.files.link(_key(operation, operation.result["file"]), seconds), now + timedelta(seconds=seconds))


def file_expires_at(operation: Operation) -> datetime | None:
    if operation.state is not OperationState.DONE or operation.ended_at is None:
        return None
    return operation.ended_at + FILE_KEPT
