"""`credentials`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from collections.abc import Sequence

from sweephand.sdk import models
from sweephand.sdk.sync.caller import Caller
from sweephand.sdk.sync.pages import Pages
from sweephand.sdk.transport.request import ABSENT, Absent, Named, Request, part


class Credentials:
    """The methods of `credentials`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(
        self,
        *,
        name: str | Absent | None = ABSENT,
        scopes: Sequence[str] | Absent | None = ABSENT,
        idempotency_key: str | None = None,
    ) -> models.IssuedCredential:
        """Creates a credential with scopes that its creator has. Its secret is shown once.

        Args:
            name: Its name, for people and for filters.
            scopes: The scopes that the credential grants. Values: `admin`, `errors:edit`, `jobs:read`,
                `jobs:write`, `provider:*`, `provider:admin`, `runs:write`, `tasks:write`.
            idempotency_key: A repetition with the same key within 24 hours has no further effect.
        """
        return models.IssuedCredential(
            self._caller.json(
                Request(
                    "POST",
                    "/v1/credentials",
                    body={"name": name, "scopes": scopes},
                    keyed=True,
                    key=idempotency_key,
                    acting=True,
                )
            )
        )

    def list(
        self, *, page_size: int | None = None, max_items: int | None = None, cursor: str | None = None
    ) -> Pages[models.Credential]:
        """Lists the credentials, without their secrets.

        Args:
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return Pages(
            self._caller,
            Request("GET", "/v1/credentials", acting=True),
            models.Credential,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    def rotate(
        self, credential: Named, *, overlap_seconds: int | Absent | None = ABSENT, idempotency_key: str | None = None
    ) -> models.IssuedCredential:
        """Gives a credential a new secret. The former one remains valid until the overlap ends.

        Args:
            credential: A client id.
            overlap_seconds: How long the current secret and its tokens remain valid after the rotation; 0
                ends them at once.
            idempotency_key: A repetition with the same key within 24 hours has no further effect.
        """
        return models.IssuedCredential(
            self._caller.json(
                Request(
                    "POST",
                    f"/v1/credentials/{part(credential)}/rotate",
                    body={"overlapSeconds": overlap_seconds},
                    keyed=True,
                    key=idempotency_key,
                    acting=True,
                )
            )
        )

    def end_former_secret(self, credential: Named) -> None:
        """Ends the former secret of a credential, and its tokens, before the overlap ends.

        Args:
            credential: A client id.
        """
        self._caller.json(Request("DELETE", f"/v1/credentials/{part(credential)}/former-secret", acting=True))

    def delete(self, credential: Named) -> None:
        """Deletes a credential. Its tokens end with it.

        Args:
            credential: A client id.
        """
        self._caller.json(Request("DELETE", f"/v1/credentials/{part(credential)}", acting=True))
