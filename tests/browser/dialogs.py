"""Each kind of dialog of the console: the page it is on, and how it is opened."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page

from tests.browser.pages import settled, visit

Answers = Mapping[tuple[str, str], tuple[int, Any]]
"""Answers that stand in for those of the API: (method, end of the path) to (status, body)."""
SECRET = {"clientId": "acme.4f6k2m7q5t3v1x8z", "secret": "an-example-of-a-secret-that-was-never-used"}
AWAITED = {
    "id": "{run}",
    "jobId": "{invoices}",
    "jobName": "invoices",
    "kind": "manual",
    "state": "ACK_RECVD",
    "status": "RUNNING",
    "reason": None,
    "message": None,
    "attempt": 1,
    "maxAttempts": 1,
    "attempts": [],
    "plannedAt": None,
    "startedAt": None,
    "finishedAt": None,
    "latenessMs": None,
    "range": None,
    "notes": [],
}
CHANGED = """before => {
    const now = document.querySelector("dialog")?.innerText;
    return now && now !== before;
}"""
NEVER = {"code": "NEVER", "detail": "no picture needs this answer"}


@dataclass(frozen=True)
class Dialog:
    """path: of its page. opener: the name of the button, or of a menu and its button. instead: answers."""

    path: str
    opener: str | tuple[str, str]
    then: str = ""
    """A button of the dialog that leads to another one."""
    instead: Answers | None = None
    closes: str = ""
    """The button that closes it; Esc if empty."""


DIALOGS = {
    "run-now": Dialog("/jobs/{nightly}", "Run job now"),
    "pause": Dialog("/jobs/{nightly}", "Pause job"),
    "delete-job": Dialog("/jobs/{nightly}", "Delete job"),
    "keys": Dialog("/jobs/{nightly}", "Keys"),
    "many": Dialog(
        "/jobs?tag=finance", ("Do with all", "Pause them"), instead={("POST", "/v1/jobs:pause"): (200, {"count": 1})}
    ),
    "edit-and-rerun": Dialog("/runs/{run}", "Edit and rerun"),
    "report": Dialog("/runs/{run}", "Report result", instead={("GET", "/v1/runs/{run}"): (200, AWAITED)}),
    "redrive": Dialog("/errors/{group}", r"Run \d+ runs? again", instead={("POST", ":redrive"): (200, {"count": 3})}),
    "collection": Dialog("/collections", "Create collection"),
    "calendar": Dialog("/calendars/holidays", "Edit calendar"),
    "flow-key": Dialog("/flow-keys/supplier", "Edit flow key"),
    "as-json": Dialog("/flow-keys/supplier", "Edit flow key", then="Edit all members as JSON"),
    "disable": Dialog("/collections/reports", "Disable collection"),
    "redirect": Dialog("/redirects", "Create redirect"),
    "delete-consumer": Dialog("/consumers/ledger", "Delete consumer"),
    "credential": Dialog("/access", "Create credential"),
    "rotate": Dialog("/access", "Rotate secret"),
    "secret": Dialog(
        "/access",
        "Create credential",
        then="Create credential",
        instead={("POST", "/v1/credentials"): (201, SECRET)},
        closes="I stored it",
    ),
    "refused": Dialog(
        "/jobs/{nightly}",
        "Pause job",
        then="Pause job",
        instead={
            ("POST", "/pause"): (
                429,
                {"code": "RATE_LIMITED", "title": "Too many requests", "detail": "3000 requests a minute are used up"},
            )
        },
    ),
    "side-by-side": Dialog("/jobs/{nightly}/edit", "Change job", instead={("PUT", ""): (412, NEVER)}),
    "sign-in-again": Dialog("/jobs/{nightly}", "Deactivate job", instead={("POST", "/deactivate"): (401, NEVER)}),
}
"""The last one stays open: whoever goes on signs in again."""


def opened(page: Page, dialog: Dialog, ids: Mapping[str, str]) -> Callable[[], None]:
    """Opens a dialog and returns what closes it."""
    visit(page, "/nowhere")

    def stand_in(route: Any) -> None:
        request = route.request
        for (method, end), (status, body) in (dialog.instead or {}).items():
            if request.method == method and request.url.partition("?")[0].endswith(end.format(**ids)):
                route.fulfill(status=status, json=body)
                return
        route.fallback()

    page.route("**/v1/**", stand_in)
    visit(page, dialog.path.format(**ids))
    _press(page, dialog)
    shown = page.get_by_role("dialog")
    shown.wait_for()
    if dialog.then:
        before = shown.inner_text()
        shown.get_by_role("button", name=dialog.then, exact=True).click()
        page.wait_for_function(CHANGED, arg=before)
    page.wait_for_function("() => !document.querySelector('dialog').textContent.includes('…')")
    settled(page)

    def close() -> None:
        if dialog.closes:
            shown.get_by_role("button", name=dialog.closes).click()
        else:
            page.keyboard.press("Escape")
        page.unroute("**/v1/**", stand_in)

    return close


def _press(page: Page, dialog: Dialog) -> None:
    if isinstance(dialog.opener, tuple):
        label, value = dialog.opener
        page.get_by_label(re.compile(label)).click()
        page.get_by_role("button", name=value, exact=True).click()
    else:
        page.get_by_role("button", name=re.compile(f"^{dialog.opener}$")).first.click()
