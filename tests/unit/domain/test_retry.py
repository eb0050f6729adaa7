from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.domain.runs.retry import (
    MOST_ATTEMPTS,
    NO_RETRY,
    GiveUp,
    RetryAt,
    RetryOn,
    RetryPolicy,
    RetryType,
    inactive,
    next_attempt,
    parse,
    to_json,
)
from tests.unit.json_values import ANY_JSON

NOW = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
TRANSIENT = Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=503, retryable=True)
PERMANENT = Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=404)
GONE = Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=410, stop=True)


def highest(low: float, high: float) -> float:
    assert low == 0
    return high


def delays_s(policy: RetryPolicy, outcome: Outcome = TRANSIENT) -> list[float]:
    """Returns the waits of a run that never succeeds."""
    waits = []
    for attempt in range(1, 100):
        decided = next_attempt(policy, attempt, outcome, NOW, highest, NOW)
        if isinstance(decided, GiveUp):
            assert decided.reason is None
            return waits
        waits.append((decided.at - NOW).total_seconds())
    raise AssertionError("it never gives up")


def test_without_a_policy_there_is_one_attempt() -> None:
    assert parse(None, "retry") == NO_RETRY
    assert delays_s(NO_RETRY) == []


def test_an_unknown_member_is_not_called_inactive() -> None:
    """Another rule refuses it, with a similar name."""
    assert inactive({"max_retries": 3}) == {}
    assert inactive({"maxRetries": 3}).keys() == {"maxRetries"}


def test_fixed_waits_the_same_each_time() -> None:
    assert delays_s(RetryPolicy(RetryType.FIXED, max_retries=3, delay_s=30)) == [30, 30, 30]


def test_exponential_doubles_up_to_its_longest_wait() -> None:
    policy = RetryPolicy(RetryType.EXPONENTIAL, max_retries=6, delay_s=10, max_delay_s=100)

    assert delays_s(policy) == [10, 20, 40, 80, 100, 100]


def test_exponential_takes_its_wait_from_the_whole_range() -> None:
    policy = RetryPolicy(RetryType.EXPONENTIAL, max_retries=6, delay_s=10)

    decided = next_attempt(policy, 3, TRANSIENT, NOW, lambda low, high: low + (high - low) / 4, NOW)

    assert decided == RetryAt(NOW + timedelta(seconds=10))


def test_two_levels_are_rounds_of_immediate_retries_with_growing_pauses() -> None:
    policy = RetryPolicy(RetryType.TWO_LEVEL, immediate=2, delayed=2, increase_s=10)

    assert delays_s(policy) == [0, 0, 10, 0, 0, 20, 0, 0]
    assert policy.max_attempts == 9


def test_the_preset_of_two_levels_makes_24_attempts() -> None:
    policy = parse({"type": "two_level"}, "retry")

    assert policy.max_attempts == 24
    assert len(delays_s(policy)) == 23


def test_only_transient_failures_are_tried_again_unless_any() -> None:
    fixed = RetryPolicy(RetryType.FIXED)

    assert delays_s(fixed, PERMANENT) == []
    assert len(delays_s(RetryPolicy(RetryType.FIXED, retry_on=RetryOn.ANY), PERMANENT)) == 4


def test_410_stops_even_if_it_looks_transient_unless_any() -> None:
    stopped = Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=410, stop=True, retryable=True)

    assert delays_s(RetryPolicy(RetryType.FIXED), stopped) == []
    assert len(delays_s(RetryPolicy(RetryType.FIXED, retry_on=RetryOn.ANY), GONE)) == 4


@pytest.mark.parametrize(("asked", "waited"), [(None, 30), (5, 30), (30, 30), (500, 500)])
def test_retry_after_is_respected_if_it_is_longer(asked: int | None, waited: int) -> None:
    outcome = Outcome(Verdict.FAILED, Reason.HTTP_STATUS, retryable=True, retry_after_s=asked)

    assert delays_s(RetryPolicy(RetryType.FIXED, max_retries=1, delay_s=30), outcome) == [waited]


@pytest.mark.parametrize(("age_s", "late_s", "goes_on"), [(60, 30, True), (60, 31, False), (29, 0, False)])
def test_no_attempt_begins_after_the_greatest_age(age_s: int, late_s: int, goes_on: bool) -> None:
    policy = RetryPolicy(RetryType.FIXED, delay_s=30, max_age_s=age_s)

    decided = next_attempt(policy, 1, TRANSIENT, NOW, highest, NOW - timedelta(seconds=late_s))

    assert decided == (RetryAt(NOW + timedelta(seconds=30)) if goes_on else GiveUp(Reason.MAX_AGE))


def test_used_up_retries_are_not_a_matter_of_age() -> None:
    policy = RetryPolicy(RetryType.FIXED, max_retries=1, delay_s=30, max_age_s=1)

    assert next_attempt(policy, 2, TRANSIENT, NOW, highest, NOW - timedelta(days=1)) == GiveUp()


POLICIES = st.builds(
    RetryPolicy,
    type=st.sampled_from(RetryType),
    max_retries=st.integers(0, 49),
    delay_s=st.integers(0, 548 * 86_400),
    max_delay_s=st.integers(0, 548 * 86_400),
    retry_on=st.sampled_from(RetryOn),
    max_age_s=st.none() | st.integers(1, 548 * 86_400),
    never_on=st.lists(st.sampled_from(["5xx", "404", "TLS"]), max_size=2).map(tuple),
    immediate=st.integers(0, 9),
    delayed=st.integers(0, 4),
    increase_s=st.integers(0, 548 * 86_400),
)


