"""Runs in a file: no run twice, none left out, whatever is cut off, comes twice or loses its answer."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from sweephand.base.errors import NotFound, QuotaExceeded, Unavailable
from sweephand.domain.instants import epoch_s
from sweephand.domain.operation import LAST_PAGE, Operation, OperationState
from sweephand.domain.run import Outcome, Reason, Run, State, Verdict
from sweephand.domain.runs import run_file
from sweephand.domain.runs.run_file import Format
from sweephand.domain.schedule import Lane
from sweephand.server.flow.bulk import carry_on, export_runs
from sweephand.server.flow.idempotency import Once
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.operations import verbs
from sweephand.server.flow.tenants import subscriptions
from sweephand.server.store.dynamo import keys
from sweephand.server.store.operations import operations as store
from sweephand.server.store.views.runs import RunMark
from sweephand.testing.service import URLS
from sweephand.testing.taps import Act, Passing
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, crash_after, crash_before, refused

QUEUE = URLS[Lane.OPERATIONS]
EACH_MINUTE = {"cron": "* * * * *"}
RUNS = 12
SMALL = 700
"""Bytes, fewer than two lines have."""


@pytest.fixture
def job(stage: Stage) -> Planned:
    """Makes a job with 12 runs, the third of which failed."""
    wrong = Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=404, message="=1+1")
    stage.endpoint.script += [Outcome(Verdict.SUCCEEDED), Outcome(Verdict.SUCCEEDED), wrong]
    planned = stage.create({**EACH_MINUTE, "count": RUNS})
    stage.run((RUNS + 1) * 60)
    assert len(stage.runs(planned)) == RUNS
    stage.taps.passed.clear()
    return planned


@pytest.fixture
def small(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file has many pieces, and what S3 joins may be as small."""
    monkeypatch.setattr(export_runs, "PIECE", SMALL)
    monkeypatch.setattr(export_runs, "LEAST_PIECE", SMALL)
    stage.bucket.least = SMALL


def begin(
    stage: Stage, planned: Planned | None, *, after: RunMark | None = None, once: Once | None = None, **params: str
) -> Operation:
    if planned is not None:
        params = {"jobId": planned.job.id, **params}
    return export_runs.begin(stage.world, TENANT, params, after, actor="acme.me", once=once)


def stored(stage: Stage, operation: Operation) -> Operation:
    with stage.untapped():
        return verbs.find(stage.world, TENANT, operation.id)


def file_of(stage: Stage, operation: Operation) -> str:
    there = stored(stage, operation)
    assert there.state is OperationState.DONE, there
    assert there.result is not None
    content = stage.bucket.objects[f"{TENANT}/{operation.id}/{there.result['file']}"]
    assert there.result["bytes"] == len(content)
    return content.decode()


def expected(runs: list[Run], form: Format = Format.CSV) -> str:
    """Returns all in one, without the end of a page or a piece: latest planned first."""
    return run_file.head(form) + run_file.lines(form, list(reversed(runs)), {run.job_id: run.job_id for run in runs})


def work_off(stage: Stage, rounds: int = 60) -> None:
    for _ in range(rounds):
        with suppress(Crash):
            stage.run(30)


@pytest.mark.parametrize("form", Format)
def test_an_exported_file_has_the_lines_of_the_list(stage: Stage, job: Planned, form: Format) -> None:
    operation = begin(stage, job, format=form.value)
    stage.run(10)

    assert file_of(stage, operation) == expected(stage.runs(job), form)
    there = stored(stage, operation)
    assert (there.done, there.total, there.failed) == (RUNS, RUNS, 0)
    (described,) = set(stage.bucket.described.values())
    assert described[0] == run_file.MEDIA_TYPES[form]
    assert described[1] == f'attachment; filename="runs-{operation.started_at:%Y%m%dT%H%M%SZ}.{form}"'


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("form", Format)
def test_pieces_are_joined_into_one_file(stage: Stage, job: Planned, form: Format) -> None:
    operation = begin(stage, job, format=form.value)
    stage.run(10)

    assert file_of(stage, operation) == expected(stage.runs(job), form)
    assert stage.taps.count("s3.UploadPartCopy") > 2
    assert stage.bucket.uploads == {}


