"""How an attempt counts for its target's circuit."""

from __future__ import annotations

import pytest

from sweephand.domain.flow_keys.circuits import Sign, sign_of
from sweephand.domain.run import Outcome, Reason, Verdict


@pytest.mark.parametrize(
    ("outcome", "sign"),
    [
        (Outcome(Verdict.SUCCEEDED, http_status=200), Sign.ALIVE),
        (Outcome(Verdict.ACCEPTED, http_status=202), Sign.ALIVE),
        (Outcome(Verdict.SILENT), Sign.NONE),
        (Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=503, retryable=True), Sign.FAILED),
        (Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=404), Sign.ALIVE),
        (Outcome(Verdict.FAILED, Reason.CONNECT), Sign.FAILED),
        (Outcome(Verdict.FAILED, Reason.NO_ANSWER), Sign.FAILED),
        (Outcome(Verdict.FAILED, Reason.BAD_PAYLOAD), Sign.NONE),
        (Outcome(Verdict.FAILED, Reason.GUARD), Sign.NONE),
    ],
)
def test_an_attempts_verdict_on_its_target(outcome, sign):
    assert sign_of(outcome) is sign