@given(POLICIES, st.integers(1, 60), st.floats(0, 1), st.none() | st.integers(0, 3_600))
def test_every_policy_ends_and_never_goes_back_in_time(
    policy: RetryPolicy, attempt: int, share: float, asked: int | None
) -> None:
    outcome = Outcome(Verdict.FAILED, Reason.NO_ANSWER, retryable=True, retry_after_s=asked)

    decided = next_attempt(policy, attempt, outcome, NOW, lambda low, high: low + (high - low) * share, NOW)

    assert policy.max_attempts <= MOST_ATTEMPTS
    if attempt >= policy.max_attempts:
        assert decided == GiveUp()
    elif isinstance(decided, RetryAt):
        assert decided.at >= NOW + timedelta(seconds=asked or 0)
        assert policy.max_age_s is None or decided.at <= NOW + timedelta(seconds=policy.max_age_s)
    else:
        assert decided == GiveUp(Reason.MAX_AGE)


@pytest.mark.parametrize("retry_on", RetryOn)
@pytest.mark.parametrize(
    ("outcome", "ends"),
    [
        (TRANSIENT, True),
        (replace(TRANSIENT, http_status=500), True),
        (replace(TRANSIENT, http_status=502), False),
        (replace(TRANSIENT, http_status=429), True),
        (Outcome(Verdict.FAILED, Reason.TLS, retryable=True), True),
        (Outcome(Verdict.FAILED, Reason.DNS, retryable=True), False),
    ],
)
def test_a_listed_outcome_ends_the_run_at_once(retry_on: RetryOn, outcome: Outcome, ends: bool) -> None:
    policy = parse({"type": "fixed", "retryOn": retry_on.value, "neverOn": ["4xx", "503", "500-501", "TLS"]}, "retry")

    decided = next_attempt(policy, 1, outcome, NOW, highest, NOW)

    assert (decided == GiveUp()) is ends


@given(POLICIES)
def test_a_shown_rule_reads_back_as_the_same_rule(policy: RetryPolicy) -> None:
    again = parse(to_json(policy), "retry")

    assert to_json(again) == to_json(policy)
    assert again.max_attempts == policy.max_attempts


def test_the_defaults_are_those_of_the_reference() -> None:
    assert to_json(parse({"type": "fixed"}, "retry")) == {
        "type": "fixed",
        "maxRetries": 4,
        "delaySeconds": 30,
        "retryOn": "transient",
        "neverOn": [],
        "maxAgeSeconds": None,
    }
    assert to_json(parse({"type": "exponential"}, "retry"))["maxDelaySeconds"] == 3_600
    assert to_json(parse({}, "retry")) == {"type": "none"}


@pytest.mark.parametrize(
    ("value", "field", "code"),
    [
        ("fixed", "retry", "INVALID_FIELD"),
        ([], "retry", "INVALID_FIELD"),
        ({"type": "linear"}, "retry.type", "INVALID_FIELD"),
        ({"type": ["fixed"]}, "retry.type", "INVALID_FIELD"),
        ({"type": "fixed", "maxRetries": 50}, "retry.maxRetries", "INVALID_FIELD"),
        ({"type": "fixed", "maxRetries": -1}, "retry.maxRetries", "INVALID_FIELD"),
        ({"type": "fixed", "maxRetries": True}, "retry.maxRetries", "INVALID_FIELD"),
        ({"type": "fixed", "maxRetries": 1.0}, "retry.maxRetries", "INVALID_FIELD"),
        ({"type": "fixed", "delaySeconds": 548 * 86_400 + 1}, "retry.delaySeconds", "INVALID_FIELD"),
        ({"type": "none", "delaySeconds": "1"}, "retry.delaySeconds", "INVALID_FIELD"),
        ({"type": "fixed", "maxAgeSeconds": 0}, "retry.maxAgeSeconds", "INVALID_FIELD"),
        ({"type": "fixed", "retryOn": "never"}, "retry.retryOn", "INVALID_FIELD"),
        ({"type": "fixed", "neverOn": "4xx"}, "retry.neverOn", "INVALID_FIELD"),
        ({"type": "fixed", "neverOn": ["4xx"] * 21}, "retry.neverOn", "INVALID_FIELD"),
        *(
            ({"type": "fixed", "neverOn": ["TLS", item]}, "retry.neverOn[1]", "INVALID_FIELD")
            for item in ("6xx", "503-500", "tls", "ON_TIME", 404, None)
        ),
        ({"type": "two_level", "immediate": 9, "delayed": 5}, "retry", "INVALID_FIELD"),
        ({"type": "fixed", "retries": 1}, "retry.retries", "UNKNOWN_MEMBER"),
    ],
)
def test_a_broken_rule_is_named(value: object, field: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(value, "retry")

    assert (caught.value.field, caught.value.code) == (field, code)


@given(
    ANY_JSON
    | st.dictionaries(st.sampled_from(["type", "maxRetries", "delaySeconds", "retryOn", "immediate"]), ANY_JSON)
)
def test_any_json_raises_only_invalid_request(value: object) -> None:
    try:
        field: str | None = str(type(parse(value, "retry")).__name__)
    except InvalidRequest as refused:
        field = refused.field
    assert field == "RetryPolicy" or (field or "").startswith("retry")
