from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from sweephand.server.security.token_cache import KEPT, MARGIN, CachedToken, TokenCache

NOW = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def made(value: str, lives: timedelta = HOUR, now: datetime = NOW) -> CachedToken:
    return CachedToken(value, now + lives)


def test_a_pass_is_made_once_and_serves_until_shortly_before_its_end() -> None:
    tokens = TokenCache()

    assert tokens.get("k", NOW, lambda: made("a"), wait_s=1) == ("a", False)
    last = NOW + HOUR - MARGIN - timedelta(seconds=1)
    assert tokens.get("k", last, lambda: made("b"), wait_s=1) == ("a", True)
    later = last + timedelta(seconds=1)
    assert tokens.get("k", later, lambda: made("b", now=later), wait_s=1) == ("b", False)


def test_one_of_a_short_life_serves_most_of_it() -> None:
    tokens = TokenCache()
    tokens.get("k", NOW, lambda: made("a", timedelta(seconds=30)), wait_s=1)

    assert tokens.get("k", NOW + timedelta(seconds=23), lambda: made("b"), wait_s=1) == ("a", True)
    assert tokens.get("k", NOW + timedelta(seconds=24), lambda: made("b"), wait_s=1) == ("b", False)


def test_one_that_was_refused_is_not_given_again() -> None:
    tokens = TokenCache()
    tokens.get("k", NOW, lambda: made("a"), wait_s=1)

    assert tokens.get("k", NOW, lambda: made("b"), wait_s=1, not_this="a") == ("b", False)
    assert tokens.get("k", NOW, lambda: made("c"), wait_s=1, not_this="a") == ("b", True), "another thread's new one"


def test_an_unavailable_token_is_requested_again() -> None:
    tokens = TokenCache()

    def fails() -> CachedToken:
        raise ValueError("none")

    with pytest.raises(ValueError, match="none"):
        tokens.get("k", NOW, fails, wait_s=1)
    assert tokens.get("k", NOW, lambda: made("a"), wait_s=1) == ("a", False)


def test_a_caller_that_cannot_wait_makes_a_token_too() -> None:
    tokens, begun, go_on = TokenCache(), threading.Event(), threading.Event()

    def slow() -> CachedToken:
        begun.set()
        go_on.wait(60)
        return made("slow")

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(tokens.get, "k", NOW, slow, wait_s=1)
        begun.wait(60)
        assert tokens.get("k", NOW, lambda: made("quick"), wait_s=0.01) == ("quick", False)
        go_on.set()
        assert first.result() == ("slow", False)


def test_memory_is_bounded_also_by_what_cannot_be_had() -> None:
    tokens = TokenCache()

    def fails() -> CachedToken:
        raise ValueError("none")

    for number in range(3 * KEPT):
        tokens.get(number, NOW, lambda: made("a"), wait_s=1)
        with pytest.raises(ValueError, match="none"):
            tokens.get(f"bad {number}", NOW, fails, wait_s=1)

    assert len(tokens._kept) == KEPT
    assert len(tokens._making) <= 2 * KEPT
    assert tokens.get(3 * KEPT - 1, NOW, lambda: made("b"), wait_s=1) == ("a", True)
    assert tokens.get(0, NOW, lambda: made("b"), wait_s=1) == ("b", False)
