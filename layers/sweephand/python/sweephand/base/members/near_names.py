"""Suggestions in error messages: the wrong value, and the name that was probably meant. Imported only for errors."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

LONGEST_SHOWN = 60
_MOST_NAMED = 15
ALIASES: Mapping[str, str] = {
    "attempts": "maxRetries",
    "auth": "authentication",
    "backoff": "delaySeconds",
    "cronexpression": "cron",
    "data": "payload",
    "enabled": "active",
    "end": "endTime",
    "endat": "endTime",
    "endpoint": "url",
    "expression": "cron",
    "frequency": "every",
    "functionarn": "targetArn",
    "interval": "every",
    "kind": "type",
    "labels": "tags",
    "maxattempts": "maxRetries",
    "maxtries": "maxRetries",
    "mode": "type",
    "queue": "targetArn",
    "queuearn": "targetArn",
    "queueurl": "targetArn",
    "retries": "retry",
    "retrydelay": "delaySeconds",
    "retrypolicy": "retry",
    "runat": "at",
    "start": "startTime",
    "startat": "startTime",
    "successcodes": "successStatuses",
    "timeout": "answerTimeoutSeconds",
    "timeoutseconds": "answerTimeoutSeconds",
    "timeouts": "answerTimeoutSeconds",
    "timeoutms": "answerTimeoutSeconds",
    "topicarn": "targetArn",
    "tz": "timezone",
    "uri": "url",
    "zone": "timezone",
}
"""The names in this service, by the names that other schedulers use, in lower case without punctuation."""
DIFFERING: Mapping[str, str] = {
    **dict.fromkeys(("attempts", "maxattempts", "maxtries"), "one less than the number of attempts"),
    **dict.fromkeys(("queue", "queueurl"), "the ARN of the queue"),
    "timeoutms": "in seconds",
}
"""How the value must differ, by the names in other schedulers."""
PLACES: Mapping[str, str] = {
    **dict.fromkeys(("url", "method", "headers", "payload", "body", "authentication", "outcome", "retry"), "action"),
    **dict.fromkeys(
        ("answerTimeoutSeconds", "successStatuses", "on202", "onNoAnswer", "callbackTimeoutSeconds"), "action.outcome"
    ),
    **dict.fromkeys(
        ("maxRetries", "delaySeconds", "maxDelaySeconds", "retryOn", "neverOn", "maxAgeSeconds"), "action.retry"
    ),
    **dict.fromkeys(
        ("cron", "every", "at", "time", "rrule", "timezone", "count", "jitterSeconds", "align", "calendars"),
        "schedules[]",
    ),
    **dict.fromkeys(
        (
            "misfire",
            "overlap",
            "onPastStart",
            "onEnable",
            "onCreate",
            "delivery",
            "keepAnswer",
            "totals",
            "callbackToken",
            "flowKey",
        ),
        "policies",
    ),
    **dict.fromkeys(("ratePerMinute", "maxLatenessSeconds"), "policies.misfire"),
    **dict.fromkeys(("maxJobs", "maxRunsPerJob", "minIntervalSeconds"), "quota"),
    **dict.fromkeys(("runDays", "endedJobDays"), "retention"),
}
"""The objects that contain members that callers often write elsewhere."""
_MARKS = re.compile("[^a-z0-9]")


def shown(value: object) -> str:
    """Returns a value as error messages show it: short and printable. Shows only the type of objects and lists."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, str):
        return quoted(value)
    text = json.dumps(value, default=str)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def kind_of(value: object) -> str:
    """Returns the JSON name of a value's type: "a number", "null"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an object" if isinstance(value, Mapping) else "a list"


def quoted(text: str) -> str:
    """Returns a string in double quotes, in ASCII and shortened."""
    return json.dumps(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}...")


def choice(value: object, choices: Collection[str]) -> str:
    """Returns a wrong value, with the choice that was probably meant."""
    meant = nearest(value, choices) if isinstance(value, str) else None
    return shown(value) + (f" (did you mean {quoted(meant)}?)" if meant else "")


def unknown_member(field: str, name: str, known: Collection[str]) -> str:
    """Returns the message for an unknown member."""
    place = None if _named(name, known) else _place(field, name, known)
    if place is not None:
        return f"is not a known member here; did you mean `{place}`?"
    meant = nearest(name, known)
    if meant is not None:
        differs = DIFFERING.get(_bare(name), "")
        return f"is not a known member; did you mean `{meant}`{differs and f' ({differs})'}?"
    if not known:
        return "is not a known member: this object takes no members"
    names = ", ".join(sorted(known)[:_MOST_NAMED]) + (", ..." if len(known) > _MOST_NAMED else "")
    return f"is not a known member; known are {names}"


def nearest(name: str, known: Collection[str]) -> str | None:
    """Returns the most similar known name, ignoring case and punctuation; None if none is similar."""
    bare = _bare(name)
    meant = _named(name, known)
    if meant is not None or len(bare) > LONGEST_SHOWN:
        return meant
    from difflib import get_close_matches  # noqa: PLC0415 - as above

    by_bare = {_bare(each): each for each in known}
    close = get_close_matches(bare, list(by_bare), 1, 0.75)
    return by_bare[close[0]] if close else None


def _named(name: str, known: Collection[str]) -> str | None:
    """Returns the known name that is the same without case and punctuation, or that of another scheduler."""
    bare = _bare(name)
    alias = ALIASES.get(bare)
    return next((each for each in known if _bare(each) == bare), alias if alias in known else None)


def _place(field: str, name: str, known: Collection[str]) -> str | None:
    """Returns the place of a name within the object that has the given known members; None if it has no such place."""
    meant = _named(name, PLACES)
    owner = PLACES.get(meant or "")
    if owner is None:
        return None
    if field in {"action", "errorAction"} or field.startswith("hooks."):
        owner = owner.removeprefix("action.")
    return f"{owner}.{meant}" if re.split(r"[.\[]", owner, maxsplit=1)[0] in known else None


def _bare(name: str) -> str:
    """Returns the beginning of a name in lower case, without punctuation."""
    return _MARKS.sub("", name[: 2 * LONGEST_SHOWN].lower())
