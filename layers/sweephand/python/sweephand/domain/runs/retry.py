"""Retries: whether and when another attempt follows a failed one. Pure: time and chance are arguments."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, assert_never

from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.members import fields
from sweephand.base.records import dataclass
from sweephand.domain.run import Outcome, Reason

LONGEST_S = 548 * 86_400
MOST_RETRIES = 49
MOST_ATTEMPTS = MOST_RETRIES + 1
MOST_NEVER_ON = 20
OF_FAILURES = frozenset(
    {
        Reason.HTTP_STATUS,
        Reason.TARGET_ERROR,
        Reason.NO_TARGET,
        Reason.DNS,
        Reason.TLS,
        Reason.CONNECT,
        Reason.NO_ANSWER,
        Reason.DEADLINE,
        Reason.GUARD,
        Reason.BAD_PAYLOAD,
        Reason.EXECUTOR_LOST,
    }
)
"""The reasons for which an attempt can fail."""
MAX_RETRY_AFTER_S = 3_600
TRANSIENT_STATUSES = frozenset({408, 425, 429})

_MEMBERS = (
    "type",
    "maxRetries",
    "delaySeconds",
    "maxDelaySeconds",
    "retryOn",
    "maxAgeSeconds",
    "immediate",
    "delayed",
    "increaseSeconds",
    "neverOn",
)


class RetryType(StrEnum):
    NONE = "none"
    FIXED = "fixed"
    EXPONENTIAL = "exponential"
    TWO_LEVEL = "two_level"


class RetryOn(StrEnum):
    TRANSIENT = "transient"
    ANY = "any"


@dataclass(frozen=True)
class RetryPolicy:
    """A retry policy. max_age_s: no attempt begins later than this after the planned instant of the run.

    Type two_level (NServiceBus): a round is one attempt, followed at once by up to `immediate` further ones. Up to
    `delayed` rounds follow, and each waits `increase_s` longer than the previous one. never_on: statuses and reasons
    that end the run at once, whatever retry_on says.
    """

    type: RetryType = RetryType.NONE
    max_retries: int = 4
    delay_s: int = 30
    max_delay_s: int = 3_600
    retry_on: RetryOn = RetryOn.TRANSIENT
    max_age_s: int | None = None
    immediate: int = 5
    delayed: int = 3
    increase_s: int = 10
    never_on: tuple[str, ...] = ()

    @property
    def max_attempts(self) -> int:
        match self.type:
            case RetryType.NONE:
                return 1
            case RetryType.FIXED | RetryType.EXPONENTIAL:
                return self.max_retries + 1
            case RetryType.TWO_LEVEL:
                return (self.immediate + 1) * (self.delayed + 1)
            case _:
                assert_never(self.type)


NO_RETRY = RetryPolicy()


@dataclass(frozen=True)
class RetryAt:
    """Another attempt follows at `at`, aware UTC, never before now."""

    at: datetime


@dataclass(frozen=True)
class GiveUp:
    """No further attempt. reason: MAX_AGE if only the age forbids it; None keeps the outcome's reason."""

    reason: Reason | None = None


def parse(value: object, field: str) -> RetryPolicy:
    """Reads the policy in a caller's `retry` member; None becomes the type `none`.

    Raises InvalidRequest with the path, even for members that the type does not use.
    """
    if value is None:
        return NO_RETRY
    mistakes = Mistakes()
    members = fields.members(value, field, _MEMBERS, mistakes)
    policy = _read(members, field, mistakes)
    mistakes.check()
    if policy.max_attempts > MOST_ATTEMPTS:
        raise InvalidRequest(field, f"makes {policy.max_attempts} attempts; the maximum is {MOST_ATTEMPTS}")
    for name, why in inactive(members).items():
        mistakes.add(fields.inactive(field, name, why))
    mistakes.check()
    return policy


def load(stored: Mapping[str, Any]) -> RetryPolicy:
    """Reads a stored policy. Earlier versions also stored members that the type does not use."""
    mistakes = Mistakes()
    policy = _read({name: value for name, value in stored.items() if value is not None}, "retry", mistakes)
    mistakes.check()
    return policy


