"""One tenant's slow targets and another's second: each message says whose it is, and SQS does the rest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sweephand.domain.message import decode
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.domain.schedule import Lane
from sweephand.server.flow.jobs import creation
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import manual
from sweephand.server.flow.tenants import tenancy
from sweephand.testing.service import URLS
from tests.support.stage import TENANT, Stage, stage
from tests.unit.server.flow.common import MINUTE, SECOND, fixed, once

OTHER = "globex"
EXECUTORS, BATCH = 4, 10
"""The default of FastConcurrency, and what one executor takes at a time."""


@pytest.fixture
def shared() -> Iterator[Stage]:
    with stage() as made:
        tenancy.create_tenant(made.world, OTHER, None)
        yield made


def create(stage: Stage, tenant: str, *timings: dict[str, object], **action: object) -> Planned:
    return creation.create_job(stage.world, tenant, stage.draft(*timings, action=stage.action(**action)), None)


def whose(stage: Stage, lane: Lane = Lane.FAST) -> list[tuple[str, str | None]]:
    """Returns for each message that waits: the tenant in it, and the group that SQS sees."""
    bodies, groups = stage.sqs.bodies(URLS[lane]), stage.sqs.groups(URLS[lane])
    return [(decode(body).tenant, group) for body, group in zip(bodies, groups, strict=True)]


def test_a_tenant_is_served_on_time_while_the_targets_of_another_hang_on_every_executor(shared: Stage) -> None:
    for _ in range(3):
        create(shared, TENANT, *[once(20 * MINUTE)] * 40)
    create(shared, OTHER, once(20 * MINUTE + SECOND))
    shared.run(19 * 60 + 59)
    shared.clock.advance(1)
    busy = [shared.sqs.receive(URLS[Lane.FAST], BATCH) for _ in range(EXECUTORS)]
    shared.clock.advance(1)

    first = shared.sqs.receive(URLS[Lane.FAST], BATCH)

    assert {decode(message.body).tenant for batch in busy for message in batch} == {TENANT}
    assert [decode(message.body).tenant for message in first] == [OTHER, *[TENANT] * (BATCH - 1)]


def test_messages_of_the_api_the_sweep_and_the_executor_name_their_tenant(shared: Stage) -> None:
    for tenant in (TENANT, OTHER):
        soon = create(shared, tenant, once(), retry=fixed(60))
        create(shared, tenant, once(), outcome={"answerTimeoutSeconds": 60})
        create(shared, tenant, {"every": "PT1M", "startTime": once(30 * MINUTE)["at"]})
        manual.run_now(shared.world, tenant, soon.job.id, None, None)
    by_api = {lane: whose(shared, lane) for lane in (Lane.FAST, Lane.SLOW)}
    shared.endpoint.answer = Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=503, retryable=True)
    shared.run(61)
    by_executor = whose(shared)
    shared.run(27 * 60)
    by_sweep = whose(shared)

    for sent in (*by_api.values(), by_executor, by_sweep):
        assert {tenant for tenant, _ in sent} == {TENANT, OTHER}
        assert all(tenant == group for tenant, group in sent)
