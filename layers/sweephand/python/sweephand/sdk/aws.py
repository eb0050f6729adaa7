"""Calls from a user's process to AWS. No other module of the SDK imports botocore."""

from __future__ import annotations

from typing import Any

from sweephand.sdk.errors import ConfigError, NoAccess, TransportError

NO_CREDENTIALS = (
    "there are no AWS credentials, which receiving messages from SQS needs: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and"
    " AWS_SECRET_ACCESS_KEY; for the local stack, also set AWS_ENDPOINT_URL to its awsEndpointUrl"
)
REFUSALS = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "UnrecognizedClientException",
        "AWS.SimpleQueueService.NonExistentQueue",
        "QueueDoesNotExist",
    }
)
"""Error codes of AWS for which repeating the call does not help."""
BAD_SIGNATURES = frozenset(
    {"InvalidSignatureException", "RequestExpired", "RequestTimeTooSkewed", "SignatureDoesNotMatch"}
)
"""Error codes of AWS for a wrong secret, or a clock that is off by more than a few minutes."""
SIGNED_WRONGLY = "the secret access key is wrong, or the clock of this machine is off by minutes: `sweephand doctor`"
MISSING = "this needs botocore: install sweephand with its extra, as sweephand[worker]"


class ConditionFailed(Exception):
    """A conditional write that was refused. item: the item in the table."""

    def __init__(self, item: dict[str, Any]) -> None:
        super().__init__("the condition of the write does not hold")
        self.item = item


def client_of(service: str, region: str | None = None, endpoint: str | None = None) -> Any:
    """Returns a botocore client with the credentials of this machine. Raises ConfigError if botocore is missing.

    endpoint: of a local stack, which accepts any credentials.
    """
    try:
        from botocore.config import Config  # noqa: PLC0415 - an extra
        from botocore.session import Session  # noqa: PLC0415
    except ImportError as missing:
        raise ConfigError(MISSING) from missing
    config = Config(connect_timeout=5, read_timeout=30, retries={"mode": "standard"}, max_pool_connections=20)
    local = {"endpoint_url": endpoint, "aws_access_key_id": "local", "aws_secret_access_key": "local"}
    return Session().create_client(service, region_name=region, config=config, **(local if endpoint else {}))


def asked(client: Any, operation: str, place: str, **arguments: Any) -> dict[str, Any]:
    """Calls AWS and returns its answer. place: names the resource in error messages.

    Raises ConditionFailed, NoAccess, TransportError.
    """
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError  # noqa: PLC0415 - an extra

    try:
        answer: dict[str, Any] = getattr(client, operation)(**arguments)
    except NoCredentialsError as fault:
        raise NoAccess(NO_CREDENTIALS) from fault
    except (BotoCoreError, ClientError) as fault:
        said = getattr(fault, "response", {})
        code = said.get("Error", {}).get("Code")
        if code == "ConditionalCheckFailedException":
            raise ConditionFailed(said.get("Item", {})) from fault
        if code in BAD_SIGNATURES:
            raise NoAccess(
                f"{operation} of {place}: {SIGNED_WRONGLY} compares it with the service's: {fault}"
            ) from fault
        if code in REFUSALS:
            raise NoAccess(f"{operation} of {place}: {fault}") from fault
        raise TransportError(f"{operation} of {place}: {fault}") from fault
    return answer
