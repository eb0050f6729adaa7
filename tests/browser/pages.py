"""The pages of the console, each with something to look at, and the way to them."""

from __future__ import annotations

from tests.browser.conftest import Demo, Opened

PAGES = {
    "overview": "/overview",
    "jobs": "/jobs",
    "some-jobs": "/jobs?tag=finance",
    "job": "/jobs/{nightly}",
    "month": "/jobs/{nightly}#month",
    "changes": "/jobs/{nightly}#changes",
    "job-runs": "/jobs/{invoices}#runs",
    "details": "/jobs/{nightly}#details",
    "create": "/jobs/new",
    "edit": "/jobs/{nightly}/edit",
    "runs": "/runs",
    "run": "/runs/{run}",
    "errors": "/errors",
    "error-group": "/errors/{group}",
    "operations": "/operations",
    "operation": "/operations/{operation}",
    "collections": "/collections",
    "collection": "/collections/reports",
    "calendars": "/calendars",
    "calendar": "/calendars/holidays",
    "flow-keys": "/flow-keys",
    "flow-key": "/flow-keys/supplier",
    "job-sets": "/job-sets",
    "job-set": "/job-sets/crm",
    "consumers": "/consumers",
    "consumer": "/consumers/ledger",
    "redirects": "/redirects",
    "tasks": "/tasks",
    "create-task": "/jobs/new?type=ecs",
    "access": "/access",
    "not-there": "/nowhere",
}
OF_THE_PROVIDER = {
    "tenants": "/tenants",
    "tenant": "/tenants/acme",
}

GO = """to => {
    const heading = document.querySelector("main h1");
    if (new URL(to, location).pathname !== location.pathname) heading.dataset.left = "";
    history.pushState(null, "", to);
    dispatchEvent(new PopStateEvent("popstate"));
}"""

QUIET_FRAMES = 4
SETTLED = """() => {
    const there = document.querySelector("main h1:not([data-left])") && !document.querySelector(".waiting");
    window.quiet = there && window.inFlight === 0 ? (window.quiet ?? 0) + 1 : 0;
    return window.quiet > %d;
}"""


def of_somebody(opened: Opened, demo: Demo, **look):
    """Yields the name of each page with a browser that shows it: first those of a tenant, then the provider's."""
    for tenant, pages in (("acme", PAGES), ("provider", OF_THE_PROVIDER)):
        page = opened("/access", tenant=tenant, **look)
        for name, path in pages.items():
            visit(page, path.format(**demo.jobs, **demo.others))
            yield name, page


def visit(page, path):
    """Goes to a page of the console as a link does, and waits until it has read what it shows."""
    page.evaluate(GO, f"/console{path}")
    settled(page)


def settled(page):
    """Waits until the page has a heading, no request is open, and some frames later none has begun."""
    page.evaluate("() => { window.quiet = 0; }")
    page.wait_for_function(SETTLED % QUIET_FRAMES)
