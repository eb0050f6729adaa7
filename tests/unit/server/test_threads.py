"""Threads that are kept: all at once, whatever one of them does."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from functools import partial
from itertools import count

import pytest

from sweephand.server.threads import Threads

SOON_S = 60


def test_all_pieces_are_under_way_at_once_and_the_answers_are_in_their_order() -> None:
    all_there = threading.Barrier(10)

    def act(piece: int) -> int:
        all_there.wait(SOON_S)
        return piece * piece

    assert Threads("x").map(act, range(10)) == [n * n for n in range(10)]
    assert Threads("x").map(act, []) == []


def hang(until: threading.Event) -> None:
    until.wait(SOON_S)


def test_threads_are_reused_and_a_hanging_one_delays_no_other() -> None:
    threads, release = Threads("kept"), threading.Event()
    used: set[int] = set()

    def named(_: int) -> None:
        used.add(threading.get_ident())

    threads.begin(partial(hang, release))
    for _ in range(50):
        threads.map(named, [1, 2])
    release.set()

    assert len(used) < 25
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "kept")


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_exception_of_one_thread_is_raised_when_all_have_ended(failing: int) -> None:
    ended: list[int] = []
    others_may_end = threading.Event()

    def act(piece: int) -> None:
        if piece == failing:
            others_may_end.set()
            raise KeyboardInterrupt
        others_may_end.wait(SOON_S)
        ended.append(piece)

    with pytest.raises(KeyboardInterrupt):
        Threads("x").map(act, [0, 1, 2])
    assert sorted(ended) == sorted({0, 1, 2} - {failing})


def test_a_thread_serves_again_after_its_work_failed() -> None:
    threads = Threads("again")

    for failing in (True, False):
        with pytest.raises(ZeroDivisionError) if failing else nullcontext():
            assert threads.map(lambda piece: 1 // piece, [0, 1] if failing else [1, 1]) == [1, 1]


def test_more_is_asked_for_while_a_piece_hangs_and_again_as_soon_as_what_came_has_ended() -> None:
    release, seen, came = threading.Event(), list[int](), iter([[1, 2], [3], []])
    seconds = count(step=1)

    def act(piece: int) -> None:
        if piece == 0:
            hang(release)
        seen.append(piece)

    def more() -> list[int]:
        there = next(came, [])
        if not there:
            release.set()
        return there

    Threads("more").work(act, [0], more, lambda: float(next(seconds)))

    assert sorted(seen) == [0, 1, 2, 3]


def test_pieces_that_end_soon_ask_for_no_more() -> None:
    seen: list[int] = []

    Threads("soon").work(seen.append, [1, 2], unexpected, lambda: 0.0)

    assert sorted(seen) == [1, 2]


def test_the_error_of_a_piece_is_raised_once_all_have_ended_and_no_more_is_asked_for() -> None:
    seen: list[int] = []
    seconds = count(step=1)

    def act(piece: int) -> None:
        seen.append(piece)
        if piece == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Threads("error").work(act, [1, 2], list, lambda: float(next(seconds)))

    assert sorted(seen) == [1, 2]


def unexpected() -> list[int]:
    raise AssertionError("nothing hangs")
