"""`flow_keys`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from sweephand.sdk import models
from sweephand.sdk.sync.caller import Caller
from sweephand.sdk.sync.pages import Pages
from sweephand.sdk.transport.request import ABSENT, Absent, Json, Named, Request, Revision, part


class FlowKeys:
    """The methods of `flow_keys`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(
        self,
        *,
        name: str,
        description: str | Absent | None = ABSENT,
        rate: Json | Absent | None = ABSENT,
        parallelism: int | Absent | None = ABSENT,
        circuit: Json | Absent | None = ABSENT,
        idempotency_key: str | None = None,
    ) -> models.FlowKey:
        """Creates a flow key: a limit on the calls of all jobs that name it.

        Args:
            name: Its name, for people and for filters.
            description: Free text for people.
            rate: How many calls may begin in a period. They are evenly spaced.
            parallelism: How many calls may be open at once. A run that waits for its result counts.
            circuit: The circuit breaker, which stops calls after consecutive failures.
            idempotency_key: A repetition with the same key within 24 hours has no further effect.
        """
        return models.FlowKey(
            self._caller.json(
                Request(
                    "POST",
                    "/v1/flow-keys",
                    body={
                        "name": name,
                        "description": description,
                        "rate": rate,
                        "parallelism": parallelism,
                        "circuit": circuit,
                    },
                    keyed=True,
                    key=idempotency_key,
                    acting=True,
                )
            )
        )

    def list(
        self, *, page_size: int | None = None, max_items: int | None = None, cursor: str | None = None
    ) -> Pages[models.ListedFlowKey]:
        """Lists the tenant's flow keys.

        Args:
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return Pages(
            self._caller,
            Request("GET", "/v1/flow-keys", acting=True),
            models.ListedFlowKey,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    def get(self, flow_key: Named) -> models.FlowKey:
        """Returns a flow key, and what waits for it.

        Args:
            flow_key: The name of the flow key.
        """
        return models.FlowKey(self._caller.json(Request("GET", f"/v1/flow-keys/{part(flow_key)}", acting=True)))

    def put(
        self,
        flow_key: Named,
        *,
        name: str | Absent | None = ABSENT,
        description: str | Absent | None = ABSENT,
        rate: Json | Absent | None = ABSENT,
        parallelism: int | Absent | None = ABSENT,
        circuit: Json | Absent | None = ABSENT,
        if_match: Revision | None = None,
    ) -> models.FlowKey:
        """Replaces a flow key. Members that are left out get their defaults.

        Args:
            flow_key: The name of the flow key.
            name: Its name, for people and for filters.
            description: Free text for people.
            rate: How many calls may begin in a period. They are evenly spaced.
            parallelism: How many calls may be open at once. A run that waits for its result counts.
            circuit: The circuit breaker, which stops calls after consecutive failures.
            if_match: Changes it only if this is still its revision.
        """
        return models.FlowKey(
            self._caller.json(
                Request(
                    "PUT",
                    f"/v1/flow-keys/{part(flow_key)}",
                    body={
                        "name": name,
                        "description": description,
                        "rate": rate,
                        "parallelism": parallelism,
                        "circuit": circuit,
                    },
                    if_match=if_match,
                    acting=True,
                )
            )
        )

    def patch(
        self,
        flow_key: Named,
        *,
        name: str | Absent | None = ABSENT,
        description: str | Absent | None = ABSENT,
        rate: Json | Absent | None = ABSENT,
        parallelism: int | Absent | None = ABSENT,
        circuit: Json | Absent | None = ABSENT,
        if_match: Revision | None = None,
    ) -> models.FlowKey:
        """Changes the given members of a flow key (merge patch, RFC 7396); null removes a member.

        Args:
            flow_key: The name of the flow key.
            name: Its name, for people and for filters.
            description: Free text for people.
            rate: How many calls may begin in a period.
            parallelism: How many calls may be open at once. A run that waits for its result counts.
            circuit: The circuit breaker, which stops calls after consecutive failures.
            if_match: Changes it only if this is still its revision.
        """
        return models.FlowKey(
            self._caller.json(
                Request(
                    "PATCH",
                    f"/v1/flow-keys/{part(flow_key)}",
                    body={
                        "name": name,
                        "description": description,
                        "rate": rate,
                        "parallelism": parallelism,
                        "circuit": circuit,
                    },
                    if_match=if_match,
                    acting=True,
                )
            )
        )

    def delete(self, flow_key: Named, *, if_match: Revision | None = None) -> None:
        """Deletes a flow key that no job and no collection names.

        Args:
            flow_key: The name of the flow key.
            if_match: Changes it only if this is still its revision.
        """
        self._caller.json(Request("DELETE", f"/v1/flow-keys/{part(flow_key)}", if_match=if_match, acting=True))

    def pause(
        self, flow_key: Named, *, note: str | Absent | None = ABSENT, if_match: Revision | None = None
    ) -> models.FlowKey:
        """Pauses a flow key: calls under it wait until it is resumed.

        Args:
            flow_key: The name of the flow key.
            note: A note that says why.
            if_match: Changes it only if this is still its revision.
        """
        return models.FlowKey(
            self._caller.json(
                Request(
                    "POST", f"/v1/flow-keys/{part(flow_key)}/pause", body={"note": note}, if_match=if_match, acting=True
                )
            )
        )

    def resume(self, flow_key: Named, *, if_match: Revision | None = None) -> models.FlowKey:
        """Resumes a flow key.

        Args:
            flow_key: The name of the flow key.
            if_match: Changes it only if this is still its revision.
        """
        return models.FlowKey(
            self._caller.json(Request("POST", f"/v1/flow-keys/{part(flow_key)}/resume", if_match=if_match, acting=True))
        )
