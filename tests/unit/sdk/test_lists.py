"""Lists over all pages, and waiting for long work."""

from __future__ import annotations

import asyncio

import pytest

from sweephand.sdk import OperationFailed, TransportError
from sweephand.sdk.models import Operation, Redrive
from tests.unit.sdk.scripted import async_client, client, reply


def page(*names: str, cursor: str | None = None):
    return reply({"items": [{"id": name, "name": name} for name in names], "nextCursor": cursor})


def test_a_list_continues_over_short_and_empty_pages():
    sh, script = client(page("a", cursor="1"), page(cursor="2"), page("b", "c"))

    names = [job.name for job in sh.jobs.list(tag="x", page_size=2)]

    assert names == ["a", "b", "c"]
    assert [sent.query for sent in script.sent] == [
        {"tag": "x", "limit": "2"},
        {"tag": "x", "limit": "2", "cursor": "1"},
        {"tag": "x", "limit": "2", "cursor": "2"},
    ]


def test_a_list_requests_only_needed_pages():
    sh, script = client(page("a", "b", cursor="1"), page("c", "d", cursor="2"))

    assert [job.name for job in sh.jobs.list(max_items=3)] == ["a", "b", "c"]
    assert len(script.sent) == 2
    assert list(client()[0].jobs.list(max_items=0)) == []


def test_each_iteration_starts_again():
    sh, _ = client(page("a"), page("a", "b"))
    jobs = sh.jobs.list()

    assert [len(list(jobs)), len(list(jobs))] == [1, 2]


@pytest.mark.parametrize("cursors", [("1", "1"), ("1", "2", "1")])
def test_a_repeated_cursor_ends_the_list_with_an_error(cursors):
    sh, _ = client(*(page("a", cursor=cursor) for cursor in cursors))

    with pytest.raises(TransportError, match="GET /v1/jobs: the service repeated a cursor"):
        list(sh.jobs.list())


def test_pages_can_be_resumed():
    sh, script = client(page("a", cursor="1"), page("b"))

    first = next(iter(sh.jobs.list().pages()))
    rest = list(sh.jobs.list(cursor=first.next_cursor))

    assert [job.name for job in rest] == ["b"]
    assert script.sent[1].query == {"cursor": "1"}


def test_pages_stop_at_the_wanted_number_of_items():
    """Seen failing: `max_items` was ignored, and all pages were read."""
    sh, script = client(page("a", "b", cursor="1"), page("c", cursor="2"), page("a", "b", cursor="1"))

    cut = list(sh.jobs.list(page_size=2, max_items=3).pages())
    whole = list(sh.jobs.list(max_items=1).pages())

    assert [(len(each.items), each.next_cursor) for each in cut] == [(2, "1"), (1, "2")]
    assert [len(each.items) for each in whole] == [2]
    assert [sent.query.get("limit") for sent in script.sent] == ["2", "1", None]
    assert list(sh.jobs.list(max_items=0).pages()) == []


def test_an_empty_string_is_a_filter_and_none_is_not():
    sh, script = client(page(), page())

    list(sh.jobs.list(tag=""))
    list(sh.jobs.list(tag=None))

    assert [sent.query for sent in script.sent] == [{"tag": ""}, {}]


def test_asyncio_lists_all_pages():
    async def main():
        sh, _ = async_client(page("a", cursor="1"), page("b"), page("z"))
        names = [job.name async for job in sh.jobs.list()]
        first = await sh.jobs.list().first()
        return names, first.name

    assert asyncio.run(main()) == (["a", "b"], "z")


# Long work


def operation(state: str, done: int = 0, cause: str | None = None):
    progress = {"done": done, "total": 9, "failed": 0, "waitsFor": None}
    return {"id": "o-1", "kind": "redrive", "state": state, "progress": progress, "cause": cause}


def test_waiting_reports_each_change_and_returns_the_end():
    steps = [operation("RUNNING"), operation("RUNNING"), operation("PAUSED", 4), operation("DONE", 9)]
    sh, script = client(*map(reply, steps))
    told: list[int] = []

    done = sh.operations.wait(
        Redrive({"count": 9, "operation": operation("RUNNING")}), lambda now: told.append(now.progress.done)
    )

    assert done.state == "DONE"
    assert told == [0, 4, 9]
    assert script.sent[0].path == "/v1/operations/o-1"
    assert script.clock.slept_s == pytest.approx(0.5 + 0.75 + 1.125)


def test_waiting_without_long_work_returns_immediately():
    sh, script = client()

    assert sh.operations.wait(Redrive({"count": 0, "operation": None})) is None
    assert script.sent == []


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED"])
def test_unsuccessful_work_raises_an_error(state):
    sh, _ = client(reply(operation(state, 3, "a cause")))

    with pytest.raises(OperationFailed, match=rf"o-1 \(redrive\) is {state}: a cause") as failed:
        sh.operations.wait("o-1")

    assert failed.value.operation.progress.done == 3


def test_waiting_ends_at_its_time_limit():
    sh, script = client(*[reply(operation("RUNNING", 2))] * 99)

    with pytest.raises(OperationFailed, match="is RUNNING after 20 s: 2 of 9"):
        sh.operations.wait(Operation(operation("RUNNING")), timeout_s=20)

    assert script.clock.slept_s <= 20