@pytest.mark.usefixtures("small")
def test_a_piece_too_short_to_be_joined_is_continued(
    stage: Stage, job: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where few of many runs are wanted, or time is short, a page may find a line or none."""
    monkeypatch.setattr(export_runs, "PAGE_S", -1.0)

    operation = begin(stage, job)
    stage.run(10)
    rare = begin(stage, job, state="REQUEST_ERROR")
    stage.run(10)

    assert file_of(stage, operation) == expected(stage.runs(job))
    failed = [run for run in stage.runs(job) if run.state is State.REQUEST_ERROR]
    assert len(failed) == 1
    assert file_of(stage, rare) == expected(failed)
    assert stored(stage, rare).step == RUNS + 3, "a page a row, one for the end, one for the file"


@pytest.mark.parametrize(("form", "content"), [(Format.CSV, run_file.head(Format.CSV)), (Format.JSON_LINES, "")])
def test_an_export_without_runs_writes_a_file_without_rows(stage: Stage, form: Format, content: str) -> None:
    operation = begin(stage, stage.create(), format=form.value)
    stage.run(10)

    assert file_of(stage, operation) == content
    assert stored(stage, operation).done == 0


def test_an_export_without_a_job_holds_the_runs_that_did_not_succeed(stage: Stage, job: Planned) -> None:
    operation = begin(stage, None)
    stage.run(10)

    assert file_of(stage, operation) == expected([run for run in stage.runs(job) if run.state is not State.SUCCESS])


def test_expired_runs_are_not_exported(stage: Stage, job: Planned) -> None:
    """Though DynamoDB has not deleted it yet."""
    first, *others = stage.runs(job)
    over = {"N": str(epoch_s(stage.clock.now()))}
    stage.edit_item(keys.runs(TENANT, first.schedule_id or ""), keys.run(first.uuid), expires_at=over)

    operation = begin(stage, job)
    stage.run(10)

    assert file_of(stage, operation) == expected(others)


def test_an_export_of_an_unknown_job_does_not_start(stage: Stage, job: Planned) -> None:
    before = stage.items()
    with pytest.raises(NotFound):
        begin(stage, None, jobId="01a400f6-36fa-71e9-9550-323b38da5e82")
    with pytest.raises(NotFound):
        begin(stage, job, scheduleId="01a400f6-36fa-71e9-9550-323b38da5e82")

    assert stage.items() == before


# Whatever happens

S3 = ["PutObject", "GetObject", "CreateMultipartUpload", "UploadPartCopy", "CompleteMultipartUpload"]
CALLS = [*(f"s3.{name}" for name in S3), "dynamodb.UpdateItem", "dynamodb.Query", "sqs.SendMessageBatch"]


@pytest.mark.sampled(5)
@pytest.mark.repeats
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost, refused], ids=lambda each: each.__name__)
@pytest.mark.parametrize("skip", [0, 1])
def test_an_export_holds_each_run_once_wherever_it_is_interrupted(
    stage: Stage, job: Planned, monkeypatch: pytest.MonkeyPatch, call: str, fault: Any, skip: int
) -> None:
    monkeypatch.setattr(export_runs, "PAGE_S", -1.0)  # so that pieces are gone on with, too
    operation = begin(stage, job)
    met = 0

    def nth(passing: Passing, act: Act) -> Any:
        nonlocal met
        if passing.name != call or (passing.service == "sqs" and "operations" not in str(passing.request)):
            return act()
        met += 1
        return fault(passing, act) if met == skip + 1 else act()

    if call == "sqs.SendMessageBatch":  # its first message went with the request
        monkeypatch.setattr("sweephand.server.flow.bulk.carry_on.STRETCH_S", -1.0)
    with stage.taps.faulty(nth):
        work_off(stage, 3 if met > skip else 120)

    once = {"s3.CreateMultipartUpload", "s3.CompleteMultipartUpload"}
    assert met > (0 if call in once else skip)
    assert file_of(stage, operation) == expected(stage.runs(job))
    assert stored(stage, operation).done == RUNS
    unknown = {crash_before, crash_after} | ({answer_lost} if call == "s3.CreateMultipartUpload" else set())
    if fault not in unknown:  # what nobody knows of goes by the bucket's own rule
        assert stage.bucket.uploads == {}


@pytest.mark.usefixtures("small")
def test_every_page_can_be_processed_twice(stage: Stage, job: Planned) -> None:
    operation = begin(stage, job)
    for _ in range(30):
        with stage.untapped():
            now = stored(stage, operation)
            if now.state is not OperationState.RUNNING:
                break
            export_runs.page(stage.world, now)
        stage.sqs.duplicate(QUEUE)
        stage.deliver(Lane.OPERATIONS)

    assert file_of(stage, operation) == expected(stage.runs(job))


@pytest.mark.usefixtures("small")
def test_only_one_of_two_readers_of_a_page_counts(stage: Stage, job: Planned) -> None:
    """The ledger changed between them, so their pieces differ. The later one, which is not counted, writes last."""
    operation = begin(stage, job)
    (newest, *_) = reversed(stage.runs(job))
    twin = iter([True])

    def late(passing: Passing, act: Act) -> Any:
        if passing.name == "s3.PutObject" and next(twin, False):
            stage.taps.fault = None
            stage.edit_item(keys.runs(TENANT, newest.schedule_id or ""), keys.run(newest.uuid), answer={"S": "x" * 90})
            stage.sqs.duplicate(QUEUE)
            for message in stage.sqs._queues[QUEUE].messages:
                message.visible_at = stage.clock.now()
            stage.deliver(Lane.OPERATIONS)
        return act()

    with stage.taps.faulty(late):
        stage.deliver(Lane.OPERATIONS)
    work_off(stage, 3)

    assert file_of(stage, operation) == expected(stage.runs(job))
    assert stored(stage, operation).done == RUNS


@pytest.mark.usefixtures("small")
def test_a_written_file_that_is_gone_is_reported(stage: Stage, job: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operation rested longer than the bucket keeps files."""
    monkeypatch.setattr("sweephand.server.flow.bulk.carry_on.STRETCH_S", -1.0)
    operation = begin(stage, job)
    stage.deliver(Lane.OPERATIONS)
    verbs.pause(stage.world, operation)
    stage.bucket.objects.clear()

    verbs.resume(stage.world, stored(stage, operation))
    work_off(stage)

    there = stored(stage, operation)
    assert (there.state, there.cause) == (OperationState.FAILED, "a file that was written before is gone")
    assert stage.bucket.uploads == {}
    assert export_runs.link(stage.world, there) is None


def test_a_job_deleted_during_an_export_ends_it_with_a_cause(stage: Stage, job: Planned) -> None:
    operation = begin(stage, job)
    stage.delete(job)
    stage.deliver(Lane.OPERATIONS)

    there = stored(stage, operation)
    assert (there.state, there.cause) == (OperationState.FAILED, "no such job")


@pytest.mark.usefixtures("small")
def test_a_cancelled_export_stops_writing_and_leaves_no_upload(stage: Stage, job: Planned) -> None:
    operation = begin(stage, job)

    def cancelled(passing: Passing, act: Act) -> Any:
        if passing.name == "s3.UploadPartCopy":
            stage.taps.fault = None
            verbs.cancel(stage.world, operation)
        return act()

    with stage.taps.faulty(cancelled):
        stage.deliver(Lane.OPERATIONS)
    written = stage.taps.count("s3.PutObject")
    work_off(stage, 3)

    there = stored(stage, operation)
    assert (there.state, there.result) == (OperationState.CANCELLED, None)
    assert stage.taps.count("s3.PutObject") == written
    assert stage.bucket.uploads == {}
    assert export_runs.link(stage.world, there) is None


@pytest.mark.usefixtures("small")
def test_the_pieces_of_a_cancelled_export_are_deleted_once_no_worker_can_be_active(stage: Stage, job: Planned) -> None:
    operation = half_written(stage, job)
    verbs.cancel(stage.world, operation)
    other = half_written(stage, job)

    stage.clock.advance(LAST_PAGE.total_seconds() - 1)
    stage.deliver(Lane.OPERATIONS)
    assert pieces_of(stage, operation)

    stage.run(2)
    assert (pieces_of(stage, operation), len(pieces_of(stage, other)) > 0) == ([], True)
    assert operation.id not in str(stage.waiting())
    assert stored(stage, operation).state is OperationState.CANCELLED


@pytest.mark.repeats
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("fault", [crash_before, crash_after, refused, answer_lost])
@pytest.mark.parametrize(
    "call",
    ["dynamodb.UpdateItem", "sqs.SendMessageBatch", "s3.ListObjectsV2", "s3.DeleteObjects"],
)
def test_the_pieces_of_a_cancelled_export_are_deleted_after_any_interruption(
    stage: Stage, job: Planned, fault: Any, call: str
) -> None:
    operation = half_written(stage, job)

    with stage.taps.once(call, fault):
        with suppress(Crash, Unavailable):
            verbs.cancel(stage.world, operation)
        verbs.cancel(stage.world, operation)
        with suppress(Crash):
            stage.run(300)
    stage.run(1_800)

    assert pieces_of(stage, operation) == []
    assert stage.waiting() == {}


@pytest.mark.usefixtures("small")
def test_the_cleanup_of_a_cancelled_export_survives_a_lost_message(stage: Stage, job: Planned) -> None:
    operation = half_written(stage, job)
    verbs.cancel(stage.world, operation)
    for url in URLS.values():
        stage.sqs.purge(url)

    stage.run(1_800)

    assert pieces_of(stage, operation) == []


@pytest.mark.usefixtures("small")
def test_a_dead_letter_does_not_fail_a_cancelled_export(stage: Stage, job: Planned) -> None:
    operation = half_written(stage, job)
    cancelled = verbs.cancel(stage.world, operation)

    carry_on.dead(stage.world, store.pointer_to(cancelled, stage.clock.now()))

    assert stored(stage, operation).state is OperationState.CANCELLED


def half_written(stage: Stage, job: Planned) -> Operation:
    """Makes one with pieces, on which nobody works: whoever was has died."""
    operation = begin(stage, job)
    with stage.taps.once("s3.PutObject", crash_after, skip=2), suppress(Crash):
        stage.deliver(Lane.OPERATIONS)
    assert pieces_of(stage, operation)
    return stored(stage, operation)


def pieces_of(stage: Stage, operation: Operation) -> list[str]:
    return [key for key in stage.bucket.objects if operation.id in key]


# Bounds


@pytest.mark.parametrize("most", [5, RUNS - 1])
def test_runs_beyond_the_limit_go_to_another_file(
    stage: Stage, job: Planned, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(export_runs, "MOST_RUNS", most)
    lines, after, files = "", None, 0
    while True:
        operation = begin(stage, job, after=after)
        stage.run(10)
        lines += file_of(stage, operation).removeprefix(run_file.head(Format.CSV))
        files += 1
        result = stored(stage, operation).result
        assert result is not None
        if result["behind"] is None:
            break
        after = (result["behind"][0], result["behind"][1])

    assert run_file.head(Format.CSV) + lines == expected(stage.runs(job))
    assert files == -(-RUNS // most)


def test_a_file_that_exactly_reaches_the_limit_is_the_last(
    stage: Stage, job: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_runs, "MOST_RUNS", RUNS)
    operation = begin(stage, job)
    stage.run(10)

    result = stored(stage, operation).result
    assert result is not None
    assert result["behind"] is None


def test_the_number_of_concurrent_exports_is_limited(stage: Stage, job: Planned) -> None:
    begun = [begin(stage, job) for _ in range(export_runs.AT_ONCE)]
    verbs.pause(stage.world, begun[0])
    before = stage.items()

    with pytest.raises(QuotaExceeded):
        begin(stage, job)
    assert stage.items() == before

    stage.run(10)
    begin(stage, job)  # of those that have ended, places are free
    begin(stage, job)
    with pytest.raises(QuotaExceeded):
        begin(stage, job)
    verbs.cancel(stage.world, begun[0])
    begin(stage, job)


def _begun_before_it(stage: Stage, job: Planned) -> int:
    """Returns how many begin between the read and the write of a request, if the request itself is refused."""
    other: list[Operation] = []

    def first(passing: Passing, act: Act) -> Any:
        if passing.operation == "TransactWriteItems":
            stage.taps.fault = None
            other.append(begin(stage, job))
        return act()

    with stage.taps.faulty(first), pytest.raises(QuotaExceeded):
        begin(stage, job)
    return len(other)


def test_one_of_two_concurrent_requests_gets_the_last_place(stage: Stage, job: Planned) -> None:
    for _ in range(export_runs.AT_ONCE - 1):
        begin(stage, job)

    assert _begun_before_it(stage, job) == 1
    assert len(stage.sqs.bodies(QUEUE)) == export_runs.AT_ONCE


def test_a_place_taken_by_another_export_is_not_taken_again(stage: Stage, job: Planned) -> None:
    for _ in range(export_runs.AT_ONCE):
        begin(stage, job)
    stage.run(10)
    for _ in range(export_runs.AT_ONCE - 1):
        begin(stage, job)

    assert _begun_before_it(stage, job) == 1


@pytest.mark.parametrize("fault", [answer_lost, crash_after, crash_before], ids=lambda each: each.__name__)
def test_the_same_key_finds_its_export_even_when_no_place_is_left(stage: Stage, job: Planned, fault: Any) -> None:
    once = Once("k", "d")
    with stage.taps.once("dynamodb.TransactWriteItems", fault), suppress(Crash):
        begin(stage, job, once=once)
    first = begin(stage, job, once=once)
    with suppress(QuotaExceeded):
        for _ in range(export_runs.AT_ONCE):
            begin(stage, job)

    assert begin(stage, job, once=once).id == first.id
    operations = [item for item in stage.items() if item["sk"]["S"].startswith("OP#")]
    assert len(operations) == export_runs.AT_ONCE


# The link


def test_each_request_gets_a_link_that_expires_no_later_than_the_file(stage: Stage, job: Planned) -> None:
    operation = begin(stage, job)
    assert export_runs.link(stage.world, operation) is None
    stage.run(10)
    there = stored(stage, operation)
    assert there.ended_at is not None

    asked_at = stage.clock.now()
    first = export_runs.link(stage.world, there)
    stage.clock.move_to(there.ended_at + export_runs.FILE_KEPT - timedelta(seconds=60))
    last = export_runs.link(stage.world, there)
    stage.clock.advance(61)

    assert first is not None
    assert first.expires_at == asked_at + timedelta(seconds=export_runs.LINK_S)
    assert f"{TENANT}/{operation.id}/" in first.url
    assert f"expires={export_runs.LINK_S}" in first.url
    assert last is not None
    assert "expires=60" in last.url
    assert export_runs.link(stage.world, there) is None
    assert "signature" not in str(stage.items())


def test_a_link_is_never_logged(stage: Stage, job: Planned) -> None:
    operation = begin(stage, job)
    stage.run(10)
    export_runs.link(stage.world, stored(stage, operation))

    assert "signature" not in str(stage.journal.lines)


def test_deleting_a_tenant_deletes_only_its_own_files(stage: Stage, job: Planned) -> None:
    begin(stage, job)
    stage.run(10)
    begun = begin(stage, job)
    stage.bucket.objects["acme2/x/runs"] = b"another tenant's"
    subscriptions.subscribe(stage.world, TENANT, "app")
    verbs.pause(stage.world, begun)
    subscriptions.unsubscribe(stage.world, TENANT, "app", None)
    stage.run(600)

    assert list(stage.bucket.objects) == ["acme2/x/runs"]
    assert not [item for item in stage.items() if "PLACE#" in item["sk"]["S"]]
