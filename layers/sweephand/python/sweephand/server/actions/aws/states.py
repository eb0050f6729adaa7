"""The action `states`: starts an execution of a Step Functions state machine under the run's id.

With standard workflows it may be repeated, because a name starts only one execution in 90 days. Express workflows start
another execution of the same name.
"""

from __future__ import annotations

from typing import Any, final

from botocore.exceptions import ClientError

from sweephand.base.records import dataclass
from sweephand.server.actions.aws.service import JsonAction, Sent, json_message, sent_from
from sweephand.server.actions.call import Call
from sweephand.server.actions.run_headers import trace_header
from sweephand.server.security.aws_targets import Arn


@final
@dataclass(frozen=True)
class States(JsonAction):
    """An execution of a state machine, with the payload as its input."""

    kind = "states"
    client = "stepfunctions"

    def send(self, call: Call, client: Any, target: Arn) -> Sent:
        """Starts the execution. An execution that was started before counts as success."""
        try:
            answer = client.start_execution(
                stateMachineArn=target.text,
                name=call.run_id,
                input=json_message(call),
                traceHeader=trace_header(call),
            )
        except ClientError as refused:
            if refused.response["Error"]["Code"] == "ExecutionAlreadyExists":
                return Sent(f"the execution {call.run_id} was started before", None)
            raise
        return sent_from(answer, "executionArn")
