"""A real browser on the local stack: one stack and one browser for the whole folder, a page for each test."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from sweephand.local import control
from sweephand.local.folder import StateFolder
from sweephand.local.settings import CHECKOUT, Settings
from tests.local_stack.conftest import LocalStack, start
from tests.local_stack.waiting import CLOCK, until
from tests.support import issuer as issuers

PICTURES = CHECKOUT / ".cache" / "pictures"
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
WITHIN_MS = 60_000
"""Many times what it takes on a quiet machine."""
COUNT_REQUESTS = """(() => {
    const own = window.fetch;
    window.inFlight = 0;
    window.fetch = async (...given) => {
        window.inFlight += 1;
        try {
            const answer = await own(...given);
            await answer.clone().arrayBuffer();
            return answer;
        } finally {
            window.inFlight -= 1;
        }
    };
})()"""
"""Counts the requests of a page that have no whole answer yet."""
HOSTILE = "<img src=x onerror=alert(1)>\u05d0 \U0001f389 "
"""A name of others: markup, a letter that is written from right to left, an emoji."""


@pytest.fixture(scope="session")
def sign_in_page() -> Iterator[dict[str, str]]:
    """An issuer at which the same person is always signed in: parameters of the template that name it."""
    with issuers.issuer() as issuer:
        challenges: dict[str, str] = {}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = dict(parse_qsl(urlsplit(self.path).query))
                assert asked["code_challenge_method"] == "S256"
                challenges["code-1"] = asked["code_challenge"]
                back = urlencode({"code": "code-1", "state": asked["state"]})
                self._answer(302, b"", Location=f"{asked['redirect_uri']}?{back}")

            def do_POST(self) -> None:
                form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
                digest = hashlib.sha256(form["code_verifier"].encode()).digest()
                right = challenges.pop(form["code"], None) == base64.urlsafe_b64encode(digest).decode().rstrip("=")
                token = issuer.token(CLOCK.now(), scope="jobs:read jobs:write")
                body = {"access_token": token, "token_type": "Bearer"} if right else {"error": "invalid_grant"}
                self._answer(200 if right else 400, json.dumps(body).encode())

            def _answer(self, status: int, body: bytes, **headers: str) -> None:
                self.send_response(status)
                shared = {"Access-Control-Allow-Origin": "*", "Content-Length": str(len(body))}
                for name, value in {**shared, **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Writes nothing."""

        with served(Handler) as url:
            yield {
                "OidcIssuers": f"{issuer.url};audience={issuers.AUDIENCE}",
                "ConsoleSignIn": f"{url}/authorize,{url}/token,console",
            }


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serves on loopback for as long as the block runs. Gives the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, sign_in_page: dict[str, str]) -> Iterator[LocalStack]:
    """The real stack, on free ports, its state in a folder of its own."""
    folder = StateFolder(tmp_path_factory.mktemp("stack"))
    place = Settings(folder, CHECKOUT / "template.yaml", port=0, aws_port="0", chosen=sign_in_page)
    running, local = start(place)
    yield local
    local.close()
    control.release(running, place, CLOCK)


@pytest.fixture(scope="session")
def target() -> Iterator[str]:
    """The address of a target: /ok answers 200, anything else 503."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = b'{"done": true}'
            self.send_response(200 if self.path == "/ok" else 503)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Writes nothing."""

    with served(Handler) as url:
        yield url


@dataclass
class Demo:
    """Ids of the tenant acme: its jobs by name; others: the failed run, its group of errors, an operation."""

    jobs: dict[str, str] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="session")
