"""Clients that use the roles named by jobs: assumed for one tenant each, cached until shortly before they expire.

The tenant is the ExternalId, which the trust policy of a role requires. A tenant can therefore use only its own roles,
whatever ARN its jobs name. Import this module when the first such job is read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from sweephand.base.sources import Clock
from sweephand.server.security.token_cache import CachedToken, TokenCache

SESSION_S = 3_600
"""The duration of a session. IAM allows one hour at most for a role assumed by a role (role chaining)."""
KEPT_CLIENTS = 32
LONGEST_WAIT_S = 6.0
"""How long to wait for another thread that is assuming the same role: the time limit of STS."""


class RoleNotAssumedError(Exception):
    """A role could not be assumed. cause: the error of botocore."""

    def __init__(self, cause: ClientError | BotoCoreError) -> None:
        super().__init__(str(cause))
        self.cause = cause


MakeClient = Callable[[str, str, int, Mapping[str, str]], Any]
"""(service, region, read timeout in seconds, credentials) -> a botocore client without retries.

credentials: by the parameter names of botocore's `create_client`.
"""


class TargetRoles:
    """Cached clients by role. sts: makes the STS client for the first role. Safe for threads."""

    def __init__(self, sts: Callable[[], Any], make_client: MakeClient, clock: Clock) -> None:
        self._sts = sts
        self._make_client = make_client
        self._clock = clock
        self._tokens = TokenCache()
        self._clients: OrderedDict[tuple[str, str, str, str, int], tuple[Mapping[str, str], Any]] = OrderedDict()
        self._lock = Lock()

    def client(self, service: str, region: str, role: str, tenant: str, timeout_s: int) -> Any:
        """Returns a client of the service that uses the role. timeout_s: how long its calls wait for an answer.

        Raises RoleNotAssumedError.
        """
        credentials = self.credentials(role, tenant)
        key = service, region, role, tenant, timeout_s
        # Creating a client takes milliseconds of CPU and no call, so threads that need the same one wait for the first.
        with self._lock:
            known = self._clients.get(key)
            if known is None or known[0] is not credentials:
                known = credentials, self._make_client(service, region, timeout_s, credentials)
            self._clients[key] = known
            self._clients.move_to_end(key)
            while len(self._clients) > KEPT_CLIENTS:
                self._clients.popitem(last=False)
            return known[1]

    def credentials(self, role: str, tenant: str) -> Mapping[str, str]:
        """Returns credentials as parameters of botocore's `create_client`. Raises RoleNotAssumedError."""
        assumed: Mapping[str, str]
        assumed, _ = self._tokens.get(
            (role, tenant), self._clock.now(), lambda: self._assumed(role, tenant), wait_s=LONGEST_WAIT_S
        )
        return assumed

    def _assumed(self, role: str, tenant: str) -> CachedToken:
        try:
            answer = self._sts().assume_role(
                RoleArn=role,
                RoleSessionName=f"sweephand-{tenant}"[:64],
                ExternalId=tenant,
                DurationSeconds=SESSION_S,
            )
        except (ClientError, BotoCoreError) as refused:
            raise RoleNotAssumedError(refused) from refused
        assumed = answer["Credentials"]
        credentials = {
            "aws_access_key_id": assumed["AccessKeyId"],
            "aws_secret_access_key": assumed["SecretAccessKey"],
            "aws_session_token": assumed["SessionToken"],
        }
        return CachedToken(credentials, assumed["Expiration"])
