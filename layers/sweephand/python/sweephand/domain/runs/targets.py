"""The target of an action as a string, by which jobs that call the same target share a circuit. Pure."""

from __future__ import annotations

from sweephand.domain.job import ActionSpec

_NOT_THE_TARGET = frozenset({"type", "method", "dialect", "roleArn", "region", "transportType"})


def target_of(action: ActionSpec) -> str:
    """Returns the address without its query; for other kinds, the kind and the members that name the target."""
    url = action.params.get("url")
    if isinstance(url, str):
        return url.partition("#")[0].partition("?")[0]
    names = [value for name, value in action.params.items() if isinstance(value, str) and name not in _NOT_THE_TARGET]
    return " ".join([action.kind, *names])
