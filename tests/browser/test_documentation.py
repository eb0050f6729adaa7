"""The documentation's site in a real browser: it fits a phone, asks nobody else, can be searched and read aloud."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from sweephand.local.settings import CHECKOUT
from tests.browser.conftest import picture

PAGES = (
    "index",
    "guide/first-steps",
    "guide/how-do-i",
    "guide/not-run",
    "guide/signatures",
    "recipes/alerts",
    "operate/costs",
    "concepts/states",
    "concepts/clock-changes",
    "guide/schedules",
    "reference/api",
    "reference/operations/flow-keys",
    "reference/azure",
    "reference/error-codes",
    "reference/sap",
    "security",
)
TASKS = {
    "send a report each first working day at 9 in New York": "guide/calendars.html#first-working-day-of-the-month",
    "why was this run skipped?": "guide/not-run.html#why-was-this-run-skipped",
    "rotate the signing key": "guide/signatures.html#rotate-the-signing-key",
    "move 40 SAP jobs": "migrate/sap.html",
    "what does a million cost?": "operate/costs.html",
    "receive a webhook and check its signature": "guide/signatures.html#verify-a-call",
    "be told when a job fails three times": "recipes/alerts.html",
    "pause all jobs of one customer": "guide/collections.html#disable-a-collection",
    "run a job in a test without waiting": "recipes/moved-clock.html",
    "what happens at 02:30 when the clocks change?": "concepts/clock-changes.html",
    "delete customer GDPR": "guide/delete-customer.html#delete-a-tenant",
    "upgrade": "operate/upgrade.html",
    "rate limit": "guide/flow-keys.html",
    "QUOTA_EXCEEDED": "reference/error-codes.html#quota-exceeded",
    "alarm": "operate/look-after.html#alarms",
    "export CSV": "guide/export.html#as-a-file",
    "Kubernetes": "guide/worker.html",
    "Terraform": "recipes/jobs-as-code.html",
    "API key": "guide/authentication.html",
    "single sign-on SSO": "guide/identity.html",
    "task in Python every 5 minutes": "guide/worker.html",
    "survive a deployment": "guide/worker-deployments.html#deployments",
    "delete all data of one customer": "guide/delete-customer.html",
    "dead letters are not empty": "operate/dead-letters.html",
    "02:30": "concepts/clock-changes.html",
    "2:30": "concepts/clock-changes.html",
    "02:30 Berlin": "concepts/clock-changes.html",
    "call a Lambda function every 10 minutes": "guide/targets.html#call-a-lambda-function-every-10-minutes",
    "my target takes only 5 calls a second": "guide/flow-keys.html#what-counts",
    "customer only its own jobs": "guide/tenants.html#create-a-tenant",
    "test last day of month": "recipes/moved-clock.html#test-the-last-day-of-each-month",
    "run once on three servers": "guide/worker.html",
    "restore deleted table": "operate/backup.html#restore-a-deleted-table",
    "restore deleted stack": "operate/backup.html#restore-a-deleted-stack",
    "IAM permissions": "guide/operating.html#iam-permissions-to-deploy",
    "better than EventBridge Scheduler": "guide/compared.html#when-not-to-use-it",
    "price of a million runs": "operate/costs.html#a-million-runs",
    "migrate SAP": "migrate/sap.html",
    "daylight saving": "concepts/clock-changes.html",
    "flexible time window": "guide/schedules.html#choose-a-notation",
    "dead-letter queue of a schedule": "guide/retries.html#an-error-action",
    "callback of an asynchronous job": "recipes/long-work.html",
    "delete old run logs": "guide/collections.html#settings",
    "error action when the job fails": "guide/retries.html#an-error-action",
    "durable timeout of a saga": "migrate/nservicebus.html#replace-a-saga-s-timeout-with-a-one-time-job",
    "eta countdown": "guide/notations.html#at-once",
    "flock prevent a second instance": "guide/overlap.html",
    "every second Friday": "guide/notations.html",
    "cancel a running job": "guide/retries.html#which-result-counts",
    "which version is installed": "operate/look-after.html#health",
}
"""Tasks in the words of people who do not know the project, with the page that answers them."""
LOOKS = {"wide-dark": (1280, "dark", PAGES[:3]), "phone-light": (390, "light", PAGES)}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Writes nothing."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of the built site."""
    built = subprocess.run(["make", "--silent", "site"], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    folder = CHECKOUT / ".cache" / "site"
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize("look", LOOKS)
def test_pages_fit_their_window_and_work_with_a_screen_reader(browser: Browser, site: str, look: str):
    width, scheme, pages = LOOKS[look]
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    serious, wide = {}, {}

    for name in pages:
        page.goto(f"{site}/{name}.html")
        picture(page, f"site-{name.replace('/', '-')}-{look}")
        found = Axe().run(page).response["violations"]
        serious[name] = [
            (each["id"], each["nodes"][0]["html"][:200]) for each in found if each["impact"] in {"serious", "critical"}
        ]
        wide[name] = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    page.close()

    assert {name: each for name, each in serious.items() if each} == {}
    assert {name: by for name, by in wide.items() if by > 0} == {}
    assert [url for url in asked if not url.startswith(site)] == []


def test_the_search_finds_the_page_of_a_reason(browser: Browser, site: str):
    page = browser.new_page()
    page.goto(f"{site}/index.html")

    page.get_by_placeholder("Search").fill("MAX_LATENESS")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="My job did not run").first.wait_for()

    page.close()


def test_each_task_is_answered_within_three_clicks_of_the_search(browser: Browser, site: str):
    """The search, one of its first three results, and at most one link of that page."""
    page = browser.new_page()
    unanswered = []

    for task, answer in TASKS.items():
        page.goto(f"{site}/index.html")
        page.get_by_placeholder("Search").fill(task)
        page.keyboard.press("Enter")
        page.locator("#search-results .search-summary").get_by_text("Search finished").wait_for()
        results = page.locator("#search-results ul.search > li > a")
        first = [results.nth(i).evaluate("each => each.href") for i in range(min(3, results.count()))]
        for address in first:
            page.goto(address.partition("?")[0])
            links = page.locator("article a").evaluate_all("all => all.map((each) => each.href)")
            if f"{site}/{answer}" in [page.url, page.url.partition("#")[0], *links]:
                break
        else:
            unanswered.append((task, first))
    page.close()

    assert unanswered == []
