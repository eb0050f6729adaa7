"""Two lists are applied to one job set at once: every order of the calls that the two have in common.

A call counts if it reads or writes the set: the queries of its members, and the transactions of its jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from threading import Semaphore, Thread
from typing import Any

import pytest

from sweephand.testing.taps import Act, Fault, Passing
from tests.contract.calls import Reply
from tests.contract.native.api import JOB, Api, api

SET = "/v1/job-sets/billing"
CALLS = 5
"""Calls of each apply: the query that plans, three transactions, the query that looks whether it was overtaken."""


class Orders:
    """Two requests, of which one runs at a time: after a call that counts, whoever is next in the order goes on."""

    def __init__(self, there: Api, order: Sequence[int]) -> None:
        self._api = there
        self._order = iter(order)
        self._begin = [Semaphore(0), Semaphore(0)]
        self._ended = [False, False]
        self._running = 0
        self._before: Fault | None = None

    def run(self, works: Sequence[Callable[[], Reply]]) -> list[Reply]:
        found: list[Any] = [None, None]

        def work(n: int) -> None:
            self._begin[n].acquire()
            try:
                found[n] = works[n]()
            except BaseException as raised:  # noqa: BLE001 - the test looks at it
                found[n] = raised
            self._ended[n] = True
            self._go_on(1 - n)

        threads = [Thread(target=work, args=(n,), daemon=True) for n in (0, 1)]
        for thread in threads:
            thread.start()
        taps = self._api.stage.taps
        self._before, taps.fault = taps.fault, self._meet
        try:
            self._go_on(next(self._order))
            for thread in threads:
                thread.join(30)
        finally:
            taps.fault = self._before
        return found

    def _meet(self, passing: Passing, act: Act) -> Any:
        me = self._running
        answer = act() if self._before is None else self._before(passing, act)
        if counts(passing):
            self._hand_over(me)
        return answer

    def _hand_over(self, me: int) -> None:
        following = next(self._order, me)
        if following != me and not self._ended[following]:
            self._go_on(following)
            self._begin[me].acquire()

    def _go_on(self, who: int) -> None:
        if not self._ended[who]:
            self._running = who
            self._begin[who].release()


def counts(passing: Passing) -> bool:
    if passing.operation == "TransactWriteItems":
        return True
    return passing.operation == "Query" and "SET#billing" in str(passing.request)


def job(key: str, what: str) -> dict[str, Any]:
    return {"key": key, **JOB, "description": what}


FIRST = [job("shared", "first"), job("goes", "first")]
LISTS = {
    "both change a job, make one and delete one": (
        [job("shared", "of a"), job("new-a", "of a")],
        [job("shared", "of b"), job("new-b", "of b")],
    ),
    "the same list": ([job("shared", "of a"), job("new-a", "of a")],) * 2,
    "each keeps what the other deletes": (
        [job("shared", "first"), job("new-a", "of a")],
        [job("goes", "first"), job("new-b", "of b")],
    ),
    "one key is made by both": (
        [job("shared", "of a"), job("new", "of a")],
        [job("shared", "first"), job("goes", "of b"), job("new", "of b")],
    ),
}


def orders(mine: int, others: int) -> Iterator[tuple[int, ...]]:
    """Yields each order in which the calls of two can come."""
    for places in combinations(range(mine + others), mine):
        yield tuple(0 if n in places else 1 for n in range(mine + others))


def state_of(there: Api) -> dict[str, str]:
    """Returns what each job of the set is like; checks that set and jobs say the same, each once and whole."""
    entries = there.get(SET).json["jobs"]
    jobs = {each["id"]: each for each in there.get("/v1/jobs", query="limit=100&include=schedules").json["items"]}
    assert {each["jobId"] for each in entries} == {*jobs}
    assert {(each["key"], each["jobId"]) for each in entries} == {(each["key"], each["id"]) for each in jobs.values()}
    assert len(entries) == len({each["key"] for each in entries})
    assert {each["state"] for each in entries} <= {"applied"}
    assert all(len(each["schedules"]) == len(JOB["schedules"]) for each in jobs.values())
    return {each["key"]: each["description"] for each in jobs.values()}


def as_wanted(jobs: Sequence[dict[str, Any]]) -> dict[str, str]:
    return {each["key"]: each["description"] for each in jobs}


SAMPLE = 4
"""A test run by hand or by CI takes each fourth order, the long tests all."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("lists", LISTS.values(), ids=LISTS)
def test_two_concurrent_lists_leave_one_applied_and_report_it_truthfully(lists: tuple[Any, Any]) -> None:
    told = {at_once(lists, order) for order in [*orders(CALLS, CALLS)][::SAMPLE]}

    assert (202, 202) in told or lists[0] == lists[1]
    assert lists[0] != lists[1] or told == {(200, 200)}


@pytest.mark.long
@pytest.mark.parametrize("lists", LISTS.values(), ids=LISTS)
def test_every_order_of_two_lists_leaves_a_set_that_matches_one_of_them(lists: tuple[Any, Any]) -> None:
    for order in orders(CALLS, CALLS):
        at_once(lists, order)


def at_once(lists: tuple[Any, Any], order: tuple[int, ...]) -> tuple[int, ...]:
    """Applies both, then sends the rest of each as a client does. Returns the first two statuses."""
    known = [as_wanted(each) for each in lists]
    with api() as there:
        assert there("PUT", SET, {"jobs": FIRST}).status == 200

        replies = Orders(there, order).run([lambda n=n: there("PUT", SET, {"jobs": lists[n]}) for n in (0, 1)])

        state, outcome = state_of(there), tuple(each.status for each in replies)
        assert {*outcome} <= {200, 202}, order
        assert all(what in {known[0].get(key), known[1].get(key), "first"} for key, what in state.items()), order
        assert outcome != (200, 200) or state in known, order
        ends = [again(there, lists[n], reply) for n, reply in enumerate(replies) if reply.status == 202]
        assert (ends.count(412) <= 1, 200 in {*outcome, *ends}) == (True, True), order
        assert state_of(there) in known, order
    return outcome


def again(there: Api, jobs: Sequence[dict[str, Any]], reply: Reply) -> int:
    """Sends the list with the token of its rest, as clients do; a refusal says why, and shows the plan."""
    assert reply.json["remaining"] > 0
    end = there("PUT", SET, {"jobs": jobs}, query={"token": reply.json["token"]})
    assert end.status == 200 or (end.code, "plan" in end.json) == ("PLAN_STALE", True)
    return end.status
