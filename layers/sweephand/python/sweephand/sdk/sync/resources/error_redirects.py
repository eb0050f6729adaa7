"""`error_redirects`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from sweephand.sdk import models
from sweephand.sdk.sync.caller import Caller
from sweephand.sdk.sync.pages import Pages
from sweephand.sdk.transport.request import Named, Request, part


class ErrorRedirects:
    """The methods of `error_redirects`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self, *, page_size: int | None = None, max_items: int | None = None, cursor: str | None = None
    ) -> Pages[models.Redirect]:
        """Lists the redirects: the jobs whose failed runs are run again by another job.

        Args:
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return Pages(
            self._caller,
            Request("GET", "/v1/error-redirects", acting=True),
            models.Redirect,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    def put(self, job: Named, to: str) -> models.Redirect:
        """Redirects a job: when its failed runs are run again, another job runs them.

        Args:
            job: The id of the job.
            to: The job that runs them. It must not be redirected itself.
        """
        return models.Redirect(
            self._caller.json(Request("PUT", f"/v1/error-redirects/{part(job, 'jobId')}", body={"to": to}, acting=True))
        )

    def delete(self, job: Named) -> None:
        """Deletes a redirect. Runs that were already redirected stay as they are.

        Args:
            job: The id of the job.
        """
        self._caller.json(Request("DELETE", f"/v1/error-redirects/{part(job, 'jobId')}", acting=True))
