"""Long work through the real functions, queue and bucket: failed runs again, runs as a file, the end of a tenant."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from sweephand.base.errors import NotFound
from sweephand.local.aws.deploy import read_stack
from sweephand.server.store.dynamo import keys
from sweephand.server.store.operations.files import LEAST_PIECE, Files
from tests.local_stack.conftest import patiently, warm
from tests.local_stack.waiting import until

if TYPE_CHECKING:
    from tests.local_stack.conftest import LocalStack

pytestmark = pytest.mark.emulator


def test_failed_runs_can_be_run_again_as_a_group(stack: LocalStack) -> None:
    client = stack.client()

    def get(path: str) -> Any:
        return client.get(path).raise_for_status().json()

    action = {"type": "http", "url": "http://127.0.0.1:1/nobody-is-there"}
    job = client.post("/v1/jobs", json={"action": action}).raise_for_status().json()["id"]
    for _ in range(2):
        client.post(f"/v1/jobs/{job}/run", json={}).raise_for_status()

    groups = f"/v1/errors?jobId={job}"
    (group,) = until(lambda: get(groups)["items"], lambda items: bool(items) and items[0]["count"] == 2)
    body = {"group": group["id"], "ratePerMinute": 6_000, "expectedCount": 2}
    begun = client.post("/v1/errors:redrive", json=body).raise_for_status()
    operation = until(lambda: get(begun.headers["location"]), lambda there: there["state"] == "DONE")

    assert operation["progress"] == {"done": 2, "total": 2, "failed": 0, "waitsFor": None}
    runs = until(
        lambda: get(f"/v1/runs?jobId={job}")["items"],
        lambda found: len(found) == 4 and all(run["status"] == "COMPLETED" for run in found),
    )
    assert sum(run["rerunOf"] is not None for run in runs) == 2
    client.delete(f"/v1/jobs/{job}").raise_for_status()


def test_runs_are_exported_as_a_file_behind_a_link_that_needs_no_credential(stack: LocalStack) -> None:
    client = stack.client()
    job = client.post("/v1/jobs", json={"action": {"type": "event"}}).raise_for_status().json()["id"]
    for _ in range(3):
        client.post(f"/v1/jobs/{job}/run", json={}).raise_for_status()
    runs = f"/v1/runs?jobId={job}"
    until(
        lambda: client.get(runs).raise_for_status().json()["items"],
        lambda found: len(found) == 3 and all(run["status"] == "COMPLETED" for run in found),
    )

    begun = client.post("/v1/runs:export", json={"jobId": job, "format": "csv"}).raise_for_status()
    place = begun.headers["location"]
    operation = until(lambda: client.get(place).raise_for_status().json(), lambda there: there["state"] != "RUNNING")
    link = operation["result"]["link"]["url"]
    file = httpx.get(link, trust_env=False).raise_for_status()
    spoiled = httpx.get(link.replace("X-Amz-Signature=", "X-Amz-Signature=0"), trust_env=False)

    assert file.text == client.get(f"/v1/runs:export?jobId={job}").text
    assert file.headers["content-type"] == "text/csv; charset=utf-8"
    assert file.headers["content-disposition"].startswith('attachment; filename="runs-')
    assert spoiled.status_code == 403
    client.delete(f"/v1/jobs/{job}").raise_for_status()


def test_s3_joins_pieces_of_the_size_it_requires(stack: LocalStack) -> None:
    """The bucket itself, by the code that the function calls: pieces of real sizes, and one that is gone."""
    outputs = read_stack(stack.aws, stack.file.stack_name).outputs
    files = Files(stack.boto("s3"), outputs["FilesBucketName"])
    pieces = {"test/a": b"a" * LEAST_PIECE, "test/b": b"b" * (LEAST_PIECE + 1), "test/c": b"c"}
    for key, content in pieces.items():
        files.put(key, content, "text/plain", "x.txt")

    files.join("test/all", list(pieces), "text/plain", "x.txt")
    with pytest.raises(NotFound):
        files.join("test/none", ["test/a", "test/gone"], "text/plain", "x.txt")

    assert files.get("test/all") == b"".join(pieces.values())
    with pytest.raises(NotFound):
        files.get("test/none")
    assert not stack.boto("s3").list_multipart_uploads(Bucket=outputs["FilesBucketName"]).get("Uploads")
    files.clear("test/")
    with pytest.raises(NotFound):
        files.get("test/a")


JOBS = 60
"""More than two pages of them."""
AT_ONCE = 8


def test_deleting_a_tenant_with_many_jobs_deletes_everything_it_has(stack: LocalStack) -> None:
    provider = stack.provider()
    provider.put("/v1/tenants/umbrella/subscriptions/app").raise_for_status()
    acting = stack.provider("umbrella")

    def create(number: int) -> None:
        body = {"name": f"job-{number}", "action": {"type": "event"}, "schedules": [{"every": "PT1H"}]}
        patiently(lambda: acting.post("/v1/jobs", json=body)).raise_for_status()

    warm(acting, "/v1/jobs", AT_ONCE)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(create, range(JOBS)))

    begun = provider.delete("/v1/tenants/umbrella/subscriptions/app").raise_for_status()
    place = begun.headers["location"]
    seen: list[int] = []

    def look() -> Any:
        there = provider.get(place).raise_for_status().json()
        seen.append(there["progress"]["done"])
        return there

    operation = until(look, lambda there: there["state"] != "RUNNING")

    assert operation["state"] == "DONE", operation
    assert operation["progress"] == {"done": JOBS, "total": JOBS, "failed": 0, "waitsFor": None}
    assert seen == sorted(seen), "it only ever comes further"
    assert provider.get("/v1/tenants/umbrella").status_code == 404
    left = (
        stack.boto("dynamodb")
        .get_paginator("scan")
        .paginate(
            TableName=stack.file.table_name,
            FilterExpression="begins_with(pk, :t)",
            ExpressionAttributeValues={":t": {"S": "TENANT#umbrella"}},
        )
    )
    rows = [item for page in left for item in page["Items"]]
    own = {item["sk"]["S"] for item in rows if "#JOB#" not in item["pk"]["S"]}
    assert own <= {keys.LAST_NUMBER, keys.ORDINAL}, "what else a job leaves, its clean-up row takes along"
