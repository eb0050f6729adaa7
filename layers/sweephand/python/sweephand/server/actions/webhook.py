"""The base of actions that make one guarded POST with credentials, and the meaning of its answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from sweephand.base.errors import InvalidRequest
from sweephand.base.records import dataclass
from sweephand.domain.run import Outcome, Reason
from sweephand.server.actions.call import Call
from sweephand.server.actions.kind import Action
from sweephand.server.actions.outcome import Rules, failed, refused, taken, taken_outcome, unanswered
from sweephand.server.actions.redaction import hidden
from sweephand.server.security.guard import CallFailed, Deadline, GuardSettings, Outbound, check_url

if TYPE_CHECKING:
    from sweephand.server.security.outbound import Answer

MAX_ANSWER = 16_384


@dataclass(frozen=True)
class Post:
    """A POST that is about to be made. sent_secrets: further secrets that give access to the target."""

    url: str
    headers: list[tuple[str, str]]
    content: bytes
    sent_secrets: Sequence[str] = field(default=(), repr=False)


@dataclass(frozen=True)
class Webhook(Action):
    """An action whose target accepts a message with one POST. Every 2xx means that it has."""

    outcome: Rules = taken_outcome()

    shows = ("key",)

    @abstractmethod
    def post(self, call: Call, settings: GuardSettings) -> Post:
        """Returns the POST to send. Raises CallFailed if a secret is missing."""

    def sends_callback(self, *, with_payload: bool) -> bool:
        return not with_payload

    def perform(self, call: Call, outbound: Outbound) -> Outcome:
        try:
            post = self.post(call, outbound.settings)
        except CallFailed as missing:
            return failed(missing.reason, missing.message, retryable=False)
        limit_s = min(self.outcome.answer_timeout_s, call.deadline_s)
        deadline = Deadline(call.clock.monotonic() + limit_s, call.clock.monotonic)
        try:
            target = check_url(post.url, outbound.settings)
            from sweephand.server.security.outbound import exchange  # noqa: PLC0415 - 70 ms that only the first such call pays

            answer = exchange(target, "POST", post.headers, post.content, outbound, deadline, with_credentials=True)
        except InvalidRequest as wrong:
            return failed(Reason.GUARD, wrong.reason, retryable=False)
        except CallFailed as failure:
            return unanswered(failure, limit_s)
        return self._judged(answer, call, (*call.confidences, *post.sent_secrets))

    def _judged(self, answer: Answer, call: Call, secrets: Sequence[str]) -> Outcome:
        text = hidden(answer.body.decode("utf-8", "replace")[:MAX_ANSWER], secrets)
        said = text.encode()[:MAX_ANSWER].decode("utf-8", "ignore") or None
        if 200 <= answer.status <= 299:
            waits = self.sends_callback(with_payload=call.payload is not None)
            return taken(self.outcome, call, said, answer.status, can_report=waits)
        return refused(answer, said, call)