def _read(policy: Mapping[str, Any], field: str, mistakes: Mistakes) -> RetryPolicy:
    default = RetryPolicy()

    def seconds(name: str, otherwise: int) -> int:
        return mistakes.of(fields.whole, policy.get(name, otherwise), fields.below(field, name), 0, LONGEST_S)

    def count(name: str, otherwise: int) -> int:
        return mistakes.of(fields.whole, policy.get(name, otherwise), fields.below(field, name), 0, MOST_RETRIES)

    def choice(name: str, otherwise: str, choices: type[StrEnum]) -> str:
        return mistakes.of(fields.one_of, policy.get(name, otherwise), fields.below(field, name), tuple(choices))

    kind, retry_on = choice("type", RetryType.NONE, RetryType), choice("retryOn", default.retry_on, RetryOn)
    age = policy.get("maxAgeSeconds")
    return RetryPolicy(
        type=RetryType(kind or RetryType.NONE),
        max_retries=count("maxRetries", default.max_retries),
        delay_s=seconds("delaySeconds", default.delay_s),
        max_delay_s=seconds("maxDelaySeconds", default.max_delay_s),
        retry_on=RetryOn(retry_on or default.retry_on),
        max_age_s=None
        if age is None
        else mistakes.of(fields.whole, age, fields.below(field, "maxAgeSeconds"), 1, LONGEST_S),
        immediate=count("immediate", default.immediate),
        delayed=count("delayed", default.delayed),
        increase_s=seconds("increaseSeconds", default.increase_s),
        never_on=mistakes.of(_never_on, policy.get("neverOn", []), fields.below(field, "neverOn")),
    )


_DELAYS = ("retryOn", "neverOn", "maxAgeSeconds")
USED: Mapping[RetryType, tuple[str, ...]] = {
    RetryType.NONE: (),
    RetryType.FIXED: ("maxRetries", "delaySeconds", *_DELAYS),
    RetryType.EXPONENTIAL: ("maxRetries", "delaySeconds", "maxDelaySeconds", *_DELAYS),
    RetryType.TWO_LEVEL: ("immediate", "delayed", "increaseSeconds", *_DELAYS),
}
"""The members that each type uses."""


def inactive(policy: Mapping[str, Any]) -> dict[str, str]:
    """Returns the members of a `retry` that have no effect, each with the reason.

    policy: members with valid values; unknown ones are refused elsewhere.
    """
    kind = RetryType(policy.get("type", RetryType.NONE))
    reasons = {}
    said = f'the type is "{kind}"' if "type" in policy else 'without a `type` it is "none"'
    for name in policy.keys() - {"type", *USED[kind]}:
        if users := [f'"{each}"' for each in RetryType if name in USED[each]]:
            reasons[name] = f'{said}; {name} belongs to {", ".join(users)}: write "type": {users[0]}'
    most = {"maxRetries": 4, "immediate": 5, "delayed": 3, **policy}
    if kind in {RetryType.FIXED, RetryType.EXPONENTIAL} and most["maxRetries"] == 0:
        reasons |= _idle(policy, USED[kind][1:], "maxRetries is 0")
    if kind is RetryType.TWO_LEVEL and most["delayed"] == 0:
        reasons |= _idle(policy, ("increaseSeconds",), "delayed is 0")
        reasons |= _idle(policy, _DELAYS, "immediate and delayed are 0") if most["immediate"] == 0 else {}
    return {name: reasons[name] for name in policy if name in reasons}


def _idle(policy: Mapping[str, Any], names: tuple[str, ...], why: str) -> dict[str, str]:
    return {name: f"{why}, so it has no attempt to apply to" for name in names if name in policy}


def _never_on(value: object, field: str) -> tuple[str, ...]:
    listed = fields.listed(value, field, MOST_NEVER_ON, "a list of strings")
    for position, item in enumerate(listed):
        known = isinstance(item, str) and (item in OF_FAILURES or _is_status(item))
        if not known:
            wanted = 'a status like "4xx", "501" or "500-503", or the reason of a failure'
            raise fields.must_be(f"{field}[{position}]", wanted, item)
    return tuple(listed)


def _is_status(text: str) -> bool:
    span = bounds(text)
    return span is not None and span[0] <= span[1]


def to_json(policy: RetryPolicy) -> dict[str, Any]:
    """Returns the members that the policy's type uses, by the API's names; those without effect are null.

    `parse` and `load` read them back.
    """
    whole = {
        "maxRetries": policy.max_retries,
        "delaySeconds": policy.delay_s,
        "maxDelaySeconds": policy.max_delay_s,
        "immediate": policy.immediate,
        "delayed": policy.delayed,
        "increaseSeconds": policy.increase_s,
        "retryOn": policy.retry_on.value,
        "neverOn": list(policy.never_on),
        "maxAgeSeconds": policy.max_age_s,
    }
    shown = {"type": policy.type.value, **{name: whole[name] for name in USED[policy.type]}}
    return {**shown, **dict.fromkeys(inactive(shown))}


