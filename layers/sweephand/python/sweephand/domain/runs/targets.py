"""What an action calls, as one text: the calls of several jobs to one target share their fate. Pure."""

from __future__ import annotations

from sweephand.domain.job import ActionSpec

_NOT_THE_TARGET = frozenset({"type", "method", "dialect", "roleArn", "region", "transportType"})


def target_of(action: ActionSpec) -> str:
    """The address without query; of other kinds, the kind and what names the target."""
    url = action.params.get("url")
    if isinstance(url, str):
        return url.partition("#")[0].partition("?")[0]
    names = [value for name, value in action.params.items() if isinstance(value, str) and name not in _NOT_THE_TARGET]
    return " ".join([action.kind, *names])
