"""Messages of the native API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweephand.base.errors import InvalidRequest, SweephandError
from sweephand.base.ids import is_uuid
from sweephand.base.members import fields
from sweephand.domain.job import TASK_KINDS
from sweephand.domain.messages import MessageDraft
from sweephand.domain.run import Run, State
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native.context import TASKS, Context, helpful
from sweephand.server.facades.native.members import message_members
from sweephand.server.facades.native.members.message_members import MessageView
from sweephand.server.facades.native.problems import of_error
from sweephand.server.facades.native.query import exact_instant, in_query, instant
from sweephand.server.flow.messages import listing, messages
from sweephand.server.flow.messages.listing import Wanted
from sweephand.server.flow.messages.messages import MOST, Accepted
from sweephand.server.flow.runs import run_lists
from sweephand.server.store.views import runs as views
from sweephand.server.store.views.runs import Span


def create(ctx: Context) -> Answer:
    """Accepts one message, or up to 25 in `messages`, each of which has its own answer."""
    body = ctx.body()
    if isinstance(body, Mapping) and "messages" in body:
        return _create_many(ctx, body)
    asked = messages.request_of(ctx.world, ctx.tenant, ctx.once(), ctx.actor, ctx.hop())
    with helpful(body, ctx.now):
        result = messages.accept(ctx.world, asked, [_draft(ctx, body)])[0]
        if isinstance(result, SweephandError):
            raise result
    if result.deduplicated:
        return Answer(200, _shown(ctx, result))
    return Answer(202, _shown(ctx, result), {"Location": f"/v1/messages/{result.run.id}"})


def _create_many(ctx: Context, body: Mapping[str, Any]) -> Answer:
    members = fields.members(body, "", ("messages",))
    bodies = members.get("messages")
    if not isinstance(bodies, list) or not 1 <= len(bodies) <= MOST:
        said = f"has {len(bodies):,} members" if isinstance(bodies, list) else f"is {fields.shown(bodies)}"
        raise InvalidRequest("messages", f"must be a list of 1 to {MOST} messages; it {said}")
    asked = messages.request_of(ctx.world, ctx.tenant, ctx.once(), ctx.actor, ctx.hop())
    results = messages.accept(ctx.world, asked, [_read(ctx, each) for each in bodies])
    return Answer(207, {"items": [_item(ctx, n, each) for n, each in enumerate(results)]})


def _draft(ctx: Context, body: object) -> MessageDraft:
    draft = message_members.draft(body, ctx.guard, tasks=ctx.allows(TASKS))
    if draft.action.kind in TASK_KINDS:
        ctx.require(TASKS)
    return draft


def _read(ctx: Context, body: object) -> MessageDraft | SweephandError:
    try:
        with helpful(body, ctx.now):
            return _draft(ctx, body)
    except SweephandError as wrong:
        return wrong


def _item(ctx: Context, index: int, result: Accepted | SweephandError) -> dict[str, Any]:
    """Returns the answer to one message of several."""
    if isinstance(result, Accepted):
        return {"index": index, "status": 200 if result.deduplicated else 202, "message": _shown(ctx, result)}
    wrong = result.within(f"messages[{index}]") if isinstance(result, InvalidRequest) else result
    answer = of_error(wrong, ctx.request.request_id)
    return {"index": index, "status": answer.status, "problem": answer.body}


def read(ctx: Context) -> Answer:
    run = messages.find(ctx.world, ctx.tenant, *ctx.run("message"))
    return Answer(200, message_members.message_body(_view(ctx, run), views.attempts_of(ctx.world.table, run)))


def _shown(ctx: Context, accepted: Accepted) -> dict[str, Any]:
    return message_members.message_body(_view(ctx, accepted.run)) | {"deduplicated": accepted.deduplicated}


def _view(ctx: Context, run: Run, *, full: bool = True) -> MessageView:
    assert run.posted is not None
    terms = ctx.world.terms.of(ctx.tenant, run.posted.collection)
    held = run.state is State.SCHEDULED and run.planned_at <= ctx.now and not terms.enabled
    return MessageView(run, held, terms.callback_timeout_s or ctx.world.settings.callback_timeout_s, full)


def delete(ctx: Context) -> Answer:
    messages.revoke(ctx.world, ctx.tenant, *ctx.run("message"), ctx.by().words or "")
    return Answer(204)


def list_all(ctx: Context) -> Answer:
    """Lists messages, latest planned first."""
    limit, last = ctx.page(is_uuid, is_uuid)
    wanted = Wanted(
        ctx.collection(),
        ctx.choice("state", frozenset(State)),
        ctx.text("tag", 128),
        ctx.text("resourceId", 256),
        Span(instant(ctx.query, "from", exact_instant), instant(ctx.query, "until", exact_instant)),
    )
    with in_query():
        run_lists.check_span(wanted.span)
    mark = (last[0], last[1]) if last else None
    rows = listing.listed(ctx.world, ctx.tenant, wanted, mark, limit + 1)
    selected, mark = run_lists.page(rows, lambda run: wanted.holds(run, ctx.now), mark, limit)
    whole = listing.whole(ctx.world, selected)
    items = [message_members.message_body(_view(ctx, run, full=False)) for run in whole]
    return Answer(200, {"items": items, "nextCursor": ctx.cursor(*mark) if mark else None})
