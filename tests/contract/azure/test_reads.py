"""How much of the table the lists read, and the ordinals of executions, which are not counted for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest
from botocore.client import BaseClient

from sweephand.server.facades.azure import history, lists
from sweephand.server.store.views import totals
from tests.contract.azure.api import COLLECTION, COLLECTIONS, EVERY_HOUR, HTTP, JOB, VERSION
from tests.support.endpoint import OK, WRONG

NEVER = {"retryType": "None"}
MINUTELY = {"frequency": "Minute"}


@contextmanager
def reads() -> Iterator[list[int]]:
    """Yields the numbers of rows that each query and batched read of the block answered."""
    found: list[int] = []
    call = BaseClient._make_api_call

    def counting(client, operation, arguments):
        answer = call(client, operation, arguments)
        if operation == "Query":
            found.append(len(answer["Items"]))
        elif operation == "BatchGetItem":
            found.append(sum(map(len, answer["Responses"].values())))
        return answer

    with mock.patch.object(BaseClient, "_make_api_call", counting):
        yield found


def test_a_list_of_jobs_without_runs_is_read_in_a_few_batches(api):
    for n in range(12):
        api.job(f"{COLLECTION}/jobs/job-{n:02}", startTime=api.at(3600))

    with reads() as few:
        assert len(api.get(f"{COLLECTION}/jobs", query={"$top": 2}).json["value"]) == 2
    with reads() as many:
        assert len(api.get(f"{COLLECTION}/jobs").json["value"]) == 12

    assert len(many) == len(few) <= 5


def test_jobs_with_a_few_runs_are_read_in_the_same_batches(api):
    for n in range(12):
        api.job(f"{COLLECTION}/jobs/job-{n:02}", startTime=api.at(60), recurrence=EVERY_HOUR if n % 2 else None)
    api.stage.run(2 * 3600 + 100)

    client = api.stage.world.table.client
    with (
        reads() as found,
        mock.patch.object(client, "batch_get_item", wraps=client.batch_get_item) as asked,
    ):
        shown = api.get(f"{COLLECTION}/jobs").json["value"]

    assert [each["properties"]["status"]["executionCount"] for each in shown] == [1, 3] * 6
    assert len(found) <= 6
    (table,) = asked.call_args.kwargs["RequestItems"].values()
    transferred = set(table["ExpressionAttributeNames"].values())
    assert transferred == {"pk", "sk", "state", "kind", "range_count", "first_started_at", "started_at"}


def test_a_list_by_the_keys_of_runs_agrees_with_the_ledger(api, monkeypatch):
    by_key = totals._places
    policy = {"retryType": "Fixed", "retryInterval": "PT10M", "retryCount": 2}
    api.stage.endpoint.script = [OK, WRONG, OK, OK, WRONG, WRONG, WRONG, OK] * 20
    half_hourly = {"frequency": "Minute", "interval": 30}
    for name, more in {
        "once": {"startTime": api.at(600)},
        "often": {"recurrence": MINUTELY},
        "retried": {"recurrence": half_hourly, "action": {**HTTP, "retryPolicy": policy}},
        "counted": {"recurrence": {**half_hourly, "count": 2}},
        "off": {"recurrence": half_hourly},
        "late": {"recurrence": EVERY_HOUR, "startTime": api.at(7200)},
        "by-hand": {"recurrence": EVERY_HOUR, "startTime": api.at(86_400)},
    }.items():
        api.job(f"{COLLECTION}/jobs/{name}", **more)
    known = 0

    for n in range(90):
        api.stage.run(83)
        if n == 30:
            api("PATCH", f"{COLLECTION}/jobs/off", {"properties": {"state": "Disabled"}})
            api("POST", f"{COLLECTION}/jobs/by-hand/run")
        if n == 50:
            api("PATCH", f"{COLLECTION}/jobs/off", {"properties": {"state": "Enabled"}})
            api.stage.pass_time(2 * 3600)
        monkeypatch.setattr(totals, "_places", by_key)
        with reads() as few:
            shown = api.get(f"{COLLECTION}/jobs").json
        monkeypatch.setattr(totals, "_places", lambda *_: None)
        with reads() as many:
            assert api.get(f"{COLLECTION}/jobs").json == shown, n
        known += len(many) - len(few)
    assert known > 90


def test_a_page_of_jobs_reads_no_earlier_job(api):
    api.collection(sku={"name": "P20Premium"})
    for n in range(12):
        api.job(f"{COLLECTION}/jobs/job-{n:02}", startTime=api.at(3600))
    client = api.stage.world.table.client

    with mock.patch.object(client, "batch_get_item", wraps=client.batch_get_item) as asked:
        reply = api.get(f"{COLLECTION}/jobs", query={"$skip": 9})

    keys = [each.kwargs["RequestItems"][api.stage.world.table.name]["Keys"] for each in asked.call_args_list]
    assert len(reply.json["value"]) == 3
    assert max(map(len, keys)) == 3


def test_a_page_of_collections_reads_only_their_rows(api):
    for n in range(12):
        api.collection(f"{COLLECTIONS}/c-{n:02}")
    client = api.stage.world.table.client

    with mock.patch.object(client, "batch_get_item", wraps=client.batch_get_item) as asked:
        shown = api.get(COLLECTIONS, query={"$skip": 4, "$top": 3}).json["value"]

    (read,) = asked.call_args_list
    assert [each["name"] for each in shown] == ["c-04", "c-05", "c-06"]
    assert len(read.kwargs["RequestItems"][api.stage.world.table.name]["Keys"]) == 3


def test_a_page_of_history_reads_few_rows_more_than_its_offset_and_size(api):
    api.stage.endpoint.script = [WRONG, OK] * 60
    policy = {"retryType": "Fixed", "retryInterval": "PT15S", "retryCount": 1}
    api.job(recurrence=MINUTELY, startTime=api.at(60), action={**HTTP, "retryPolicy": policy})
    api.stage.run(60 * 60 + 40)
    last = api.properties()["status"]["executionCount"]

    with reads() as found:
        page = api.history(query={"$skip": 30, "$top": 10})

    assert last == 60
    assert [last - each["repeatCount"] for each in page] == [15, 15, 16, 16, 17, 17, 18, 18, 19, 19]
    within_reach = 2 * 3
    """Rows of the runs whose retries could have begun after the page's last record."""
    assert sum(found) <= 40 + within_reach + 10
    with reads() as deep:
        assert len(api.history(query={"$skip": 100, "$top": 5})) == 5
    assert max(deep) > 100
    with reads() as filtered:
        assert len(api.history(query={"$filter": "status eq Failed", "$top": 1})) == 1
    assert sum(filtered) <= 20
    with reads() as none:
        assert api.history(query={"$filter": "status eq Postponed"}) == []
    assert sum(none) < 10


