"""`signing_keys`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from sweephand.sdk import models
from sweephand.sdk.sync.caller import Caller
from sweephand.sdk.sync.pages import Pages
from sweephand.sdk.transport.request import Named, Request, part


class SigningKeys:
    """The methods of `signing_keys`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(self, collection: Named, *, idempotency_key: str | None = None) -> models.IssuedSigningKey:
        """Creates a key that signs the calls of a collection's jobs. Its secret is shown once.

        Args:
            collection: The name of the collection.
            idempotency_key: A repetition with the same key within 24 hours has no further effect.
        """
        return models.IssuedSigningKey(
            self._caller.json(
                Request(
                    "POST",
                    f"/v1/collections/{part(collection)}/signing-keys",
                    keyed=True,
                    key=idempotency_key,
                    acting=True,
                )
            )
        )

    def list(
        self,
        collection: Named,
        *,
        page_size: int | None = None,
        max_items: int | None = None,
        cursor: str | None = None,
    ) -> Pages[models.SigningKey]:
        """Lists the signing keys of a collection, without their secrets.

        Args:
            collection: The name of the collection.
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return Pages(
            self._caller,
            Request("GET", f"/v1/collections/{part(collection)}/signing-keys", acting=True),
            models.SigningKey,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    def delete(self, collection: Named, key: Named) -> None:
        """Deletes a signing key. Calls are signed with the remaining keys.

        Args:
            collection: The name of the collection.
            key: The id of the key.
        """
        self._caller.json(
            Request("DELETE", f"/v1/collections/{part(collection)}/signing-keys/{part(key)}", acting=True)
        )
