"""How long a person waits in the console on the local stack: for the overview of 1,000 jobs, a search and a page of
10,000.

Measured in headless Chromium, from the click to the page that it shows. The stack's functions, its table and the
browser share the machine, so the longest request is named next to the whole.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from sweephand.base import ids
from sweephand.local import control
from sweephand.local.folder import StateFolder
from sweephand.local.settings import CHECKOUT, Settings
from tests.local_stack.conftest import LocalStack, start
from tests.local_stack.waiting import CLOCK
from tests.support import many_jobs

LANES, JOBS = 1_000, 10_000
ROUNDS = 9
WARM = 3
"""Rounds before those that count: they start the functions."""
BUDGETS = {"overview of 1,000 jobs, its first lanes": 600, "overview of 1,000 jobs, all": 600}
PATIENCE_MS = 60_000
GO = """async ([to, shown]) => {
    performance.clearResourceTimings();
    const began = performance.now();
    history.pushState(null, "", `/console${to}`);
    dispatchEvent(new PopStateEvent("popstate"));
    while (!document.querySelector("main")?.innerText.includes(shown)) await new Promise(requestAnimationFrame);
    const took = performance.now() - began;
    const asked = performance.getEntriesByType("resource").filter((each) => each.name.includes("/v1/"));
    return [took, asked.length, Math.max(0, ...asked.map((each) => each.responseEnd - each.startTime))];
}"""


@dataclass(frozen=True)
class Waited:
    """p50_ms, worst_ms: of the rounds. api_ms: the longest request of the median one. requests: the most of a round."""

    name: str
    p50_ms: float
    worst_ms: float
    api_ms: float
    requests: int


def measure() -> Iterator[Waited]:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        place = Settings(StateFolder(Path(folder)), CHECKOUT / "template.yaml", port=0, aws_port="0")
        running, stack = start(place)
        try:
            path = os.environ.get("CHROMIUM") or shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
            small, large = list(stack.file.tenants)[:2]
            _fill(stack, small, LANES)
            page = _signed_in(browser.new_page(base_url=stack.base_url), stack, small)
            yield _waited(page, "overview of 1,000 jobs, its first lanes", "/overview", "even-job-000001")
            yield _waited(page, "overview of 1,000 jobs, all", "/overview", "Reading it cost")
            _fill(stack, large, JOBS)
            page = _signed_in(browser.new_context(base_url=stack.base_url).new_page(), stack, large)
            yield _waited(page, "first page of 10,000 jobs", "/jobs", "10,000 jobs")
            yield _waited(page, "search in 10,000 jobs, of each hundredth", "/jobs?search=odd", "100 jobs match")
            yield _waited(page, "search in 10,000 jobs, of none", "/jobs?search=nowhere", "No job matches")
            browser.close()
        finally:
            stack.close()
            control.release(running, place, CLOCK)


def _fill(stack: LocalStack, tenant: str, count: int) -> None:
    many_jobs.put(stack.boto("dynamodb"), stack.file.table_name, many_jobs.rows(tenant, count, ids.SHARDS))


def _signed_in(page: Page, stack: LocalStack, tenant: str) -> Page:
    page.set_default_timeout(PATIENCE_MS)
    page.goto("/console/nowhere")
    credential = stack.file.tenants[tenant]
    page.get_by_label("Client id").fill(credential.client_id)
    page.get_by_label("Secret").fill(credential.secret)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("navigation", name="Pages").wait_for()
    return page


def _waited(page: Page, name: str, to: str, shown: str) -> Waited:
    found = []
    for _ in range(WARM + ROUNDS):
        found.append(page.evaluate(GO, [to, shown]))
        page.evaluate(GO, ["/nowhere", "Not there"])
    rounds = sorted(found[WARM:])
    took = [each[0] for each in rounds]
    most = max(int(each[1]) for each in rounds)
    return Waited(name, statistics.median(took), took[-1], rounds[ROUNDS // 2][2], most)
