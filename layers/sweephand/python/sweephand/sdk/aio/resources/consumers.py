"""`consumers`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from sweephand.sdk import models
from sweephand.sdk.aio.caller import AsyncCaller
from sweephand.sdk.aio.pages import AsyncPages
from sweephand.sdk.transport.request import ABSENT, Absent, Named, Request, part


class AsyncConsumers:
    """The methods of `consumers`."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self, *, page_size: int | None = None, max_items: int | None = None, cursor: str | None = None
    ) -> AsyncPages[models.Consumer]:
        """Lists consumers, each with its state and the number of runs held for it.

        Args:
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return AsyncPages(
            self._caller,
            Request("GET", "/v1/consumers", acting=True),
            models.Consumer,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    async def get(self, consumer: Named) -> models.Consumer:
        """Returns a consumer with its state, its lease and the runs held for it.

        Args:
            consumer: The name of the consumer, as in the jobs' actions.
        """
        return models.Consumer(await self._caller.json(Request("GET", f"/v1/consumers/{part(consumer)}", acting=True)))

    async def delete(self, consumer: Named, *, force: bool | None = None) -> None:
        """Deletes a consumer. The runs held for it end as MISSED, with one event for each job.

        Args:
            consumer: The name of the consumer, as in the jobs' actions.
            force: Deletes the consumer even if somebody holds its lease, or jobs name it.
        """
        await self._caller.json(
            Request("DELETE", f"/v1/consumers/{part(consumer)}", query={"force": force}, acting=True)
        )

    async def take_lease(
        self, consumer: Named, *, holder: str, seconds: int | Absent | None = ABSENT
    ) -> models.Consumer:
        """Takes the lease of a consumer, or extends it (heartbeat). Refused while another process holds it.

        Args:
            consumer: The name of the consumer, as in the jobs' actions.
            holder: A unique name of the process.
            seconds: How long the lease lasts unless it is extended.
        """
        return models.Consumer(
            await self._caller.json(
                Request(
                    "PUT",
                    f"/v1/consumers/{part(consumer)}/lease",
                    body={"holder": holder, "seconds": seconds},
                    acting=True,
                )
            )
        )

    async def release_lease(self, consumer: Named, *, holder: str | None = None) -> None:
        """Releases the lease of a consumer. From then on, its events are held.

        Args:
            consumer: The name of the consumer, as in the jobs' actions.
            holder: The holder of the lease.
        """
        await self._caller.json(
            Request("DELETE", f"/v1/consumers/{part(consumer)}/lease", query={"holder": holder}, acting=True)
        )

    async def start(self, consumer: Named, *, holder: str) -> models.Consumer:
        """Starts a consumer: sends what it missed, oldest first, then live events.

        Args:
            consumer: The name of the consumer, as in the jobs' actions.
            holder: A unique name of the process.
        """
        return models.Consumer(
            await self._caller.json(
                Request("POST", f"/v1/consumers/{part(consumer)}/start", body={"holder": holder}, acting=True)
            )
        )