def demo(stack: LocalStack, target: str) -> Demo:
    """Jobs that show each state: a run that failed, one that is paused, one changed twice, and a hostile one."""
    acme = stack.client()
    demo = Demo()

    def make(name: str, path: str, schedules: list[Any], **more: Any) -> str:
        action = {"type": "http", "url": f"{target}{path}", "payload": {"for": name}}
        made = acme.post("/v1/jobs", json={"name": name, "action": action, "schedules": schedules, **more})
        assert made.status_code == 201, made.text
        demo.jobs[name] = made.json()["id"]
        return demo.jobs[name]

    nightly = make("nightly", "/ok", [{"name": "night", "cron": "30 2 * * *", "timezone": "Europe/Berlin"}])
    assert acme.patch(f"/v1/jobs/{nightly}", json={"description": "Sends the report"}).status_code == 200
    failing = make("invoices", "/fail", [], tags=["finance"])
    run = acme.post(f"/v1/jobs/{failing}/run").json()["runId"]
    again = acme.post(f"/v1/jobs/{make('payments', '/fail', [])}/run").json()["runId"]
    good = make("orders", "/ok", [{"every": "PT20M"}])
    acme.post(f"/v1/jobs/{good}/run")
    paused = make("backup", "/ok", [{"every": "PT1H"}])
    acme.post(f"/v1/jobs/{paused}/pause", json={"note": "waits for the new contract"})
    make(HOSTILE + "x" * 60, "/ok", [], description=HOSTILE * 20)
    for each in (run, again):
        until(lambda each=each: acme.get(f"/v1/runs/{each}").json(), lambda found: found["status"] == "COMPLETED")
    groups = until(lambda: acme.get("/v1/errors", params={"jobId": failing}).json()["items"])
    until(lambda: acme.get("/v1/errors", params={"jobId": demo.jobs["payments"]}).json()["items"])
    demo.others = {"run": run, "group": groups[0]["id"]} | _shelf(
        acme, demo.jobs, {"type": "http", "url": f"{target}/ok"}
    )
    return demo


def _shelf(acme: httpx.Client, jobs: Mapping[str, str], action: Mapping[str, Any]) -> dict[str, str]:
    """Makes one of each kind of resource that has a page, and returns the ids of those that no name leads to."""
    for path, body in {
        "collections": {"name": "reports", "quota": {"maxJobs": 40}},
        "calendars": {"name": "holidays", "dates": ["12-25"], "weekly": [{"days": ["SAT", "SUN"]}]},
        "flow-keys": {"name": "supplier", "rate": {"limit": 60, "periodSeconds": 60}, "parallelism": 3},
        "collections/reports/signing-keys": {},
    }.items():
        made = acme.post(f"/v1/{path}", json=body)
        assert made.status_code == 201, made.text
    for path, body in {
        "consumers/ledger/lease": {"holder": "ledger-1"},
        "job-sets/crm": {"jobs": [{"key": "sync", "name": "crm-sync", "action": action}]},
        f"error-redirects/{jobs['payments']}": {"to": jobs["orders"]},
    }.items():
        put = acme.put(f"/v1/{path}", json=body)
        assert put.status_code in {200, 201}, put.text
    long_work = acme.post("/v1/jobs:resume?tag=finance&expectedCount=1", json={}, headers={"Idempotency-Key": "shelf"})
    assert long_work.status_code == 202, long_work.text
    return {"operation": long_work.json()["operation"]["id"]}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, or the one that CHROMIUM names. Without one the tests fail; they never skip."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.fail("There is no Chromium: install one (Debian: apt-get install chromium), or name it in CHROMIUM.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


Opened = Callable[..., Page]


@pytest.fixture
def visitor(browser: Browser, stack: LocalStack) -> Iterator[Callable[..., BrowserContext]]:
    """visitor(): a browser of somebody's own, in Berlin. more: further options of a context."""
    contexts: list[BrowserContext] = []

    def make(**more: Any) -> BrowserContext:
        options = {"timezone_id": "Europe/Berlin", "locale": "en-GB", "viewport": {"width": 1280, "height": 800}}
        context = browser.new_context(base_url=stack.base_url, reduced_motion="reduce", **{**options, **more})
        context.set_default_timeout(WITHIN_MS)
        context.add_init_script(COUNT_REQUESTS)
        contexts.append(context)
        return context

    yield make
    for context in contexts:
        context.close()


def sign_in(page: Page, credential: Any) -> Page:
    """Signs in on a page that shows the form, and waits for the page that was asked for."""
    page.get_by_label("Client id").fill(credential.client_id)
    page.get_by_label("Secret").fill(credential.secret)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("navigation", name="Pages").wait_for()
    return page


@pytest.fixture
def opened(visitor: Callable[..., BrowserContext], stack: LocalStack) -> Iterator[Opened]:
    """opened("/jobs"): a page of the console, signed in as acme. Fails the test for any error in the page's console."""
    errors: list[str] = []

    def open_(path: str, tenant: str = "acme", **more: Any) -> Page:
        page = visitor(**more).new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        page.goto(f"/console{path}")
        credential = stack.file.provider if tenant == "provider" else stack.file.tenants[tenant]
        sign_in(page, credential)
        page.locator("main h1").first.wait_for()
        return page

    yield open_
    assert [error for error in errors if not error.startswith("Failed to load resource")] == []


def picture(page: Page, name: str) -> Path:
    """Writes a picture of the page for people to look at."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    path = PICTURES / f"{name}.png"
    page.screenshot(path=path)
    return path