def test_pages_of_history_continue_where_the_previous_page_ended(api, monkeypatch):
    monkeypatch.setattr(lists, "PAGE", 7)
    monkeypatch.setattr(history, "MOST_LOOKED_AT", 3)
    api.stage.endpoint.script = [WRONG, WRONG, OK, OK] * 20
    api.stage.endpoint.answer = OK
    policy = {"retryType": "Fixed", "retryInterval": "PT15S", "retryCount": 1}
    error = {"type": "Http", "request": {"uri": "https://errors.example/", "method": "PUT"}}
    api.job(recurrence=MINUTELY, startTime=api.at(60), action={**HTTP, "retryPolicy": policy, "errorAction": error})
    api.stage.run(25 * 60 + 40)
    whole = api.get(f"{JOB}/history", query={"$top": 100}).json["value"]
    failed = [each for each in whole if each["properties"]["status"] == "Failed"]
    assert len(whole) > len(failed) + 20 > 40

    for given, kept in {
        "": whole,
        "$filter=status%20eq%20Failed": [each for each in whole if each["properties"]["status"] == "Failed"],
        "$skip=5": whole[5:],
    }.items():
        assert pages(api, given) == kept
    monkeypatch.setattr(history, "MOST_LOOKED_AT", 3)
    assert (
        pages(api, "$skip=2&$filter=status%20eq%20Failed")
        == [each for each in whole if each["properties"]["status"] == "Failed"][2:]
    )


def pages(api, query):
    """Follows the links of a history to its end. No page reads more than its rows, and those of retries that may belong
    to it.
    """
    found, version = [], VERSION
    while True:
        with reads() as rows:
            page = api.get(f"{JOB}/history", query=query, version=version).json
        assert sum(rows) <= 45
        found += page["value"]
        if page["nextLink"] is None:
            return found
        query, version = page["nextLink"].partition("?")[2], None


@pytest.mark.parametrize("token", ["", "x", "1-2-3-4", "1-2-3-4-5-6", "-1-2-3-4-5", "1" * 15 + "-2-3-4-5"])
def test_a_page_token_that_no_link_contained_is_refused_by_name(api, token):
    api.job()

    reply = api.get(f"{JOB}/history", query={"$skiptoken": token})

    assert (reply.status, reply.json["error"]["code"]) == (400, "BadRequest")
    assert "$skiptoken" in reply.json["error"]["message"]


def test_executions_keep_their_ordinals_while_an_earlier_one_is_retried(api):
    api.stage.endpoint.script = [OK, WRONG, OK, OK]
    policy = {"retryType": "Fixed", "retryInterval": "PT30M", "retryCount": 1}
    api.job(recurrence=MINUTELY, startTime=api.at(60), action={**HTTP, "retryPolicy": policy})
    api.stage.run(245)

    def shown():
        found = api.history(query={"$top": 100})
        return [(each["repeatCount"], each["status"]) for each in found][-4:]

    assert shown() == [(4, "Completed"), (3, "Completed"), (2, "Failed"), (1, "Completed")]
    api.stage.run(40 * 60)
    assert shown() == [(4, "Completed"), (3, "Completed"), (2, "Failed"), (1, "Completed")]
    assert (2, "Completed") in [(each["repeatCount"], each["status"]) for each in api.history(query={"$top": 20})]


def test_ordinals_skip_runs_sent_ahead_and_missed_runs(api):
    api.job(recurrence=EVERY_HOUR, startTime=api.at(3600))
    api.stage.run(3 * 3600 + 60)
    api.stage.pass_time(3 * 3600)
    api.stage.run(60)
    api("POST", f"{JOB}/run")
    api.stage.run(3600 - 200)

    status = api.properties()["status"]
    numbers = [each["repeatCount"] for each in api.history()]
    assert numbers == list(range(status["executionCount"], 0, -1))
    for _ in range(20):
        api.stage.run(20)
        numbers = [each["repeatCount"] for each in api.history()]
        assert numbers == list(range(len(numbers), 0, -1))
