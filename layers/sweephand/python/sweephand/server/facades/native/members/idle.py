"""Refuses members that would have no effect together with others. Each refusal names the member and the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sweephand.base import json_text
from sweephand.base.errors import InvalidRequest
from sweephand.base.members import fields
from sweephand.base.members.fields import below
from sweephand.domain.job import TASK_KINDS, ActionDraft, ActionSpec, ScheduleDraft
from sweephand.domain.occurrences import lateness
from sweephand.domain.runs import retry
from sweephand.schedules import notations
from sweephand.schedules.notations import NOTATIONS

_WAITING = ("on202", "onAccepted", "onNoAnswer")


def of_schedule(draft: ScheduleDraft, field: str) -> Iterator[InvalidRequest]:
    """Yields refusals for a schedule's timing and own policies. Members refused elsewhere are None in the draft."""
    yield from of_timing(draft.timing, field)
    policies, where = draft.policies or {}, below(field, "policies")
    once = is_one_time(draft.timing)
    if once is None:
        return
    if once:
        if "onCreate" in policies:
            yield fields.inactive(where, "onCreate", "it belongs to recurring schedules; this one is one-time")
        if "ratePerMinute" in (policies.get("misfire") or {}):
            yield fields.inactive(below(where, "misfire"), "ratePerMinute", "a one-time schedule misses one occurrence")
        return
    for name in ("onPastStart", "onEnable"):
        if name in policies:
            yield fields.inactive(where, name, "it belongs to one-time schedules; this one is recurring")


def of_job(policies: Mapping[str, Any], action: ActionDraft, field: str) -> Iterator[InvalidRequest]:
    """Yields refusals for policies of a job that have no effect with its action."""
    yield from of_action(policies, action, field)
    outcome = action.params.get("outcome", {})
    waits = policies.get("callbackToken") or "wait" in {outcome.get(name) for name in _WAITING}
    if policies.get("onNoResult") == "retry" and not waits and action.kind not in TASK_KINDS:
        how = "set `on202` (or `onAccepted`) or `onNoAnswer` of its outcome to `wait`"
        yield fields.inactive(field, "onNoResult", f"no run of this action waits for a result; {how}")


def of_action(policies: Mapping[str, Any], action: ActionDraft | ActionSpec, field: str) -> Iterator[InvalidRequest]:
    """Yields refusals for policies of a job or schedule that have no effect with an action."""
    if policies.get("onNoResult") != "retry":
        return
    if action.kind in TASK_KINDS:
        yield fields.inactive(field, "onNoResult", "a task is stopped at its deadline, and its run ends as TIMEOUT")
    elif retry.parse(action.retry, "retry").max_attempts < 2:
        yield fields.inactive(field, "onNoResult", "the action makes one attempt; give it a `retry`")


def of_timing(timing: Mapping[str, Any], field: str) -> Iterator[InvalidRequest]:
    """Yields refusals for members of a timing. Each notation refuses the members that it does not know."""
    if timing.get("time") is not None and timing.get("startTime") is not None:
        yield fields.inactive(field, "startTime", "it does not limit `time`; write `at` for an instant that it limits")
    if is_one_time(timing) and timing.get("count") is not None:
        yield fields.inactive(field, "count", "a one-time schedule has one occurrence")


def is_one_time(timing: Mapping[str, Any]) -> bool | None:
    """Returns whether a timing is a single instant; None if it has no notation."""
    notation = next((name for name in NOTATIONS if timing.get(name) is not None), None)
    return None if notation is None else notations.is_one_time(notation, timing[notation])


_OPAQUE = frozenset({"payload", "body", "headers"})
"""Members whose content is the caller's own."""


def patched(stored: Any, patch: Any) -> Any:
    """Returns the result of a merge patch without stored members that no longer have an effect.

    A patch that changes only `type` need not remove the members of the former type.
    """
    return _without_leftovers(json_text.merged(stored, patch), patch)


def _without_leftovers(merged: Any, patch: Any) -> Any:
    if not isinstance(merged, Mapping) or not isinstance(patch, Mapping):
        return merged
    return {
        name: value if name in _OPAQUE else _tidy(name, _without_leftovers(value, patch.get(name)), patch.get(name))
        for name, value in merged.items()
    }


def _tidy(name: str, merged: Any, patch: Any) -> Any:
    if name not in {"retry", "misfire"} or not isinstance(merged, Mapping):
        return merged
    said = patch if isinstance(patch, Mapping) else {}
    policy = {each: value for each, value in merged.items() if value is not None}
    try:
        left = retry.inactive(policy) if name == "retry" else lateness.inactive(policy)
    except (ValueError, TypeError):  # an unknown type, which the reader of the member refuses
        return merged
    return {each: value for each, value in merged.items() if each in said or each not in left}