def next_attempt(
    policy: RetryPolicy,
    attempt: int,
    outcome: Outcome,
    now: datetime,
    chance_uniform: Callable[[float, float], float],
    first_planned: datetime,
) -> RetryAt | GiveUp:
    """Decides what follows a failed attempt. attempt: its number, from 1. first_planned: the run's planned instant.

    Waits for the target's Retry-After, capped by the action, if it is longer than the policy's delay.
    """
    if attempt >= policy.max_attempts or not _worth_it(policy, outcome):
        return GiveUp()
    delay_s = max(_delay_s(policy, attempt, chance_uniform), outcome.retry_after_s or 0)
    at = now + timedelta(seconds=delay_s)
    if policy.max_age_s is not None and at > first_planned + timedelta(seconds=policy.max_age_s):
        return GiveUp(Reason.MAX_AGE)
    return RetryAt(at)


def longest_s(policy: RetryPolicy, attempt: int) -> float:
    """Returns the longest time from a failed attempt to the last one, without the duration of the attempts."""
    delays = (_delay_s(policy, each, lambda _, most: most) for each in range(attempt, policy.max_attempts))
    return sum(max(delay_s, MAX_RETRY_AFTER_S) for delay_s in delays)


def _worth_it(policy: RetryPolicy, outcome: Outcome) -> bool:
    if outcome.final or outcome.reason in policy.never_on:
        return False
    if outcome.http_status is not None and holds(policy.never_on, outcome.http_status):
        return False
    if policy.retry_on is RetryOn.ANY:
        return True
    return outcome.retryable and not outcome.stop


def _delay_s(policy: RetryPolicy, attempt: int, chance_uniform: Callable[[float, float], float]) -> float:
    match policy.type:
        case RetryType.NONE:
            return 0
        case RetryType.FIXED:
            return policy.delay_s
        case RetryType.EXPONENTIAL:
            # Full jitter: retries of many runs that failed together must not come back together.
            return chance_uniform(0, min(policy.max_delay_s, policy.delay_s * 2 ** (attempt - 1)))
        case RetryType.TWO_LEVEL:
            rounds, within = divmod(attempt, policy.immediate + 1)
            return 0 if within else rounds * policy.increase_s
        case _:
            assert_never(policy.type)


def is_transient(status: int) -> bool:
    """Returns True if the same request may succeed a little later."""
    return status in TRANSIENT_STATUSES or status >= 500


_TIME = "(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_MONTH = "(?P<month>[A-Z][a-z]{2})"
_HTTP_DATES = tuple(
    re.compile(form, re.ASCII)
    for form in (
        rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} GMT",
        rf"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT",
        rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {_MONTH} (?P<day>[ 0-9][0-9]) {_TIME} (?P<year>[0-9]{{4}})",
    )
)
"""The usual form and the two obsolete ones that every recipient must accept (RFC 9110, section 5.6.7)."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SECONDS = re.compile(r"[0-9]{1,64}", re.ASCII)


def retry_after_s(value: str | None, now: datetime) -> int | None:
    """Returns the seconds that a Retry-After header requests, within 0..3,600; None if it violates RFC 9110."""
    if value is None:
        return None
    if _SECONDS.fullmatch(value):
        return min(int(value), MAX_RETRY_AFTER_S)
    at = _http_date(value, now)
    return None if at is None else max(0, min(math.ceil((at - now).total_seconds()), MAX_RETRY_AFTER_S))


def _http_date(value: str, now: datetime) -> datetime | None:
    date = next(filter(None, (form.fullmatch(value) for form in _HTTP_DATES)), None)
    if date is None or date["month"] not in _MONTHS:
        return None
    day, year, hour, minute, second = (int(date[name]) for name in ("day", "year", "hour", "minute", "second"))
    if year < 100:
        # Two digits: a year that would be more than 50 years ahead belongs to the previous century.
        year += now.year // 100 * 100
        year -= 100 if year > now.year + 50 else 0
    try:
        return datetime(year, _MONTHS.index(date["month"]) + 1, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None


_FORM = re.compile(r"([1-5])xx|([1-5][0-9][0-9])(?:-([1-5][0-9][0-9]))?", re.ASCII)


def bounds(text: str) -> tuple[int, int] | None:
    """Returns the lowest and the highest status of an item; None if it is not in any of the forms."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    if match[1]:
        return int(match[1]) * 100, int(match[1]) * 100 + 99
    return int(match[2]), int(match[3] or match[2])


def holds(items: Iterable[str], status: int) -> bool:
    """Returns True if the status is among the items. Ignores items that are not statuses."""
    return any(span is not None and span[0] <= status <= span[1] for span in map(bounds, items))
