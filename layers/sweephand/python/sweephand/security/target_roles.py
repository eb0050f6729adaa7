"""Clients that act by the roles that jobs name: assumed for one tenant each, kept until shortly before they run out.

The tenant is the ExternalId, which the trust policy of a role asks for: so a tenant acts by its own roles alone,
whatever ARN its jobs name. Import this module when the first such job is read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from sweephand.security.token_cache import CachedToken, TokenCache
from sweephand.sources import Clock

SESSION_S = 3_600
"""A role assumed by who acts by a role already lasts an hour at most (IAM, role chaining)."""
KEPT_CLIENTS = 32
LONGEST_WAIT_S = 6.0
"""For another thread that assumes the same role: as long as STS is given."""


class RoleNotAssumedError(Exception):
    """cause: of botocore, as STS or the network gave it."""

    def __init__(self, cause: ClientError | BotoCoreError) -> None:
        super().__init__(str(cause))
        self.cause = cause


MakeClient = Callable[[str, str, int, Mapping[str, str]], Any]
"""(service, region, read time-out in seconds, credentials) -> a botocore client that repeats nothing by itself.

credentials: under the names of botocore's `create_client`.
"""


class TargetRoles:
    """sts: makes botocore's client, at the first role. Safe for threads."""

    def __init__(self, sts: Callable[[], Any], make_client: MakeClient, clock: Clock) -> None:
        self._sts = sts
        self._make_client = make_client
        self._clock = clock
        self._tokens = TokenCache()
        self._clients: OrderedDict[tuple[str, str, str, str, int], tuple[Mapping[str, str], Any]] = OrderedDict()
        self._lock = Lock()

    def client(self, service: str, region: str, role: str, tenant: str, timeout_s: int) -> Any:
        """A client of the service that acts by the role. timeout_s: how long its calls wait for an answer.

        Raises RoleNotAssumedError.
        """
        credentials = self.credentials(role, tenant)
        key = service, region, role, tenant, timeout_s
        # To make one takes milliseconds of CPU and no call: ten threads that want the same one wait for the first.
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
        """Under the names of botocore's `create_client`. Raises RoleNotAssumedError."""
        found: Mapping[str, str]
        found, _ = self._tokens.get(
            (role, tenant), self._clock.now(), lambda: self._assumed(role, tenant), wait_s=LONGEST_WAIT_S
        )
        return found

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
        given = answer["Credentials"]
        credentials = {
            "aws_access_key_id": given["AccessKeyId"],
            "aws_secret_access_key": given["SecretAccessKey"],
            "aws_session_token": given["SessionToken"],
        }
        return CachedToken(credentials, given["Expiration"])
