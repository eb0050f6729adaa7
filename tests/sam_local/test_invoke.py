"""`sam local invoke`: each function with its sample event, on a table with something in it."""

from __future__ import annotations

import pytest

from sweephand.server.store.dynamo import keys


@pytest.fixture
def job(stack):
    """A job whose schedule is due every 30 s, on the emulator; gone after the test."""
    client = stack.client()
    fields = {
        "name": "sam-local",
        "schedules": [{"every": "PT30S"}],
        "action": {"type": "http", "url": "http://127.0.0.1:9/"},
    }
    made = client.post("/v1/jobs", json=fields)
    assert made.status_code == 201, made.text
    yield made.json()
    client.delete(f"/v1/jobs/{made.json()['id']}").raise_for_status()


def test_the_sweeper_sends_runs_due_within_the_look_ahead_and_advances_the_row(sam, stack, job):
    queue = {"QueueUrl": stack.file.run_queue_url}
    sqs = stack.boto("sqs")
    sqs.purge_queue(**queue)
    before = _row(stack, job)

    tally, log = sam.invoke("SweeperFunction", "sweeper/tick")

    states = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed"]
    waiting = sqs.get_queue_attributes(**queue, AttributeNames=states)["Attributes"]
    # 150 s of look-ahead hold five instants that are 30 s apart; time passes while the container starts.
    assert tally["sent"] >= 4
    assert sum(int(waiting[state]) for state in states) == tally["sent"]
    assert tally["advanced"] >= 1
    assert int(_row(stack, job)["next_run_at"]["N"]) >= int(before["next_run_at"]["N"]) + 120
    assert '"message":"tick"' in log


def test_the_executor_drops_the_pointer_of_a_deleted_schedule_and_writes_nothing(sam, stack, job):
    before = _table(stack)

    answer, log = sam.invoke("ExecutorFunction", "executor/runs")

    assert answer == {"batchItemFailures": []}
    assert "its schedule is gone" in log
    assert _table(stack) == before


def test_the_auditor_restores_a_lost_next_run(sam, stack, job):
    row = _row(stack, job)
    key = {name: row[name] for name in ("pk", "sk")}
    lost = {"TableName": stack.file.table_name, "Key": key, "UpdateExpression": "REMOVE next_run_at"}
    stack.boto("dynamodb").update_item(**lost)

    findings, _ = sam.invoke("AuditorFunction", "auditor/everything")

    assert findings["stopped"] == 1
    assert findings["unreadable"] == 0
    assert int(_row(stack, job)["next_run_at"]["N"]) >= int(row["next_run_at"]["N"])


def _row(stack, job):
    """Returns the schedule's item, as the table has it."""
    key = {"pk": keys.job("acme", job["id"]), "sk": keys.schedule(job["schedules"][0]["id"])}
    return stack.boto("dynamodb").get_item(
        TableName=stack.file.table_name,
        Key={name: {"S": value} for name, value in key.items()},
        ConsistentRead=True,
    )["Item"]


def _table(stack):
    pages = stack.boto("dynamodb").get_paginator("scan").paginate(TableName=stack.file.table_name)
    items = [item for page in pages for item in page["Items"]]
    return sorted(items, key=lambda item: (item["pk"]["S"], item["sk"]["S"]))
