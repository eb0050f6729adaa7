"""The histories of messages whose every call meets every fault."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sweephand.domain.messages import Dedupe, MessageDraft
from sweephand.domain.run import Kind, Outcome, Run, State
from sweephand.server.actions.call import Call
from sweephand.server.flow.idempotency import Once
from sweephand.server.flow.messages import messages
from tests.faults.play import TENANT, Play, Scenario
from tests.support.endpoint import BUSY, OK

LONG = "x" * 1_000
"""A payload that is too long for the row of its run."""


def send(at: Play, *drafts: MessageDraft, once: Once | None = None) -> list[Run]:
    """Sends messages in one request, which a caller repeats until it is answered."""
    once = once or at.key()

    def ask() -> list[Run]:
        world = at.scene.world
        results = messages.accept(world, messages.request_of(world, TENANT, once, "me"), drafts)
        for each in results:
            if not isinstance(each, messages.Accepted):
                raise each
        return [each.run for each in results if isinstance(each, messages.Accepted)]

    return at.ask(ask)


def message(at: Play, delay_s: int = 0, dedupe: Dedupe | None = None, **members: Any) -> MessageDraft:
    action = at.scene.action(**members)
    return MessageDraft(action, "default", delay_s=delay_s or None, dedupe=dedupe)


class Messages(Scenario):
    """Three messages in one request: one at once, which is retried, one near, and one that the sweep sends."""

    name = "messages"

    def history(self, at: Play) -> None:
        def answer(call: Call) -> Outcome:
            return BUSY if call.payload is not None and call.attempt == 1 else OK

        at.scene.endpoint.answer = answer
        retry = {"type": "fixed", "delaySeconds": 20, "maxRetries": 2}
        send(at, message(at, retry=retry, payload=LONG), message(at, 90), message(at, 900))
        at.go_to(21)

    def check(self, at: Play) -> None:
        found = at.runs(Kind.MESSAGE)
        assert len(found) == 3, found
        assert {run.state for run in found} <= {State.SUCCESS, State.UNKNOWN}, found
        assert at.faults or [run.attempt for run in found] == [2, 1, 1]


class RevokedMessages(Scenario):
    """A near and a far message are revoked, and one that has run cannot be."""

    name = "revoked-messages"

    def history(self, at: Play) -> None:
        near, far, ran = send(at, message(at, 60), message(at, 900), message(at, 5))
        at.go(20)
        for run in (near, far):
            at.ask(lambda run=run: messages.revoke(at.scene.world, TENANT, run.job_id, run.uuid, "me"))
        assert at.scene.clock.now() - ran.planned_at < timedelta(minutes=1)
        at.go_to(20)

    def check(self, at: Play) -> None:
        ends = sorted(run.state for run in at.runs(Kind.MESSAGE))
        assert ends == [State.CANCELLED, State.CANCELLED, State.SUCCESS], ends


class DedupedMessages(Scenario):
    """Two requests send a message under one dedupe key; a third one comes once it has run."""

    name = "deduped-messages"

    def history(self, at: Play) -> None:
        once = Dedupe("order-4711")
        first = send(at, message(at, 30, once, payload=LONG))
        second = send(at, message(at, 90, once, payload=LONG))
        at.go(60)
        third = send(at, message(at, 0, once))
        assert {run.id for run in (*first, *second, *third)} == {first[0].id}

    def check(self, at: Play) -> None:
        assert [run.state for run in at.runs(Kind.MESSAGE)] == [State.SUCCESS]
